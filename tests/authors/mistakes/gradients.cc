// Operators whose gradients are wrong. Their results are right, and so are the operators that the gradients are made of, each by its own
// declaration. Each has this one mistake.
#include <algorithm>
#include <cmath>

#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

constexpr heddle_dtype_set f32 = dtypes<float>();

Status infer_alike(InferContext& c) {
  for (uint32_t i = 1; i < c.input_count(); ++i)
    if (c.has_input(i) && dims_text(c.dims(i)) != dims_text(c.dims(0)))
      return invalid("input " + std::to_string(i) + " is " + dims_text(c.dims(i)) + ", input 0 is " + dims_text(c.dims(0)));
  return c.set_dims(0, c.dims(0)), Status();
}
heddle_status emit(const heddle_gradient_builder* g, const char* name, std::initializer_list<heddle_value_handle> inputs,
                   heddle_value_handle* result) {
  return g->emit(g, "mistakes", name, inputs.begin(), static_cast<uint32_t>(inputs.size()), result, 1, nullptr, 0);
}

// ---------------------------------------------------------------- the operators

Status square(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i] * x[i];
  return {};
}
Status cube(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i] * x[i] * x[i];
  return {};
}
Status sine(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = std::sin(x[i]);
  return {};
}
Status mean(In<float> x, Out<float> y) {
  float sum = 0;
  for (int64_t i = 0; i < x.size; ++i) sum += x[i];
  y[0] = x.size > 0 ? sum / static_cast<float>(x.size) : 0.0f;
  return {};
}
Status times(In<float> a, In<float> b, Out<float> y) {
  for (int64_t i = 0; i < a.size; ++i) y[i] = a[i] * b[i];
  return {};
}
Status times_if_given(In<float> x, OptionalIn<float> b, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = b ? x[i] * b[i] : x[i];
  return {};
}
struct Factor {
  explicit Factor(const Attributes& attributes) : value(static_cast<float>(attributes.f("factor"))) {}
  float value;
};
Status scaled(In<float> x, const Factor& factor, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = factor.value * x[i];
  return {};
}
// The product of two square matrices; the first one is transposed if `transposed`.
template <bool transposed>
Status matrix_product(In<float> a, In<float> b, Out<float> y) {
  const int64_t n = a.dims[0];
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < n; ++k) sum += a[transposed ? k * n + i : i * n + k] * b[k * n + j];
      y[i * n + j] = sum;
    }
  return {};
}
Status infer_squares(InferContext& c) {
  for (uint32_t i = 0; i < 2; ++i)
    if (c.dims(i).rank != 2 || c.dims(i)[0] != c.dims(i)[1] || c.dims(i)[0] != c.dims(0)[0])
      return invalid("input " + std::to_string(i) + " is " + dims_text(c.dims(i)) + ", expected square matrices of one size");
  return c.set_dims(0, c.dims(0)), Status();
}
Status add_row(In<float> x, In<float> row, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i] + row[i % row.size];
  return {};
}
Status infer_add_row(InferContext& c) {
  const Dims x = c.dims(0), row = c.dims(1);
  if (x.rank != 2 || row.rank != 1 || x[1] != row[0])
    return invalid("x is " + dims_text(x) + " and row " + dims_text(row) + ", expected [m, n] and [n]");
  return c.set_dims(0, x), Status();
}

Status twofold(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = 2 * x[i];
  return {};
}
Status twofold_and_square(In<float> x, Out<float> double_x, Out<float> square_x) {
  for (int64_t i = 0; i < x.size; ++i) {
    double_x[i] = 2 * x[i];
    square_x[i] = x[i] * x[i];
  }
  return {};
}
// Sums of a square matrix along axis 0 or 1.
struct Axis {
  explicit Axis(const Attributes& attributes) : value(attributes.i("axis")) {}
  int64_t value;
};
Status sum_along(In<float> x, const Axis& axis, Out<float> y) {
  const int64_t n = y.size;
  for (int64_t i = 0; i < n; ++i) {
    float sum = 0;
    for (int64_t k = 0; k < n; ++k) sum += x[axis.value == 0 ? k * n + i : i * n + k];
    y[i] = sum;
  }
  return {};
}
Status infer_sum_along(InferContext& c) {
  const Dims x = c.dims(0);
  const int64_t axis = c.attributes.i("axis");
  if (x.rank != 2 || x[0] != x[1]) return invalid("x is " + dims_text(x) + ", expected a square matrix");
  if (axis != 0 && axis != 1) return invalid("axis is " + std::to_string(axis) + ", expected 0 or 1");
  return c.set_dims(0, {x[0]}), Status();
}

