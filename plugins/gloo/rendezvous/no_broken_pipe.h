// A connection that has broken is an error, and not the end of the process.
#pragma once

#include <cerrno>
#include <csignal>
#include <ctime>

namespace heddle::rendezvous {

// While it lives, this thread gets no SIGPIPE for what it writes to a connection that the other end has closed. Threads that it makes
// meanwhile never get one.
class NoBrokenPipe {
 public:
  NoBrokenPipe() {
    sigset_t pending;
    ::sigemptyset(&pending);
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoBrokenPipe() {
    const timespec now{};
    if (!was_pending_)
      while (::sigtimedwait(&pipe_, nullptr, &now) < 0 && errno == EINTR) {
      }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoBrokenPipe(const NoBrokenPipe&) = delete;
  NoBrokenPipe& operator=(const NoBrokenPipe&) = delete;

 private:
  bool was_pending_ = false;
  sigset_t pipe_, before_;
};

}  // namespace heddle::rendezvous
