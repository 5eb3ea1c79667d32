// Memory with guards around it, and reports of a kernel's accesses to them: pages without access lie before and after each input, output,
// scratch and packed constant; inputs and packed constants can not be written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "net/net.h"

namespace heddle::tool {

// One piece of memory. The rest of its pages holds `slack`.
class GuardedBytes {
 public:
  // Which end of the bytes touches its guard. The begin is aligned to 64 bytes, as kernels are promised, so that up to 63 bytes may lie
  // between the end and its guard.
  enum class Side : uint8_t { front, behind };
  // `name`: "input 1", "its scratch".
  GuardedBytes(std::string name, int64_t bytes, Side side, uint8_t slack);
  ~GuardedBytes();
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;

  std::byte* data() const { return data_; }
  void forbid_writing();
  // "wrote past the end of output 0", if the slack has changed; empty: it has not.
  std::string damage() const;
  // Likewise for an access that was refused at `address`; empty: the address is not in this memory.
  std::string accused(const void* address, bool wrote) const;

 private:
  const std::string name_;
  const int64_t bytes_;
  const uint8_t slack_;
  std::byte* base_ = nullptr;
  size_t mapped_ = 0, room_ = 0;
  std::byte* data_ = nullptr;
  bool read_only_ = false;
};

// All existing GuardedBytes are registered: a crash of the process is reported as an access to one of them. After this call a SIGSEGV or
// SIGBUS calls `tell` with the finding (empty: no memory that is registered) and the argument of the last describe(), and ends the process.
// For child processes.
struct Described {
  std::string about;
  const char* mistake = "";  // the mistake that a fault is now; "": determined by the memory
};
void report_faults(std::function<void(const std::string& accused, const Described& now)> tell);
// Returns the previous description.
Described describe(Described now);

// Describes the current examination as long as this lives.
class Describing {
 public:
  explicit Describing(Described now) : before_(describe(std::move(now))) {}
  ~Describing() { describe(std::move(before_)); }
  Describing(const Describing&) = delete;
  Describing& operator=(const Describing&) = delete;

 private:
  Described before_;
};

}  // namespace heddle::tool
