// FEATURES C10: running statistics of normalisation are variables like others. They follow the batches, are saved and loaded, and are the
// same on any device.
#include <gtest/gtest.h>

#include <cmath>

#include "load/temporary_folder.h"
#include "small_nets.h"

namespace heddle {
namespace {

// A normalisation of one channel with one number for each sample, with a momentum of 0.9.
Net normalization(const char* device) {
  NetBuilder b("normalization");
  const ValueId x = b.input("x", DType::f32, Shape{2, 1});
  const auto number = [](float value) { return Blob::copy_of(DType::f32, Shape{1}, &value); };
  const ValueId mean = b.variable("running mean", number(0)), variance = b.variable("running variance", number(0));
  const auto y = b.add("BatchNormalization", "normal", {x, b.constant("scale", number(1)), b.constant("bias", number(0)), mean, variance},
                       3, {{"training_mode", int64_t{1}}});
  b.updates(b.add1("Assign", "next mean", {mean, y[1]}, {}, "heddle"), mean);
  b.updates(b.add1("Assign", "next variance", {variance, y[2]}, {}, "heddle"), variance);
  b.output(y[0]);
  for (Node& node : b.net().nodes) node.device = device;
  return b.finish();
}

struct Statistics {
  float mean, variance;
};
Statistics statistics(const Session& session) {
  const auto of = [&](const char* name) {
    const auto tensor = session.read_variable(name);
    EXPECT_TRUE(tensor.ok()) << tensor.status().text();
    return tensor.ok() ? *static_cast<const float*>(tensor->data()) : -1;
  };
  return {of("running mean"), of("running variance")};
}
void expect(const Statistics& found, const Statistics& expected) {
  EXPECT_FLOAT_EQ(found.mean, expected.mean);
  EXPECT_FLOAT_EQ(found.variance, expected.variance);
}

// Runs a batch whose samples have this mean and this variance.
void see(Session& session, float mean, float variance) {
  const std::vector<float> x = {mean - std::sqrt(variance), mean + std::sqrt(variance)};
  const auto result = session.run(std::vector<TensorView>{testing_nets::view(x.data(), DType::f32, Shape{2, 1})});
  ASSERT_TRUE(result.ok()) << result.status().text();
}

class RunningStatistics : public ::testing::TestWithParam<const char*> {};

TEST_P(RunningStatistics, MoveAndAreSavedAndLoaded) {
  RuntimeOptions options;
  options.plugins = {HEDDLE_BINARY_DIR "/lib/cpu.so", HEDDLE_BINARY_DIR "/lib/sim.so"};
  options.default_plugins = false;
  const auto runtime = Runtime::create(options);
  ASSERT_TRUE(runtime.ok()) << runtime.status().text();
  SessionOptions automatic;
  automatic.copies = Copies::automatic;
  Session session = testing_nets::open(*runtime, normalization(GetParam()), automatic);
  see(session, 2, 1);
  expect(statistics(session), {0.2f, 0.1f});
  see(session, 4, 3);
  expect(statistics(session), {0.58f, 0.39f});

  // A session that loads the file continues with the saved statistics.
  const testing::TemporaryFolder folder;
  const std::string file = (folder / "halfway").string();
  ASSERT_TRUE(session.save_variables(file).ok());
  Session other = testing_nets::open(*runtime, normalization(GetParam()), automatic);
  ASSERT_TRUE(other.load_variables(file).ok());
  expect(statistics(other), {0.58f, 0.39f});
  for (Session* each : {&session, &other}) {
    see(*each, 6, 5);
    expect(statistics(*each), {1.122f, 0.851f});
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, RunningStatistics, ::testing::Values("cpu:0", "sim:0"),
                         [](const auto& test) { return std::string(test.param).substr(0, 3); });

}  // namespace
}  // namespace heddle
