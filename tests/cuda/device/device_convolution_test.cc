// Nets with convolutions on the CUDA device, by the stand-in's cuDNN: the host's results, and the number of calls of cuDNN in a run.
#include <algorithm>
#include <cmath>

#include "cuda/lines.h"
#include "device_program.h"

namespace heddle::cuda {
namespace {

using namespace testing_standin;
using grid_test::random_tensor;
using CudaConvolution = StandinTest;
using Attributes = std::vector<Attribute>;

// One convolution of an input with constant weights, and the operators that follow it.
struct Case {
  const char* type;
  Shape x, w;
  Attributes attributes;
  bool bias = true;
  DType dtype = DType::f32;
  std::vector<std::string> behind = {};
};

ValueId add_behind(NetBuilder& b, const Case& c, const std::string& what, ValueId v, const Shape& y) {
  const std::string name = what + std::to_string(b.net().nodes.size());
  const auto constant = [&](const Shape& shape) { return b.constant(name + "_operand", random_tensor(c.dtype, shape, 0.5, 2, 9)); };
  Shape channel = y;
  for (int i = 0; i < channel.rank(); ++i)
    if (i != 1) channel[i] = 1;
  if (what == "AddSame") return b.add1("Add", name, {v, constant(y)});
  if (what == "MulChannel") return b.add1("Mul", name, {constant(channel), v});
  if (what == "DivScalar") return b.add1("Div", name, {v, constant(Shape{1})});
  if (what == "SubSame") return b.add1("Sub", name, {constant(y), v});
  if (what == "Clip")
    return b.add1("Clip", name,
                  {v, b.constant(name + "_low", random_tensor(c.dtype, Shape{}, -1, -1, 0)),
                   b.constant(name + "_high", random_tensor(c.dtype, Shape{}, 1.5, 1.5, 0))});
  return b.add1(what, name, {v});
}

Shape output_of(const Runtime& runtime, const Case& c);

Net net_of(const Case& c, const Shape* y) {
  NetBuilder b("convolution");
  std::vector<ValueId> inputs = {b.input("x", c.dtype, c.x), b.constant("w", random_tensor(c.dtype, c.w, -1, 1, 2))};
  const auto* const group =
      std::find_if(c.attributes.data(), c.attributes.data() + c.attributes.size(), [](const Attribute& a) { return a.name == "group"; });
  const int64_t groups = group == c.attributes.data() + c.attributes.size() ? 1 : std::get<int64_t>(group->value);
  const int64_t channels = std::string(c.type) == "Conv" ? c.w[0] : c.w[1] * groups;
  if (c.bias) inputs.push_back(b.constant("b", random_tensor(c.dtype, Shape{channels}, -2, 2, 3)));
  ValueId v = b.add1(c.type, "conv", inputs, c.attributes);
  for (const std::string& what : y ? c.behind : std::vector<std::string>()) v = add_behind(b, c, what, v, *y);
  b.output(v);
  return b.finish();
}

struct Ran {
  Prepared prepared;
  std::shared_ptr<const Blob> x;
  TensorView output() const { return prepared.context.output(0); }
};

Result<Ran> run_net(const Runtime& runtime, const Case& c, Net net, const SessionOptions& options) {
  HEDDLE_TRY(Session session, runtime.open(std::move(net), options));
  HEDDLE_TRY(Context context, session.prepare());
  Ran ran{{std::move(session), std::move(context), {}}, random_tensor(c.dtype, c.x, -2, 2, 1)};
  HEDDLE_CHECK(ran.prepared.context.bind_input(0, ran.x->data));
  HEDDLE_CHECK(ran.prepared.context.run());
  return ran;
}

Shape output_of(const Runtime& runtime, const Case& c) {
  auto host = run_net(runtime, c, net_of(c, nullptr), {});
  EXPECT_TRUE(host.ok()) << host.status().text();
  return host.ok() ? Shape(host->output().shape) : Shape{};
}

std::vector<double> numbers(const TensorView& t) {
  const grid_test::Elements values = conformance::numbers_of(*Blob::copy_of(t.dtype, Shape(t.shape), t.data)).values;
  return {values.begin(), values.end()};
}

// Runs the case on both devices and compares; the device's plan must have it on the device.
void expect_same(const Runtime& runtime, const Case& c, double tolerance) {
  const Shape y = output_of(runtime, c);
  auto host = run_net(runtime, c, net_of(c, &y), {});
  auto there = run_net(runtime, c, net_of(c, &y), on_cuda());
  ASSERT_TRUE(host.ok() && there.ok()) << host.status().text() << there.status().text();
  for (const PlanStep& step : there->prepared.plan().steps)
    EXPECT_TRUE(step.on_device || step.type == "Fence") << step.name << " is on the host";
  const std::vector<double> expected = numbers(host->output()), got = numbers(there->output());
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(expected[i]) && std::isnan(got[i])) continue;
    ASSERT_NEAR(got[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i]))) << i;
  }
}

