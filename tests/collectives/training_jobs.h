// Nets that are trained on any number of devices or ranks, with their data.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "collectives/trained_replicas.h"

namespace heddle::testing_collectives {

inline std::vector<double> waves(int64_t count, double seed) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(std::sin(seed + 0.7 * static_cast<double>(i)));
  return values;
}
inline Array doubles(const Shape& shape, double seed) {
  return Array::of(DType::f64, shape, waves(shape.element_count(), seed));
}
// A type with the rows of a batch.
inline DeclaredType batch_of(DType dtype, std::vector<int64_t> others) {
  DeclaredType type{dtype, true, {Dim::named("N")}};
  for (const int64_t extent : others) type.dims.push_back(Dim::of(extent));
  return type;
}
inline std::shared_ptr<const Blob> blob(const Array& array) {
  return Blob::copy_of(array.dtype, array.shape, array.bytes.data());
}

// 16 features, one output, squared distance of its sigmoid from a label.
inline Net sigmoid_net(DType dtype) {
  NetBuilder b("sigmoid");
  const auto zeros = [&](const Shape& shape) {
    std::byte* data = nullptr;
    return std::shared_ptr<const Blob>(Blob::allocate(dtype, shape, &data));
  };
  const ValueId x = b.input("x", batch_of(dtype, {16})), label = b.input("label", batch_of(dtype, {1}));
  const ValueId w = b.variable("w", zeros({16, 1}), true), bias = b.variable("b", zeros({1}), true);
  const ValueId y = b.add1("Sigmoid", "y", {b.add1("Add", "biased", {b.add1("MatMul", "product", {x, w}), bias})});
  const ValueId d = b.add1("Sub", "d", {y, label});
  b.add1("ReduceMean", "loss", {b.add1("Mul", "square", {d, d})}, {{"keepdims", int64_t{0}}});
  b.output(y);
  return b.finish();
}

inline Array in_dtype(DType dtype, const Array& array) {
  if (dtype == DType::f64) return array;
  const std::vector<double> values = array.as<double>();
  return Array::of(dtype, array.shape, std::vector<float>(values.begin(), values.end()));
}

inline Job sigmoid_job(DType dtype, int64_t batch, int steps = 10) {
  Job job{sigmoid_net(dtype), {}, {}};
  job.how.losses = {"loss"};
  job.how.learning_rate = *LearningRate::parse(0.1, "constant");
  for (int step = 0; step < steps; ++step)
    job.steps.push_back({in_dtype(dtype, doubles({batch, 16}, step)), in_dtype(dtype, doubles({batch, 1}, 100 + step))});
  return job;
}

// Two tables of which each step looks up some rows, by indices that two tables share.
inline Job lookup_job(int64_t batch, int steps = 5) {
  NetBuilder b("lookup");
  const ValueId indices = b.input("indices", batch_of(DType::i64, {4})), label = b.input("label", batch_of(DType::f64, {1}));
  const ValueId table = b.variable("table", blob(doubles({1000, 8}, 3)), true),
                other = b.variable("other", blob(doubles({1000, 8}, 5)), true);
  const ValueId w = b.variable("w", blob(doubles({8, 1}, 7)), true);
  const ValueId both =
      b.add1("Add", "both", {b.add1("Gather", "looked_up", {table, indices}), b.add1("Gather", "beside", {other, indices})});
  const ValueId axes = b.constant_ints("axes", {1});
  const ValueId y = b.add1("MatMul", "y", {b.add1("ReduceSum", "sum", {both, axes}, {{"keepdims", int64_t{0}}}), w});
  const ValueId d = b.add1("Sub", "d", {y, label});
  b.add1("ReduceMean", "loss", {b.add1("Mul", "square", {d, d})}, {{"keepdims", int64_t{0}}});
  Job job{b.finish(), {}, {}};
  job.how.losses = {"loss"};
  job.how.learning_rate = *LearningRate::parse(0.01, "constant");
  for (int step = 0; step < steps; ++step) {
    std::vector<int64_t> drawn;
    for (int64_t i = 0; i < batch * 4; ++i) drawn.push_back((i * 7919 + step * 104729) % 97);  // some rows are drawn twice
    job.steps.push_back({Array::of(DType::i64, {batch, 4}, drawn), doubles({batch, 1}, step)});
  }
  return job;
}

inline std::shared_ptr<const Blob> floats(const Shape& shape, float value) {
  const std::vector<float> values(static_cast<size_t>(shape.element_count()), value);
  return Blob::copy_of(DType::f32, shape, values.data());
}

// One feature that is normalised, with running statistics that begin as 0, and scaled.
inline Net normalised_net() {
  NetBuilder b("normalised");
  const ValueId x = b.input("x", batch_of(DType::f32, {1})), label = b.input("label", batch_of(DType::f32, {1}));
  const ValueId scale = b.variable("scale", floats({1}, 1), true), bias = b.variable("bias", floats({1}, 0), true);
  const ValueId mean = b.variable("mean", floats({1}, 0)), variance = b.variable("variance", floats({1}, 0));
  const auto y = b.add("BatchNormalization", "bn", {x, scale, bias, mean, variance}, 3, {{"training_mode", int64_t{1}}, {"momentum", 0.9}});
  b.updates(b.add1("Assign", "new_mean", {mean, y[1]}, {}, "heddle"), mean);
  b.updates(b.add1("Assign", "new_variance", {variance, y[2]}, {}, "heddle"), variance);
  const ValueId d = b.add1("Sub", "d", {y[0], label});
  b.add1("ReduceMean", "loss", {b.add1("Mul", "square", {d, d})}, {{"keepdims", int64_t{0}}});
  return b.finish();
}

// In step t all pairs of count have the mean 2t and the variance 2t - 1.
inline Job normalised_job(int64_t count, int steps = 3) {
  Job job{normalised_net(), {}, {}};
  job.how.losses = {"loss"};
  job.how.optimizer = "momentum";
  for (int t = 1; t <= steps; ++t) {
    std::vector<float> x, label;
    for (int64_t i = 0; i < count; ++i) {
      x.push_back(static_cast<float>(2 * t + (i % 2 == 0 ? 1 : -1) * std::sqrt(2.0 * t - 1)));
      label.push_back(static_cast<float>(std::cos(static_cast<double>(i))));
    }
    job.steps.push_back({Array::of(DType::f32, {count, 1}, x), Array::of(DType::f32, {count, 1}, label)});
  }
  return job;
}

}  // namespace heddle::testing_collectives
