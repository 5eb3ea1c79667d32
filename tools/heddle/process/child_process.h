// Work that may crash, hang or take all memory, done in a child process. What it finds comes back as messages; whatever becomes of it, the
// tool goes on and can say what happened.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>

#include "base/file.h"
#include "heddle/status.h"

namespace heddle::tool {

class ChildProcess {
 public:
  using Clock = std::chrono::steady_clock;
  using Send = std::function<void(const std::string& message)>;
  // What next() came back with.
  enum class Event { message, ended, late, interrupted };

  // Forks. The child does `work` and ends; it is killed when the tool ends, and when this object goes. The caller has one thread: threads
  // of a runtime that exists already are not there in the child. Errors: internal (no process, no pipe).
  static Result<ChildProcess> start(const std::function<void(const Send&)>& work);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

  // Waits for the next message, the child's end, the deadline or a signal to the tool (interruption() of process/interrupt.h). Messages
  // that were sent before the child ended come first.
  Event next(Clock::time_point deadline, std::string* message);
  // Of a child that ended by itself: "crashed: Segmentation fault", "ended the process with exit status 3 instead of returning".
  std::string end_text() const;

 private:
  ChildProcess(pid_t pid, FileDescriptor pipe) : pid_(pid), pipe_(std::move(pipe)) {}
  bool take_message(std::string* message);
  void read_pipe();
  bool reap(bool wait);

  pid_t pid_ = -1;  // -1: nothing to wait for
  FileDescriptor pipe_;
  bool open_ = true;  // the pipe; a child may close its end of it and go on
  std::string received_;
  int status_ = 0;  // as waitpid gives it
};

}  // namespace heddle::tool