const Attributes same_upper = {{"auto_pad", std::string("SAME_UPPER")}, {"strides", std::vector<int64_t>{2, 2}}};

std::vector<Case> cases() {
  using Ints = std::vector<int64_t>;
  return {
      {"Conv", Shape{2, 3, 9, 8}, Shape{5, 3, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}}},
      {"Conv",
       Shape{1, 3, 9, 8},
       Shape{5, 3, 3, 2},
       {{"pads", Ints{2, 0, 1, 1}}, {"strides", Ints{2, 1}}, {"dilations", Ints{1, 2}}},
       false},
      {"Conv", Shape{2, 4, 7, 6}, Shape{6, 2, 2, 3}, {{"group", int64_t{2}}}},
      {"Conv", Shape{1, 6, 7, 6}, Shape{12, 1, 3, 3}, {{"group", int64_t{6}}, {"pads", Ints{1, 1, 1, 1}}}, false},
      {"Conv", Shape{2, 3, 7, 6}, Shape{4, 3, 3, 4}, same_upper},
      {"Conv", Shape{2, 3, 17}, Shape{4, 3, 5}, {{"pads", Ints{2, 1}}, {"strides", Ints{3}}}},
      {"Conv", Shape{1, 2, 5, 6, 4}, Shape{3, 2, 2, 3, 2}, {{"strides", Ints{1, 2, 1}}, {"pads", Ints{0, 1, 0, 1, 1, 1}}}},
      {"ConvTranspose", Shape{2, 3, 5, 4}, Shape{3, 2, 3, 3}, {{"strides", Ints{2, 2}}, {"pads", Ints{1, 0, 0, 1}}}},
      {"ConvTranspose",
       Shape{1, 4, 5, 4},
       Shape{4, 3, 2, 3},
       {{"group", int64_t{2}}, {"strides", Ints{3, 2}}, {"output_padding", Ints{2, 1}}}},
      {"ConvTranspose", Shape{1, 2, 6}, Shape{2, 3, 4}, {{"dilations", Ints{2}}}, false},
      {"ConvTranspose", Shape{1, 2, 3, 4, 3}, Shape{2, 2, 2, 2, 2}, {{"strides", Ints{2, 1, 2}}}},
      {"ConvTranspose", Shape{1, 2, 5, 4}, Shape{2, 3, 3, 3}, same_upper},
  };
}

TEST_F(CudaConvolution, HasTheHostsResultsInEveryForm) {
  const Runtime runtime = cuda_runtime();
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    const double tolerance = dtype == DType::f64 ? 1e-12 : dtype == DType::f32 ? 1e-4 : dtype == DType::f16 ? 2e-3 : 1.6e-2;
    for (Case c : cases()) {
      SCOPED_TRACE(std::string(c.type) + " of " + ::testing::PrintToString(std::vector<int64_t>(c.x.begin(), c.x.end())) + " by " +
                   ::testing::PrintToString(std::vector<int64_t>(c.w.begin(), c.w.end())) + ", " + to_string(dtype));
      c.dtype = dtype;
      expect_same(runtime, c, tolerance);
    }
  }
  EXPECT_EQ(broken(), "");
}

