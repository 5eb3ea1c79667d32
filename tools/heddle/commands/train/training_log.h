// The log of a training: a line for each step and each test, of JSON or, in a file that ends in .csv, of a table (csv_log.h).
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "commands/train/csv_log.h"
#include "commands/train/training_curves.h"
#include "heddle/status.h"
#include "heddle/trainer.h"

namespace heddle::tool {

class TrainingLog {
 public:
  // Whether a log in that file is a table.
  static bool is_table(const std::string& file) { return file.ends_with(".csv"); }
  // `means`: the names of the means of tests, for a table, whose columns they are.
  TrainingLog(std::string file, const std::vector<std::string>& means);
  // Continues the log of a training after that many steps: lines of later steps, which will be made again, and a line that is not complete
  // are removed. After 0 steps all are. Adds the numbers of the lines that stay. Errors: invalid_argument (a table
  // has other columns); file_unwritable (a pipe that has no reader, too), file_unreadable, limit_exceeded.
  Status open(int64_t steps, TrainingCurves* curves);
  // Write a line and flush it; nothing if there is no file. Errors: file_unwritable.
  Status write(const TrainingStep& step, bool test_follows);
  Status write(const Evaluation& test, int64_t epoch);
  // Completes the last line. Errors: file_unwritable.
  Status finish();
  bool has_failed() const { return stream_.is_open() && !stream_; }

 private:
  Result<size_t> bytes_to_keep(std::string_view text, int64_t steps, TrainingCurves* curves);
  Status write_text(const std::string& text);

  std::string file_;  // empty: there is none
  bool is_table_ = false;
  CsvLog table_;
  std::ofstream stream_;
};

}  // namespace heddle::tool
