// run --dump: every operator's outputs as files.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "common/file_roles.h"
#include "heddle/session.h"

namespace heddle::tool {

// Gives every tensor of a folder a name of its own: file_name_of (base/text/text.h), and a number for the second tensor of a name. The same
// `owner` always gets the same name.
class FileNames {
 public:
  std::string of(const std::string& name, const std::string& owner);

 private:
  std::map<std::string, std::string> owners_;  // by file name
};

class Dump {
 public:
  // Makes the folder. `only`: only the operators of this name or type, fused ones by the step that contains them; empty: all. Errors:
  // unknown_name, file_unwritable, invalid_argument (a file that is read would be written over).
  static Status create(const std::string& folder, const std::string& only, std::shared_ptr<const PlanInfo> plan, FileRoles& roles,
                       Dump* dump);
  // Writes the outputs of a step that has just run, as .npy, row-major whatever their layout. Files are named after the operator that has
  // these outputs: the last one of a fused step.
  Status write(StepView& view);

 private:
  // The file of output `k` of a step.
  std::filesystem::path file(size_t step, size_t k);

  std::shared_ptr<const PlanInfo> plan_;
  std::string folder_, only_;
  FileNames names_;
};

}  // namespace heddle::tool
