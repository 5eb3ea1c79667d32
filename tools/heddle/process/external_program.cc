#include "process/external_program.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <thread>

#include "base/file.h"

extern char** environ;

namespace heddle::tool {
namespace {

using Clock = std::chrono::steady_clock;

struct Pipe {
  FileDescriptor read, write;
};

bool make_output_pipe(Pipe* made) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  *made = {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
  return true;
}

// A socket: a write to it can ask for no SIGPIPE, which would end a process that does not ignore the signal when the child reads no more.
bool make_input_pipe(Pipe* made) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return false;
  *made = {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
  return true;
}

bool spawn(const std::vector<std::string>& words, int input, int output, pid_t* child) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);  // which the tool ignores
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const int error = posix_spawnp(child, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return error == 0;
}

// Writes the input and reads the output as the child is ready for them, until it has closed its output. False: too late, or too much.
bool converse(Pipe& to, Pipe& from, const std::string& input, Clock::time_point deadline, size_t max_output, std::string* output) {
  size_t written = 0;
  for (;;) {
    if (written == input.size() && to.write.valid()) to.write = FileDescriptor();
    pollfd waits[] = {{from.read.get(), POLLIN, 0}, {to.write.valid() ? to.write.get() : -1, POLLOUT, 0}};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    if (::poll(waits, 2, static_cast<int>(left)) < 0 && errno != EINTR) return false;
    if (waits[1].revents != 0) {
      const ssize_t n = ::send(to.write.get(), input.data() + written, input.size() - written, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n < 0 && errno != EAGAIN && errno != EINTR) written = input.size();  // it reads no more
      if (n > 0) written += static_cast<size_t>(n);
    }
    if (waits[0].revents == 0) continue;
    char bytes[1 << 14];
    const ssize_t n = ::read(from.read.get(), bytes, sizeof(bytes));
    if (n == 0) return true;
    if (n > 0) output->append(bytes, static_cast<size_t>(n));
    if (output->size() > max_output) return false;
    if (n < 0 && errno != EINTR) return false;
  }
}

// Waits for a child that has closed its output. False: it goes on after the deadline.
bool ends_before(pid_t child, Clock::time_point deadline, int* status) {
  for (auto pause = std::chrono::microseconds(100); ::waitpid(child, status, WNOHANG) == 0;
       pause = std::min(2 * pause, std::chrono::microseconds(10000))) {
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(pause);
  }
  return true;
}

}  // namespace

bool run_external(const std::vector<std::string>& words, const std::string& input, std::chrono::milliseconds limit, size_t max_output,
                  std::string* output) {
  const Clock::time_point deadline = Clock::now() + limit;
  Pipe to, from;
  pid_t child = -1;
  if (!make_input_pipe(&to) || !make_output_pipe(&from) || !spawn(words, to.read.get(), from.write.get(), &child)) return false;
  to.read = FileDescriptor();
  from.write = FileDescriptor();
  output->clear();
  const bool has_ended = converse(to, from, input, deadline, max_output, output);
  int status = 0;
  const bool in_time = has_ended && ends_before(child, deadline, &status);
  if (in_time) return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  ::kill(child, SIGKILL);
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return false;
}

}  // namespace heddle::tool
