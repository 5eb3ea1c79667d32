// The log of a training: a line of JSON for each step and each evaluation.
#pragma once

#include <fstream>
#include <string>

#include "common/command.h"
#include "heddle/status.h"

namespace heddle::tool {

class TrainingLog {
 public:
  // Replaces the file. Errors: file_unwritable (a pipe that has no reader, too).
  Status open(const std::string& file);
  // Writes a line and flushes it; nothing if no file was opened. Errors: file_unwritable.
  Status write(const Json& line);

 private:
  std::string file_;
  std::ofstream stream_;
};

}  // namespace heddle::tool
