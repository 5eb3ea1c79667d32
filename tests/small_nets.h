// Nets that several tests use, and the runtime that runs them.
#pragma once

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "net/net.h"
#include "session/session_impl.h"

namespace heddle::testing_nets {

inline std::shared_ptr<const Blob> blob(const Shape& shape, float first, float step) {
  std::vector<float> values(static_cast<size_t>(shape.element_count()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = first + step * static_cast<float>(i % 97);
  return Blob::copy_of(DType::f32, shape, values.data());
}

// Returns the net that `b` has built, for use as the body of an operator.
inline std::shared_ptr<const Net> subnet(NetBuilder& b) {
  return std::make_shared<const Net>(b.finish());
}

// Adds a constant that is true, as the condition of a loop or of a branch.
inline ValueId yes(NetBuilder& b) {
  return b.constant("yes", Blob::copy_of(DType::boolean, Shape{}, "\1"));
}

inline TensorView view(const void* data, DType dtype, const Shape& shape) {
  return {dtype, shape, const_cast<void*>(data)};
}

// A target with everything on the host, in one thread, under the limits of the machine.
inline CompilationTarget host_target() {
  return {"cpu:0", Limits(), 1};
}

inline Runtime runtime(int threads = 1) {
  RuntimeOptions options;
  options.plugins = {HEDDLE_BINARY_DIR "/lib/cpu.so"};
  options.default_plugins = false;
  options.threads = threads;
  auto made = Runtime::create(options);
  EXPECT_TRUE(made.ok()) << made.status().text();
  return *made;
}

inline Session open(const Runtime& runtime, Net net, const SessionOptions& options = {}) {
  auto session = runtime.open(std::move(net), options);
  EXPECT_TRUE(session.ok()) << session.status().text();
  return *session;
}

// x -> Conv -> BatchNormalization -> Relu -> (+ x2) -> Relu -> GlobalAveragePool -> Flatten -> Gemm -> Softmax
inline Net convolution_net(int64_t batch = 1) {
  NetBuilder b("convolution");
  const ValueId x = b.input("x", DType::f32, Shape{batch, 8, 14, 14});
  const std::vector<int64_t> pads = {1, 1, 1, 1};
  ValueId y = b.add1("Conv", "conv1", {x, b.constant("w1", blob(Shape{8, 8, 3, 3}, -0.2f, 0.005f))}, {{"pads", pads}});
  y = b.add1("BatchNormalization", "bn1",
             {y, b.constant("scale", blob(Shape{8}, 0.5f, 0.1f)), b.constant("shift", blob(Shape{8}, -0.3f, 0.1f)),
              b.constant("mean", blob(Shape{8}, 0.1f, 0.01f)), b.constant("variance", blob(Shape{8}, 1.0f, 0.1f))});
  y = b.add1("Relu", "relu1", {y});
  ValueId z =
      b.add1("Conv", "conv2", {y, b.constant("w2", blob(Shape{8, 8, 3, 3}, 0.1f, -0.003f)), b.constant("b2", blob(Shape{8}, 0, 0.02f))},
             {{"pads", pads}});
  z = b.add1("Add", "add", {z, y});
  z = b.add1("Relu", "relu2", {z});
  z = b.add1("GlobalAveragePool", "pool", {z});
  z = b.add1("Flatten", "flatten", {z});
  z = b.add1("Gemm", "fc", {z, b.constant("w3", blob(Shape{8, 5}, -0.5f, 0.02f)), b.constant("b3", blob(Shape{5}, 0.1f, 0.1f))});
  z = b.add1("Softmax", "softmax", {z});
  b.output(z);
  return b.finish();
}

}  // namespace heddle::testing_nets
