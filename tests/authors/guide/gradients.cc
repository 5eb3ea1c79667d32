// What docs/operator_guide.md shows of gradients that a function builds: one for the whole input, and one by rows of a table.
#include <string>

#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

// ---------------------------------------------------------------- an attribute decides

struct Reduction {
  explicit Reduction(const Attributes& attributes) : is_mean(attributes.i("mean") != 0) {}
  bool is_mean;
};

// For each row the sum of (a - b) * (a - b), or their mean.
template <class T>
Status squared_distance(In<T> a, In<T> b, const Reduction& reduction, Out<T> y) {
  const int64_t width = a.dims[1];
  for (int64_t row = 0; row < y.size; ++row) {
    double sum = 0;
    for (int64_t k = row * width; k < (row + 1) * width; ++k) {
      const double difference = static_cast<double>(a[k]) - static_cast<double>(b[k]);
      sum += difference * difference;
    }
    y[row] = static_cast<T>(reduction.is_mean ? sum / static_cast<double>(width) : sum);
  }
  return {};
}

// da = 2 (a - b) dy, with one dy for each row; for a mean, divided by the length of a row. db = -da.
Status squared_distance_gradient(GradientContext& g) {
  GradientValue dy = g.dy(0);
  if (g.attributes().i("mean") != 0) {
    // Each run knows how long a row is; this function is called before any.
    const GradientValue width = g.emit("Shape", {g.x(0)}, {{"start", 1}, {"end", 2}});
    dy = g.emit("Div", {dy, g.emit("CastLike", {width, dy})});
  }
  const GradientValue column = g.emit("Unsqueeze", {dy, g.ints({1})});
  const GradientValue difference = g.emit("Sub", {g.x(0), g.x(1)});
  const GradientValue da = g.emit("Mul", {g.emit("Add", {difference, difference}), column});
  g.give(0, da);
  if (g.wants(1)) g.give(1, g.emit("Neg", {da}));
  return {};
}

// ---------------------------------------------------------------- rows of a table

// y[i] = weights[i] * table[indices[i]]. An index below zero counts from the end.
template <class T>
Status weighted_rows(In<T> table, In<int64_t> indices, In<T> weights, Out<T> y) {
  const int64_t rows = table.dims[0], width = table.dims[1];
  for (int64_t i = 0; i < indices.size; ++i) {
    const int64_t row = indices[i] < 0 ? indices[i] + rows : indices[i];
    if (row < 0 || row >= rows)
      return invalid("indices[" + std::to_string(i) + "] is " + std::to_string(indices[i]) + ", the table has " + std::to_string(rows) +
                     " rows");
    for (int64_t k = 0; k < width; ++k) y[i * width + k] = weights[i] * table[row * width + k];
  }
  return {};
}

// Row i of dy, times its weight, goes to the row of the table that row i of y was made of. No tensor of the table's size is made.
Status weighted_rows_gradient(GradientContext& g) {
  const GradientValue table = g.x(0), indices = g.x(1), weights = g.x(2), dy = g.dy(0);
  if (g.wants(0)) {
    const GradientValue column = g.emit("Unsqueeze", {weights, g.ints({1})});
    g.give_rows(0, indices, g.emit("Mul", {dy, column}));
  }
  if (g.wants(2)) {
    const GradientValue products = g.emit("Mul", {dy, g.emit("Gather", {table, indices})});
    g.give(2, g.emit("ReduceSum", {products, g.ints({1})}, {{"keepdims", 0}}));
  }
  return {};
}

constexpr heddle_dtype_set floats = dtypes<float, double>();

}  // namespace

HEDDLE_PLUGIN("guide_gradients", "1.0", plugin) {
  plugin.add(Op("SquaredDistance", "guide")
                 .doc("for each row the sum of the squares of a - b, or with mean=1 their mean")
                 .in("a", floats)
                 .dims("N D")
                 .in("b", floats)
                 .dims("N D")
                 .out("y", {}, floats)
                 .dims("N")
                 .attribute("mean", 0)
                 .gradient<squared_distance_gradient>()
                 .cpu<squared_distance<float>>()
                 .cpu<squared_distance<double>>()
                 .example("f32[2,3] = 1 2 3 0 0 0, f32[2,3] = 0 0 1 -1 2 3 -> f32[2] = 9 14", "by hand")
                 .example("f32[2,2] = 1 2 0 0, f32[2,2] = 0 0 -1 3; mean=1 -> f32[2] = 2.5 5", "by hand"));
  plugin.add(Op("WeightedRows", "guide")
                 .doc("rows of a table, each times its weight")
                 .in("table", floats)
                 .dims("R D")
                 .in("indices", dtypes<int64_t>(), nullptr)
                 .dims("N")
                 .indexes("table", 0)
                 .in("weights", floats)
                 .dims("N")
                 .out("y", {}, floats)
                 .dims("N D")
                 .gradient<weighted_rows_gradient>()
                 .cpu<weighted_rows<float>>()
                 .cpu<weighted_rows<double>>()
                 .example("f32[3,2] = 1 2 3 4 5 6, i64[3] = 2 0 -1, f32[3] = 1 10 -1 -> f32[3,2] = 5 6 10 20 -5 -6", "by hand"));
}
