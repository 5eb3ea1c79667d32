#include "process/process_counts.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

namespace heddle::tool {
namespace {

std::atomic<bool> counting{false};
std::atomic<int64_t> allocation_count{0}, kept_count{0}, thread_count{0};
// These libraries allocate inside their own calls, whoever calls them. Counting begins by reading where their code is.
struct Library {
  const char* name;
  std::atomic<uintptr_t> begin{0}, end{0};
};
Library allocating[] = {{"libdnnl"}, {"libjpeg"}, {"libpng"}};

int find_libraries(dl_phdr_info* info, size_t, void*) {
  for (Library& library : allocating) {
    if (library.end != 0 || !info->dlpi_name || !std::strstr(info->dlpi_name, library.name)) continue;
    uintptr_t begin = UINTPTR_MAX, end = 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
      const uintptr_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
      begin = std::min(begin, at);
      end = std::max(end, at + info->dlpi_phdr[i].p_memsz);
    }
    library.begin = begin;
    library.end = end;
  }
  return 0;
}

[[maybe_unused]] void note(const void* caller) {
  if (!counting.load(std::memory_order_relaxed)) return;
  kept_count.fetch_add(1, std::memory_order_relaxed);
  const auto at = reinterpret_cast<uintptr_t>(caller);
  for (const Library& library : allocating)
    if (at >= library.begin.load(std::memory_order_relaxed) && at < library.end.load(std::memory_order_relaxed)) return;
  allocation_count.fetch_add(1, std::memory_order_relaxed);
}

[[maybe_unused]] void note_release(const void* memory) {
  if (memory && counting.load(std::memory_order_relaxed)) kept_count.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace

Counting::Counting(bool active) {
  if (!active) return;
  ::dl_iterate_phdr(find_libraries, nullptr);  // plugins bring them when they are loaded
  counting = true;
}

Counting::~Counting() {
  counting = false;
}

bool ProcessCounts::available() {
#ifdef HEDDLE_SANITIZE
  return false;
#else
  return true;
#endif
}

ProcessCounts ProcessCounts::so_far() {
  return {allocation_count, kept_count, thread_count};
}

}  // namespace heddle::tool

#ifndef HEDDLE_SANITIZE
using heddle::tool::note;
using heddle::tool::note_release;

// glibc's own functions, which it exports for programs that replace them.
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* memory);

void* malloc(size_t bytes) {
  note(__builtin_return_address(0));
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  note(__builtin_return_address(0));
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, size_t bytes) {
  note_release(memory);
  note(__builtin_return_address(0));
  return __libc_realloc(memory, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  note(__builtin_return_address(0));
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  note(__builtin_return_address(0));
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  note(__builtin_return_address(0));
  void* const given = __libc_memalign(alignment, bytes);
  if (!given) return ENOMEM;
  *memory = given;
  return 0;
}
void free(void* memory) {
  note_release(memory);
  __libc_free(memory);
}
[[gnu::visibility("default")]] int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                                                  void* argument) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
  if (heddle::tool::counting.load(std::memory_order_relaxed)) heddle::tool::thread_count.fetch_add(1, std::memory_order_relaxed);
  return create(thread, attributes, function, argument);
}
}

void* operator new(size_t bytes) {
  note(__builtin_return_address(0));
  if (void* memory = __libc_malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  note(__builtin_return_address(0));
  if (void* memory = __libc_memalign(std::max(static_cast<size_t>(alignment), sizeof(void*)), bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
// The array and nothrow forms of the standard library call these.
void operator delete(void* memory) noexcept {
  free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  free(memory);
}
#endif
