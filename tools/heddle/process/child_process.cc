#include "process/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <utility>

#include "process/interrupt.h"

namespace heddle::tool {
namespace {

// A message is preceded by its length in these bytes.
using Length = uint64_t;
constexpr Length longest_message = Length{1} << 26;  // a longer one was written by a plugin that found the pipe

void write_all(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t n = ::write(fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) ::_exit(1);  // the reader has closed the pipe
    data += n;
    size -= static_cast<size_t>(n);
  }
}

// Sets up the child: signals have their default effect there, except for those of the terminal, which only the tool handles.
void settle_in(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  for (const int signal : {SIGTERM, SIGALRM, SIGBUS}) std::signal(signal, SIG_DFL);
  for (const int signal : {SIGINT, SIGHUP}) std::signal(signal, SIG_IGN);
  // When memory runs out, this process should be killed: the tool can still report which one it was.
  const FileDescriptor score(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  if (score.valid() && ::write(score.get(), "1000", 4) < 0) errno = 0;  // not vital
}

}  // namespace

Result<ChildProcess> ChildProcess::start(const std::function<void(const Send&)>& work) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Status(Code::internal, fmt::format("no pipe to a child process: {}", errno_text(errno)));
  FileDescriptor from(ends[0]), to(ends[1]);
  std::fflush(nullptr);  // else the child would print it once more
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return Status(Code::internal, fmt::format("no child process: {}", errno_text(errno)));
  if (child > 0) return ChildProcess(child, std::move(from));
  settle_in(parent);
  ::close(from.get());
  work([&](const std::string& message) {
    const Length length = message.size();
    write_all(to.get(), reinterpret_cast<const char*>(&length), sizeof(length));
    write_all(to.get(), message.data(), message.size());
  });
  ::_exit(0);
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pipe_(std::move(other.pipe_)),
      open_(other.open_),
      received_(std::move(other.received_)),
      status_(other.status_) {}

ChildProcess::~ChildProcess() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  reap(true);
}

bool ChildProcess::reap(bool wait) {
  if (pid_ < 0) return true;
  pid_t ended = 0;
  do ended = ::waitpid(pid_, &status_, wait ? 0 : WNOHANG);
  while (ended < 0 && errno == EINTR);
  if (ended == 0) return false;
  pid_ = -1;
  return true;
}

bool ChildProcess::take_message(std::string* message) {
  Length length = 0;
  if (received_.size() < sizeof(length)) return false;
  std::memcpy(&length, received_.data(), sizeof(length));
  if (length > longest_message) open_ = false;
  if (length > received_.size() - sizeof(length)) return false;
  *message = received_.substr(sizeof(length), length);
  received_.erase(0, sizeof(length) + length);
  return true;
}

void ChildProcess::read_pipe() {
  char buffer[4096];
  const ssize_t n = ::read(pipe_.get(), buffer, sizeof(buffer));
  if (n > 0) received_.append(buffer, static_cast<size_t>(n));
  if (n == 0 || (n < 0 && errno != EINTR)) open_ = false;
}

ChildProcess::Event ChildProcess::next(Clock::time_point deadline, std::string* message) {
  constexpr int64_t pause_ms = 10;  // between two checks whether a child without a pipe has ended
  for (;;) {
    if (take_message(message)) return Event::message;
    if (!open_ && reap(false)) return Event::ended;
    if (!interruption().ok()) return Event::interrupted;
    const int64_t left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return Event::late;
    pollfd wait_for = {open_ ? pipe_.get() : -1, POLLIN, 0};
    if (::poll(&wait_for, 1, static_cast<int>(std::min<int64_t>(left, open_ ? INT_MAX : pause_ms))) > 0) read_pipe();
  }
}

std::string ChildProcess::end_text() const {
  if (!WIFSIGNALED(status_)) return fmt::format("ended the process with exit status {} instead of returning", WEXITSTATUS(status_));
  if (WTERMSIG(status_) == SIGKILL) return "was killed: the system ran out of memory, or somebody ended the process";
  return fmt::format("crashed: {}", ::strsignal(WTERMSIG(status_)));
}

}  // namespace heddle::tool
