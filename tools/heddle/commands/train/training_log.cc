#include "commands/train/training_log.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <filesystem>

#include "base/file.h"
#include "base/text/text.h"

namespace heddle::tool {

Status TrainingLog::open(const std::string& file) {
  // Opening a pipe without a reader would block.
  if (std::filesystem::is_fifo(file) && !FileDescriptor(::open(file.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)).valid())
    return {Code::file_unwritable, fmt::format("{} is a pipe that no program reads", quoted(file)), "start its reader first"};
  stream_.open(file, std::ios::trunc);
  file_ = file;
  return stream_ ? Status() : Status(Code::file_unwritable, fmt::format("could not open {}", quoted(file)), "look at the folder");
}

Status TrainingLog::write(const Json& line) {
  if (file_.empty()) return {};
  stream_ << line.dump() << '\n' << std::flush;
  return stream_ ? Status() : Status(Code::file_unwritable, fmt::format("could not write {}", quoted(file_)), "look at the disk");
}

}  // namespace heddle::tool
