// Each fault at each step of a net: one error that names the step, nothing left in flight after it, and the next run is right.
#include <future>

#include "device/group_nets.h"
#include "device/late_nets.h"
#include "device/lstm_loop.h"

namespace heddle {
namespace {

using namespace testing_devices;

HEDDLE_DEVICE_SUITE(FaultMatrix);

// Two layers of a transformer encoder: attention followed by a feed-forward net, with residuals.
Net encoder() {
  constexpr int64_t rows = 6, width = 8;
  NetBuilder b("encoder");
  const ValueId ones = b.constant("ones", whole_numbers(Shape{width}, 7, 0));
  ValueId x = b.input("x", DType::f32, Shape{rows, width});
  for (const std::string layer : {"1", "2"}) {
    int seed = 0;
    const auto product = [&](const char* name, ValueId of) {
      return b.add1("MatMul", name + layer, {of, b.constant("w" + layer + name, whole_numbers(Shape{width, width}, ++seed, 3))});
    };
    const ValueId norm = b.add1("LayerNormalization", "norm" + layer, {x, ones});
    const ValueId keys = b.add1("Transpose", "turned" + layer, {product("keys", norm)});
    const ValueId scores = b.add1("MatMul", "scores" + layer, {product("queries", norm), keys});
    const ValueId mixed = b.add1("MatMul", "mixed" + layer, {b.add1("Softmax", "softmax" + layer, {scores}), product("values", norm)});
    const ValueId attended = b.add1("Add", "attended" + layer, {x, product("projected", mixed)});
    const ValueId wide = product("wide", b.add1("LayerNormalization", "norm_" + layer, {attended, ones}));
    x = b.add1("Add", "y" + layer, {attended, product("narrow", b.add1("Relu", "relu" + layer, {wide}))});
  }
  b.output(x);
  return b.finish();
}

SessionOptions whole_on_device(int streams) {
  SessionOptions options = silent(streams);
  options.device = device_name(0);
  return options;
}

struct Site {
  uint64_t label = 0;
  std::string name;
  bool kernel = true;
};

// Returns the steps on the device, and stores the outputs on the host in `right`.
std::vector<Site> sites_of(const Net& net, const SessionOptions& options, std::vector<std::vector<char>>* right) {
  const Runtime runtime = device_runtime(2, {"groups"});
  auto prepared = prepare(runtime, net, options);
  EXPECT_TRUE(prepared.ok()) << prepared.status().text();
  const Status ran = prepared->context.run();
  EXPECT_TRUE(ran.ok()) << ran.text();
  *right = outputs(prepared->context);
  std::vector<Site> sites;
  for (uint32_t i = 0; i < prepared->plan().steps.size(); ++i) {
    const PlanStep& step = prepared->plan().steps[i];
    if (!step.on_device || step.on_device->kind == DeviceWork::Kind::fence) continue;
    if (step.on_device->kind != DeviceWork::Kind::kernel) sites.push_back({i, step.name, step.on_device->kind != DeviceWork::Kind::copy});
    // Adds the steps of its subnet, with the labels of runtime/run/device/device_streams.h.
    for (uint32_t k = 0; k < (step.nested->empty() ? 0 : step.nested->at(0).plan->steps.size()); ++k)
      if (const PlanStep& inner = step.nested->at(0).plan->steps[k]; inner.on_device->kind != DeviceWork::Kind::fence)
        sites.push_back({i | uint64_t{1} << 60 | uint64_t{k} << 32, inner.name, inner.on_device->kind != DeviceWork::Kind::copy});
  }
  return sites;
}

struct Case {
  const char* name;
  Net net;
  SessionOptions options;
};
std::vector<Case> cases() {
  std::vector<Case> all;
  all.push_back({"a diamond with copies", mixed_net(), silent(2)});
  all.push_back({"an encoder", encoder(), whole_on_device(3)});
  all.push_back({"what is found", found(), whole_on_device(2)});
  all.push_back({"an LSTM's loop", lstm_loop(), whole_on_device(1)});
  all.push_back({"two groups", two_rounds(), with_both_devices()});
  return all;
}

TEST_P(FaultMatrix, EachAtEachStepIsOneErrorAndTheNextRunIsRight) {
  HEDDLE_DEVICE_NEEDS(has_fault_rules);
  size_t runs = 0;
  for (const Case& c : cases()) {
    std::vector<std::vector<char>> right;
    for (const Site& site : sites_of(c.net, c.options, &right))
      for (const std::string kind : {"enqueue", site.kernel ? "late" : "copy"}) {
        SCOPED_TRACE(std::string(c.name) + ", " + kind + " at \"" + site.name + "\"");
        const DeviceSetting faults("FAULTS", kind + "@" + std::to_string(site.label));
        const Runtime runtime = device_runtime(2, {"groups"});
        auto prepared = prepare(runtime, c.net, c.options);
        ASSERT_TRUE(prepared.ok()) << prepared.status().text();
        const Status status = prepared->context.run();
        ASSERT_EQ(status.code(), Code::device_failed) << status.text();
        EXPECT_EQ(status.diagnostic().node.substr(0, 4), ((site.label >> 32) != 0 ? std::string("loop") : site.name).substr(0, 4))
            << status.text();
        EXPECT_NE(status.text().find(site.name + "\""), std::string::npos) << status.text();
        EXPECT_TRUE(status.diagnostic().attached.empty()) << status.text();
        const Status again = prepared->context.run();
        ASSERT_TRUE(again.ok()) << again.text();
        EXPECT_EQ(outputs(prepared->context), right);
        ++runs;
      }
  }
  EXPECT_GE(runs, 60u);
}

TEST_P(FaultMatrix, ADeviceThatDoesNotKnowNamesTheStepAmongOthers) {
  HEDDLE_DEVICE_NEEDS(has_fault_rules);
  const DeviceSetting forgetful("FORGETFUL", "1");
  for (const Case& c : cases()) {
    std::vector<std::vector<char>> right;
    for (const Site& site : sites_of(c.net, c.options, &right)) {
      SCOPED_TRACE(std::string(c.name) + " at \"" + site.name + "\"");
      const DeviceSetting faults("FAULTS", (site.kernel ? "late@" : "copy@") + std::to_string(site.label));
      const Runtime runtime = device_runtime(2, {"groups"});
      auto prepared = prepare(runtime, c.net, c.options);
      ASSERT_TRUE(prepared.ok()) << prepared.status().text();
      const Status status = prepared->context.run();
      ASSERT_EQ(status.code(), Code::device_failed) << status.text();
      const bool named = status.text().find((site.label >> 32) != 0 ? "\"loop\"" : site.name + "\"") != std::string::npos;
      EXPECT_TRUE(named || status.text().find(" more it was)") != std::string::npos) << status.text();
      ASSERT_TRUE(prepared->context.run().ok());
      EXPECT_EQ(outputs(prepared->context), right);
    }
  }
}

TEST_P(FaultMatrix, ALostDeviceFailsEveryRunAndHangsNone) {
  HEDDLE_DEVICE_NEEDS(has_fault_rules);
  for (const Case& c : cases()) {
    std::vector<std::vector<char>> right;
    for (const Site& site : sites_of(c.net, c.options, &right)) {
      SCOPED_TRACE(std::string(c.name) + " at \"" + site.name + "\"");
      const DeviceSetting faults("FAULTS", "lost@" + std::to_string(site.label));
      const Runtime runtime = device_runtime(2, {"groups"});
      auto prepared = prepare(runtime, c.net, c.options);
      ASSERT_TRUE(prepared.ok()) << prepared.status().text();
      for (int run = 0; run < 2; ++run) {
        const Status status = prepared->context.run();
        ASSERT_EQ(status.code(), Code::device_lost) << status.text();
        EXPECT_NE(status.text().find(run == 0 ? site.name + "\"" : std::string("was lost")), std::string::npos) << status.text();
      }
      // Another context reopens the device; the fault rule applies once more.
      auto again = prepared->session.prepare();
      ASSERT_TRUE(again.ok()) << again.status().text();
      for (size_t i = 0; i < prepared->inputs.size(); ++i) ASSERT_TRUE(again->bind_input(i, prepared->inputs[i]->data).ok());
      EXPECT_EQ(again->run().code(), Code::device_lost);
    }
  }
}

// Work that never ends is aborted when the run's deadline passes or the run is cancelled: the next run is right. If the device ignores the
// abort, the context stays busy, and nothing waits for it.
TEST_P(FaultMatrix, AStepThatNeverEndsIsAbortedOrGivenUp) {
  HEDDLE_DEVICE_NEEDS(has_fault_rules);
  for (const Case& c : cases()) {
    std::vector<std::vector<char>> right;
    for (const Site& site : sites_of(c.net, c.options, &right))
      for (const bool cancels : {false, true}) {
        SCOPED_TRACE(std::string(c.name) + " at \"" + site.name + "\", " + (cancels ? "cancelled" : "late"));
        const DeviceSetting faults("FAULTS", "silent@" + std::to_string(site.label));
        const Runtime runtime = device_runtime(2, {"groups"});
        auto prepared = prepare(runtime, c.net, c.options);
        ASSERT_TRUE(prepared.ok()) << prepared.status().text();
        RunOptions options;
        if (!cancels) options.deadline_ns = 20'000'000;
        std::promise<Status> over;
        ASSERT_TRUE(prepared->context.run_async([&](Status status) { over.set_value(std::move(status)); }, options).ok());
        if (cancels) prepared->context.cancel();
        const Status status = over.get_future().get();
        ASSERT_EQ(status.code(), cancels ? Code::cancelled : Code::deadline_exceeded) << status.text();
        EXPECT_TRUE(cancels || status.text().find("is at") == std::string::npos) << status.text();
        // A run that was requested to stop early may not have reached the step: then the next one does.
        options.deadline_ns = 100'000'000;
        Status again = prepared->context.run(options);
        for (int more = 0; more < 50 && again.code() == Code::deadline_exceeded; ++more) again = prepared->context.run(options);
        ASSERT_TRUE(again.ok()) << again.text();
        EXPECT_EQ(outputs(prepared->context), right);
      }
  }
  const DeviceSetting faults("FAULTS", "deaf@1");
  auto prepared = prepare(device_runtime(2), mixed_net(), silent(2));
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  RunOptions options;
  options.deadline_ns = 50'000'000;
  Status status = prepared->context.run(options);
  EXPECT_EQ(status.code(), Code::deadline_exceeded) << status.text();
  status = prepared->context.run(options);
  EXPECT_EQ(status.code(), Code::busy) << status.text();
  EXPECT_NE(status.text().find("still runs"), std::string::npos) << status.text();
}

// Like CUDA's, the device is lost after one failure and forgets its callbacks. Another context reopens it.
TEST_P(FaultMatrix, ADeviceLikeCudasIsLostByAFaultAndOpenedAnew) {
  HEDDLE_DEVICE_NEEDS(has_fault_rules);
  const DeviceSetting like_cuda("CUDA_LIKE", "1");
  // Long enough that a fence learns of the loss while the step before it is still being refused on the other thread.
  const DeviceSetting refusal("REFUSAL", "10000");
  for (const Case& c : cases()) {
    std::vector<std::vector<char>> right;
    for (const Site& site : sites_of(c.net, c.options, &right)) {
      SCOPED_TRACE(std::string(c.name) + " at \"" + site.name + "\"");
      std::optional<DeviceSetting> faults;
      faults.emplace("FAULTS", (site.kernel ? "late@" : "copy@") + std::to_string(site.label));
      const Runtime runtime = device_runtime(2, {"groups"});
      auto prepared = prepare(runtime, c.net, c.options);
      ASSERT_TRUE(prepared.ok()) << prepared.status().text();
      const Status status = prepared->context.run();
      ASSERT_EQ(status.code(), Code::device_lost) << status.text();
      EXPECT_NE(status.text().find(site.name + "\""), std::string::npos) << status.text();
      EXPECT_EQ(prepared->context.run().code(), Code::device_lost);
      faults.reset();
      auto again = prepared->session.prepare();
      ASSERT_TRUE(again.ok()) << again.status().text();
      for (size_t i = 0; i < prepared->inputs.size(); ++i) ASSERT_TRUE(again->bind_input(i, prepared->inputs[i]->data).ok());
      const Status ran = again->run();
      ASSERT_TRUE(ran.ok()) << ran.text();
      EXPECT_EQ(outputs(*again), right);
    }
  }
}

TEST_P(FaultMatrix, RulesThatAreWrongAreNamed) {
  HEDDLE_DEVICE_NEEDS(has_fault_rules);
  for (const auto& [rules, text] : {std::pair<const char*, const char*>{"earthquake", "\"earthquake\" is no kind of fault"},
                                    {"late@x", "\"late@x\": what follows \"@\" is no number"},
                                    {"late:", "\"late:\": what follows \":\" is no operator"},
                                    {"copy#1,late*", "\"late*\": what follows \"*\" is no number"}}) {
    const DeviceSetting faults("FAULTS", rules);
    const Runtime runtime = device_runtime();
    const auto prepared = prepare(runtime, mixed_net(), silent());
    EXPECT_EQ(prepared.status().code(), Code::device_failed);
    EXPECT_NE(prepared.status().text().find(text), std::string::npos) << prepared.status().text();
  }
}

}  // namespace
}  // namespace heddle
