// Datasets of the files that --data and --test-data name.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "commands/train/data/class_names.h"
#include "commands/train/data/data_flags.h"
#include "commands/train/data/picture_files.h"
#include "commands/train/data/sample_column.h"
#include "heddle/dataset.h"
#include "heddle/limits.h"
#include "heddle/session.h"

namespace heddle::tool {

// Keeps, from one dataset to the next, which number each class has: that of the first dataset, with which the net learns.
class TrainingData {
 public:
  TrainingData(const DataFlags& flags, const Limits& limits) : flags_(flags), limits_(limits) {}
  // `tests`: of --test-data, whose samples are not changed at random. Errors: missing_input, unknown_name, shape_mismatch, dtype_mismatch,
  // invalid_argument, those of files.
  Result<std::shared_ptr<const Dataset>> read(bool tests, const std::vector<PortInfo>& inputs, uint64_t seed);
  // By input that has classes: their names, in the order of their numbers.
  const std::map<std::string, ClassNames>& classes() const { return classes_; }
  // The paths of all pictures.
  const std::vector<std::string>& pictures() const { return pictures_; }

 private:
  struct Source;
  Result<std::vector<Source>> sources_of(bool tests, const std::vector<PortInfo>& inputs) const;
  Result<std::shared_ptr<const SampleColumn>> column(const Source& source);
  Result<std::shared_ptr<const SampleColumn>> column_of_pictures(const Source& source);
  Result<std::shared_ptr<const SampleColumn>> column_of_classes(const Source& source, std::vector<std::string> texts);
  Status check_pictures(const std::vector<NamedColumn>& columns) const;
  Status add_ragged(const std::vector<Source>& sources, std::vector<NamedColumn>* columns);
  Status synthesize(const std::string& option, const std::vector<PortInfo>& inputs, uint64_t seed, std::vector<NamedColumn>* columns);
  Result<const PictureFiles*> pictures_of(const std::string& folder);

  const DataFlags& flags_;
  const Limits& limits_;
  std::map<std::string, ClassNames> classes_;
  std::vector<std::string> pictures_;
  std::map<std::string, PictureFiles> folders_;  // that were listed
  int64_t max_shift_ = 0;                        // of tokens, in the dataset that is read
};

// Returns the files that reading the specs would read; of a folder, the folder.
std::vector<std::string> files_of(const std::vector<std::string>& specs);

}  // namespace heddle::tool
