// The log of a training: a line of JSON for each step and each evaluation.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#include "common/command.h"
#include "heddle/status.h"

namespace heddle::tool {

class TrainingLog {
 public:
  // Continues the log of a training after that many steps: lines of later steps, which will be made again, and a line that is not complete
  // are removed. After 0 steps all are. Errors: file_unwritable (a pipe that has no reader, too), file_unreadable, limit_exceeded.
  Status open(const std::string& file, int64_t steps);
  // Writes a line and flushes it; nothing if no file was opened. Errors: file_unwritable.
  Status write(const Json& line);
  bool has_failed() const { return !file_.empty() && !stream_; }

 private:
  std::string file_;
  std::ofstream stream_;
};

}  // namespace heddle::tool
