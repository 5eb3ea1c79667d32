// Nets with steps whose extents only the run knows.
#pragma once

#include "device_support.h"

namespace heddle::testing_devices {

// What is not zero in x, by extents that lie on the device.
inline Net found() {
  NetBuilder b("found");
  const ValueId x = b.input("x", DType::f32, Shape{6, 8});
  const ValueId where = b.add1("NonZero", "where", {x});
  const ValueId each = b.add1("Transpose", "each", {where});
  const ValueId numbers = b.add1("GatherND", "numbers", {x, each});
  const ValueId squares = b.add1("Mul", "squares", {numbers, numbers});
  const ValueId column = b.add1("Unsqueeze", "column", {squares, b.constant_ints("axis", {1})});
  b.output(b.add1("MatMul", "table", {column, b.constant("row", whole_numbers(Shape{1, 5}, 3, 2))}));
  b.output(b.add1("ReduceSum", "sum", {squares, b.constant_ints("axes", {0})}));
  return b.finish();
}

// The first rows of x, as many as the host says; what is not zero in them; and some of it once more on the host.
inline Net rows() {
  NetBuilder b("rows");
  const ValueId x = b.input("x", DType::f32, Shape{6, 8});
  const ValueId count = on(b, "cpu", b.add1("Add", "count", {b.input("n", DType::i64, Shape{1}), b.constant_ints("one", {1})}));
  const ValueId some = b.add1("Slice", "some", {x, b.constant_ints("from", {0}), count, b.constant_ints("axis", {0})});
  const ValueId product = b.add1("MatMul", "product", {some, b.constant("w", whole_numbers(Shape{8, 4}, 1, 3))});
  b.output(b.add1("Relu", "positive", {product}));
  b.output(b.add1("NonZero", "where", {some}));
  b.output(b.add1("Softmax", "back", {b.add1("Through", "through", {product}, {}, "host_only")}));
  return b.finish();
}

}  // namespace heddle::testing_devices
