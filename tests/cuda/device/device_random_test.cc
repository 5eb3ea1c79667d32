// Nets that draw random numbers and write variables, on the CUDA device of the stand-in: the host's bits in each run, with all steps on the
// device.
#include <map>
#include <set>

#include "device_program.h"

namespace heddle::cuda {
namespace {

using namespace testing_standin;
using CudaRandom = StandinTest;

ValueId scalar(NetBuilder& b, const std::string& name, DType dtype, const void* value) {
  return b.constant(name, Blob::copy_of(dtype, Shape{}, value));
}

void counts_steps(NetBuilder& b) {
  const int64_t first = 41;
  const ValueId step = b.variable("step", Blob::copy_of(DType::i64, Shape{}, &first));
  b.updates(b.add1("StepIncrement", "count", {step}, {}, "heddle"), step);
  b.net().step_counter = b.net()[step].variable;
}

// Builds a net of every random operator, some of them twice. With a step counter each run has different numbers.
Net drawing_net(bool counts) {
  NetBuilder b("draws");
  const ValueId x = b.input("x", DType::f32, Shape{7, 130}), h = b.input("h", DType::f16, Shape{33});
  const std::vector<int64_t> shape = {5, 77};
  if (counts) counts_steps(b);
  for (const int64_t dtype : {1, 10, 11, 16}) {
    b.output(b.add1("RandomNormal", "normal" + std::to_string(dtype), {}, {{"shape", shape}, {"dtype", dtype}, {"mean", 2.0}}));
    b.output(b.add1("RandomUniform", "uniform" + std::to_string(dtype), {}, {{"shape", shape}, {"dtype", dtype}, {"low", -3.0}}));
  }
  b.output(b.add1("RandomNormalLike", "normal like", {x}));
  b.output(b.add1("RandomUniformLike", "uniform like", {h}));
  b.output(b.add1("RandomUniformLike", "with a seed", {h}, {{"seed", 3.0}}));
  b.output(b.add1("Bernoulli", "choices", {b.add1("RandomUniformLike", "chances", {x})}, {{"dtype", int64_t{6}}}));
  b.output(b.add1("Multinomial", "classes", {x}, {{"sample_size", int64_t{9}}}));
  const float ratio = 0.25F;
  const uint8_t yes = 1;
  const ValueId rate = scalar(b, "ratio", DType::f32, &ratio), training = scalar(b, "training", DType::boolean, &yes);
  for (const ValueId v : b.add("Dropout", "trained", {x, rate, training}, 2)) b.output(v);
  b.output(b.add1("Dropout", "with its own seed", {h, rate, training}, {{"seed", int64_t{9}}}));
  for (const ValueId v : b.add("Dropout", "still", {x, rate}, 2)) b.output(v);
  return b.finish();
}

// For each run, in order, its outputs.
using Runs = std::vector<std::vector<std::vector<char>>>;

Runs runs_of(Prepared& prepared, const std::vector<uint64_t>& seeds) {
  Runs all;
  for (const uint64_t seed : seeds) {
    RunOptions options;
    options.seed = seed;
    const Status status = prepared.context.run(options);
    EXPECT_TRUE(status.ok()) << status.text();
    all.push_back(status.ok() ? prepared.outputs() : std::vector<std::vector<char>>());
  }
  return all;
}

void expect_all_there(Prepared& prepared) {
  for (const PlanStep& step : prepared.plan().steps) EXPECT_TRUE(step.on_device || step.type == "Fence") << step.name << " is on the host";
}

TEST_F(CudaRandom, NumbersAreThoseOfTheHostInEachRun) {
  for (const bool counts : {false, true}) {
    auto host = prepare(cuda_runtime(), drawing_net(counts), {});
    ASSERT_TRUE(host.ok()) << host.status().text();
    const Runs right = runs_of(*host, {5, 5, 6, 5});
    EXPECT_EQ((std::set<std::vector<std::vector<char>>>(right.begin(), right.end()).size()), counts ? 4u : 2u);
    for (const int streams : {1, 3}) {
      auto there = prepare(cuda_runtime(), drawing_net(counts), on_cuda(streams));
      ASSERT_TRUE(there.ok()) << there.status().text();
      expect_all_there(*there);
      const Runs got = runs_of(*there, {5, 5, 6, 5});
      for (size_t run = 0; run < right.size(); ++run)
        for (size_t i = 0; i < right[run].size(); ++i)
          EXPECT_EQ(got[run][i], right[run][i]) << "run " << run << ", output " << there->session.outputs()[i].name;
    }
  }
  EXPECT_EQ(broken(), "");
}

// The operands of the run count, not those that it was prepared for.
TEST_F(CudaRandom, DropoutReadsItsOperandsThere) {
  const auto net = [] {
    NetBuilder b("trained or not");
    const ValueId x = b.input("x", DType::f32, Shape{300}), ratio = b.input("ratio", DType::f32, Shape{});
    for (const ValueId v : b.add("Dropout", "dropout", {x, ratio, b.input("training", DType::boolean, Shape{})}, 2)) b.output(v);
    return b.finish();
  };
  auto host = prepare(cuda_runtime(), net(), {}), there = prepare(cuda_runtime(), net(), on_cuda());
  ASSERT_TRUE(host.ok() && there.ok()) << there.status().text();
  expect_all_there(*there);
  for (const float ratio : {0.0F, 0.5F, 0.9F})
    for (const uint8_t training : {0, 1}) {
      for (Prepared* const one : {&*host, &*there}) {
        ASSERT_TRUE(one->context.bind_input(1, &ratio).ok());
        ASSERT_TRUE(one->context.bind_input(2, &training).ok());
      }
      EXPECT_EQ(runs_of(*there, {1}), runs_of(*host, {1})) << ratio;
    }
  EXPECT_EQ(broken(), "");
}

TEST_F(CudaRandom, ARatioThatIsNoneIsRefused) {
  NetBuilder b("wrong");
  const float ratio = 1.5F;
  b.output(b.add1("Dropout", "dropout", {b.input("x", DType::f32, Shape{3}), scalar(b, "ratio", DType::f32, &ratio)}));
  const Status status = prepare(cuda_runtime(), b.finish(), on_cuda()).status();
  EXPECT_NE(status.text().find("ratio is 1.5"), std::string::npos) << status.text();
}

// Builds w <- w - rate * g, a <- a + g, c <- g, n <- n + k: each in place in the memory of its variable, on the device.
Net updating_net() {
  NetBuilder b("updates");
  const ValueId g = b.input("g", DType::f32, Shape{5, 70}), rate = b.input("rate", DType::f16, Shape{}),
                k = b.input("k", DType::i32, Shape{9});
  const auto variable = [&](const char* name, DType dtype, const Shape& shape) { return b.variable(name, small_numbers(dtype, shape, 7)); };
  const ValueId w = variable("w", DType::f32, Shape{5, 70}), a = variable("a", DType::f32, Shape{5, 70}),
                c = variable("c", DType::f32, Shape{5, 70}), n = variable("n", DType::i32, Shape{9});
  const auto update = [&](const char* type, const std::string& name, std::vector<ValueId> inputs) {
    const ValueId old = inputs[0], next = b.add1(type, name, std::move(inputs), {}, "heddle");
    b.updates(next, old);
    b.output(b.add1("Neg", "-" + name, {next}));
  };
  update("SgdUpdate", "next w", {w, g, rate});
  update("AccumulateAdd", "next a", {a, g});
  update("Assign", "next c", {c, g});
  update("AccumulateAdd", "next n", {n, k});
  counts_steps(b);
  return b.finish();
}

TEST_F(CudaRandom, VariablesAreWrittenWhereTheyLie) {
  auto host = prepare(cuda_runtime(), updating_net(), {});
  ASSERT_TRUE(host.ok()) << host.status().text();
  for (const int streams : {1, 2}) {
    auto there = prepare(cuda_runtime(), updating_net(), on_cuda(streams));
    ASSERT_TRUE(there.ok()) << there.status().text();
    expect_all_there(*there);
    if (streams > 1) host = prepare(cuda_runtime(), updating_net(), {});
    EXPECT_EQ(runs_of(*there, {0, 0, 0}), runs_of(*host, {0, 0, 0}));
    for (const char* const name : {"w", "a", "c", "n", "step"}) {
      const auto got = there->session.read_variable(name), right = host->session.read_variable(name);
      ASSERT_TRUE(got.ok() && right.ok()) << got.status().text();
      const auto bytes = static_cast<size_t>(right->view().byte_size());
      EXPECT_EQ(std::memcmp(got->view().data, right->view().data, bytes), 0) << name;
    }
  }
  EXPECT_EQ(broken(), "");
}

}  // namespace
}  // namespace heddle::cuda