// ---------------------------------------------------------------- what gradients are made of

Status copy(In<float> x, Out<float> y) {
  std::copy_n(x.data, x.size, y.data);
  return {};
}
Status zeros(In<float> x, Out<float> y) {
  std::fill_n(y.data, x.size, 0.0f);
  return {};
}
// 2.02 x dy: 1 % too much for x * x.
Status square_slope(In<float> x, In<float> dy, Out<float> dx) {
  for (int64_t i = 0; i < x.size; ++i) dx[i] = 2.02f * x[i] * dy[i];
  return {};
}
// 3 x x dy for the first 20 elements, and dy for the others.
Status cube_slope_of_20(In<float> x, In<float> dy, Out<float> dx) {
  for (int64_t i = 0; i < x.size; ++i) dx[i] = i < 20 ? 3 * x[i] * x[i] * dy[i] : dy[i];
  return {};
}
// 3 x x, as if dy were 1.
Status cube_slope(In<float> x, Out<float> dx) {
  for (int64_t i = 0; i < x.size; ++i) dx[i] = 3 * x[i] * x[i];
  return {};
}
// dy for each element of x, not divided by the number of elements.
Status spread(In<float> x, In<float> dy, Out<float> dx) {
  std::fill_n(dx.data, x.size, dy[0]);
  return {};
}
Status infer_spread(InferContext& c) {
  if (c.input(1).element_count != 1) return invalid("dy is " + dims_text(c.dims(1)) + ", expected one number");
  return c.set_dims(0, c.dims(0)), Status();
}
// The first row instead of the sum of all.
Status first_row(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < y.size; ++i) y[i] = x.size > 0 ? x[i] : 0.0f;
  return {};
}
Status infer_first_row(InferContext& c) {
  if (c.dims(0).rank != 2) return invalid("x is " + dims_text(c.dims(0)) + ", expected rank 2");
  return c.set_dims(0, {c.dims(0)[1]}), Status();
}

// dy in each row, which is the gradient of a sum along axis 0.
Status spread_down(In<float> x, In<float> dy, Out<float> dx) {
  for (int64_t i = 0; i < x.size; ++i) dx[i] = dy[i % dy.size];
  return {};
}

// ---------------------------------------------------------------- callbacks

// The gradient of x * b: right for b, and for x if there is no b.
heddle_status gradient_if_given(const heddle_gradient_builder* g) {
  if (const heddle_status s = emit(g, "Copy", {g->output_gradients[0]}, &g->input_gradients[0])) return s;
  if (g->input_count < 2 || !g->inputs[1]) return HEDDLE_OK;
  return emit(g, "Times", {g->output_gradients[0], g->inputs[0]}, &g->input_gradients[1]);
}
// The gradient of factor * x: the same operator on dy, without the factor that the node has.
heddle_status gradient_without_factor(const heddle_gradient_builder* g) {
  return emit(g, "ScaledWithoutFactor", {g->output_gradients[0]}, &g->input_gradients[0]);
}

}  // namespace

