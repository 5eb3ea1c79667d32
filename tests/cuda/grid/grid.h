// The emulated grid: a kernel of the CUDA plugin, compiled for the host, run over blocks, threads, shared memory, shuffles and barriers.
//
// Each thread of a block is a fiber; those of one block take turns, in ascending, descending or random order, and pass a barrier when all
// that have not ended have come to it. So a barrier that is missing shows, whatever it would have done on a machine: what others have not
// written yet is there, as nothing (shared memory holds a pattern until it is written). Under AddressSanitizer memory is exact.
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
  // Compiles "text/element.cuh"-like text, what a kernel's source is as a whole. `error`: what the compiler said. Libraries are kept
  // beneath `folder`, by what is in them, and used again; `file`, where it is not null, is told which one it is.
  static std::shared_ptr<Module> compile(const std::string& text, const std::string& folder, std::string* error,
                                         std::string* file = nullptr);
  // One that is in a file already.
  static std::shared_ptr<Module> open(const std::string& file, std::string* error);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  bool has(const std::string& kernel) const;
  // Bytes of the kernel's parameters.
  uint64_t parameter_bytes(const std::string& kernel) const;
  // Runs all blocks, or those from `first_block` to before `last_block` in the order of their indices. Empty, or what is wrong: threads
  // that wait for others which have ended, for ever.
  std::string launch(const std::string& kernel, Dim blocks, Dim threads, const void* parameters, Order order = Order::ascending,
                     uint64_t seed = 1, uint64_t first_block = 0, uint64_t last_block = UINT64_MAX) const;

 private:
  explicit Module(void* library) : library_(library) {}
  void* const library_;
};

}  // namespace heddle::cuda::grid
