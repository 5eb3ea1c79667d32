#include "commands/train/training_log.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/file.h"
#include "base/text/text.h"

namespace heddle::tool {

namespace {

constexpr int64_t max_log_bytes = int64_t{1} << 32;

// Returns how much of the log is of the first `steps` steps: whole lines, up to the first that is of a later one or no line of a log.
size_t bytes_to_keep(std::string_view text, int64_t steps) {
  size_t kept = 0;
  for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n', kept)) {
    const Json line = Json::parse(text.substr(kept, end - kept), nullptr, false);
    if (!line.is_object() || !line.contains("step") || !line["step"].is_number_integer() || line["step"].get<int64_t>() > steps) break;
    kept = end + 1;
  }
  return kept;
}

}  // namespace

Status TrainingLog::open(const std::string& file, int64_t steps) {
  // Opening a pipe without a reader would block.
  std::error_code error;
  if (std::filesystem::is_fifo(file, error) && !FileDescriptor(::open(file.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)).valid())
    return {Code::file_unwritable, fmt::format("{} is a pipe that no program reads", quoted(file)), "start its reader first"};
  if (steps > 0 && std::filesystem::is_regular_file(file, error)) {
    HEDDLE_TRY(const FileBytes bytes, read_file(file, max_log_bytes));
    const std::string_view text(reinterpret_cast<const char*>(bytes.data.get()), bytes.size);
    HEDDLE_TRY(FileReplacement shorter, FileReplacement::create(file));
    HEDDLE_CHECK(shorter.write(text.substr(0, bytes_to_keep(text, steps))));
    HEDDLE_CHECK(shorter.commit());
    stream_.open(file, std::ios::app);
  } else {
    stream_.open(file, std::ios::trunc);
  }
  file_ = file;
  return stream_ ? Status() : Status(Code::file_unwritable, fmt::format("could not open {}", quoted(file)), "look at the folder");
}

Status TrainingLog::write(const Json& line) {
  if (file_.empty()) return {};
  stream_ << line.dump() << '\n' << std::flush;
  return stream_ ? Status() : Status(Code::file_unwritable, fmt::format("could not write {}", quoted(file_)), "look at the disk");
}

}  // namespace heddle::tool
