// SIGINT and SIGTERM: exit status 130 and 143 with one diagnostic, whatever the tool is doing. SIGBUS of a mapped file that became shorter:
// exit status 3 with one diagnostic; the library itself installs no handlers.
//
// A run in progress ends between two steps and its command ends like any other that failed; a second signal ends it at once. Everything
// else (loading, compiling, searching, writing) ends at once: files not yet in place are removed, nothing is left half written.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "heddle/session.h"
#include "heddle/status.h"

namespace heddle::tool {

// Installs the handlers. Must be called once, from main.
void handle_interrupts();
// Reasons to end at once.
enum class SuddenEnd { sigint, sigterm, file_shrank };
constexpr SuddenEnd sudden_ends[] = {SuddenEnd::sigint, SuddenEnd::sigterm, SuddenEnd::file_shrank};
Status reason(SuddenEnd end);
int exit_code(SuddenEnd end);
// Sets the text that such an end prints on stdout: the --json object; empty: nothing.
void set_sudden_output(SuddenEnd end, std::string object);
// Returns the signal that came; 0: none.
int interrupting_signal();
// Returns Code::interrupted once a signal has come. Loops check it between InterruptibleRuns.
Status interruption();

// While it lives the first signal calls `cancel` (empty: nothing, the loop checks interruption()) instead of ending the process: on a
// thread of its own, because Context::cancel() may wait for a lock that the interrupted code holds. It is called again each second. One at
// a time.
class InterruptibleRun {
 public:
  explicit InterruptibleRun(std::function<void()> cancel);
  explicit InterruptibleRun(Context& context);
  ~InterruptibleRun();
  InterruptibleRun(const InterruptibleRun&) = delete;
  InterruptibleRun& operator=(const InterruptibleRun&) = delete;

 private:
  std::thread canceller_;
};

}  // namespace heddle::tool
