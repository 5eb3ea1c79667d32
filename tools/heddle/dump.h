// run --dump: every operator's outputs as files.
#pragma once

#include <map>
#include <string>

#include "run/execution.h"

namespace heddle::tool {

// A name of its own for every tensor of a folder: characters that file systems know otherwise become '_', and who comes second to a name
// gets a number. The same `owner` always gets the same name.
class FileNames {
 public:
  std::string of(const std::string& name, const std::string& owner);

 private:
  std::map<std::string, std::string> owners_;  // by file name
};

class Dump {
 public:
  // Makes the folder. `only`: the operators of this name or type alone; empty: all.
  static Status create(const std::string& folder, const std::string& only, Dump* dump);
  // The outputs of a step that has just run, as .npy, row-major whatever their layout.
  Status write(Execution& execution, uint32_t step);

 private:
  std::string folder_, only_;
  FileNames names_;
};

}  // namespace heddle::tool
