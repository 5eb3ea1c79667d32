// Ranks that learn together: threads of one process, each with a runtime, a device and variables of its own, and a net whose gradients are
// summed over all of them.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "injection.h"
#include "load/temporary_folder.h"
#include "plugins.h"
#include "ranks_world.h"
#include "session_plan.h"
#include "small_nets.h"

namespace heddle {

// Where ranks run: all on the host, or each on a simulated device of its own.
struct RanksKind {
  int size = 2;
  const char* device = "cpu";
  bool on_sim() const { return std::string(device) == "sim"; }
  std::string device_name() const { return std::string(device) + ":0"; }
  std::string text() const { return std::to_string(size) + " ranks on " + device; }
};
inline void PrintTo(const RanksKind& kind, std::ostream* out) {
  *out << kind.text();
}
inline const std::vector<RanksKind>& ranks_kinds() {
  static const std::vector<RanksKind> kinds = {{2, "cpu"}, {3, "cpu"}, {2, "sim"}, {3, "sim"}};
  return kinds;
}
// Declares a suite of TEST_P over them.
#define HEDDLE_RANKS_SUITE(suite)                                            \
  INSTANTIATE_TEST_SUITE_P(Ranks, suite, ::testing::ValuesIn(ranks_kinds()), \
                           [](const auto& info) { return info.param.device + std::to_string(info.param.size); })

// One thread works for all simulated devices of a plugin, and a collective there waits on it for the other ranks. So each rank has a plugin
// of its own, loaded from a copy of the file.
inline std::string simulation_of(int rank) {
  static const testing::TemporaryFolder folder;
  static std::map<int, std::string> copies;
  std::string& path = copies[rank];
  if (path.empty()) {
    path = (folder / ("sim" + std::to_string(rank) + ".so")).string();
    std::filesystem::copy_file(HEDDLE_BINARY_DIR "/lib/sim.so", path);
  }
  return path;
}

inline Runtime runtime_of_rank(const RanksKind& kind, int rank) {
  RuntimeOptions options;
  options.default_plugins = false;
  options.threads = 1;
  options.plugins = {test_plugin("peers"), HEDDLE_BINARY_DIR "/lib/cpu.so"};
  if (kind.on_sim()) options.plugins.push_back(simulation_of(rank));
  auto made = Runtime::create(options);
  EXPECT_TRUE(made.ok()) << made.status().text();
  return *made;
}

// Places `value`'s operator on `device`.
inline ValueId placed(NetBuilder& b, const std::string& device, ValueId value) {
  b.net()[b.net()[value].producer].device = device;
  return value;
}
inline ValueId sum_over_ranks(NetBuilder& b, const std::string& device, const std::string& name, ValueId x,
                              const std::string& communicator = "world") {
  return placed(b, device, b.add1("Sum", name, {x}, {{"communicator", communicator}}, "peers"));
}

// Two layers with their gradients. Each gradient is summed over the ranks; all other steps come before the last sum.
inline Net learning_net(const std::string& device) {
  NetBuilder b("learning");
  const auto add = [&](const char* type, const char* name, const std::vector<ValueId>& inputs) {
    return placed(b, device, b.add1(type, name, inputs));
  };
  const auto sum = [&](const char* name, ValueId of) { return sum_over_ranks(b, device, name, of); };
  const ValueId x = b.input("x", DType::f32, Shape{4, 4});
  const ValueId w1 = b.variable("w1", testing_nets::blob(Shape{4, 4}, 1, 0.25F), true);
  const ValueId w2 = b.variable("w2", testing_nets::blob(Shape{4, 4}, -1, 0.125F), true);
  const ValueId h = add("MatMul", "h", {x, w1}), r = add("Relu", "r", {h}), y = add("MatMul", "y", {r, w2});
  const ValueId g2 = add("MatMul", "g2", {add("Transpose", "rt", {r}), y}), s2 = sum("s2", g2);
  const ValueId back = add("MatMul", "back", {y, add("Transpose", "w2t", {w2})});
  const ValueId g1 = add("MatMul", "g1", {add("Transpose", "xt", {x}), add("Mul", "masked", {back, r})});
  const ValueId s1 = sum("s1", add("Tanh", "held", {g1}));
  const ValueId rate = b.constant("rate", testing_nets::blob(Shape{}, 0.01F, 0));
  const auto update = [&](const char* name, ValueId w, ValueId g) {
    b.updates(placed(b, device, b.add1("SgdUpdate", name, {w, g, rate}, {}, "heddle")), w);
  };
  update("new_w1", w1, s1);
  update("new_w2", w2, s2);
  b.output(y);
  return b.finish();
}

using Bytes = std::vector<char>;

struct Rank {
  std::optional<Runtime> runtime;
  std::optional<Session> session;
  std::optional<Context> context;
  std::vector<float> x = std::vector<float>(16);
  Status status;

