// Primitives whose post-ops would turn a NaN into a number, run so that no NaN is lost.
//
// oneDNN's relu, clip, min and max are the processor's instructions: where acc is a NaN they give the bound, and a diverged net looks
// healthy. The same instructions raise the "invalid" flag of the thread's floating-point state then, as does every operation that makes a
// NaN of numbers, so the flag shows at no cost whether a tile met one. If it did, the tile is computed again with only the epilogue ops
// before the first such post-op, and the caller applies the others. That primitive is made when the first NaN is met: a net without NaN
// spends neither time nor memory on it. Both give the same bits, so the elements of one tile never change those of another.
#pragma once

#include <memory>
#include <mutex>

#include "onednn/onednn_call.h"
#include "onednn/onednn_epilogue.h"

namespace heddle::cpu::onednn {

class GuardedCall {
 public:
  // [compile] Hold a SerialSection. `arguments` end with those of `fused`, in the order of its epilogue ops. `nan_safe`: the same operation
  // with the epilogue ops before the first that drops a NaN; ignored when none does. It must have the same implementation and layouts.
  Status create(const PrimitiveDesc& desc, const FusedEpilogue& fused, std::vector<Argument> arguments, PrimitiveDesc nan_safe,
                uint32_t threads);
  // [run] Like Call::run. `epilogue_ops`: receives how many have been applied to the output.
  Status run(const Call::Pointers& pointers, size_t* epilogue_ops) const;

 private:
  Status run_nan_safe(const Call::Pointers& pointers) const;

  Call call_;
  size_t epilogue_ops_ = 0, nan_safe_epilogue_ops_ = 0;
  PrimitiveDesc nan_safe_desc_;
  std::vector<Argument> nan_safe_arguments_;
  mutable std::once_flag made_;
  mutable Status making_;
  mutable Call nan_safe_call_;
};

// True if a fused operator would drop a NaN.
inline bool drops_nan(const FusedEpilogue& fused) {
  return fused.nan_safe < fused.count;
}

}  // namespace heddle::cpu::onednn
