// Resources of every scope (tests/plugins/shared.cc): which users share one, when it is destroyed, and what happens when it breaks.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "../plugins/shared.h"
#include "heddle/session.h"
#include "plugins.h"
#include "small_nets.h"

namespace heddle {
namespace {

// A clock that each event advances, so that their order is known. A resource that is being made waits until `together` have begun.
class Watch : public SharedWatch {
 public:
  explicit Watch(int together = 1) : SharedWatch{on_making, on_made, on_gone, on_lost}, together_(together) {}
  struct Event {
    int64_t at;
    int32_t plugin;
    std::string name;
  };
  std::vector<Event> begun, done, gone;
  int64_t gone_so_far() {
    const std::lock_guard lock(mutex_);
    return static_cast<int64_t>(gone.size());
  }
  std::atomic<bool> peers_lost{false};

 private:
  static Watch& of(SharedWatch* self) { return *static_cast<Watch*>(self); }
  static void on_making(SharedWatch* self, int32_t plugin, const char* name) {
    Watch& watch = of(self);
    std::unique_lock lock(watch.mutex_);
    watch.begun.push_back({++watch.now_, plugin, name});
    watch.changed_.notify_all();
    watch.changed_.wait_for(lock, std::chrono::seconds(20), [&] { return static_cast<int>(watch.begun.size()) >= watch.together_; });
  }
  static void on_made(SharedWatch* self, int32_t plugin, const char* name) {
    const std::lock_guard lock(of(self).mutex_);
    of(self).done.push_back({++of(self).now_, plugin, name});
  }
  static void on_gone(SharedWatch* self, int32_t plugin, const char* name) {
    const std::lock_guard lock(of(self).mutex_);
    of(self).gone.push_back({++of(self).now_, plugin, name});
  }
  static int32_t on_lost(SharedWatch* self) { return of(self).peers_lost ? 1 : 0; }

