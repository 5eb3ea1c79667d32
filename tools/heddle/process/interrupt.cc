#include "process/interrupt.h"

#include <semaphore.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/file.h"

namespace heddle::tool {
namespace {

std::atomic<int> caught{0};
std::atomic<bool> cancellable{false};
// Posted by the handlers to cancel the run, or by the run's end to end the thread; `cancellable` distinguishes them.
sem_t told;

// The prepared output of a SuddenEnd.
struct Words {
  std::string text;  // on stderr
  std::string object;
};
Words words[std::size(sudden_ends)];

Words& words_of(SuddenEnd end) {
  return words[static_cast<size_t>(end)];
}
SuddenEnd end_by(int signal) {
  return signal == SIGTERM ? SuddenEnd::sigterm : SuddenEnd::sigint;
}

// All functions from here to on_bus_error are called in a signal handler: only async-signal-safe functions may be used.
void put(int fd, const char* text, size_t length) {
  while (length > 0) {
    const ssize_t n = ::write(fd, text, length);
    if (n <= 0) return;
    text += n;
    length -= static_cast<size_t>(n);
  }
}

// The first thread that gets here ends the process; two threads may read one file that shrank.
std::atomic_flag ending = ATOMIC_FLAG_INIT;

[[noreturn]] void end_at_once(SuddenEnd end) {
  while (ending.test_and_set()) ::pause();
  FileReplacement::remove_unfinished();
  const Words& of = words_of(end);
  put(STDERR_FILENO, of.text.data(), of.text.size());
  put(STDOUT_FILENO, of.object.data(), of.object.size());
  ::_exit(exit_code(end));
}

void cancel_current() {
  ::sem_post(&told);
  // A signal between the loop's check and the run's begin would be lost: the alarm repeats it.
  ::alarm(1);
}

void on_signal(int signal) {
  const int error = errno;
  if (signal == SIGHUP) signal = SIGTERM;  // the terminal is closed: handled like a request to end
  int none = 0;
  const bool first = caught.compare_exchange_strong(none, signal);
  if (!first || !cancellable.load()) end_at_once(end_by(signal));
  cancel_current();
  errno = error;
}

void on_alarm(int) {
  const int error = errno;
  if (cancellable.load()) cancel_current();
  errno = error;
}

// An access to a page past the end of a mapped file. Any other SIGBUS is a fault of the program and ends it with that signal.
void on_bus_error(int signal, siginfo_t* info, void*) {
  if (info->si_code == BUS_ADRERR) end_at_once(SuddenEnd::file_shrank);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void install(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  ::sigfillset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

Status reason(SuddenEnd end) {
  if (end == SuddenEnd::file_shrank)
    return {Code::file_truncated, "a mapped file, the net or its weights, became shorter while it was read",
            "replace files by renaming instead of writing into them"};
  return {Code::interrupted, end == SuddenEnd::sigterm ? "interrupted by SIGTERM" : "interrupted by SIGINT"};
}

int exit_code(SuddenEnd end) {
  return end == SuddenEnd::file_shrank ? 3 : 128 + (end == SuddenEnd::sigterm ? SIGTERM : SIGINT);
}

void handle_interrupts() {
  // While a product runs that oneDNN has generated for AVX2, the stack pointer of its thread points into heap memory (seen in 12 of 12
  // samples): there a handler's frame would overwrite the memory below. The system prefers this thread for signals to the process, and
  // another one while it is in a handler already; a signal that comes then ends the process at once.
  alignas(16) static char stack[1 << 16];
  stack_t other = {};
  other.ss_sp = stack;
  other.ss_size = sizeof(stack);
  ::sigaltstack(&other, nullptr);
  for (const SuddenEnd end : sudden_ends) words_of(end).text = reason(end).text() + "\n";
  struct sigaction bus_error = {};
  bus_error.sa_sigaction = on_bus_error;
  bus_error.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigfillset(&bus_error.sa_mask);
  ::sigaction(SIGBUS, &bus_error, nullptr);
  install(SIGALRM, on_alarm);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    // A signal that is ignored when the tool starts (nohup, a shell's background job) stays ignored.
    struct sigaction before = {};
    if (::sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) continue;
    install(signal, on_signal);
  }
}

void set_sudden_output(SuddenEnd end, std::string object) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  words_of(end).object = std::move(object);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

int interrupting_signal() {
  return caught.load(std::memory_order_relaxed);
}

Status interruption() {
  const int signal = interrupting_signal();
  return signal == 0 ? Status() : reason(end_by(signal));
}

InterruptibleRun::InterruptibleRun(Context& context) : InterruptibleRun([&context] { context.cancel(); }) {}

InterruptibleRun::InterruptibleRun(std::function<void()> cancel) {
  const bool cancels = static_cast<bool>(cancel);
  if (cancels) {
    ::sem_init(&told, 0, 0);
    // Signals are delivered to the thread that runs, whose blocking calls they end.
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      canceller_ = std::thread([cancel = std::move(cancel)] {
        do {
          while (::sem_wait(&told) != 0) continue;
          if (cancellable.load()) cancel();
        } while (cancellable.load());
      });
    } catch (const std::system_error&) {  // no thread is available: a signal ends the process at once
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  cancellable.store(!cancels || canceller_.joinable());
}

InterruptibleRun::~InterruptibleRun() {
  cancellable.store(false);
  ::alarm(0);
  if (!canceller_.joinable()) return;
  ::sem_post(&told);
  canceller_.join();
}

}  // namespace heddle::tool
