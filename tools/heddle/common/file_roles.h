// The files that a command reads and writes: no file that is read is written over, and no two outputs go to one file.
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
  // Must be called before anything is written. `what` names the output: "--trace". Errors: invalid_argument.
  Status writes(const std::string& what, const std::filesystem::path& file);
  // Whether an output goes to standard output.
  bool uses_standard_output() const { return roles_.contains(standard_output_key); }

 private:
  struct Role {
    bool read = false;
    std::string what;  // the output that is written there
    std::filesystem::path file;
  };
  static constexpr const char* standard_output_key = "standard output";
  static std::string key_of(const std::filesystem::path& file);
  std::map<std::string, Role> roles_;  // by the key of the file
};

}  // namespace heddle::tool
