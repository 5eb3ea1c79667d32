// Kernels whose outputs have extents that only the kernel knows, and that do not report them or report wrong ones. Each has this one
// mistake.
#include <algorithm>

#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

constexpr heddle_dtype_set f32 = dtypes<float>();

// The output is a row of at most all elements of x.
Status infer_some(InferContext& c) {
  c.set_dims(0, {c.input(0).element_count});
  c.set_bounded(0, 0);
  return {};
}

// ---------------------------------------------------------------- bounded

// The positive elements. It does not report how many there are.
Status positive(In<float> x, Out<float> y) {
  int64_t n = 0;
  for (int64_t i = 0; i < x.size; ++i)
    if (x[i] > 0) y[n++] = x[i];
  return {};
}

// The negative elements. It reports their number of bytes instead of their number.
Status negative(In<float> x, Out<float> y) {
  int64_t n = 0;
  for (int64_t i = 0; i < x.size; ++i)
    if (x[i] < 0) y[n++] = x[i];
  *y.tensor->extent = n * static_cast<int64_t>(sizeof(float));
  return {};
}

// The positive elements except the first: one less than there are, even if there are none.
Status further_positive(In<float> x, Out<float> y) {
  int64_t n = 0;
  for (int64_t i = 0; i < x.size; ++i) {
    if (!(x[i] > 0)) continue;
    if (n > 0) y[n - 1] = x[i];
    ++n;
  }
  *y.tensor->extent = n - 1;
  return {};
}

// The elements up to the first one that is not above -0.5. If there are none it returns at once, and reports nothing.
Status leading(In<float> x, Out<float> y) {
  if (x.size == 0 || !(x[0] > -0.5f)) return {};
  int64_t n = 0;
  while (n < x.size && x[n] > -0.5f) {
    y[n] = x[n];
    ++n;
  }
  *y.tensor->extent = n;
  return {};
}

// The indices of the elements that are not below zero, [rank, number of them]. Writes rows as far apart as if there were the maximum.
Status places(In<float> x, Out<int64_t> y) {
  int64_t n = 0;
  for (int64_t i = 0; i < x.size; ++i) {
    if (x[i] < 0) continue;
    int64_t rest = i;
    for (int d = x.dims.rank - 1; d >= 0; --d) {
      y[d * x.size + n] = rest % x.dims[d];
      rest /= x.dims[d];
    }
    ++n;
  }
  *y.tensor->extent = n;
  return {};
}
Status infer_places(InferContext& c) {
  c.set_dims(0, {c.dims(0).rank, c.input(0).element_count});
  c.set_bounded(0, 1);
  return {};
}

// The sum of all elements, by a kernel that takes bounded inputs as they are: it sums up to the bound and not to the true extent.
Status total(In<float> x, Out<float> y) {
  float sum = 0;
  for (int64_t i = 0; i < x.size; ++i) sum += x[i];
  y[0] = sum;
  return {};
}

// ---------------------------------------------------------------- dynamic

Status infer_dynamic(InferContext& c) {
  return c.set_dynamic(0, 1), Status();
}

// The positive elements, in memory that the host gives. If there are none it does not request any, and the output has no extent.
class Chosen {
 public:
  Status run(const RunContext& c, int64_t, int64_t) const {
    const auto x = input<float>(c, 0);
    const int64_t n = std::count_if(x.data, x.data + x.size, [](float v) { return v > 0; });
    if (n == 0) return {};
    auto* const y = static_cast<float*>(allocate_output(c, 0, {&n, 1}));
    if (!y) return {HEDDLE_ERROR_OUT_OF_MEMORY, "no memory for the chosen elements"};
    std::copy_if(x.data, x.data + x.size, y, [](float v) { return v > 0; });
    return {};
  }
};

// Like Chosen, but requests one element more than it writes.
class ChosenAndOne {
 public:
  Status run(const RunContext& c, int64_t, int64_t) const {
    const auto x = input<float>(c, 0);
    const int64_t n = std::count_if(x.data, x.data + x.size, [](float v) { return v > 0; }) + 1;
    auto* const y = static_cast<float*>(allocate_output(c, 0, {&n, 1}));
    if (!y) return {HEDDLE_ERROR_OUT_OF_MEMORY, "no memory for the chosen elements"};
    std::copy_if(x.data, x.data + x.size, y, [](float v) { return v > 0; });
    return {};
  }
};

}  // namespace

HEDDLE_PLUGIN("mistakes_extents", "1.0", plugin) {
  const auto some = [](const char* name) { return Op(name, "mistakes").in("x", f32).out("y", {}, f32).infer(infer_some); };
  plugin.add(some("PositiveOnes").cpu<positive>());
  plugin.add(some("NegativeOnes").cpu<negative>());
  plugin.add(
      some("FurtherPositive").example("f32[4] = 1 -2 3 4 -> f32[2] = 3 4", "by hand").example("f32[2] = -1 -2").cpu<further_positive>());
  plugin.add(some("Leading").example("f32[4] = 1 0 -1 2 -> f32[2] = 1 0", "by hand").cpu<leading>());
  plugin.add(Op("Places", "mistakes")
                 .in("x", f32)
                 .out_as("y", HEDDLE_I64)
                 .infer(infer_places)
                 .example("f32[3] = 1 -1 1 -> i64[1,2] = 0 2", "by hand")
                 .cpu<places>());
  plugin.add(Op("TotalToTheBound", "mistakes").in("x", f32).out("y", scalar(), f32).cpu<total>().kernel_flags(HEDDLE_KERNEL_READS_EXTENTS));
  const auto dynamic = [](const char* name) { return Op(name, "mistakes").in("x", f32).out("y", {}, f32).infer(infer_dynamic); };
  plugin.add(dynamic("Chosen")
                 .example("f32[3] = 1 -2 3 -> f32[2] = 1 3", "by hand")
                 .example("f32[2] = -1 -2")
                 .cpu<Chosen>()
                 .kernel_flags(HEDDLE_KERNEL_DYNAMIC_OUTPUTS));
  plugin.add(dynamic("ChosenAndOne").cpu<ChosenAndOne>().kernel_flags(HEDDLE_KERNEL_DYNAMIC_OUTPUTS));
}
