#include "common/standard_streams.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/text/text.h"
#include "process/interrupt.h"
#include "process/scratch_folder.h"

namespace heddle::tool {
namespace {

bool reader_has_left = false;  // of standard output, before all was written

constexpr const char* standard_input_name = "standard input";

std::string name_of(const std::string& file) {
  return file == "-" || file == "/dev/stdin" ? standard_input_name : quoted(file);
}

// Returns the beginning of a file or stream as what kind of file it is; empty: none that is known.
std::string kind_of(std::span<const std::byte> bytes) {
  const auto* const text = reinterpret_cast<const char*>(bytes.data());
  const auto begins = [&](std::string_view with) {
    return bytes.size() >= with.size() && std::memcmp(text, with.data(), with.size()) == 0;
  };
  if (begins("\x93NUMPY")) return ".npy";
  if (begins("\xFF\xD8\xFF")) return ".jpg";
  if (begins("\x89PNG\r\n")) return ".png";
  if (bytes.size() > 8 && text[8] == '{') {  // after the length of the header
    uint64_t length = 0;
    std::memcpy(&length, text, sizeof(length));
    if (length <= bytes.size() - 8) return ".safetensors";
  }
  constexpr size_t looked_at = 512;
  const auto is_text = [](char c) { return std::isprint(static_cast<unsigned char>(c)) != 0 || std::strchr("\t\r\n", c) != nullptr; };
  const std::string_view first(text, std::min(bytes.size(), looked_at));
  if (!first.empty() && std::all_of(first.begin(), first.end(), is_text) && first.find_first_of("0123456789") != std::string_view::npos)
    return ".csv";
  return {};
}

bool says_its_kind(const std::string& argument) {
  for (const char* const part : {".safetensors:", ".csv:"})
    if (argument.find(part) != std::string::npos) return true;
  std::string extension = std::filesystem::path(argument).extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const char* const known : {".npy", ".pb", ".safetensors", ".csv", ".jpg", ".jpeg", ".png"})
    if (extension == known) return true;
  return false;
}

// The other end of a pipe that was opened without waiting for it.
class Writer {
 public:
  explicit Writer(int pipe) : pipe_(pipe) {}
  // Must be called when the pipe is at its end: whether that is so because its writer has ended. One that has not come yet has half a
  // second.
  bool has_ended(bool nothing_yet) {
    using std::chrono::milliseconds;
    if (came_ || !nothing_yet || std::chrono::steady_clock::now() - begun_ > milliseconds(500)) return true;
    std::this_thread::sleep_for(milliseconds(5));
    return false;
  }
  // Must be called when the pipe is empty and has a writer.
  void await() {
    came_ = true;
    pollfd data = {pipe_, POLLIN, 0};
    ::poll(&data, 1, 100);
  }
  bool came() const { return came_; }

 private:
  const int pipe_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  bool came_ = false;
};

Result<std::vector<std::byte>> read_to_the_end(const std::string& file, int64_t limit_bytes, const char* limit_name) {
  const bool is_input = file == "-";
  FileDescriptor opened;
  if (!is_input) opened = FileDescriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  const int from = is_input ? STDIN_FILENO : opened.get();
  if (from < 0) return Status(Code::file_unreadable, fmt::format("can't open {}: {}", name_of(file), errno_text(errno)));
  if (::isatty(from) != 0)
    return Status(Code::file_unreadable, fmt::format("{} is a terminal", name_of(file)), "give it a pipe or a file: heddle ... - < FILE");
  constexpr size_t step = size_t{1} << 20;
  std::vector<std::byte> bytes;
  Writer writer(from);
  for (;;) {
    const size_t done = bytes.size();
    if (static_cast<int64_t>(done) > limit_bytes)
      return Status(Code::limit_exceeded, fmt::format("{} has more than {} ({})", name_of(file), human_bytes(limit_bytes), limit_name),
                    fmt::format("raise the limit with --limit {}=N", limit_name));
    bytes.resize(done + step);
    const ssize_t n = ::read(from, bytes.data() + done, step);
    const int error = errno;
    bytes.resize(done + static_cast<size_t>(std::max<ssize_t>(n, 0)));
    HEDDLE_CHECK(interruption());
    if (n == 0 && (is_input || writer.has_ended(bytes.empty()))) {
      if (is_input || !bytes.empty() || writer.came()) return bytes;
      return Status(Code::file_unreadable, fmt::format("{} is a pipe to which no program writes", name_of(file)), "start its writer first");
    }
    if (n < 0 && error == EAGAIN) writer.await();
    if (n < 0 && error != EINTR && error != EAGAIN)
      return Status(Code::file_unreadable, fmt::format("can't read {}: {}", name_of(file), errno_text(error)));
  }
}

// The copies of this process, removed at its end.
std::filesystem::path copies() {
  static const ScratchFolder folder;
  return folder.path();
}

}  // namespace