const Case plain = {"Conv", Shape{2, 3, 9, 8}, Shape{5, 3, 3, 3}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}};

// Counts the steps of the plan, and the launches of our own kernels besides cuDNN's.
struct Count {
  size_t steps = 0;
  int64_t launches = 0, executions = 0;
};
Count count_of(const Standin& cuda, const Runtime& runtime, const Case& c) {
  const Shape y = output_of(runtime, c);
  auto there = run_net(runtime, c, net_of(c, &y), on_cuda());
  EXPECT_TRUE(there.ok()) << there.status().text();
  if (!there.ok()) return {};
  cuda.log(1);
  EXPECT_TRUE(there->prepared.context.run().ok());
  const std::string calls = "," + std::string(cuda.logged()) + ",";
  cuda.log(0);
  const auto times = [&](const std::string& name) {
    int64_t n = 0;
    for (size_t at = calls.find("," + name + ","); at != std::string::npos; at = calls.find("," + name + ",", at + 1)) ++n;
    return n;
  };
  Count count;
  for (const PlanStep& step : there->prepared.plan().steps) count.steps += step.type == "Conv" || step.type == "Pointwise" ? 1 : 0;
  count.launches = times("cudaLaunchKernelExC");
  count.executions = times("cudnnBackendExecute");
  EXPECT_EQ(times("cudnnBackendCreateDescriptor"), 0) << "addresses are those of the run before";
  return count;
}

TEST_F(CudaConvolution, WhatCudnnHasIsPartOfItsGraphAndTheRestOneKernel) {
  const Runtime runtime = cuda_runtime();
  const std::vector<std::pair<std::vector<std::string>, int64_t>> all = {
      {{}, 0},
      {{"Relu"}, 0},
      {{"Clip"}, 0},
      {{"AddSame", "Relu"}, 0},
      {{"MulChannel", "Sigmoid"}, 0},
      {{"Tanh"}, 0},
      {{"DivScalar"}, 1},
      {{"SubSame", "Relu"}, 1},
      {{"Relu", "Exp", "AddSame"}, 1},
      {{"Softplus"}, 1},
  };
  for (const auto& [behind, launches] : all)
    for (const auto& [bias, dtype] : {std::pair(true, DType::f32), std::pair(false, DType::f32), std::pair(true, DType::f16)}) {
      SCOPED_TRACE(::testing::PrintToString(behind) + (bias ? " and a bias, " : ", ") + to_string(dtype));
      Case c = plain;
      c.dtype = dtype;
      c.behind = behind;
      c.bias = bias;
      expect_same(runtime, c, dtype == DType::f32 ? 1e-4 : 2e-3);
      const Count count = count_of(cuda, runtime, c);
      EXPECT_EQ(count.steps, 1u) << "one step has it all";
      EXPECT_EQ(count.executions, 1);
      EXPECT_EQ(count.launches, launches);
    }
  EXPECT_EQ(broken(), "");
}

TEST_F(CudaConvolution, OfNoChannelsIsItsBias) {
  Case c = plain;
  c.x = Shape{2, 0, 9, 8};
  c.w = Shape{5, 0, 3, 3};
  c.behind = {"Relu"};
  expect_same(cuda_runtime(), c, 0);
  c.x = Shape{0, 3, 9, 8};
  c.w = plain.w;
  expect_same(cuda_runtime(), c, 0);
  EXPECT_EQ(broken(), "");
}

