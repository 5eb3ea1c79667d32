// Kernels that take indices and do not check all of them: those out of bounds must be refused. For indices within their bounds they are
// right. Each has this one mistake.
#include <algorithm>
#include <cstring>

#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

constexpr heddle_dtype_set f32 = dtypes<float>();

Status outside(int64_t index, int64_t bound) {
  return invalid("index " + std::to_string(index) + " is outside of [0, " + std::to_string(bound) + ")");
}

// ---------------------------------------------------------------- y[i] = x[index[i]]

// Checks nothing.
Status taken(In<float> x, In<int64_t> index, Out<float> y) {
  for (int64_t i = 0; i < index.size; ++i) y[i] = x[index[i]];
  return {};
}

// Accepts indices below zero.
Status taken_above(In<float> x, In<int64_t> index, Out<float> y) {
  for (int64_t i = 0; i < index.size; ++i) {
    if (index[i] >= x.size) return outside(index[i], x.size);
    y[i] = x[index[i]];
  }
  return {};
}

// Accepts indices that are too large.
Status taken_below(In<float> x, In<int64_t> index, Out<float> y) {
  for (int64_t i = 0; i < index.size; ++i) {
    if (index[i] < 0) return outside(index[i], x.size);
    y[i] = x[index[i]];
  }
  return {};
}

// Accepts the first index past the end, and no other.
Status taken_nearly(In<float> x, In<int64_t> index, Out<float> y) {
  for (int64_t i = 0; i < index.size; ++i) {
    if (index[i] < 0 || index[i] > x.size) return outside(index[i], x.size);
    y[i] = x[index[i]];
  }
  return {};
}

// Takes 2^32 for 0: it checks the lower half of each index.
Status taken_narrowly(In<float> x, In<int64_t> index, Out<float> y) {
  for (int64_t i = 0; i < index.size; ++i) {
    const auto at = static_cast<int32_t>(index[i]);
    if (at < 0 || at >= x.size) return outside(index[i], x.size);
    y[i] = x[at];
  }
  return {};
}

// Accepts all indices if x is empty, although there is nothing to take.
Status taken_of_none(In<float> x, In<int64_t> index, Out<float> y) {
  for (int64_t i = 0; i < index.size; ++i) {
    if (x.size > 0 && (index[i] < 0 || index[i] >= x.size)) return outside(index[i], x.size);
    y[i] = x[index[i]];
  }
  return {};
}

// Checks indices of 64 bits alone.
template <class I>
Status taken_wide(In<float> x, In<I> index, Out<float> y) {
  for (int64_t i = 0; i < index.size; ++i) {
    if (sizeof(I) == 8 && (index[i] < 0 || index[i] >= x.size)) return outside(index[i], x.size);
    y[i] = x[index[i]];
  }
  return {};
}
Status infer_taken(InferContext& c) {
  if (c.dims(0).rank != 1) return invalid("x is " + dims_text(c.dims(0)) + ", expected rank 1");
  return c.set_dims(0, c.dims(1)), Status();
}

// ---------------------------------------------------------------- others

// y[i] = x[row[i], column[i]]. Checks rows, and not columns.
Status cells(In<float> x, In<int64_t> row, In<int64_t> column, Out<float> y) {
  for (int64_t i = 0; i < row.size; ++i) {
    if (row[i] < 0 || row[i] >= x.dims[0]) return outside(row[i], x.dims[0]);
    y[i] = x[row[i] * x.dims[1] + column[i]];
  }
  return {};
}
Status infer_cells(InferContext& c) {
  if (c.dims(0).rank != 2) return invalid("x is " + dims_text(c.dims(0)) + ", expected rank 2");
  if (dims_text(c.dims(1)) != dims_text(c.dims(2)))
    return invalid("rows are " + dims_text(c.dims(1)) + " and columns " + dims_text(c.dims(2)));
  return c.set_dims(0, c.dims(1)), Status();
}

// x, with y[index[i]] = value[i]. Writes wherever an index points.
Status placed(In<float> x, In<int64_t> index, In<float> value, Out<float> y) {
  std::copy_n(x.data, x.size, y.data);
  for (int64_t i = 0; i < index.size; ++i) y[index[i]] = value[i];
  return {};
}
Status infer_placed(InferContext& c) {
  if (c.dims(0).rank != 1) return invalid("x is " + dims_text(c.dims(0)) + ", expected rank 1");
  if (dims_text(c.dims(1)) != dims_text(c.dims(2)))
    return invalid("indices are " + dims_text(c.dims(1)) + " and values " + dims_text(c.dims(2)));
  return c.set_dims(0, c.dims(0)), Status();
}