HEDDLE_PLUGIN("mistakes_gradients", "1.0", plugin) {
  const auto op = [](const char* name) { return Op(name, "mistakes").in("x", f32).out("y", same_as("x"), f32); };
  const auto slope = [](const char* name) { return Op(name, "mistakes").in("x", f32).in("dy", f32).out("dx", {}, f32).infer(infer_alike); };
  const auto pair = [](const char* name) { return Op(name, "mistakes").in("a", f32).in("b", f32).out("y", {}, f32).infer(infer_alike); };
  const auto squares = [](const char* name) {
    return Op(name, "mistakes").in("a", f32).in("b", f32).out("y", {}, f32).infer(infer_squares);
  };
  // Operators without a mistake.
  plugin.add(op("Copy").cpu<copy>());
  plugin.add(op("Zeros").cpu<zeros>());
  plugin.add(pair("Times").gradient("Times", {"dy", "b"}, {"da"}).gradient("Times", {"dy", "a"}, {"db"}).cpu<times>());
  plugin.add(slope("SquareSlope").cpu<square_slope>());
  plugin.add(slope("CubeSlopeOf20").cpu<cube_slope_of_20>());
  plugin.add(op("CubeSlope").cpu<cube_slope>());
  plugin.add(
      Op("Spread", "mistakes").in("x", f32).in("dy", f32).out("dx", {}, f32).infer(infer_spread).example("f32[5], f32[]").cpu<spread>());
  plugin.add(Op("FirstRow", "mistakes").in("x", f32).out("y", {}, f32).infer(infer_first_row).cpu<first_row>());
  plugin.add(squares("SquareProduct").cpu<matrix_product<false>>());
  plugin.add(squares("TransposedProduct").cpu<matrix_product<true>>());
  plugin.add(op("Twofold").cpu<twofold>());
  plugin.add(Op("SpreadDown", "mistakes")
                 .in("x", f32)
                 .in("dy", f32)
                 .out("dx", {}, f32)
                 .infer(infer_add_row)
                 .example("f32[3,3], f32[3]")
                 .cpu<spread_down>());
  // Operators with a mistake.
  plugin.add(op("SquareOnePercent").gradient("SquareSlope", {"x", "dy"}, {"dx"}).cpu<square>());
  plugin.add(op("CubeFrom20").example("f32[40]").gradient("CubeSlopeOf20", {"x", "dy"}, {"dx"}).cpu<cube>());
  plugin.add(op("CubeWithoutDy").gradient("CubeSlope", {"x"}, {"dx"}).cpu<cube>());
  plugin.add(op("SineFlat").gradient("Zeros", {"dy"}, {"dx"}).cpu<sine>());
  plugin.add(pair("TimesTwisted").gradient("Times", {"dy", "b"}, {"da"}).gradient("Times", {"dy", "b"}, {"db"}).cpu<times>());
  plugin.add(pair("TimesOneSided").gradient("Times", {"dy", "b"}, {"da"}).cpu<times>());
  plugin.add(Op("TimesIfGiven", "mistakes")
                 .in("x", f32)
                 .optional("b", f32)
                 .out("y", {}, f32)
                 .infer(infer_alike)
                 .example("f32[4]")
                 .example("f32[4], f32[4]")
                 .gradient(gradient_if_given)
                 .cpu<times_if_given>());
  plugin.add(squares("ProductUntransposed")
                 .gradient("SquareProduct", {"dy", "b"}, {"da"})
                 .gradient("TransposedProduct", {"a", "dy"}, {"db"})
                 .example("f32[2,2] = 1 2 3 4, f32[2,2] = 1 0 1 1 -> f32[2,2] = 3 2 7 4", "by hand")
                 .cpu<matrix_product<false>>());
  plugin.add(Op("AddRow", "mistakes")
                 .in("x", f32)
                 .in("row", f32)
                 .out("y", {}, f32)
                 .infer(infer_add_row)
                 .example("f32[4,3], f32[3]")
                 .gradient("Copy", {"dy"}, {"dx"})
                 .gradient("FirstRow", {"dy"}, {"drow"})
                 .cpu<add_row>());
  plugin.add(Op("MeanUndivided", "mistakes").in("x", f32).out("y", scalar(), f32).gradient("Spread", {"x", "dy"}, {"dx"}).cpu<mean>());
  plugin.add(Op("TwofoldAndSquare", "mistakes")
                 .in("x", f32)
                 .out("double", same_as("x"), f32)
                 .out("square", same_as("x"), f32)
                 .gradient("Twofold", {"ddouble"}, {"dx"})
                 .cpu<twofold_and_square>());
  plugin.add(Op("SumAlongOne", "mistakes")
                 .in("x", f32)
                 .out("y", {}, f32)
                 .attribute("axis", 0)
                 .infer(infer_sum_along)
                 .example("f32[3,3]")
                 .example("f32[3,3]; axis=1")
                 .gradient("SpreadDown", {"x", "dy"}, {"dx"})
                 .cpu<sum_along>());
  plugin.add(op("ScaledWithoutFactor")
                 .attribute("factor", 1.0)
                 .example("f32[3] = 1 2 3; factor=3.0 -> f32[3] = 3 6 9", "by hand")
                 .gradient(gradient_without_factor)
                 .cpu<scaled>());
}
