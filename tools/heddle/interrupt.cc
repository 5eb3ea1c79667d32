#include "interrupt.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/file.h"
#include "run/execution.h"

namespace heddle::tool {
namespace {

std::atomic<int> caught{0};
std::atomic<bool> cancellable{false};
std::atomic<Execution*> current{nullptr};
std::atomic<int> handlers{0};  // that may hold `current`
std::string sigint_object, sigterm_object;

const char* name_of(int signal) {
  return signal == SIGTERM ? "SIGTERM" : "SIGINT";
}

// Everything from here to on_signal is called in a signal handler: async-signal-safe functions alone.
void put(int fd, const char* text, size_t length) {
  while (length > 0) {
    const ssize_t n = ::write(fd, text, length);
    if (n <= 0) return;
    text += n;
    length -= static_cast<size_t>(n);
  }
}

[[noreturn]] void end_at_once(int signal) {
  FileReplacement::remove_unfinished();
  put(STDERR_FILENO, "error[interrupted]: interrupted by ", 35);
  put(STDERR_FILENO, name_of(signal), std::strlen(name_of(signal)));
  put(STDERR_FILENO, "\n", 1);
  const std::string& object = signal == SIGTERM ? sigterm_object : sigint_object;
  put(STDOUT_FILENO, object.data(), object.size());
  ::_exit(128 + signal);
}

void cancel_current() {
  handlers.fetch_add(1);
  if (Execution* execution = current.load()) execution->cancel();
  handlers.fetch_sub(1);
  // A signal between the loop's question and the run's begin would be lost: the alarm repeats it.
  ::alarm(1);
}

void on_signal(int signal) {
  const int error = errno;
  if (signal == SIGHUP) signal = SIGTERM;  // the terminal is gone: the same as being asked to end
  int none = 0;
  const bool first = caught.compare_exchange_strong(none, signal);
  if (!first || !cancellable.load()) end_at_once(signal);
  cancel_current();
  errno = error;
}

void on_alarm(int) {
  const int error = errno;
  if (cancellable.load()) cancel_current();
  errno = error;
}

void install(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigfillset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

void handle_interrupts() {
  install(SIGALRM, on_alarm);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    // Who starts the tool with a signal ignored (nohup, a shell's background job) wants it ignored.
    struct sigaction before = {};
    if (::sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) continue;
    install(signal, on_signal);
  }
}

void set_interrupted_output(std::string for_sigint, std::string for_sigterm) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  sigint_object = std::move(for_sigint);
  sigterm_object = std::move(for_sigterm);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

int interrupting_signal() {
  return caught.load(std::memory_order_relaxed);
}

Status interruption() {
  const int signal = interrupting_signal();
  return signal == 0 ? Status() : Status(Code::interrupted, std::string("interrupted by ") + name_of(signal));
}

InterruptibleRun::InterruptibleRun(Execution* execution) {
  current.store(execution);
  cancellable.store(true);
}

InterruptibleRun::~InterruptibleRun() {
  cancellable.store(false);
  current.store(nullptr);
  ::alarm(0);
  while (handlers.load() != 0) ::usleep(100);
}

}  // namespace heddle::tool
