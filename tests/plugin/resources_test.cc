// Resources: each is made once and under no lock, by the first request; one that needs itself or fails gives all requests the error.
#include "device/resources.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "../plugins/needy.h"
#include "plugins.h"
#include "session_plan.h"

namespace heddle {
namespace {

class Resources : public ::testing::Test {
 protected:
  void SetUp() override {
    const Status status = registry_.load(test_plugin("needy"));
    ASSERT_TRUE(status.ok()) << status.text();
    fresh_table();
  }
  void fresh_table() {
    table_ = std::make_unique<ResourceTable>(ResourceHolder::session, std::make_shared<ResourceTable>(ResourceHolder::runtime));
  }
  Result<void*> ask(const std::string& name) {
    HEDDLE_TRY(const ResourceSlot slot, table_->bind(registry_.snapshot(), {name, "", 1, {}}, {"cpu:0", nullptr}));
    return slot.made->object();
  }
  Needy* get(const std::string& name) {
    const auto found = ask(name);
    EXPECT_TRUE(found.ok()) << found.status().text();
    return found.ok() ? static_cast<Needy*>(*found) : nullptr;
  }
  std::string refusal(const std::string& name) {
    const auto found = ask(name);
    EXPECT_FALSE(found.ok());
    EXPECT_EQ(found.status().code(), Code::missing_resource) << found.status().text();
    return found.status().diagnostic().message;
  }
  Registry registry_;
  std::unique_ptr<ResourceTable> table_;
};

TEST_F(Resources, OneMayNeedAnotherAndGoesBeforeIt) {
  Needy* above = get("needy.above");
  ASSERT_NE(above, nullptr);
  Needy* base = get("needy.base");
  EXPECT_EQ(above->other, base);
  EXPECT_STREQ(base->name, "needy.base");
  int32_t gone = 0, above_went_as = -1, base_went_as = -1;
  above->gone = base->gone = &gone;
  above->went_as = &above_went_as;
  base->went_as = &base_went_as;
  table_.reset();
  EXPECT_EQ(above_went_as, 0);
  EXPECT_EQ(base_went_as, 1);
}

TEST_F(Resources, OneOfACommunicatorMayNeedOneThatIsMadeBefore) {
  using Made = std::shared_ptr<const Resource>;
  const std::atomic<bool> cancelled{false};
  const auto make = [&](const std::string& name, const std::string& communicator, std::vector<Made> made) {
    CommunicatorRequest request;
    request.cancelled = &cancelled;
    request.made = std::move(made);
    return table_->make_communicator(registry_.snapshot(), {name, communicator, 1, {}}, {"cpu:0", nullptr}, request);
  };
  auto base = make("needy.comm_base", "world", {}), elsewhere = make("needy.comm_base", "elsewhere", {});
  ASSERT_TRUE(base.ok() && elsewhere.ok()) << base.status().text();
  auto above = make("needy.comm_above", "world", {*elsewhere, *base});
  ASSERT_TRUE(above.ok()) << above.status().text();
  auto* const found = static_cast<Needy*>((*above)->object());
  EXPECT_EQ(found->other, static_cast<Needy*>((*base)->object()));
  int32_t gone = 0, above_went_as = -1, base_went_as = -1;
  auto* const needed = static_cast<Needy*>((*base)->object());
  found->gone = needed->gone = &gone;
  found->went_as = &above_went_as;
  needed->went_as = &base_went_as;
  base = Made();
  EXPECT_EQ(gone, 0) << "it lives as long as the one that needs it";
  above = Made();
  EXPECT_EQ(above_went_as, 0);
  EXPECT_EQ(base_went_as, 1);
  for (const std::vector<Made>& before : {std::vector<Made>{}, std::vector<Made>{*elsewhere}}) {
    const Status refused = make("needy.comm_above", "world", before).status();
    EXPECT_EQ(refused.code(), Code::missing_resource);
    EXPECT_NE(refused.text().find(
                  "resource \"needy.comm_above\" needs \"needy.comm_base\" of communicator \"world\", which is not made before it"),
              std::string::npos)
        << refused.text();
  }
}

TEST_F(Resources, OneThatNeedsItselfNamesTheCircle) {
  EXPECT_NE(refusal("needy.self").find("resource \"needy.self\" needs \"needy.self\", so that none can be made first"), std::string::npos)
      << refusal("needy.self");
  const std::string text = refusal("needy.hen");
  EXPECT_NE(text.find("resource \"needy.egg\" needs \"needy.hen\", which needs \"needy.egg\""), std::string::npos) << text;
}

// The circle is requested from both ends at once: every request gets the error, and no thread waits for ever.
TEST_F(Resources, ACircleAcrossThreadsIsFound) {
  for (int i = 0; i < 50; ++i) {
    fresh_table();
    std::atomic<int> named{0};
    std::vector<std::thread> threads;
    for (const char* name : {"needy.hen", "needy.egg", "needy.hen", "needy.egg"})
      threads.emplace_back([&, name] {
        const auto found = ask(name);
        if (!found.ok() && found.status().text().find("which needs") != std::string::npos) ++named;
      });
    for (std::thread& t : threads) t.join();
    ASSERT_EQ(named, 4) << "round " << i;
  }
}

TEST_F(Resources, DifferentOnesAreMadeAtTheSameTime) {
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (const char* name : {"needy.left", "needy.right"}) threads.emplace_back([&, name] { good += ask(name).ok() ? 1 : 0; });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(good, 2);
}

TEST_F(Resources, WhoAsksForTheSameOneWaitsForIt) {
  std::vector<std::thread> threads;
  std::vector<void*> found(8, nullptr);
  for (size_t i = 0; i < found.size(); ++i)
    threads.emplace_back([&, i] {
      if (const auto answer = ask("needy.slow"); answer.ok()) found[i] = *answer;
    });
  for (std::thread& t : threads) t.join();
  ASSERT_NE(found[0], nullptr);
  EXPECT_EQ(found, std::vector<void*>(found.size(), found[0]));
}

// Its create throws at first: no trace of that remains, and the next request gets the resource.
TEST_F(Resources, OneThatFailedIsTriedAgain) {
  const std::string text = refusal("needy.broken");
  EXPECT_NE(text.find("resource \"needy.broken\" of plugin \"needy\" could not be made: exception: the licence server said no, attempt "),
            std::string::npos)
      << text;
  const Needy* const made = get("needy.broken");
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(get("needy.broken"), made);
  EXPECT_NE(refusal("needy.silent").find("could not be made: create said that it was made"), std::string::npos);
  EXPECT_NE(refusal("needy.unheard").find("no loaded plugin publishes resource \"needy.unheard\""), std::string::npos);
}

// Each kernel that requests it reports the resource's error beside its own, and the tool's exit status is that for missing things.
TEST_F(Resources, KernelsThatLackOneSayWhichAndWhy) {
  RuntimeOptions options;
  options.plugins = {test_plugin("needy")};
  options.default_plugins = false;
  options.threads = 1;
  const auto runtime = Runtime::create(options);
  ASSERT_TRUE(runtime.ok()) << runtime.status().text();
  NetBuilder b("lacking");
  const ValueId x = b.input("x", DType::f32, Shape{4});
  b.output(b.add1("UsesBroken", "first", {x}, {}, "needy"));
  b.output(b.add1("UsesBroken", "second", {x}, {}, "needy"));
  b.output(b.add1("UsesHen", "third", {x}, {}, "needy"));
  auto session = runtime->open(b.finish(), {});
  ASSERT_TRUE(session.ok()) << session.status().text();
  const auto context = session->prepare();
  ASSERT_FALSE(context.ok());
  EXPECT_EQ(context.status().code(), Code::missing_resource) << context.status().text();
  EXPECT_EQ(exit_status(context.status().code()), 3);
  const Diagnostic& d = context.status().diagnostic();
  EXPECT_NE(d.message.find("User has nothing to use: resource \"needy.broken\""), std::string::npos) << d.message;
  EXPECT_NE(d.message.find("the licence server said no"), std::string::npos) << d.message;
}

// A plan may be kept longer than the session that made it: the resources of its kernels stay.
TEST_F(Resources, APlanKeepsWhatItsKernelsUse) {
  std::shared_ptr<const Plan> plan;
  {
    RuntimeOptions options;
    options.plugins = {test_plugin("awkward"), test_plugin("awkward_provider")};
    options.default_plugins = false;
    options.threads = 1;
    const auto runtime = Runtime::create(options);
    ASSERT_TRUE(runtime.ok()) << runtime.status().text();
    NetBuilder b("kept");
    b.output(b.add1("Ticket", "number", {}, {}, "awkward"));
    auto session = runtime->open(b.finish(), {});
    ASSERT_TRUE(session.ok()) << session.status().text();
    auto context = session->prepare();
    ASSERT_TRUE(context.ok()) << context.status().text();
    plan = last_plan(*session);
  }
  const auto execution = Execution::create(plan, nullptr, {});
  ASSERT_TRUE(execution.ok()) << execution.status().text();
  for (int64_t number = 1; number < 4; ++number) {
    const Status status = (*execution)->run({});
    ASSERT_TRUE(status.ok()) << status.text();
    EXPECT_EQ(*static_cast<const int64_t*>((*execution)->output(0).data), number);
  }
}

// The same holds for the resources that steps request during the run.
TEST_F(Resources, APlanKeepsWhatItsLateStepsAskFor) {
  std::shared_ptr<const Plan> plan;
  {
    RuntimeOptions options;
    options.plugins = {test_plugin("extents"), test_plugin("awkward_provider")};
    options.default_plugins = false;
    options.threads = 1;
    const auto runtime = Runtime::create(options);
    ASSERT_TRUE(runtime.ok()) << runtime.status().text();
    NetBuilder b("kept");
    const ValueId compact = b.add1("Compact", "compact", {b.input("x", DType::f32, Shape{4})}, {}, "extents");
    b.output(b.add1("Ticketed", "ticketed", {compact}, {}, "extents"));
    auto session = runtime->open(b.finish(), {});
    ASSERT_TRUE(session.ok()) << session.status().text();
    auto context = session->prepare();
    ASSERT_TRUE(context.ok()) << context.status().text();
    plan = last_plan(*session);
    ASSERT_TRUE(plan->has_late_steps);
  }
  const auto execution = Execution::create(plan, nullptr, {});
  ASSERT_TRUE(execution.ok()) << execution.status().text();
  const std::vector<float> x = {1, -1, 2, -1};
  (*execution)->bind_input(0, x.data());
  const Status status = (*execution)->run({});
  ASSERT_TRUE(status.ok()) << status.text();
  const TensorView y = (*execution)->output(0);
  ASSERT_EQ(y.shape, Shape{2});
  EXPECT_EQ(static_cast<const float*>(y.data)[0], 2);  // 1 and the first ticket
}

}  // namespace
}  // namespace heddle