// In one, two and three dimensions, in some of them only, and where no element of the input reaches the output at all.
TEST_F(CudaConvolution, BeyondWhatAStrideReachesIsTheBias) {
  using Ints = std::vector<int64_t>;
  const Case all[] = {
      {"ConvTranspose", Shape{1, 2, 4}, Shape{2, 3, 2}, {{"dilations", Ints{3}}, {"output_padding", Ints{2}}}},
      {"ConvTranspose",
       Shape{2, 4, 5, 4},
       Shape{4, 3, 3, 2},
       {{"group", int64_t{2}},
        {"dilations", Ints{3, 4}},
        {"strides", Ints{2, 3}},
        {"output_padding", Ints{2, 3}},
        {"pads", Ints{1, 0, 0, 2}}}},
      {"ConvTranspose", Shape{2, 3, 5, 4}, Shape{3, 2, 3, 3}, {{"dilations", Ints{1, 3}}, {"output_padding", Ints{0, 2}}}, false},
      {"ConvTranspose", Shape{1, 2, 3, 4, 3}, Shape{2, 2, 2, 2, 2}, {{"dilations", Ints{2, 1, 3}}, {"output_padding", Ints{1, 0, 2}}}},
      {"ConvTranspose", Shape{1, 2, 1}, Shape{2, 3, 1}, {{"dilations", Ints{3}}, {"output_padding", Ints{2}}, {"pads", Ints{1, 0}}}},
  };
  const Runtime runtime = cuda_runtime();
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
    for (const std::vector<std::string>& behind : {std::vector<std::string>(), {"Relu", "AddSame"}})
      for (Case c : all) {
        SCOPED_TRACE(std::string(to_string(dtype)) + ", " + std::to_string(c.x.rank()) + " dimensions, " +
                     ::testing::PrintToString(behind));
        c.dtype = dtype;
        c.behind = behind;
        expect_same(runtime, c, dtype == DType::f64 ? 1e-12 : dtype == DType::f32 ? 1e-4 : dtype == DType::f16 ? 4e-3 : 3.2e-2);
      }
  // One call of cuDNN, and one launch for the operators that follow.
  Case c = all[1];
  c.behind = {"Relu", "AddSame"};
  const Count count = count_of(cuda, runtime, c);
  EXPECT_EQ(count.executions, 1);
  EXPECT_EQ(count.launches, 1);
  EXPECT_EQ(broken(), "");
}

// The sums 2048 + 1 in f16, and 256 + 1 in bf16, lie between two numbers: a sum rounded before the bias is added would give 0.
TEST_F(CudaConvolution, ABiasIsAddedBeforeSumsAreRounded) {
  using Ints = std::vector<int64_t>;
  const auto filled = [](DType dtype, const Shape& shape, double value) { return random_tensor(dtype, shape, value, value, 0); };
  const auto net = [&](const Case& c, double large) {
    NetBuilder b("cancels");
    const ValueId x = b.input("x", c.dtype, c.x);
    const ValueId parts = b.add1("Concat", "parts", {x, b.constant("large", filled(c.dtype, c.x, large))}, {{"axis", int64_t{1}}});
    ValueId v = b.add1(c.type, "conv",
                       {parts, b.constant("w", filled(c.dtype, c.w, 1)), b.constant("b", filled(c.dtype, Shape{1}, -large))}, c.attributes);
    for (const std::string& what : c.behind) v = add_behind(b, c, what, v, Shape{});
    b.output(v);
    return b.finish();
  };
  // In the last case cuDNN writes a corner, and only the bias is beyond it.
  const Case all[] = {{"Conv", Shape{1, 1, 3, 4}, Shape{1, 2, 1, 1}, {}},
                      {"ConvTranspose", Shape{1, 1, 3, 4}, Shape{2, 1, 1, 1}, {}},
                      {"ConvTranspose", Shape{1, 1, 5}, Shape{2, 1, 1}, {}},
                      {"ConvTranspose", Shape{1, 1, 3, 4}, Shape{2, 1, 1, 1}, {{"dilations", Ints{1, 3}}, {"output_padding", Ints{0, 2}}}}};
  const Runtime runtime = cuda_runtime();
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const std::vector<std::string>& behind : {std::vector<std::string>(), {"Abs", "Sqrt"}})
      for (Case c : all) {
        SCOPED_TRACE(std::string(c.type) + " of " + std::to_string(c.x.rank()) + " dimensions, " + to_string(dtype) + ", " +
                     ::testing::PrintToString(behind));
        c.dtype = dtype;
        c.behind = behind;
        const double large = dtype == DType::f16 ? 2048 : 256;
        auto there = prepare(runtime, net(c, large), on_cuda());
        ASSERT_TRUE(there.ok()) << there.status().text();
        const auto x = filled(dtype, c.x, 1);
        ASSERT_TRUE(there->context.bind_input(0, x->data).ok());
        ASSERT_TRUE(there->context.run().ok());
        const TensorView y = there->context.output(0);
        const double beyond = behind.empty() ? -large : dtype == DType::f16 ? 45.25 : 16;
        const std::vector<double> got = numbers(y);
        for (size_t i = 0; i < got.size(); ++i)
          EXPECT_EQ(got[i], static_cast<int64_t>(i) % y.shape[y.shape.rank() - 1] < c.x[c.x.rank() - 1] ? 1 : beyond) << i;
      }
  EXPECT_EQ(broken(), "");
}

