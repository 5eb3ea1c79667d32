// A primitive of oneDNN that several threads and contexts execute at once, each with its own pointers.
//
// dnnl_primitive_execute needs memory objects, which must not be shared while it runs. A Call therefore keeps a lock-free pool of argument
// sets (stream, memory objects, argument array), filled in prepare for as many threads as a run may have and lazily when more contexts run
// at once; afterwards executing allocates no memory of Heddle's (oneDNN itself allocates 6-7 small blocks per execution).
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "onednn/onednn.h"

namespace heddle::cpu::onednn {

// One argument of a primitive: DNNL_ARG_* and the layout of its memory.
struct Argument {
  int id;
  MemoryDesc desc;
};

class Call {
 public:
  static constexpr size_t max_arguments = 12;
  // Data pointers in the order of the arguments given to create.
  using Pointers = std::array<const void*, max_arguments>;

  Call() = default;
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // [compile] Hold a SerialSection. `threads`: argument sets made in advance.
  Status create(const PrimitiveDesc& desc, std::vector<Argument> arguments, uint32_t threads);
  // [run] Executes on the calling thread, which holds a SerialSection. Pointers are borrowed for the call.
  Status run(const Pointers& pointers) const;

 private:
  struct Binding {
    Stream stream;
    std::array<Memory, max_arguments> memories;
    std::array<dnnl_exec_arg_t, max_arguments> arguments = {};
  };
  static constexpr size_t capacity = 64;  // idle argument sets kept; with more contexts at once, the others make and drop their own
  Status make_binding(std::unique_ptr<Binding>* binding) const;
  std::unique_ptr<Binding> take() const;
  void give(std::unique_ptr<Binding> binding) const;

  Primitive primitive_;
  std::vector<Argument> arguments_;
  mutable std::array<std::atomic<Binding*>, capacity> idle_ = {};
};

}  // namespace heddle::cpu::onednn
