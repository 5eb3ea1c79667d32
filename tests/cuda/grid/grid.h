// The emulated grid: a kernel of the CUDA plugin, compiled for the host, run over blocks, threads, shared memory, shuffles and barriers.
//
// Each thread of a block is a fiber; those of one block take turns, in ascending, descending or random order, and pass a barrier when all
// that have not ended have reached it. So a missing barrier is detected, whatever it would have done on a machine: values that other
// threads have not written yet are visible as such (shared memory holds a pattern until it is written). Under AddressSanitizer memory is
// exact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace heddle::cuda::grid {

struct Dim {
  unsigned int x = 1, y = 1, z = 1;
};

// The order in which the threads of a block take turns.
enum class Order : uint8_t { ascending, descending, random };

// Text of kernels that was compiled for the host, loaded as a library.
class Module {
 public:
  // Compiles a text like "text/element.cuh", a kernel's whole source. `error` receives the compiler's messages. Libraries are stored in
  // `folder`, by their content, and reused; `file`, if it is not null, receives the library's name.
  static std::shared_ptr<Module> compile(const std::string& text, const std::string& folder, std::string* error,
                                         std::string* file = nullptr);
  // Opens a library that exists already.
  static std::shared_ptr<Module> open(const std::string& file, std::string* error);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  bool has(const std::string& kernel) const;
  // Returns the size of the kernel's parameters.
  uint64_t parameter_bytes(const std::string& kernel) const;
  // Runs all blocks, or those from `first_block` to before `last_block` in the order of their indices. Returns an empty string, or the
  // error: threads that wait forever for others which have ended.
  std::string launch(const std::string& kernel, Dim blocks, Dim threads, const void* parameters, Order order = Order::ascending,
                     uint64_t seed = 1, uint64_t first_block = 0, uint64_t last_block = UINT64_MAX) const;

 private:
  explicit Module(void* library) : library_(library) {}
  void* const library_;
};

}  // namespace heddle::cuda::grid
