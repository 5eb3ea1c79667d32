// Shape rules that declare another shape than the operator makes. Except for the first two, the kernels fill whatever output they are
// given, so that only the operator's examples show the mistake. Each has this one mistake.
#include <algorithm>
#include <atomic>
#include <vector>

#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

constexpr heddle_dtype_set f32 = dtypes<float>();

Status need_rank(InferContext& c, uint32_t input, int rank) {
  if (c.dims(input).rank != rank)
    return invalid("input " + std::to_string(input) + " is " + dims_text(c.dims(input)) + ", expected rank " + std::to_string(rank));
  return {};
}

// a followed by b. The rule omits b, and the kernel does not.
Status infer_joined(InferContext& c) {
  HEDDLE_PLUGIN_CHECK(need_rank(c, 0, 1));
  HEDDLE_PLUGIN_CHECK(need_rank(c, 1, 1));
  return c.set_dims(0, c.dims(0)), Status();
}
Status joined(In<float> a, In<float> b, Out<float> y) {
  std::copy_n(a.data, a.size, y.data);
  std::copy_n(b.data, b.size, y.data + a.size);
  return {};
}

// Every second element. The rule leaves room for one more than there are, and the kernel does not fill it.
Status infer_every_second(InferContext& c) {
  HEDDLE_PLUGIN_CHECK(need_rank(c, 0, 1));
  return c.set_dims(0, {(c.dims(0)[0] + 1) / 2 + 1}), Status();
}
Status every_second(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; i += 2) y[i / 2] = x[i];
  return {};
}

// x twice. The rule has it once.
Status infer_repeated(InferContext& c) {
  HEDDLE_PLUGIN_CHECK(need_rank(c, 0, 1));
  return c.set_dims(0, c.dims(0)), Status();
}
Status repeated(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < y.size; ++i) y[i] = x[i % x.size];
  return {};
}

// A row of all elements or, at every second call, a column.
Status infer_flat(InferContext& c) {
  static std::atomic<int> calls{0};
  const int64_t count = c.input(0).element_count;
  return calls++ % 2 == 0 ? c.set_dims(0, {count}) : c.set_dims(0, {count, 1}), Status();
}
Status copied(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < y.size; ++i) y[i] = i < x.size ? x[i] : 0.0f;
  return {};
}

// Twice x. The rule makes a row of a scalar.
Status infer_doubled(InferContext& c) {
  return c.dims(0).rank == 0 ? c.set_dims(0, std::vector<int64_t>{1}) : c.set_dims(0, c.dims(0)), Status();
}
Status doubled(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < y.size; ++i) y[i] = 2 * x[i];
  return {};
}

// The first of each two rows. The rule makes a row where there are none.
Status infer_thinned(InferContext& c) {
  const Dims x = c.dims(0);
  HEDDLE_PLUGIN_CHECK(need_rank(c, 0, 2));
  return c.set_dims(0, {std::max<int64_t>(1, (x[0] + 1) / 2), x[1]}), Status();
}
Status thinned(In<float> x, Out<float> y) {
  const int64_t width = x.dims[1];
  for (int64_t i = 0; i < y.size; ++i) {
    const int64_t from = i / width * 2 * width + i % width;
    y[i] = from < x.size ? x[from] : 0.0f;
  }
  return {};
}

// All dimensions except the first one as one. The rule handles only three of them.
Status infer_flattened(InferContext& c) {
  const Dims x = c.dims(0);
  if (x.rank < 1) return invalid("x is a scalar, expected at least one dimension");
  return c.set_dims(0, {x[0], x.count(1, std::min(x.rank, 3))}), Status();
}

// Transposes a matrix. The rule leaves the dims as they are: right for square matrices.
Status infer_transposed(InferContext& c) {
  HEDDLE_PLUGIN_CHECK(need_rank(c, 0, 2));
  return c.set_dims(0, c.dims(0)), Status();
}
Status transposed(In<float> x, Out<float> y) {
  const int64_t rows = x.dims[0], columns = x.dims[1];
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) y[j * rows + i] = x[i * columns + j];
  return {};
}

// All elements in a row. If the content is known when shapes are inferred, the rule leaves out a zero at the end.
Status infer_trimmed(InferContext& c) {
  const heddle_tensor& x = c.input(0);
  const bool ends_in_zero = x.data && x.element_count > 0 && static_cast<const float*>(x.data)[x.element_count - 1] == 0;
  return c.set_dims(0, {x.element_count - (ends_in_zero ? 1 : 0)}), Status();
}

}  // namespace

HEDDLE_PLUGIN("mistakes_shapes", "1.0", plugin) {
  const auto op = [](const char* name, Status (*rule)(InferContext&)) {
    return Op(name, "mistakes").in("x", f32).out("y", {}, f32).infer(rule);
  };
  plugin.add(
      Op("Joined", "mistakes").in("a", f32).in("b", f32).out("y", {}, f32).infer(infer_joined).example("f32[3], f32[2]").cpu<joined>());
  plugin.add(op("EverySecond", infer_every_second).cpu<every_second>());
  plugin.add(op("Repeated", infer_repeated).example("f32[3] = 1 2 3 -> f32[6] = 1 2 3 1 2 3", "by hand").cpu<repeated>());
  plugin.add(op("Flat", infer_flat).cpu<copied>());
  plugin.add(op("Doubled", infer_doubled)
                 .example("f32[2] = 1 2 -> f32[2] = 2 4", "by hand")
                 .example("f32[] = 4 -> f32[] = 8", "by hand")
                 .cpu<doubled>());
  plugin.add(op("Thinned", infer_thinned)
                 .example("f32[3,2] = 1 2 3 4 5 6 -> f32[2,2] = 1 2 5 6", "by hand")
                 .example("f32[0,2] -> f32[0,2]", "by hand")
                 .cpu<thinned>());
  plugin.add(op("Flattened", infer_flattened)
                 .example("f32[2,3,5] -> f32[2,15]", "by hand")
                 .example("f32[2,3,5,4] -> f32[2,60]", "by hand")
                 .cpu<copied>());
  plugin.add(op("Transposed", infer_transposed)
                 .example("f32[2,2] = 1 2 3 4 -> f32[2,2] = 1 3 2 4", "by hand")
                 .example("f32[2,3] = 1 2 3 4 5 6 -> f32[3,2] = 1 4 2 5 3 6", "by hand")
                 .cpu<transposed>());
  plugin.add(op("Trimmed", infer_trimmed).example("f32[4] = 1 0 2 0").cpu<copied>());
}
