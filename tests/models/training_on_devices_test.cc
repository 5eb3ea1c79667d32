// The digits net is trained on simulated devices, whole and spread over them and the host: the host does not look at a device within a
// step, and all variables have the CPU's bits after 20 steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "build_folder.h"
#include "heddle/training.h"
#include "models/training_form.h"
#include "session/session_impl.h"

namespace heddle::models {
namespace {

constexpr int64_t batch = 16;

Runtime runtime_with_sim() {
  RuntimeOptions options;
  options.default_plugins = false;
  options.threads = 2;
  options.plugins = {testing::build_folder() + "/lib/cpu.so", testing::build_folder() + "/lib/sim.so"};
  auto made = Runtime::create(options);
  EXPECT_TRUE(made.ok()) << made.status().text();
  return *made;
}

struct Training {
  Session session;
  std::optional<Context> context;
  std::vector<float> images = std::vector<float>(batch * 64);
  std::vector<int64_t> labels = std::vector<int64_t>(batch);
  const Plan& plan() { return Internals::execution(*context).plan(); }
};

// `place(node)`: the name of the device for the node; empty: the default one.
template <class Place>
Result<std::unique_ptr<Training>> make(const Runtime& runtime, const std::string& device, const Place& place) {
  HEDDLE_TRY(TrainingForm form, training_form("digits", {}));
  for (Node& node : form.train.nodes) node.device = place(node);
  std::vector<Net> one;
  one.push_back(std::move(form.train));
  const std::string name = one[0].name;
  HEDDLE_TRY(Nets nets, Nets::of(std::move(one)));
  TrainingOptions options;
  options.losses = {"loss"};
  options.optimizer = "momentum";
  HEDDLE_CHECK(nets.add_training(runtime, name, options, "learn"));
  SessionOptions how;
  how.device = device;
  how.copies = Copies::automatic;
  HEDDLE_TRY(const Session opened, runtime.open(nets, how));
  HEDDLE_TRY(Session session, opened.net("learn"));
  std::vector<TensorView> feeds;
  auto all = std::make_unique<Training>(Training{session, {}});
  for (const PortInfo& port : session.inputs()) {
    const bool is_labels = port.dtype == DType::i64;
    feeds.push_back({port.dtype, is_labels ? Shape{batch} : Shape{batch, 1, 8, 8},
                     is_labels ? static_cast<void*>(all->labels.data()) : static_cast<void*>(all->images.data())});
  }
  HEDDLE_TRY(Context context, session.prepare(feeds));
  all->context.emplace(std::move(context));
  for (size_t i = 0; i < feeds.size(); ++i) HEDDLE_CHECK(all->context->bind_input(i, feeds[i].data));
  return all;
}

// Runs 20 steps, and returns the bytes of all variables.
std::vector<std::vector<char>> learned(Training& training) {
  std::mt19937_64 random(7);
  for (int step = 0; step < 20; ++step) {
    for (float& pixel : training.images) pixel = static_cast<float>(random() % 17);
    for (int64_t& label : training.labels) label = static_cast<int64_t>(random() % 10);
    const Status status = training.context->run();
    EXPECT_TRUE(status.ok()) << status.text();
    if (!status.ok()) return {};
  }
  std::vector<std::vector<char>> all;
  for (const std::string& name : training.session.variables()) {
    const auto value = training.session.read_variable(name);
    EXPECT_TRUE(value.ok()) << value.status().text();
    if (!value.ok()) return {};
    const auto* const data = static_cast<const char*>(value->data());
    all.emplace_back(data, data + value->view().byte_size());
  }
  return all;
}

const auto anywhere = [](const Node&) { return std::string(); };

TEST(TrainingOnDevices, TheHostDoesNotLookAtTheDeviceWithinAStep) {
  const Runtime runtime = runtime_with_sim();
  auto on_cpu = make(runtime, "cpu:0", anywhere), on_sim = make(runtime, "sim:0", anywhere);
  ASSERT_TRUE(on_cpu.ok() && on_sim.ok()) << on_cpu.status().text() << on_sim.status().text();
  const Plan& plan = (*on_sim)->plan();
  size_t fences = 0;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    ASSERT_TRUE(plan.steps[i].on_device) << plan.steps[i].name << " is on the host";
    fences += plan.steps[i].on_device->kind == DeviceWork::Kind::fence && i + 1 < plan.steps.size() ? 1 : 0;
  }
  EXPECT_EQ(fences, 0u) << "between the first and the last step";
  const auto right = learned(**on_cpu);
  ASSERT_FALSE(right.empty());
  EXPECT_EQ(learned(**on_sim), right);
}

TEST(TrainingOnDevices, SpreadOverHostAndDevicesItLearnsTheSame) {
  const Runtime runtime = runtime_with_sim();
  auto on_cpu = make(runtime, "cpu:0", anywhere);
  ASSERT_TRUE(on_cpu.ok()) << on_cpu.status().text();
  const auto right = learned(**on_cpu);
  ASSERT_FALSE(right.empty());
  for (const char* peers : {"0", "1"})
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      SCOPED_TRACE(std::string("peers ") + peers + ", seed " + std::to_string(seed));
      ::setenv("HEDDLE_SIM_PEERS", peers, 1);
      std::mt19937_64 random(seed);
      const char* const devices[] = {"cpu:0", "sim:0", "sim:1"};
      auto spread = make(runtime_with_sim(), "sim:0", [&](const Node&) { return std::string(devices[random() % 3]); });
      ASSERT_TRUE(spread.ok()) << spread.status().text();
      EXPECT_EQ(learned(**spread), right);
    }
  ::unsetenv("HEDDLE_SIM_PEERS");
}

}  // namespace
}  // namespace heddle::models
