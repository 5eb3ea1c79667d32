#include "commands/run/allocation_count.h"

#include <link.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace heddle::tool {
namespace {

std::atomic<bool> counting{false};
std::atomic<int64_t> count{0};
// Addresses of oneDNN's code, read when counting begins.
std::atomic<uintptr_t> onednn_begin{0}, onednn_end{0};

int find_onednn(dl_phdr_info* info, size_t, void*) {
  if (!info->dlpi_name || !std::strstr(info->dlpi_name, "libdnnl")) return 0;
  uintptr_t begin = UINTPTR_MAX, end = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
    const uintptr_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    begin = std::min(begin, at);
    end = std::max(end, at + info->dlpi_phdr[i].p_memsz);
  }
  onednn_begin = begin;
  onednn_end = end;
  return 1;
}

[[maybe_unused]] void note(const void* caller) {
  if (!counting.load(std::memory_order_relaxed)) return;
  const auto at = reinterpret_cast<uintptr_t>(caller);
  if (at < onednn_begin.load(std::memory_order_relaxed) || at >= onednn_end.load(std::memory_order_relaxed))
    count.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

AllocationCount::AllocationCount(bool active) {
  if (!active) return;
  if (onednn_end == 0) ::dl_iterate_phdr(find_onednn, nullptr);
  counting = true;
}

AllocationCount::~AllocationCount() {
  counting = false;
}

bool AllocationCount::available() {
#ifdef HEDDLE_SANITIZE
  return false;
#else
  return true;
#endif
}

int64_t AllocationCount::total() {
  return count;
}

}  // namespace heddle::tool

#ifndef HEDDLE_SANITIZE
// The array and nothrow forms of the standard library call these.
void* operator new(size_t bytes) {
  heddle::tool::note(__builtin_return_address(0));
  if (void* memory = std::malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  heddle::tool::note(__builtin_return_address(0));
  const auto align = std::max(static_cast<size_t>(alignment), sizeof(void*));
  void* memory = nullptr;
  if (::posix_memalign(&memory, align, bytes ? bytes : 1) == 0) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}
#endif
