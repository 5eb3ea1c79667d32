// Nets with steps whose extents only the run knows.
#pragma once

#include <random>

#include "device_support.h"

namespace heddle::testing_devices {

// Finds the elements of x that are not zero and computes with them; their extents are on the device.
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

// The first rows of x, whose number the host computes; their elements that are not zero; and some further work on the host.
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

// Matrices and vectors of lengths that the run decides, each made of others at random; operators on the host and on all devices of a kind.
inline Net random_late_net(uint64_t seed) {
  std::mt19937_64 random(seed);
  NetBuilder b("random");
  const Shape shape{6, 8};
  std::vector<ValueId> matrices = {b.input("x", DType::f32, shape), b.input("y", DType::f32, shape)}, vectors;
  const ValueId first = b.constant_ints("first", {0});
  int made = 0;
  const auto add = [&](const char* type, const std::vector<ValueId>& inputs, std::vector<Attribute> attributes = {}) {
    const ValueId value = b.add1(type, type + std::to_string(made++), inputs, std::move(attributes));
    const auto place = random() % static_cast<uint64_t>(kind().devices + 1);
    return on(b, place == 0 ? "cpu:0" : device_name(static_cast<int>(place) - 1), value);
  };
  const auto any = [&](const std::vector<ValueId>& of) { return of[random() % of.size()]; };
  for (int i = 0; i < 10; ++i) {
    const ValueId m = any(matrices);
    const uint64_t what = vectors.empty() ? 0 : random() % 7;
    if (what == 0)
      vectors.push_back(add("GatherND", {m, add("Transpose", {add("NonZero", {m})})}));
    else if (what == 1)
      vectors.push_back(add("Concat", {any(vectors), any(vectors)}, {{"axis", int64_t{0}}}));
    else if (what == 2)
      vectors.push_back(add("Relu", {any(vectors)}));
    else if (what == 3)
      vectors.push_back(add("Slice", {any(vectors), first, b.constant_ints("to" + std::to_string(i), {17}), first}));
    else if (what == 4)
      matrices.push_back(add("Add", {m, add("ReduceSum", {any(vectors), first}, {{"keepdims", int64_t(random() % 2)}})}));
    else
      matrices.push_back(add(what == 5 ? "Relu" : "Sub", what == 5 ? std::vector{m} : std::vector{m, any(matrices)}));
  }
  b.output(matrices.back());
  b.output(vectors.back());
  if (vectors.size() > 1) b.output(vectors[random() % (vectors.size() - 1)]);
  return b.finish();
}

}  // namespace heddle::testing_devices