// Takes rows or columns of a matrix. Checks indices of rows (axis 0) alone.
struct Axis {
  explicit Axis(const Attributes& attributes) : value(attributes.i("axis")) {}
  int64_t value;
};
Status lines(In<float> x, In<int64_t> index, const Axis& axis, Out<float> y) {
  const int64_t width = x.dims[1];
  for (int64_t k = 0; k < index.size; ++k) {
    if (axis.value == 0 && (index[k] < 0 || index[k] >= x.dims[0])) return outside(index[k], x.dims[0]);
    if (axis.value == 0) std::copy_n(x.data + index[k] * width, width, y.data + k * width);
    for (int64_t row = 0; axis.value == 1 && row < x.dims[0]; ++row) y[row * index.size + k] = x[row * width + index[k]];
  }
  return {};
}
Status infer_lines(InferContext& c) {
  const Dims x = c.dims(0), index = c.dims(1);
  const int64_t axis = c.attributes.i("axis");
  if (x.rank != 2 || index.rank != 1)
    return invalid("x is " + dims_text(x) + " and index " + dims_text(index) + ", expected ranks 2 and 1");
  if (axis != 0 && axis != 1) return invalid("axis is " + std::to_string(axis) + ", expected 0 or 1");
  return axis == 0 ? c.set_dims(0, {index[0], x[1]}) : c.set_dims(0, {x[0], index[0]}), Status();
}

}  // namespace

HEDDLE_PLUGIN("mistakes_indexes", "1.0", plugin) {
  const auto taking = [](const char* name, heddle_dtype_set set = dtypes<int64_t>()) {
    return Op(name, "mistakes").in("x", f32).in("index", set, nullptr).indexes("x", 0).out("y", {}, f32).infer(infer_taken);
  };
  plugin.add(taking("Taken").cpu<taken>());
  plugin.add(taking("TakenAbove").example("f32[3] = 5 6 7, i64[2,2] = 2 0 1 2 -> f32[2,2] = 7 5 6 7", "by hand").cpu<taken_above>());
  plugin.add(taking("TakenBelow").cpu<taken_below>());
  plugin.add(taking("TakenNearly").cpu<taken_nearly>());
  plugin.add(taking("TakenNarrowly").cpu<taken_narrowly>());
  plugin.add(taking("TakenOfNone").example("f32[3], i64[2]").example("f32[0], i64[0]").cpu<taken_of_none>());
  plugin.add(taking("TakenWide", index_dtypes)
                 .example("f32[5], i64[2] = 0 4")
                 .example("f32[5], i32[2] = 0 4")
                 .cpu<taken_wide<int64_t>>()
                 .cpu<taken_wide<int32_t>>());
  plugin.add(Op("Cells", "mistakes")
                 .in("x", f32)
                 .in("row", dtypes<int64_t>(), nullptr)
                 .indexes("x", 0)
                 .in("column", dtypes<int64_t>(), nullptr)
                 .indexes("x", 1)
                 .out("y", {}, f32)
                 .infer(infer_cells)
                 .example("f32[2,3] = 1 2 3 4 5 6, i64[2] = 0 1, i64[2] = 2 0 -> f32[2] = 3 4", "by hand")
                 .cpu<cells>());
  plugin.add(Op("Placed", "mistakes")
                 .in("x", f32)
                 .in("index", dtypes<int64_t>(), nullptr)
                 .indexes("x", 0)
                 .in("value", f32)
                 .out("y", {}, f32)
                 .infer(infer_placed)
                 .example("f32[4], i64[2] = 3 0, f32[2]")
                 .cpu<placed>());
  plugin.add(Op("Lines", "mistakes")
                 .in("x", f32)
                 .in("index", dtypes<int64_t>(), nullptr)
                 .indexes("x", -1)
                 .out("y", {}, f32)
                 .attribute("axis", 0)
                 .infer(infer_lines)
                 .example("f32[3,4], i64[2] = 2 0")
                 .example("f32[3,4], i64[2] = 3 0; axis=1")
                 .cpu<lines>());
}