  const int together_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t now_ = 0;
};

Runtime shared_runtime(int plugins = 1) {
  RuntimeOptions options;
  options.default_plugins = false;
  options.threads = 1;
  for (int i = 0; i < plugins; ++i) options.plugins.push_back(test_plugin("shared" + std::to_string(i)));
  auto made = Runtime::create(options);
  EXPECT_TRUE(made.ok()) << made.status().text();
  return *made;
}

ValueId number(NetBuilder& b, const std::string& name, Watch& watch, const std::string& resource, const std::string& group = "",
               int plugin = 0, int64_t version = 1) {
  return b.add1(
      "Number", name, {},
      {{"watch", reinterpret_cast<int64_t>(static_cast<SharedWatch*>(&watch))}, {"name", resource}, {"group", group}, {"version", version}},
      "shared" + std::to_string(plugin));
}

std::vector<int64_t> numbers(Context& context) {
  const Status status = context.run();
  EXPECT_TRUE(status.ok()) << status.text();
  std::vector<int64_t> all;
  for (size_t i = 0; status.ok() && i < context.output_count(); ++i) all.push_back(*static_cast<const int64_t*>(context.output(i).data));
  return all;
}

TEST(Scopes, EightPluginsAndSixtyFourSessionsMakeEachOnceAndSideBySide) {
  Watch watch(8);
  {
    const Runtime runtime = shared_runtime(8);
    std::vector<std::thread> threads;
    std::vector<std::vector<int64_t>> seen(64);
    for (size_t s = 0; s < seen.size(); ++s)
      threads.emplace_back([&, s] {
        NetBuilder b("asks");
        for (size_t k = 0; k < 8; ++k) {
          const int plugin = static_cast<int>((s + k) % 8);  // each session begins with another one
          b.output(number(b, "n" + std::to_string(k), watch, "runtime", "", plugin, 2));
        }
        Session session = testing_nets::open(runtime, b.finish());
        auto context = session.prepare();
        ASSERT_TRUE(context.ok()) << context.status().text();
        seen[s] = numbers(*context);
      });
    for (std::thread& thread : threads) thread.join();
    for (const std::vector<int64_t>& each : seen) EXPECT_EQ(each, std::vector<int64_t>(8, 1));
    EXPECT_EQ(watch.begun.size(), 8u);
    ASSERT_EQ(watch.done.size(), 8u);
    for (const Watch::Event& begun : watch.begun)
      for (const Watch::Event& done : watch.done) EXPECT_LT(begun.at, done.at) << "one was made behind another";
    EXPECT_TRUE(watch.gone.empty());  // they live as long as the runtime
  }
  EXPECT_EQ(watch.gone.size(), 8u);
}

SessionOptions any_communicator() {
  SessionOptions options;
  options.communicators = {CommunicatorOptions()};
  return options;
}

TEST(Scopes, EachHasItsOwnSharers) {
  Watch watch;
  {
    const Runtime runtime = shared_runtime();
    const auto net = [&] {
      NetBuilder b("scopes");
      for (const char* resource : {"runtime", "device", "session", "group", "pool"})
        for (const char* group : {"a", "b"}) {
          const bool grouped = std::string(resource) == "group";
          b.output(number(b, std::string(resource) + group, watch, resource, grouped ? group : ""));
        }
      return b.finish();
    };
    Session one = testing_nets::open(runtime, net(), any_communicator()), two = testing_nets::open(runtime, net(), any_communicator());
    auto a = one.prepare(), b = one.prepare(), c = two.prepare();
    ASSERT_TRUE(a.ok() && b.ok() && c.ok()) << a.status().text();
    const auto first = numbers(*a), second = numbers(*b), other = numbers(*c);
    ASSERT_EQ(first.size(), 10u);
    // Two operators of one context differ by the need alone. runtime, device, session, pool are one each; the groups are two.
    for (const size_t i : {0u, 2u, 4u, 8u}) EXPECT_EQ(first[i], first[i + 1]) << i;
    EXPECT_NE(first[6], first[7]);
    for (const size_t i : {0u, 2u, 4u, 6u, 7u}) EXPECT_EQ(first[i], second[i]) << i << ": contexts of one session";
    EXPECT_NE(first[8], second[8]) << "each context has its own pool";
    for (const size_t i : {0u, 2u}) EXPECT_EQ(first[i], other[i]) << i << ": sessions of one runtime";
    for (const size_t i : {4u, 6u, 7u, 8u}) EXPECT_NE(first[i], other[i]) << i;
    EXPECT_EQ(numbers(*a), first);
  }
  EXPECT_EQ(watch.gone.size(), watch.done.size());
}

Runtime runtime_with_sim() {
  RuntimeOptions options;
  options.default_plugins = false;
  options.threads = 1;
  options.plugins = {test_plugin("shared0"), HEDDLE_BINARY_DIR "/lib/cpu.so", HEDDLE_BINARY_DIR "/lib/sim.so"};
  auto made = Runtime::create(options);
  EXPECT_TRUE(made.ok()) << made.status().text();
  return *made;
}

Net net_on_sim(Watch& watch, const std::string& resource) {
  NetBuilder b("streams");
  const ValueId n = number(b, "n", watch, resource);
  b.net()[b.net()[n].producer].device = "sim:0";
  b.output(n);
  return b.finish();
}

std::vector<int64_t> in_a_context(Session& session) {
  auto context = session.prepare();
  EXPECT_TRUE(context.ok()) << context.status().text();
  return context.ok() ? numbers(*context) : std::vector<int64_t>();
}

// The stream of a device and its resource are the workspace's: contexts that use it one after the other share both, those at once do not.
TEST(Scopes, AStreamOfADeviceKeepsItsResourceFromContextToContext) {
  Watch watch;
  {
    const Runtime runtime = runtime_with_sim();
    std::optional<Session> one = testing_nets::open(runtime, net_on_sim(watch, "pool"));
    Session two = testing_nets::open(runtime, net_on_sim(watch, "pool"));
    const std::vector<int64_t> first = in_a_context(*one);
    ASSERT_EQ(first.size(), 1u);
    EXPECT_EQ(in_a_context(*one), first) << "the same workspace";
    EXPECT_NE(in_a_context(two), first) << "another session's, in the same workspace";
    EXPECT_EQ(in_a_context(*one), first);
    EXPECT_EQ(watch.gone_so_far(), 0);
    {
      auto a = one->prepare(), b = one->prepare();
      ASSERT_TRUE(a.ok() && b.ok()) << b.status().text();
      EXPECT_NE(numbers(*a), numbers(*b)) << "two workspaces at once";
    }
    one.reset();
    Session three = testing_nets::open(runtime, net_on_sim(watch, "pool"));
    auto a = three.prepare(), b = three.prepare();  // in both workspaces
    ASSERT_TRUE(a.ok() && b.ok()) << b.status().text();
    EXPECT_EQ(watch.gone_so_far(), 2) << "those of a closed session go when another one uses the workspace";
  }
  EXPECT_EQ(watch.gone.size(), watch.done.size());
}

// An idle context, which the session keeps for the next one, does not keep the resource of a stream that is destroyed.
TEST(Scopes, AResourceGoesWithItsStreamAlsoIfItCanBreak) {
  Watch watch;
  const Runtime runtime = runtime_with_sim();
  Session session = testing_nets::open(runtime, net_on_sim(watch, "fragile"));
  const std::vector<int64_t> first = in_a_context(session);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(watch.gone_so_far(), 0);
  Runtime(runtime).trim();
  EXPECT_EQ(watch.gone_so_far(), 1);
  EXPECT_NE(in_a_context(session), first);
  watch.peers_lost = true;
  auto context = session.prepare();
  ASSERT_TRUE(context.ok()) << context.status().text();
  const Status status = context->run();
  EXPECT_EQ(status.code(), Code::device_failed) << status.text();
  EXPECT_NE(status.text().find("it is broken"), std::string::npos) << status.text();
}

std::string refusal(const Runtime& runtime, NetBuilder& b) {
  Session session = testing_nets::open(runtime, b.finish());
  const auto context = session.prepare();
  EXPECT_EQ(context.status().code(), Code::missing_resource) << context.status().text();
  return context.status().text();
}

TEST(Scopes, WhatCannotBeHadIsSaid) {
  Watch watch;
  const Runtime runtime = shared_runtime();
  NetBuilder newer("newer"), greedy("greedy");
  newer.output(number(newer, "n", watch, "session", "", 0, 7));
  const std::string version = refusal(runtime, newer);
  EXPECT_NE(version.find("publishes resource \"shared0.session\" with interface 1, 7 is needed"), std::string::npos) << version;
  greedy.output(number(greedy, "n", watch, "greedy"));
  const std::string scope = refusal(runtime, greedy);
  EXPECT_NE(scope.find("resource \"shared0.greedy\" of scope runtime needs \"shared0.session\" of scope session"), std::string::npos)
      << scope;
}

}  // namespace
}  // namespace heddle
