// For tests of f16 and bf16 operators that the CPU computes by the loops of f32: their results are those of f32 on the same numbers,
// rounded once.
#pragma once

#include <string>
#include <vector>

#include "layouts/layout_support.h"

namespace heddle::testing {
inline constexpr DType narrow_dtypes[] = {DType::f16, DType::bf16};

inline Tensor as_dtype(const Tensor& x, DType to) {
  return run1("Cast", {x}, {{"to", static_cast<int64_t>(to == DType::f32 ? 1 : to == DType::f16 ? 10 : 16)}});
}

inline std::vector<Tensor> all_as_dtype(const std::vector<Tensor>& inputs, DType to) {
  std::vector<Tensor> results;
  for (const Tensor& x : inputs) results.push_back(x ? as_dtype(x, to) : nullptr);
  return results;
}

inline std::string name_of_call(const std::string& type, const std::vector<Tensor>& inputs, DType dtype) {
  std::string name = dtype == DType::f16 ? "f16 " : "bf16 ";
  name += type;
  for (const Tensor& x : inputs) name += " " + (x ? x->shape.text() : "-");
  return name;
}

// Checks `form` with these inputs. `same_sums`: the f32 kernel adds in the same order, so that the bits must be equal; otherwise results
// are as near to it as one rounding allows.
inline void expect_f32_rounded_once(const OperatorCall& form, const std::vector<Tensor>& inputs, bool same_sums) {
  for (const DType dtype : narrow_dtypes) {
    OperatorCall call = form;
    call.inputs = all_as_dtype(inputs, dtype);
    OperatorCall wide = form;
    wide.inputs = all_as_dtype(call.inputs, DType::f32);
    const std::string what = name_of_call(form.type, inputs, dtype);
    const auto got = run(call), want = run(wide);
    ASSERT_EQ(got.size(), 1u) << what;
    ASSERT_EQ(want.size(), 1u) << what;
    ASSERT_EQ(got[0]->dtype, dtype) << what;
    if (same_sums) {
      expect_same_bits(got[0], as_dtype(want[0], dtype), what);
    } else {
      const float unit = dtype == DType::f16 ? 0x1p-11f : 0x1p-8f;
      expect_close(values<float>(*as_dtype(got[0], DType::f32)), values<float>(*want[0]), 1.05f * unit, what);
    }
    for (const uint64_t seed : {1, 2}) {
      call.split_seed = seed;
      expect_same_bits(run(call)[0], got[0], what + ", split");
    }
  }
}

}  // namespace heddle::testing
