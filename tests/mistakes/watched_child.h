// A child process that runs something which may crash, hang or print: its output, and how it ended.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <string>

namespace heddle::mistakes {

struct ChildEnd {
  bool hangs = false;
  int status = -1;  // the exit status; 1000 + signal when a signal ended it
  std::string said;
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::chrono::seconds longest_child{200};
#else
inline constexpr std::chrono::seconds longest_child{20};
#endif

// Runs `work` in a child. The calling process must have one thread. With `prints` its standard output is recorded as well.
inline ChildEnd in_child(const std::function<void(const std::function<void(const std::string&)>& say)>& work, bool prints = false) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    const int nowhere = ::open("/dev/null", O_WRONLY);
    ::dup2(nowhere, STDERR_FILENO);  // hides the messages of a crash
    if (prints) ::dup2(ends[1], STDOUT_FILENO);
    work([&](const std::string& text) {
      for (size_t at = 0; at < text.size();) {
        const ssize_t n = ::write(ends[1], text.data() + at, text.size() - at);
        if (n <= 0) ::_exit(97);
        at += static_cast<size_t>(n);
      }
    });
    ::_exit(0);
  }
  ::close(ends[1]);
  ChildEnd end;
  const auto until = std::chrono::steady_clock::now() + longest_child;
  for (;;) {
    pollfd source = {ends[0], POLLIN, 0};
    ::poll(&source, 1, 1000);
    end.hangs = std::chrono::steady_clock::now() > until;
    if (end.hangs) ::kill(child, SIGKILL);
    char buffer[4096];
    const ssize_t n = source.revents != 0 ? ::read(ends[0], buffer, sizeof(buffer)) : -1;
    if (n > 0) end.said.append(buffer, static_cast<size_t>(n));
    if (n == 0 || end.hangs) break;
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  end.status = WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
  return end;
}

}  // namespace heddle::mistakes