  std::vector<Bytes> variables() const {
    std::vector<Bytes> all;
    for (const char* name : {"w1", "w2"}) {
      auto value = session->read_variable(name);
      EXPECT_TRUE(value.ok()) << value.status().text();
      const auto* const data = value.ok() ? static_cast<const char*>(value->data()) : nullptr;
      all.emplace_back(data, data + (data ? value->view().byte_size() : 0));
    }
    return all;
  }
  // REQUIRES: it is prepared.
  Plan& plan() { return const_cast<Plan&>(Internals::execution(*context).plan()); }
  // Makes a context from the plan as it is now: none that was made before is used again.
  void prepare() {
    context.reset();
    if (kept_plans(*session) > 0) drop_idle_contexts(*session);
    auto made = session->prepare();
    ASSERT_TRUE(made.ok()) << made.status().text();
    context.emplace(std::move(*made));
    ASSERT_TRUE(context->bind_input(0, x.data()).ok());
  }
};

// Opens `net` on a runtime of rank `r`'s own.
inline Rank make_rank(const RanksKind& kind, const RanksWorld& world, size_t r, Net net, SessionOptions how = {}) {
  Rank rank;
  rank.runtime = runtime_of_rank(kind, static_cast<int>(r));
  if (how.communicators.empty()) how.communicators = {world.communicator(static_cast<int>(r))};
  how.copies = Copies::automatic;
  auto session = rank.runtime->open(std::move(net), how);
  EXPECT_TRUE(session.ok()) << session.status().text();
  rank.session.emplace(std::move(*session));
  for (size_t i = 0; i < 16; ++i) rank.x[i] = static_cast<float>((i * 7 + r * 5) % 9) / 4 - 1;
  return rank;
}

// Ranks whose contexts are prepared. On simulated devices there is one of those for each.
struct LearningRanks {
  explicit LearningRanks(const RanksKind& kind) : world(kind.size) {
    for (size_t r = 0; r < static_cast<size_t>(kind.size); ++r) {
      ranks.push_back(make_rank(kind, world, r, learning_net(kind.device_name())));
      ranks.back().prepare();
    }
  }
  // Runs all ranks, each on a thread of its own. `meanwhile` is called on this one.
  template <class Meanwhile>
  void run(const Meanwhile& meanwhile) {
    over = 0;
    for (std::atomic<bool>& one : ended) one = false;
    std::vector<std::thread> threads;
    for (size_t r = 0; r < ranks.size(); ++r)
      threads.emplace_back([&, r] {
        RunOptions options;
        options.deadline_ns = 60'000'000'000;  // only so that a hang ends
        ranks[r].status = ranks[r].context->run(options);
        ended[r] = true;
        ++over;
      });
    meanwhile();
    for (std::thread& t : threads) t.join();
  }
  void run() {
    run([] {});
  }
  std::vector<std::vector<Bytes>> variables() const {
    std::vector<std::vector<Bytes>> all;
    for (const Rank& rank : ranks) all.push_back(rank.variables());
    return all;
  }

  RanksWorld world;
  std::vector<Rank> ranks;
  std::array<std::atomic<bool>, 3> ended;  // by rank
  std::atomic<int> over{0};                // how many have ended
};

}  // namespace heddle