// The f32 operands and sums are planned, within the memory limit.
TEST_F(CudaConvolution, WhatItWidensCountsAsMemory) {
  Case c = {"ConvTranspose", Shape{1, 8, 32, 32}, Shape{8, 8, 3, 3}, {}};
  c.dtype = DType::f16;
  SessionOptions options = on_cuda();
  const Runtime runtime = cuda_runtime();
  options.memory_limit = 80'000;  // f16 input, weights and output take about 36000 bytes; their f32 copies take twice that in addition
  auto there = run_net(runtime, c, net_of(c, nullptr), options);
  ASSERT_FALSE(there.ok());
  EXPECT_NE(there.status().text().find("as f32 need"), std::string::npos) << there.status().text();
  options.memory_limit = 160'000;
  there = run_net(runtime, c, net_of(c, nullptr), options);
  EXPECT_TRUE(there.ok()) << there.status().text();
  EXPECT_EQ(broken(), "");
}

// A small classifier: convolutions with the usual operators after them, pools of three kinds.
TEST_F(CudaConvolution, WholeNetsHaveTheHostsResults) {
  const auto net = [] {
    NetBuilder b("classifier");
    using Ints = std::vector<int64_t>;
    const auto weights = [&](const std::string& name, const Shape& shape) {
      return b.constant(name, random_tensor(DType::f32, shape, -0.5, 0.5, 20 + b.net().nodes.size()));
    };
    const Attributes padded = {{"pads", Ints{1, 1, 1, 1}}};
    const Attributes halves = {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}};
    ValueId v = b.input("x", DType::f32, Shape{2, 3, 17, 16});
    v = b.add1("Relu", "r1", {b.add1("Conv", "c1", {v, weights("w1", Shape{8, 3, 3, 3}), weights("b1", Shape{8})}, padded)});
    v = b.add1("MaxPool", "p1", {v}, halves);
    const ValueId inner = b.add1("Conv", "c2", {v, weights("w2", Shape{8, 1, 3, 3})}, {{"group", int64_t{8}}, {"pads", Ints{1, 1, 1, 1}}});
    const ValueId outer = b.add1("Conv", "c3", {inner, weights("w3", Shape{8, 8, 1, 1}), weights("b3", Shape{8})});
    v = b.add1("Relu", "r3", {b.add1("Add", "a3", {outer, v})});
    v = b.add1("AveragePool", "p2", {v}, halves);
    v = b.add1("ConvTranspose", "c4", {v, weights("w4", Shape{8, 6, 2, 2}), weights("b4", Shape{6})}, {{"strides", Ints{2, 2}}});
    v = b.add1("Sigmoid", "s4", {v});
    v = b.add1("LpPool", "p3", {v}, {{"kernel_shape", Ints{2, 2}}});
    b.output(b.add1("GlobalAveragePool", "g", {v}));
    return b.finish();
  };
  const Case c = {"Conv", Shape{2, 3, 17, 16}, Shape{}, {}};
  for (const int streams : {1, 2}) {
    const Runtime runtime = cuda_runtime(streams);
    auto host = run_net(runtime, c, net(), {});
    auto there = run_net(runtime, c, net(), on_cuda(streams));
    ASSERT_TRUE(host.ok() && there.ok()) << host.status().text() << there.status().text();
    for (const PlanStep& step : there->prepared.plan().steps)
      EXPECT_TRUE(step.on_device || step.type == "Fence") << step.name << " is on the host";
    const std::vector<double> expected = numbers(host->output()), got = numbers(there->output());
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-4 * std::max(1.0, std::abs(expected[i]))) << i;
  }
  EXPECT_EQ(broken(), "");
}

