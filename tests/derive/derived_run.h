// Runs nets with their gradients in f64, and compares these with differences of the losses.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "derive/differentiate.h"
#include "derive/training_net.h"
#include "infer/registry_evaluator.h"
#include "resolve/resolve.h"
#include "small_nets.h"
#include "stages.h"

namespace heddle::testing_derive {

inline std::vector<double> numbers(const Shape& shape, int seed, double low = -1, double high = 1) {
  std::vector<double> values;
  for (int64_t i = 0; i < shape.element_count(); ++i)
    values.push_back(low + (high - low) * static_cast<double>((i * 7919 + seed * 104729 + 13) % 1009) / 1009);
  return values;
}

inline std::shared_ptr<const Blob> blob(const Shape& shape, const std::vector<double>& values) {
  return Blob::copy_of(DType::f64, shape, values.data());
}

inline Result<DerivedNet> derived(const Net& net, const DifferentiateOptions& options, const std::vector<std::string>& plugins = {}) {
  const auto registry = testing_stages::registry(plugins);
  const auto evaluator = make_registry_evaluator(registry);
  HEDDLE_TRY(const Net resolved, resolve(net, registry));
  return differentiate(resolved, registry, *evaluator, options);
}

// Returns the error for a derivative that cannot be made.
inline std::string refused(const Net& net, const DifferentiateOptions& options, const std::vector<std::string>& plugins = {}) {
  const auto made = derived(net, options, plugins);
  return made.ok() ? "it was derived" : made.status().text();
}

// Returns the training net of a net.
inline Result<Net> trained(const Net& net, const TrainingOptions& options) {
  const auto registry = testing_stages::registry();
  const auto evaluator = make_registry_evaluator(registry);
  HEDDLE_TRY(const Net resolved, resolve(net, registry));
  return training_net(resolved, registry, *evaluator, options);
}

using Values = std::vector<std::vector<double>>;

// Runs a net of f64 inputs and returns its outputs, all in f64.
inline Values outputs_of(Session& session, const std::vector<Shape>& shapes, const Values& inputs) {
  std::vector<TensorView> views;
  for (size_t i = 0; i < inputs.size(); ++i) views.push_back(testing_nets::view(inputs[i].data(), DType::f64, shapes[i]));
  auto ran = session.run(views);
  EXPECT_TRUE(ran.ok()) << ran.status().text();
  Values all;
  for (size_t i = 0; ran.ok() && i < ran->size(); ++i) {
    const Tensor& tensor = (*ran)[i];
    EXPECT_EQ(tensor.dtype(), DType::f64);
    const auto* const data = static_cast<const double*>(tensor.data());
    all.emplace_back(data, data + tensor.shape().element_count());
  }
  return all;
}

// Checks that the gradients of `loss`, an output of the net whose inputs are all f64, by each of its inputs agree with differences.
// `shapes`: those of the inputs, if the net leaves extents open.
inline void expect_gradients(const Net& net, const std::string& loss, const Values& at, double tolerance = 1e-6,
                             std::vector<Shape> shapes = {}) {
  SCOPED_TRACE(net.name);
  DifferentiateOptions options;
  options.losses = {loss};
  options.outputs = true;
  const bool are_given = !shapes.empty();
  for (const ValueId input : net.inputs) {
    options.wanted.push_back(net[input].name);
    if (are_given) continue;
    Shape shape;
    for (const Dim& dim : net[input].type.dims) shape.push_back(dim.value);
    shapes.push_back(shape);
  }
  options.dense = options.wanted;
  auto made = derived(net, options);
  ASSERT_TRUE(made.ok()) << made.status().text();
  const size_t first = net.outputs.size();
  Session session = testing_nets::open(testing_nets::runtime(), std::move(made->net));
  const Values whole = outputs_of(session, shapes, at);
  Session forward = testing_nets::open(testing_nets::runtime(), Net(net));
  const auto loss_at = [&](const Values& inputs) {
    double sum = 0;
    const Values all = outputs_of(forward, shapes, inputs);
    for (const double number : all[0]) sum += number;
    return sum;
  };
  size_t output = first;
  for (size_t i = 0; i < at.size(); ++i) {
    if (!made->gradients[i].any()) continue;
    ASSERT_LT(output, whole.size());
    const std::vector<double>& gradient = whole[output++];
    ASSERT_EQ(gradient.size(), at[i].size()) << options.wanted[i];
    for (size_t k = 0; k < at[i].size(); ++k) {
      constexpr double step = 1e-5;
      Values up = at, down = at;
      up[i][k] += step;
      down[i][k] -= step;
      const double difference = (loss_at(up) - loss_at(down)) / (2 * step);
      EXPECT_LE(std::abs(gradient[k] - difference), tolerance * std::max({1.0, std::abs(gradient[k]), std::abs(difference)}))
          << options.wanted[i] << " [" << k << "]: " << gradient[k] << ", differences " << difference;
    }
  }
}

}  // namespace heddle::testing_derive
