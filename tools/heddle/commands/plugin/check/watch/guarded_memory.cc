#include "commands/plugin/check/watch/guarded_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <mutex>
#include <new>
#include <set>
#include <utility>

namespace heddle::tool {
namespace {

constexpr size_t guard_bytes = size_t{1} << 16;
constexpr size_t alignment = 64;

struct Known {
  std::set<const GuardedBytes*> memory;
  std::function<void(const std::string&, const Described&)> tell;
  Described now;
};
Known& known() {
  static Known all;
  return all;
}

bool was_write([[maybe_unused]] const void* context) {
#if defined(__x86_64__)
  return (static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#else
  return false;
#endif
}

// The process is about to end: the functions called here may allocate, and if they crash too the default handler runs.
void on_fault(int, siginfo_t* info, void* context) {
  std::string accused;
  for (const GuardedBytes* memory : known().memory) {
    accused = memory->accused(info->si_addr, was_write(context));
    if (!accused.empty()) break;
  }
  known().tell(accused, known().now);
  ::_exit(1);
}

}  // namespace

GuardedBytes::GuardedBytes(std::string name, int64_t bytes, Side side, uint8_t slack)
    : name_(std::move(name)), bytes_(bytes), slack_(slack) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const auto size = static_cast<size_t>(bytes);
  room_ = (size + page - 1) / page * page;
  mapped_ = room_ + 2 * guard_bytes;
  void* const base = ::mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) throw std::bad_alloc();
  base_ = static_cast<std::byte*>(base);
  std::byte* const begin = base_ + guard_bytes;
  if (room_ > 0 && ::mprotect(begin, room_, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  std::memset(begin, slack, room_);
  data_ = side == Side::front ? begin : begin + (room_ - (size + alignment - 1) / alignment * alignment);
  known().memory.insert(this);
}

GuardedBytes::~GuardedBytes() {
  known().memory.erase(this);
  ::munmap(base_, mapped_);
}

void GuardedBytes::forbid_writing() {
  read_only_ = true;
  if (room_ > 0) ::mprotect(base_ + guard_bytes, room_, PROT_READ);
}

std::string GuardedBytes::damage() const {
  const std::byte *const begin = base_ + guard_bytes, *const end = begin + room_;
  for (const std::byte* at = begin; at < data_; ++at)
    if (*at != std::byte{slack_}) return fmt::format("wrote before the begin of {}", name_);
  for (const std::byte* at = data_ + bytes_; at < end; ++at)
    if (*at != std::byte{slack_}) return fmt::format("wrote past the end of {}", name_);
  return {};
}

std::string GuardedBytes::accused(const void* address, bool wrote) const {
  const auto* const at = static_cast<const std::byte*>(address);
  if (at < base_ || at >= base_ + mapped_) return {};
  if (at >= base_ + guard_bytes && at < base_ + guard_bytes + room_) return read_only_ && wrote ? fmt::format("writes {}", name_) : "";
  return fmt::format("{} {} {}", wrote ? "writes" : "reads", at < data_ ? "before the begin of" : "past the end of", name_);
}

void report_faults(std::function<void(const std::string&, const Described&)> tell) {
  known().tell = std::move(tell);
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGSEGV, &action, nullptr);
  ::sigaction(SIGBUS, &action, nullptr);
}

Described describe(Described now) {
  return std::exchange(known().now, std::move(now));
}

}  // namespace heddle::tool