// Addresses that differ from the last run's are set anew; each stream has its own handle.
TEST_F(CudaConvolution, RunsWithOtherMemoryAndOnManyStreams) {
  const Runtime runtime = cuda_runtime(2);
  const auto net = [] {
    NetBuilder b("two");
    const ValueId x = b.input("x", DType::f32, Shape{1, 3, 8, 8});
    for (const char* name : {"left", "right"}) {
      ValueId v = b.add1("Conv", name, {x, b.constant(std::string(name) + "_w", random_tensor(DType::f32, Shape{4, 3, 3, 3}, -1, 1, 5))});
      b.output(b.add1("Conv", std::string(name) + "2",
                      {v, b.constant(std::string(name) + "_w2", random_tensor(DType::f32, Shape{2, 4, 1, 1}, -1, 1, 6))}));
    }
    return b.finish();
  };
  for (int seed = 0; seed <= 4; ++seed) {
    const StandinSetting drawn("SEED", std::to_string(seed));
    const Runtime again = cuda_runtime(2);
    auto host = prepare(again, net(), {});
    auto there = prepare(again, net(), on_cuda(2));
    ASSERT_TRUE(host.ok() && there.ok()) << there.status().text();
    for (uint64_t run = 0; run < 3; ++run) {
      const auto x = random_tensor(DType::f32, Shape{1, 3, 8, 8}, -2, 2, 10 + run);
      ASSERT_TRUE(host->context.bind_input(0, x->data).ok() && there->context.bind_input(0, x->data).ok());
      ASSERT_TRUE(host->context.run().ok());
      const Status status = there->context.run();
      ASSERT_TRUE(status.ok()) << status.text();
      for (size_t i = 0; i < 2; ++i) {
        const std::vector<double> expected = numbers(host->context.output(i)), got = numbers(there->context.output(i));
        for (size_t k = 0; k < got.size(); ++k) ASSERT_NEAR(got[k], expected[k], 1e-4 * std::max(1.0, std::abs(expected[k])));
      }
    }
  }
  cuda.look_for_leaks();
  EXPECT_EQ(broken(), "");
}

// Builds a convolution whose length is found during the run.
Net found_net() {
  NetBuilder b("found");
  const ValueId places = b.add1("NonZero", "places", {b.input("x", DType::f32, Shape{1, 64})});
  const ValueId numbers = b.add1("Cast", "numbers", {places}, {{"to", int64_t{1}}});
  const int64_t first = 0;
  const ValueId images = b.add1("Unsqueeze", "images", {numbers, b.constant("axes", Blob::copy_of(DType::i64, Shape{1}, &first))});
  const ValueId w = b.constant("w", random_tensor(DType::f32, Shape{3, 2, 1}, -1, 1, 2));
  b.output(b.add1("Neg", "negative", {b.add1("Conv", "conv", {images, w})}));
  return b.finish();
}

