#include "failing_allocations.h"

#include <execinfo.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

namespace heddle::testing_memory {
namespace {

enum class Whose { ours, theirs, helper };  // helper: libraries that allocate on behalf of their callers

struct Library {
  uintptr_t begin = UINTPTR_MAX, end = 0;
  char name[64] = "";
  Whose whose = Whose::helper;
  std::atomic<int64_t> allocations{0};
};
constexpr int max_libraries = 96;
Library libraries[max_libraries];
int library_count = 0;

std::atomic<bool> watching{false}, failed{false};
std::atomic<int64_t> counted{0}, failing{0};
thread_local int unwatched = 0;

Whose whose(const char* name, bool program) {
  const auto starts = [&](const char* with) { return std::strncmp(name, with, std::strlen(with)) == 0; };
  if (program || starts("cpu.so") || starts("sim.so") || starts("gloo.so") || starts("probe.so") || starts("libheddle")) return Whose::ours;
  if (starts("libtbb") || starts("libdnnl") || starts("libgomp") || starts("libgloo")) return Whose::theirs;
  return Whose::helper;
}

int add_library(dl_phdr_info* info, size_t, void*) {
  if (library_count == max_libraries) return 1;
  Library& library = libraries[library_count];
  library.begin = UINTPTR_MAX;
  library.end = 0;
  library.allocations = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
    const uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    library.begin = std::min(library.begin, begin);
    library.end = std::max<uintptr_t>(library.end, begin + info->dlpi_phdr[i].p_memsz);
  }
  const bool program = library_count == 0;
  const char* const path = info->dlpi_name ? info->dlpi_name : "";
  const char* const slash = std::strrchr(path, '/');
  std::strncpy(library.name, program ? "program" : slash ? slash + 1 : path, sizeof(library.name) - 1);
  library.whose = whose(library.name, program);
  ++library_count;
  return 0;
}

Library* library_of(const void* address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  for (int i = 0; i < library_count; ++i)
    if (at >= libraries[i].begin && at < libraries[i].end) return &libraries[i];
  return nullptr;
}

// Returns the library that the memory is for: the first of the callers that does not allocate on behalf of others.
Library* user_of(const void* caller) {
  Library* direct = library_of(caller);
  if (direct && direct->whose != Whose::helper) return direct;
  constexpr int max_frames = 48;
  void* frames[max_frames];
  const int count = ::backtrace(frames, max_frames);
  // The first frames are those of this file, which is part of the program.
  int i = 0;
  while (i < count && frames[i] != caller) ++i;
  for (; i < count; ++i)
    if (Library* const library = library_of(frames[i]); library && library->whose != Whose::helper) return library;
  return nullptr;
}

// Counts the allocation; returns whether it is the one to fail.
bool fails(const void* caller) {
  if (!watching.load(std::memory_order_relaxed) || unwatched > 0) return false;
  const Unwatched inside;
  Library* const user = user_of(caller);
  if (user && user->whose == Whose::theirs) {
    user->allocations.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  const bool now = counted.fetch_add(1) + 1 == failing.load(std::memory_order_relaxed);
  if (now) failed = true;
  return now;
}

void* take(size_t bytes, size_t alignment, const void* caller) {
  if (fails(caller)) return nullptr;
  if (bytes == 0) bytes = 1;
  if (alignment <= alignof(std::max_align_t)) return std::malloc(bytes);
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

void* take_or_throw(size_t bytes, size_t alignment, const void* caller) {
  if (void* const memory = take(bytes, alignment, caller)) return memory;
  throw std::bad_alloc();
}

}  // namespace

Unwatched::Unwatched() {
  ++unwatched;
}
Unwatched::~Unwatched() {
  --unwatched;
}

void note_libraries() {
  library_count = 0;
  ::dl_iterate_phdr(add_library, nullptr);
  void* frame = nullptr;
  ::backtrace(&frame, 1);  // the first call loads the library that it needs
}

FailingAllocation::FailingAllocation(int64_t n) {
  counted = 0;
  failing = n;
  failed = false;
  watching = true;
}
FailingAllocation::~FailingAllocation() {
  watching = false;
}
bool FailingAllocation::stop() {
  watching = false;
  return failed;
}
int64_t FailingAllocation::count() const {
  return counted;
}

std::map<std::string, int64_t> foreign_allocations() {
  std::map<std::string, int64_t> all;
  for (int i = 0; i < library_count; ++i)
    if (libraries[i].allocations > 0) all[libraries[i].name] += libraries[i].allocations;
  return all;
}

}  // namespace heddle::testing_memory

#define CALLER __builtin_return_address(0)
using heddle::testing_memory::take;
using heddle::testing_memory::take_or_throw;
// These are exported, so that the libraries resolve to them.
#pragma GCC visibility push(default)
void* operator new(size_t n) {
  return take_or_throw(n, 0, CALLER);
}
void* operator new[](size_t n) {
  return take_or_throw(n, 0, CALLER);
}
void* operator new(size_t n, std::align_val_t a) {
  return take_or_throw(n, static_cast<size_t>(a), CALLER);
}
void* operator new[](size_t n, std::align_val_t a) {
  return take_or_throw(n, static_cast<size_t>(a), CALLER);
}
void* operator new(size_t n, const std::nothrow_t&) noexcept {
  return take(n, 0, CALLER);
}
void* operator new[](size_t n, const std::nothrow_t&) noexcept {
  return take(n, 0, CALLER);
}
void* operator new(size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return take(n, static_cast<size_t>(a), CALLER);
}
void* operator new[](size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return take(n, static_cast<size_t>(a), CALLER);
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete[](void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, size_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, size_t) noexcept {
  std::free(p);
}
void operator delete(void* p, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete(void* p, size_t, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, size_t, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete(void* p, const std::nothrow_t&) noexcept {
  std::free(p);
}
void operator delete[](void* p, const std::nothrow_t&) noexcept {
  std::free(p);
}
void operator delete(void* p, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(p);
}
void operator delete[](void* p, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(p);
}
#pragma GCC visibility pop
