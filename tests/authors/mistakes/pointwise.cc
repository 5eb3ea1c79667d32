// Kernels with a pointwise text that contradict it, although they declare that they equal it. Each has this one mistake.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

constexpr heddle_dtype_set f32 = dtypes<float>();

// x / 3, by a product with the float nearest to a third: some results differ in the last bit.
Status thirds(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i] * (1.0f / 3.0f);
  return {};
}

// 0 - x, which is 0 for 0. This gives -0.
Status negated(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = -x[i];
  return {};
}

// x where it is above zero, else 0, also for NaN. This kernel propagates NaN.
Status positive(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i] <= 0 ? 0.0f : x[i];
  return {};
}

// Twice x; denormals are flushed to zero.
Status twice(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) {
    const bool denormal = x[i] != 0 && std::fabs(x[i]) < std::numeric_limits<float>::min();
    y[i] = denormal ? std::copysign(0.0f, x[i]) : 2 * x[i];
  }
  return {};
}

// The larger one, or NaN if either is NaN. std::max propagates NaN from its first argument alone.
Status larger(In<float> a, In<float> b, Out<float> y) {
  for (int64_t i = 0; i < a.size; ++i) y[i] = std::max(a[i], b[i]);
  return {};
}
Status infer_pair(InferContext& c) {
  if (dims_text(c.dims(0)) != dims_text(c.dims(1))) return invalid("a is " + dims_text(c.dims(0)) + ", b " + dims_text(c.dims(1)));
  return c.set_dims(0, c.dims(0)), Status();
}

// Half of x. Integers must be rounded toward zero, and a shift rounds them down.
template <class T>
Status halves(In<T> x, Out<T> y) {
  for (int64_t i = 0; i < x.size; ++i) {
    if constexpr (std::is_integral_v<T>)
      y[i] = static_cast<T>(x[i] >> 1);
    else
      y[i] = x[i] / 2;
  }
  return {};
}

// 3 x. Bits beyond bf16 are cut off instead of rounded to even.
Status tripled(In<bf16> x, Out<bf16> y) {
  for (int64_t i = 0; i < x.size; ++i) {
    uint32_t bits = uint32_t{x[i].bits} << 16;
    float value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    value *= 3;
    std::memcpy(&bits, &value, sizeof(bits));
    y[i].bits = static_cast<uint16_t>(bits >> 16);
  }
  return {};
}

// a * b, broadcast. It repeats b from its begin: right for a scalar and for rows, wrong for columns.
Status scaled(In<float> a, In<float> b, Out<float> y) {
  for (int64_t i = 0; i < y.size; ++i) y[i] = a[i] * b[i % b.size];
  return {};
}
Status infer_scaled(InferContext& c) {
  std::vector<int64_t> dims(c.dims(0).begin(), c.dims(0).end());
  if (!broadcast_dims(dims, c.dims(1)) || dims_text({dims.data(), static_cast<int>(dims.size())}) != dims_text(c.dims(0)))
    return invalid("b " + dims_text(c.dims(1)) + " does not broadcast to a " + dims_text(c.dims(0)));
  return c.set_dims(0, dims), Status();
}

// x + b if there is a b, else x. It takes b for one number, though it may have as many as x.
Status moved(In<float> x, OptionalIn<float> b, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = b ? x[i] + b[0] : x[i];
  return {};
}
Status infer_moved(InferContext& c) {
  if (c.has_input(1) && c.dims(1).rank != 0 && dims_text(c.dims(1)) != dims_text(c.dims(0)))
    return invalid("b is " + dims_text(c.dims(1)) + ", expected a scalar or x's " + dims_text(c.dims(0)));
  return c.set_dims(0, c.dims(0)), Status();
}

// x in mode 0, |x| in every other. The kernel handles only 0 and 1.
struct Mode {
  explicit Mode(const Attributes& attributes) : value(attributes.i("mode")) {}
  int64_t value;
};
Status magnitude(In<float> x, const Mode& mode, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = mode.value == 1 ? std::fabs(x[i]) : x[i];
  return {};
}

}  // namespace

HEDDLE_PLUGIN("mistakes_pointwise", "1.0", plugin) {
  const auto op = [](const char* name) { return Op(name, "mistakes").in("x", f32).out("y", same_as("x"), f32); };
  plugin.add(op("Thirds").pointwise("x / 3").cpu<thirds>().equals_pointwise());
  plugin.add(op("Negated").pointwise("0 - x").cpu<negated>().equals_pointwise());
  plugin.add(op("Positive").pointwise("select(gt(x, 0), x, 0)").cpu<positive>().equals_pointwise());
  plugin.add(op("Twice").pointwise("x * 2").cpu<twice>().equals_pointwise());
  plugin.add(Op("Larger", "mistakes")
                 .in("a", f32)
                 .in("b", f32)
                 .out("y", {}, f32)
                 .infer(infer_pair)
                 .pointwise("max(a, b)")
                 .cpu<larger>()
                 .equals_pointwise());
  const heddle_dtype_set some = dtypes<float, int32_t>();
  plugin.add(Op("Halves", "mistakes")
                 .in("x", some)
                 .out("y", same_as("x"), some)
                 .pointwise("x / 2")
                 .cpu<halves<float>>()
                 .equals_pointwise()
                 .cpu<halves<int32_t>>()
                 .equals_pointwise());
  plugin.add(Op("TripledInBrains", "mistakes")
                 .in("x", dtypes<bf16>())
                 .out("y", same_as("x"), dtypes<bf16>())
                 .pointwise("x * 3")
                 .example("bf16[3] = 1 2 -3 -> bf16[3] = 3 6 -9", "by hand")
                 .example("bf16[40]")
                 .cpu<tripled>()
                 .equals_pointwise());
  plugin.add(Op("Scaled", "mistakes")
                 .in("a", f32)
                 .in("b", f32)
                 .out("y", {}, f32)
                 .infer(infer_scaled)
                 .pointwise("a * b")
                 .example("f32[2,3], f32[3]")
                 .example("f32[2,3], f32[2,1]")
                 .cpu<scaled>()
                 .equals_pointwise());
  plugin.add(Op("Moved", "mistakes")
                 .in("x", f32)
                 .optional("b", f32)
                 .out("y", {}, f32)
                 .infer(infer_moved)
                 .pointwise("select(has_b, x + b, x)")
                 .example("f32[4], f32[]")
                 .example("f32[4], f32[4]")
                 .cpu<moved>()
                 .equals_pointwise());
  plugin.add(op("Magnitude").attribute("mode", 0).pointwise("select(eq(mode, 0), x, abs(x))").cpu<magnitude>().equals_pointwise());
}
