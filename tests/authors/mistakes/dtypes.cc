// Kernels that are right in f32 and wrong in another dtype that they accept, or that give an output of the wrong dtype. Each has this one
// mistake.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

constexpr heddle_dtype_set f32 = dtypes<float>();

// ---------------------------------------------------------------- one kernel for all dtypes

// x * x. Accepts any dtype of four or eight bytes, and treats all of them as floats.
class Squares {
 public:
  Status run(const RunContext& c, int64_t, int64_t) const {
    return byte_width(c.inputs[0]->dtype) == 4 ? squares<float>(c) : squares<double>(c);
  }

 private:
  template <class T>
  static Status squares(const RunContext& c) {
    const auto x = input<T>(c, 0);
    for (int64_t i = 0; i < x.size; ++i) output<T>(c, 0)[i] = x[i] * x[i];
    return {};
  }
};

// Twice x. The shape rule turns every dtype into f32, and the kernel follows it.
class TwiceAsFloat {
 public:
  Status run(const RunContext& c, int64_t, int64_t) const {
    const bool from_float = c.inputs[0]->dtype == HEDDLE_F32, to_float = c.outputs[0]->dtype == HEDDLE_F32;
    for (int64_t i = 0; i < c.inputs[0]->element_count; ++i) {
      const double value = from_float ? static_cast<double>(input<float>(c, 0)[i]) : input<double>(c, 0)[i];
      if (to_float)
        output<float>(c, 0)[i] = static_cast<float>(2 * value);
      else
        output<double>(c, 0)[i] = 2 * value;
    }
    return {};
  }
};
Status infer_as_float(InferContext& c) {
  c.set_dims(0, c.dims(0));
  c.set_dtype(0, HEDDLE_F32);
  return {};
}

// ---------------------------------------------------------------- a kernel for each dtype

// 3 x. Reads f16 as if it were bf16.
Status tripled(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = 3 * x[i];
  return {};
}
Status tripled_half(In<f16> x, Out<f16> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = f16::from_bits(bf16(3 * bf16::from_bits(x[i].bits)).bits);
  return {};
}
Status tripled_brain(In<bf16> x, Out<bf16> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = bf16(3 * x[i]);
  return {};
}

// x / 4. Loses the sign of bf16.
Status quarters(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i] / 4;
  return {};
}
Status quarters_half(In<f16> x, Out<f16> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = f16(x[i] / 4);
  return {};
}
Status quarters_brain(In<bf16> x, Out<bf16> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = bf16(std::fabs(to_float(x[i])) / 4);
  return {};
}

// Twice x. i64 is converted through 32 bits.
template <class T>
Status twice(In<T> x, Out<T> y) {
  for (int64_t i = 0; i < x.size; ++i) {
    if constexpr (std::is_integral_v<T>)
      y[i] = 2 * static_cast<T>(static_cast<int32_t>(x[i]));
    else
      y[i] = 2 * x[i];
  }
  return {};
}

// Half of x, rounded toward zero. Treats u8 as signed.
template <class T>
Status halves(In<T> x, Out<T> y) {
  for (int64_t i = 0; i < x.size; ++i) {
    if constexpr (std::is_same_v<T, uint8_t>)
      y[i] = static_cast<uint8_t>(static_cast<int8_t>(x[i]) / 2);
    else if constexpr (std::is_integral_v<T>)
      y[i] = x[i] / 2;
    else
      y[i] = std::trunc(x[i] / 2);
  }
  return {};
}

// The sum of all elements, as i64. It adds up in the dtype of the elements, which is too narrow for i8.
template <class T>
Status total(In<T> x, Out<int64_t> y) {
  std::conditional_t<sizeof(T) == 1, int8_t, int64_t> sum = 0;
  for (int64_t i = 0; i < x.size; ++i) sum = static_cast<decltype(sum)>(sum + x[i]);
  y[0] = sum;
  return {};
}

// Tells which elements are negative. It writes 2 where a bool must be 0 or 1.
Status signs(In<float> x, Out<bool> y) {
  auto* const bytes = reinterpret_cast<unsigned char*>(y.data);
  for (int64_t i = 0; i < x.size; ++i) bytes[i] = static_cast<unsigned char>(std::signbit(x[i]) ? 2 : 0);
  return {};
}

}  // namespace

HEDDLE_PLUGIN("mistakes_dtypes", "1.0", plugin) {
  const auto op = [](const char* name, heddle_dtype_set set) { return Op(name, "mistakes").in("x", set).out("y", same_as("x"), set); };
  plugin.add(
      op("Squares", dtypes<float, double, int32_t, int64_t>()).example("f32[3] = 1 2 3 -> f32[3] = 1 4 9", "by hand").cpu<Squares>());
  plugin.add(Op("TwiceAsFloat", "mistakes")
                 .in("x", dtypes<float, double>())
                 .out("y", {}, dtypes<float, double>())
                 .infer(infer_as_float)
                 .example("f64[2] = 1 2 -> f64[2] = 2 4", "by hand")
                 .cpu<TwiceAsFloat>());
  plugin.add(op("Tripled", dtypes<float, f16, bf16>())
                 .example("f32[4] = 1 2 -3 0.5 -> f32[4] = 3 6 -9 1.5", "by hand")
                 .cpu<tripled>()
                 .cpu<tripled_half>()
                 .cpu<tripled_brain>());
  plugin.add(op("Quarters", dtypes<float, f16, bf16>())
                 .example("f32[4] = 1 2 -8 0 -> f32[4] = 0.25 0.5 -2 0", "by hand")
                 .cpu<quarters>()
                 .cpu<quarters_half>()
                 .cpu<quarters_brain>());
  plugin.add(op("TwiceNarrow", dtypes<float, double, int64_t>())
                 .example("f32[2] = 3e9 1 -> f32[2] = 6e9 2", "by hand")
                 .cpu<twice<float>>()
                 .cpu<twice<double>>()
                 .cpu<twice<int64_t>>());
  plugin.add(op("HalvesSigned", dtypes<float, int32_t, uint8_t>())
                 .example("f32[2] = 200 11 -> f32[2] = 100 5", "by hand")
                 .cpu<halves<float>>()
                 .cpu<halves<int32_t>>()
                 .cpu<halves<uint8_t>>());
  plugin.add(Op("TotalNarrow", "mistakes")
                 .in("x", dtypes<int8_t, int32_t>())
                 .out_as("y", HEDDLE_I64, scalar())
                 .example("i32[3] = 100 100 100 -> i64[] = 300", "by hand")
                 .cpu<total<int32_t>>()
                 .cpu<total<int8_t>>());
  plugin.add(Op("Signs", "mistakes").in("x", f32).out_as("y", HEDDLE_BOOL, same_as("x")).cpu<signs>());
}