bool is_stream(const std::string& file) {
  if (file == "-") return true;
  struct stat there = {};
  if (::stat(file.c_str(), &there) != 0) return false;
  return S_ISFIFO(there.st_mode) || S_ISSOCK(there.st_mode) || (file == "/dev/stdin" && !S_ISREG(there.st_mode));
}

Result<std::span<const std::byte>> stream_bytes(const std::string& file, int64_t limit_bytes, const char* limit_name) {
  static std::map<std::string, std::vector<std::byte>> kept;
  const std::string key = file == "/dev/stdin" ? "-" : file;
  const auto found = kept.find(key);
  if (found != kept.end()) return std::span<const std::byte>(found->second);
  HEDDLE_TRY(std::vector<std::byte> bytes, read_to_the_end(key, limit_bytes, limit_name));
  return std::span<const std::byte>(kept.emplace(key, std::move(bytes)).first->second);
}

Result<std::string> named_by_content(const std::string& argument, int64_t limit_bytes) {
  const bool streams = is_stream(argument);
  if (!streams && says_its_kind(argument)) return argument;
  std::span<const std::byte> bytes;
  FileBytes of_file;
  if (streams) {
    HEDDLE_TRY(bytes, stream_bytes(argument, limit_bytes, "weight_file_bytes"));
  } else {
    HEDDLE_TRY(of_file, read_file(argument, limit_bytes, "weight_file_bytes"));
    bytes = of_file.span();
  }
  const std::string kind = kind_of(bytes);
  if (kind.empty())
    return Status(Code::invalid_argument,
                  fmt::format("{} holds {}", name_of(argument), bytes.empty() ? "nothing" : "no kind of tensor or picture that is known"),
                  "give it .npy, .safetensors, .csv, JPEG or PNG");
  static int count = 0;
  const std::string copy = (copies() / fmt::format("{}_{}{}", streams ? "stream" : "content", count++, kind)).string();
  HEDDLE_TRY(FileReplacement out, FileReplacement::create(copy));
  HEDDLE_CHECK(out.write(bytes));
  HEDDLE_CHECK(out.commit());
  return copy;
}

bool takes_bytes_as_they_come(const std::string& file) {
  struct stat there = {};
  return is_standard_output(file) || (::stat(file.c_str(), &there) == 0 && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode));
}

bool is_standard_output(const std::string& file) {
  return file == "-" || file == "/dev/stdout" || file == "/dev/fd/1" || file == "/proc/self/fd/1";
}

bool has_lost_reader() {
  return reader_has_left;
}

namespace {

Status write_bytes(int to, const std::string& file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(to, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EPIPE && to == STDOUT_FILENO) {
      reader_has_left = true;
      return {};
    }
    if (n < 0) return {Code::file_unwritable, fmt::format("can't write {}: {}", quoted(file), errno_text(errno)), "look at its reader"};
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return {};
}

}  // namespace

// A named pipe is opened once. Its reader sees the end of the file when a writer closes it, and may be gone when a second one opens it.
Status write_output(const std::string& file, std::initializer_list<std::span<const std::byte>> parts) {
  if (!takes_bytes_as_they_come(file)) {
    HEDDLE_TRY(FileReplacement out, FileReplacement::create(file));
    for (const std::span<const std::byte> part : parts) HEDDLE_CHECK(out.write(part));
    return out.commit();
  }
  FileDescriptor opened;
  if (!is_standard_output(file)) opened = FileDescriptor(::open(file.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  const int to = is_standard_output(file) ? STDOUT_FILENO : opened.get();
  if (to < 0) return {Code::file_unwritable, fmt::format("can't open {}: {}", quoted(file), errno_text(errno))};
  for (const std::span<const std::byte> part : parts) HEDDLE_CHECK(write_bytes(to, file, part));
  return {};
}

Status write_output(const std::string& file, std::string_view text) {
  return write_output(file, {std::as_bytes(std::span(text))});
}

}  // namespace heddle::tool
