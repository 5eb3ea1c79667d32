#include "allocations.h"

#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
}

namespace heddle {
namespace {

constexpr int max_libraries = 64;
struct Range {
  uintptr_t begin = 0, end = 0;
  char name[64] = "";
};
Range ranges[max_libraries];
int range_count = 0;
std::atomic<int64_t> counts[max_libraries + 1];
std::atomic<bool> counting{false};
std::atomic<int64_t> live_bytes{0};

int add_range(dl_phdr_info* info, size_t, void*) {
  if (range_count == max_libraries) return 1;
  Range& r = ranges[range_count++];
  r.begin = UINTPTR_MAX;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
    const uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    r.begin = begin < r.begin ? begin : r.begin;
    r.end = begin + info->dlpi_phdr[i].p_memsz > r.end ? begin + info->dlpi_phdr[i].p_memsz : r.end;
  }
  const char* name = info->dlpi_name && *info->dlpi_name ? std::strrchr(info->dlpi_name, '/') : nullptr;
  std::strncpy(r.name, name ? name + 1 : (info->dlpi_name && *info->dlpi_name ? info->dlpi_name : "program"), sizeof(r.name) - 1);
  return 0;
}

void note(const void* caller) {
  if (!counting.load(std::memory_order_relaxed)) return;
  const auto at = reinterpret_cast<uintptr_t>(caller);
  for (int i = 0; i < range_count; ++i)
    if (at >= ranges[i].begin && at < ranges[i].end) {
      counts[i].fetch_add(1, std::memory_order_relaxed);
      return;
    }
  counts[max_libraries].fetch_add(1, std::memory_order_relaxed);
}

void* made(void* memory) {
  if (memory) live_bytes.fetch_add(static_cast<int64_t>(::malloc_usable_size(memory)), std::memory_order_relaxed);
  return memory;
}

void release(void* memory) {
  if (memory) live_bytes.fetch_sub(static_cast<int64_t>(::malloc_usable_size(memory)), std::memory_order_relaxed);
  __libc_free(memory);
}

}  // namespace

int64_t live_heap_bytes() {
  return live_bytes;
}

void AllocationCount::start() {
  range_count = 0;
  ::dl_iterate_phdr(add_range, nullptr);
  for (auto& c : counts) c = 0;
  counting = true;
}

std::map<std::string, int64_t> AllocationCount::stop() {
  counting = false;
  std::map<std::string, int64_t> result;
  for (int i = 0; i < range_count; ++i)
    if (counts[i] > 0) result[ranges[i].name] += counts[i];
  if (counts[max_libraries] > 0) result["unknown"] = counts[max_libraries];
  return result;
}

}  // namespace heddle

#define CALLER __builtin_return_address(0)
using heddle::made;
using heddle::note;
using heddle::release;
// Exported, so that the libraries resolve to them and not to glibc's: memory that one of these frees must have been counted by another.
#pragma GCC visibility push(default)
extern "C" {
void* malloc(size_t n) {
  note(CALLER);
  return made(__libc_malloc(n));
}
void* calloc(size_t a, size_t b) {
  note(CALLER);
  return made(__libc_calloc(a, b));
}
void* realloc(void* p, size_t n) {
  note(CALLER);
  const size_t before = p ? ::malloc_usable_size(p) : 0;
  void* const moved = __libc_realloc(p, n);
  if (moved || n == 0) heddle::live_bytes.fetch_sub(static_cast<int64_t>(before), std::memory_order_relaxed);
  return made(moved);
}
void* aligned_alloc(size_t a, size_t n) {
  note(CALLER);
  return made(__libc_memalign(a, n));
}
void* memalign(size_t a, size_t n) {
  note(CALLER);
  return made(__libc_memalign(a, n));
}
int posix_memalign(void** p, size_t a, size_t n) {
  note(CALLER);
  *p = made(__libc_memalign(a, n));
  return *p ? 0 : 12;
}
void free(void* p) {
  release(p);
}
void* mmap(void* address, size_t length, int protection, int flags, int fd, off_t offset) noexcept {
  note(CALLER);
  return reinterpret_cast<void*>(::syscall(SYS_mmap, address, length, protection, flags, fd, offset));
}
}
void* operator new(size_t n) {
  note(CALLER);
  if (void* p = made(__libc_malloc(n))) return p;
  throw std::bad_alloc();
}
void* operator new(size_t n, std::align_val_t a) {
  note(CALLER);
  if (void* p = made(__libc_memalign(static_cast<size_t>(a), n))) return p;
  throw std::bad_alloc();
}
void* operator new[](size_t n) {
  note(CALLER);
  if (void* p = made(__libc_malloc(n))) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept {
  release(p);
}
void operator delete(void* p, size_t) noexcept {
  release(p);
}
void operator delete[](void* p) noexcept {
  release(p);
}
void operator delete[](void* p, size_t) noexcept {
  release(p);
}
void operator delete(void* p, std::align_val_t) noexcept {
  release(p);
}
void operator delete(void* p, size_t, std::align_val_t) noexcept {
  release(p);
}
#pragma GCC visibility pop
