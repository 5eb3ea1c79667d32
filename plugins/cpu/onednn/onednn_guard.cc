// Detecting a NaN by the flags of the processor. See onednn_guard.h.
#include "onednn/onednn_guard.h"

#include <xmmintrin.h>

namespace heddle::cpu::onednn {
namespace {

// Detects whether an operation of this thread was invalid since construction. The destructor sets the flags that the thread had before
// again.
class InvalidOperations {
 public:
  InvalidOperations() : before_(_mm_getcsr() & _MM_EXCEPT_MASK) { _mm_setcsr(_mm_getcsr() & ~static_cast<unsigned>(_MM_EXCEPT_INVALID)); }
  ~InvalidOperations() { _mm_setcsr(_mm_getcsr() | before_); }
  InvalidOperations(const InvalidOperations&) = delete;
  InvalidOperations& operator=(const InvalidOperations&) = delete;
  bool any() const { return (_mm_getcsr() & _MM_EXCEPT_INVALID) != 0; }

 private:
  const unsigned before_;
};

}  // namespace

Status GuardedCall::create(const PrimitiveDesc& desc, const FusedEpilogue& fused, std::vector<Argument> arguments, PrimitiveDesc nan_safe,
                           uint32_t threads) {
  epilogue_ops_ = fused.count;
  nan_safe_epilogue_ops_ = fused.nan_safe;
  if (drops_nan(fused)) {
    nan_safe_arguments_ = arguments;
    size_t dropped = 0;
    for (size_t epilogue_op : fused.epilogue_op_indices) dropped += epilogue_op >= fused.first + fused.nan_safe ? 1 : 0;
    nan_safe_arguments_.resize(arguments.size() - dropped);
    for (Argument& argument : nan_safe_arguments_)
      if (argument.id == DNNL_ARG_SCRATCHPAD) argument.desc = nan_safe.query(dnnl_query_scratchpad_md);
    nan_safe_desc_ = std::move(nan_safe);
  }
  return call_.create(desc, std::move(arguments), threads);
}

Status GuardedCall::run_nan_safe(const Call::Pointers& pointers) const {
  std::call_once(made_, [this] { making_ = nan_safe_call_.create(nan_safe_desc_, nan_safe_arguments_, 1); });
  HEDDLE_PLUGIN_CHECK(making_);
  return nan_safe_call_.run(pointers);
}

Status GuardedCall::run(const Call::Pointers& pointers, size_t* epilogue_ops) const {
  *epilogue_ops = epilogue_ops_;
  if (nan_safe_epilogue_ops_ == epilogue_ops_) return call_.run(pointers);
  {
    const InvalidOperations invalid;
    HEDDLE_PLUGIN_CHECK(call_.run(pointers));
    if (!invalid.any()) return {};
  }
  *epilogue_ops = nan_safe_epilogue_ops_;
  return run_nan_safe(pointers);
}

}  // namespace heddle::cpu::onednn