// cuDNN works in the stream of the steps before and after it.
TEST_F(CudaConvolution, OfALengthThatIsFoundHasTheHostsResults) {
  auto host = prepare(cuda_runtime(), found_net(), {});
  ASSERT_TRUE(host.ok()) << host.status().text();
  for (int seed = 0; seed <= 4; ++seed) {
    const StandinSetting drawn("SEED", std::to_string(seed));
    auto there = prepare(cuda_runtime(2), found_net(), on_cuda(2));
    ASSERT_TRUE(there.ok()) << there.status().text();
    for (const int64_t count : {1, 5, 5, 64, 2}) {
      std::vector<float> x(64, 0);
      std::fill_n(x.begin(), count, 1.0f);
      for (Prepared* const one : {&*host, &*there}) {
        ASSERT_TRUE(one->context.bind_input(0, x.data()).ok());
        const Status status = one->context.run();
        ASSERT_TRUE(status.ok()) << status.text();
      }
      const std::vector<double> expected = numbers(host->context.output(0)), got = numbers(there->context.output(0));
      ASSERT_EQ(got.size(), expected.size());
      for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-3) << i;
    }
  }
  EXPECT_EQ(broken(), "");
}

// The contexts that a session keeps hold no handles of streams that no longer exist.
TEST_F(CudaConvolution, HandlesOfFoundLengthsGoWithTheirStreams) {
  Runtime runtime = cuda_runtime();
  auto session = runtime.open(found_net(), on_cuda());
  ASSERT_TRUE(session.ok()) << session.status().text();
  cuda.log(1);
  for (int times = 1; times <= 3; ++times) {
    {
      auto context = session->prepare();
      ASSERT_TRUE(context.ok()) << context.status().text();
      const std::vector<float> x(64, 1);
      ASSERT_TRUE(context->bind_input(0, x.data()).ok());
      const Status status = context->run();
      ASSERT_TRUE(status.ok()) << status.text();
    }
    runtime.trim();
    const std::vector<std::string> calls = words(cuda.logged());
    const auto made = std::count(calls.begin(), calls.end(), "cudnnCreate"), gone = std::count(calls.begin(), calls.end(), "cudnnDestroy");
    EXPECT_EQ(made, times + 1) << "that of plans, and one of each stream";
    EXPECT_EQ(gone, times);
  }
  cuda.log(0);
  EXPECT_EQ(broken(), "");
}

// Without the option no bit of an input is dropped.
TEST_F(CudaConvolution, Tf32IsAnOption) {
  auto host = run_net(cuda_runtime(), plain, net_of(plain, nullptr), {});
  ASSERT_TRUE(host.ok()) << host.status().text();
  const std::vector<double> expected = numbers(host->output());
  const auto largest_error = [&] {
    auto there = run_net(cuda_runtime(), plain, net_of(plain, nullptr), on_cuda());
    EXPECT_TRUE(there.ok()) << there.status().text();
    double error = 0;
    const std::vector<double> got = there.ok() ? numbers(there->output()) : expected;
    for (size_t i = 0; i < got.size(); ++i) error = std::max(error, std::abs(got[i] - expected[i]));
    return error;
  };
  EXPECT_LT(largest_error(), 1e-4);
  ::setenv("HEDDLE_CUDA_TF32", "1", 1);
  const double narrowed = largest_error();
  ::unsetenv("HEDDLE_CUDA_TF32");
  EXPECT_GT(narrowed, 1e-4);
  EXPECT_LT(narrowed, 0.1);
}

TEST_F(CudaConvolution, ARunWaitsForNothingAndAllocatesNothing) {
  auto there = run_net(cuda_runtime(), plain, net_of(plain, nullptr), on_cuda());
  ASSERT_TRUE(there.ok()) << there.status().text();
  for (int run = 0; run < 3; ++run) {
    cuda.run(1);
    ASSERT_TRUE(there->prepared.context.run().ok());
    cuda.run(0);
    EXPECT_EQ(broken(), "");
  }
}

}  // namespace
}  // namespace heddle::cuda
