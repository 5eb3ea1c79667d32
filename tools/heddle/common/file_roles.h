// Which files a command reads and which it writes: nothing is written over what is read, and no two things into one file.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "heddle/status.h"

namespace heddle::tool {

// Files are the same whatever their names are: links, hard links and ".." lead to one. Not synchronised.
class FileRoles {
 public:
  void reads(const std::filesystem::path& file);
  // To be asked before anything is written. `what` names it: "--trace". Errors: invalid_argument.
  Status writes(const std::string& what, const std::filesystem::path& file);

 private:
  struct Role {
    bool read = false;
    std::string what;  // is written there
    std::filesystem::path file;
  };
  std::map<std::string, Role> roles_;  // by what the file is
};

}  // namespace heddle::tool
