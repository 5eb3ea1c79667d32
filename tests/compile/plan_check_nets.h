// Nets whose plans the plan judge is tested with.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "small_nets.h"

namespace heddle::testing_nets {

struct Make {
  bool share_memory = true;
  uint32_t threads = 4;
  bool transforms = true;
};

inline std::shared_ptr<const Plan> plan_of(const Runtime& runtime, Net net, const Make& make) {
  Session session = open(runtime, std::move(net));
  CompileOptions& compile = Internals::of(session).pipeline.compile;
  compile.share_memory = make.share_memory;
  Internals::of(session).target.max_threads = make.threads;
  TransformOptions& transform = Internals::of(session).pipeline.transform;
  transform.fold_constants = transform.apply_rules = transform.fuse_epilogues = transform.fuse_pointwise = make.transforms;
  const auto entry = Internals::of(session).find_plan(nullptr, 0);
  EXPECT_TRUE(entry.ok()) << entry.status().text();
  return entry.ok() ? (*entry)->plan : nullptr;
}

// Versions 0, 1 and 2 of `w` are read, version 0 through a view too; `v` is overwritten.
inline Net variables_net() {
  NetBuilder b("variables");
  const ValueId x = b.input("x", DType::f32, Shape{4, 6});
  const ValueId w = b.variable("w", blob(Shape{4, 6}, 1, 1)), v = b.variable("v", blob(Shape{4, 6}, 0, 1));
  b.output(b.add1("Neg", "old", {w}));
  const ValueId flat = b.add1("Reshape", "flat", {w, b.constant_ints("flat_shape", {24})});
  b.output(b.add1("Exp", "old_flat", {flat}));
  const ValueId first = b.add1("AccumulateAdd", "first", {w, x}, {}, "heddle");
  b.output(b.add1("MatMul", "middle", {first, b.constant("c", blob(Shape{6, 3}, 1, 1))}));
  const ValueId second = b.add1("SgdUpdate", "second", {first, x, b.constant_float("rate", 0.5f)}, {}, "heddle");
  const ValueId sum = b.add1("Add", "sum", {second, v});
  b.add1("Assign", "overwritten", {v, sum}, {}, "heddle");
  b.output(sum);
  b.output(second);
  return b.finish();
}

// Branches that join, with many chances to work in place, some of which must not be taken.
inline Net fork_join_net() {
  NetBuilder b("fork-join");
  const ValueId x = b.input("x", DType::f32, Shape{8, 8});
  const ValueId w = b.constant("w", blob(Shape{8, 8}, 0.1f, 0.01f));
  ValueId joined = b.add1("MatMul", "start", {x, w});
  for (int level = 0; level < 4; ++level) {
    std::vector<ValueId> branches;
    for (int i = 0; i < 6; ++i) {
      const std::string name = std::to_string(level) + std::to_string(i);
      ValueId branch = b.add1(i % 2 == 0 ? "Relu" : "Softmax", "a" + name, {joined});
      branch = b.add1("Relu", "b" + name, {b.add1("Neg", "n" + name, {branch})});
      if (i % 3 == 0) branch = b.add1("Sum", "twice" + name, {branch, branch});
      if (i % 3 == 1) branch = b.add1("MatMul", "m" + name, {branch, w});
      branches.push_back(branch);
    }
    joined = b.add1("Sum", "join" + std::to_string(level), branches);
  }
  b.output(joined);
  b.output(b.add1("Reshape", "lines", {joined, b.constant_ints("lines_shape", {4, 16})}));
  return b.finish();
}

// A convolution without a bias takes the result of the other one as its residual, and may write its own result over those bytes.
inline Net residual_net() {
  NetBuilder b("residual");
  const ValueId x = b.add1("Relu", "relu", {b.input("x", DType::f32, Shape{2, 8, 6, 6})});
  const ValueId left = b.add1("Conv", "left", {x, b.constant("w1", blob(Shape{8, 8, 1, 1}, 0.1f, 0.01f))});
  const ValueId right = b.add1("Conv", "right", {x, b.constant("w2", blob(Shape{8, 8, 1, 1}, 0.2f, 0.01f))});
  b.output(b.add1("Softmax", "soft", {b.add1("Add", "sum", {left, right})}));
  return b.finish();
}

// A bounded value and the late steps that follow it, with views of views.
inline Net bounded_net() {
  NetBuilder b("bounded");
  const ValueId x = b.input("x", DType::f32, Shape{2, 6});
  const ValueId soft = b.add1("Softmax", "soft", {x});
  const ValueId flat = b.add1("Reshape", "flat", {soft, b.constant_ints("flat_shape", {12})});
  const ValueId where = b.add1("NonZero", "where", {b.add1("Relu", "relu", {flat})});
  const ValueId rows = b.add1("Transpose", "rows", {where});
  b.output(b.add1("GatherND", "picked", {flat, rows}));
  const ValueId tall =
      b.add1("Reshape", "tall", {b.add1("Unsqueeze", "deep", {flat, b.constant_ints("axis", {0})}), b.constant_ints("tall_shape", {6, 2})});
  b.output(b.add1("MatMul", "product", {tall, x}));
  b.output(where);
  return b.finish();
}

// A loop with work whose values can share bytes.
inline Net loop_net() {
  NetBuilder body("body"), b("outer");
  body.input("turn", DType::i64, Shape{});
  body.output(body.input("go_on", DType::boolean, Shape{}));
  const ValueId v = body.input("v", DType::f32, Shape{4, 4});
  const ValueId product = body.add1("MatMul", "square", {v, v});
  body.output(body.add1("MatMul", "cube", {body.add1("Softmax", "soft", {product}), v}));
  const int64_t turns = 3;
  const std::vector<ValueId> out = b.add(
      "Loop", "loop",
      {b.constant("turns", Blob::copy_of(DType::i64, Shape{}, &turns)), b.constant("yes", Blob::copy_of(DType::boolean, Shape{}, "\1")),
       b.add1("Neg", "negated", {b.input("v", DType::f32, Shape{4, 4})})},
      1, {{"body", std::make_shared<const Net>(body.finish())}});
  b.output(b.add1("Relu", "y", {out[0]}));
  return b.finish();
}

// All values are [6, 6], some of them temporarily reshaped to [36].
inline Net random_operators(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  NetBuilder b("random");
  std::vector<ValueId> values = {b.input("x", DType::f32, Shape{6, 6}), b.constant("w", blob(Shape{6, 6}, -0.3f, 0.02f))};
  std::vector<char> read(2, 1);
  const ValueId flat = b.constant_ints("flat", {36}), square = b.constant_ints("square", {6, 6});
  const ValueId from = b.constant_ints("from", {2}), to = b.constant_ints("to", {8}), axis = b.constant_ints("axis", {0});
  const size_t count = 3 + below(40);
  for (size_t i = 0; i < count; ++i) {
    const std::string name = "n" + std::to_string(i);
    const auto pick = [&] {
      const size_t nth = below(2) == 0 ? values.size() - 1 - below(std::min<size_t>(values.size(), 4)) : below(values.size());
      read[nth] = 1;
      return values[nth];
    };
    const ValueId first = pick();
    ValueId made;
    switch (below(8)) {
      case 0:
        made = b.add1("MatMul", name, {first, pick()});
        break;
      case 1:
        made = b.add1("Reshape", name, {b.add1("Relu", name + "_relu", {b.add1("Reshape", name + "_flat", {first, flat})}), square});
        break;
      case 2:
        made = b.add1("Slice", name, {b.add1("Concat", name + "_both", {first, pick()}, {{"axis", int64_t{0}}}), from, to, axis});
        break;
      case 3:
        made = b.add1("Sum", name, {first, first});
        break;
      case 4:
      case 5:
        made = b.add1("Add", name, {first, pick()});
        break;
      default:
        made = b.add1(below(2) == 0 ? "Relu" : "Exp", name, {first});
    }
    values.push_back(made);
    read.push_back(0);
  }
  for (size_t i = 0; i < values.size(); ++i)
    if (!read[i] || (i > 1 && below(10) == 0)) b.output(values[i]);
  return b.finish();
}

// p feeds q and r, which meet in t; v is a view of t. z depends on nothing. n is a variable of three versions.
inline Net example_net() {
  NetBuilder b("example");
  const ValueId x = b.input("x", DType::f32, Shape{8, 8}), w = b.constant("w", blob(Shape{8, 8}, 0, 1));
  const ValueId n = b.variable("n", blob(Shape{8, 8}, 0, 1));
  const auto product = [&](const char* name, ValueId left) { return b.add1("MatMul", name, {left, w}); };
  const ValueId p = product("p", x), q = product("q", p), s = b.add1("Relu", "s", {q}), r = product("r", p);
  const ValueId t = b.add1("Add", "t", {s, r});
  const ValueId u = product("u", b.add1("Reshape", "v", {t, b.constant_ints("shape", {1, 8, 8})}));
  b.output(u);
  b.output(b.add1("NonZero", "where", {x}));
  b.output(b.add1("NonZero", "there", {u}));
  b.output(product("z", x));
  b.output(product("old", n));
  const ValueId first = b.add1("AccumulateAdd", "first", {n, x}, {}, "heddle");
  b.output(product("middle", first));
  b.output(b.add1("AccumulateAdd", "second", {first, x}, {}, "heddle"));
  return b.finish();
}

}  // namespace heddle::testing_nets
