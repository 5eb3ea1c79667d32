// Operators that bring the process down: only `heddle plugin check`, which runs them in a child process, may load this.
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "heddle/op.h"
using namespace heddle::plugin;

static Status segfault(In<float>, Out<float>) {
  std::signal(SIGSEGV, SIG_DFL);  // AddressSanitizer would turn it into an exit
  std::raise(SIGSEGV);
  return {};
}
static Status abort_here(In<float>, Out<float>) {
  std::abort();
}
static Status leave(In<float>, Out<float>) {
  std::_Exit(0);
}

// The process sends no more messages.
static Status close_and_stay(In<float>, Out<float>) {
  for (int file = 3; file < 256; ++file) ::close(file);
  for (;;) ::pause();
}

// Writes into whatever the process has open.
static Status write_everywhere(In<float>, Out<float>) {
  const char message[] = "\3\0\0\0\0\0\0\0{]}";  // of three bytes, as the tool's own begin
  for (int file = 3; file < 256; ++file) static_cast<void>(!::write(file, message, 11));
  return {};
}

HEDDLE_PLUGIN("hostile_crash", "1.0", plugin) {
  plugin.add(Op("Segfault", "hostile").in("x").out("y", same_as("x")).cpu<segfault>());
  plugin.add(Op("Abort", "hostile").in("x").out("y", same_as("x")).cpu<abort_here>());
  plugin.add(Op("Exit", "hostile").in("x").out("y", same_as("x")).cpu<leave>());
  plugin.add(Op("WritesEverywhere", "hostile").in("x").out("y", same_as("x")).cpu<write_everywhere>());
  plugin.add(Op("ClosesAndStays", "hostile").in("x").out("y", same_as("x")).cpu<close_and_stay>());
}
