// One rank goes wrong, at each step of a net that trains: every rank ends, with one error that names operator and rank, without
// waiting for a time-out unless a rank only stays away; variables are equal on all ranks or as they were; and the next run is right.
//
// Every seventh step; HEDDLE_LONG_TESTS=1 takes all (tools/soak.sh --peers).
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "plugins.h"
#include "ranks_world.h"
#include "session/session_impl.h"
#include "small_nets.h"

namespace heddle {
namespace {

enum class Wrong : uint8_t { stall, kill, late, error };
constexpr const char* name_of(Wrong wrong) {
  return wrong == Wrong::stall ? "stall" : wrong == Wrong::kill ? "kill" : wrong == Wrong::late ? "late" : "error";
}

// The step of rank 0 that goes wrong: its kernel is called by inject().
struct Injection {
  const heddle_kernel* original = nullptr;
  heddle_kernel kernel = {};
  KernelEntry entry;
  Wrong wrong = Wrong::late;
  RanksWorld* world = nullptr;
  std::atomic<bool> armed{false}, reached{false}, released{false};
};
Injection* injection = nullptr;

heddle_status inject(const heddle_run_context* context, int64_t begin, int64_t end) {
  Injection& in = *injection;
  if (!in.armed.exchange(false)) return in.original->run(context, begin, end);
  in.reached = true;
  const std::string text = "it goes wrong, as it was to";
  switch (in.wrong) {
    case Wrong::stall:
      while (!in.released) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return in.original->run(context, begin, end);
    case Wrong::late:
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return in.original->run(context, begin, end);
    case Wrong::kill:
      in.world->kill(0);
      [[fallthrough]];
    default:
      context->host->set_error(context->call, HEDDLE_ERROR_INVALID, text.data(), text.size());
      return HEDDLE_ERROR_INVALID;
  }
}

// Two layers with their gradients. Each gradient is summed over the ranks; all other steps come before the last sum.
Net learning(const std::string& device) {
  NetBuilder b("learning");
  const auto on = [&](ValueId value) {
    b.net()[b.net()[value].producer].device = device;
    return value;
  };
  const auto add = [&](const char* type, const char* name, const std::vector<ValueId>& inputs) { return on(b.add1(type, name, inputs)); };
  const auto sum = [&](const char* name, ValueId of) { return b.add1("Sum", name, {of}, {{"communicator", "world"}}, "peers"); };
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
    b.updates(on(b.add1("SgdUpdate", name, {w, g, rate}, {}, "heddle")), w);
  };
  update("new_w1", w1, s1);
  update("new_w2", w2, s2);
  b.output(y);
  return b.finish();
}

using Bytes = std::vector<char>;

struct Rank {
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
  void prepare() {
    auto made = session->prepare();
    ASSERT_TRUE(made.ok()) << made.status().text();
    context.emplace(std::move(*made));
    ASSERT_TRUE(context->bind_input(0, x.data()).ok());
  }
};

struct World {
  World(int size, const std::string& kind) : world(size), ranks(static_cast<size_t>(size)) {
    RuntimeOptions options;
    options.default_plugins = false;
    options.threads = 1;
    options.plugins = {test_plugin("peers"), HEDDLE_BINARY_DIR "/lib/cpu.so", HEDDLE_BINARY_DIR "/lib/sim.so"};
    auto made = Runtime::create(options);
    EXPECT_TRUE(made.ok()) << made.status().text();
    runtime.emplace(*made);
    for (size_t r = 0; r < ranks.size(); ++r) {
      SessionOptions how;
      how.communicators = {world.communicator(static_cast<int>(r))};
      how.copies = Copies::automatic;
      auto session = runtime->open(learning(kind == "sim" ? "sim:" + std::to_string(r) : "cpu:0"), how);
      EXPECT_TRUE(session.ok()) << session.status().text();
      ranks[r].session.emplace(std::move(*session));
      for (size_t i = 0; i < 16; ++i) ranks[r].x[i] = static_cast<float>((i * 7 + r * 5) % 9) / 4 - 1;
      ranks[r].prepare();
    }
  }
  // Runs all ranks, each on a thread of its own. `meanwhile` is called on this one.
  template <class Meanwhile>
  void run(const Meanwhile& meanwhile) {
    RunOptions options;
    options.deadline_ns = 60'000'000'000;  // only so that a hang ends
    over = 0;
    std::vector<std::thread> threads;
    for (Rank& rank : ranks)
      threads.emplace_back([&] {
        rank.status = rank.context->run(options);
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
  std::optional<Runtime> runtime;
  std::vector<Rank> ranks;
  std::atomic<int> over{0};
};

struct How {
  int size = 2;
  const char* kind = "cpu";
};

class PeersMatrix : public testing::TestWithParam<How> {
 protected:
  void SetUp() override { ::setenv("HEDDLE_SIM_DEVICES", "3", 1); }
  void TearDown() override {
    ::unsetenv("HEDDLE_SIM_DEVICES");
    injection = nullptr;
  }
  static const Plan& plan(const Rank& rank) { return Internals::execution(*const_cast<Rank&>(rank).context).plan(); }

  // Runs the ranks with that step of rank 0 gone wrong, and then once more.
  static void try_step(const How& how, uint32_t step, Wrong wrong) {
    World w(how.size, how.kind);
    auto& planned = const_cast<Plan&>(plan(w.ranks[0]));
    const PlanStep& at = planned.steps[step];
    const bool tail = step >= planned.graph.tail_begin;
    SCOPED_TRACE(std::string(name_of(wrong)) + " at " + std::to_string(step) + ", \"" + at.name + "\" (" + at.type + ")");
    Injection in;
    in.original = at.kernel->kernel;
    in.kernel = *in.original;
    in.kernel.run = inject;
    in.entry = *at.kernel;
    in.entry.kernel = &in.kernel;
    in.wrong = wrong;
    in.world = &w.world;
    injection = &in;
    planned.steps[step].kernel = &in.entry;
    w.ranks[0].prepare();
    const auto before = w.variables();
    in.armed = true;
    w.run([&] {
      if (wrong != Wrong::stall) return;
      while (!in.reached) std::this_thread::yield();
      if (w.world.wait_until_missed(0, [&] { return w.over == how.size - 1; })) w.world.expire();
      in.released = true;
    });
    ASSERT_TRUE(in.reached);
    const std::string fault = at.name;
    EXPECT_EQ(w.world.expired(), wrong == Wrong::stall && !tail ? 1 : 0) << "nobody else waits for a time-out";
    const auto after = w.variables();
    const bool fails = wrong != Wrong::late && !(tail && wrong == Wrong::stall);
    for (size_t r = 0; r < w.ranks.size(); ++r) {
      const Status& status = w.ranks[r].status;
      const bool is_victim = r > 0 && fails && !tail;
      EXPECT_EQ(status.ok(), !(is_victim || (r == 0 && fails))) << "rank " << r << ": " << status.text();
      if (is_victim) {
        EXPECT_NE(status.text().find("rank 0"), std::string::npos) << status.text();
        EXPECT_EQ(status.diagnostic().type.substr(0, 10), "peers::Sum") << status.text();
        EXPECT_TRUE(status.diagnostic().attached.empty()) << status.text();
        EXPECT_EQ(after[r], before[r]);
      }
      if (r > 1) {
        EXPECT_EQ(after[r], after[1]);
      }
    }
    if (wrong == Wrong::error) {  // nobody hears what a rank that is gone says
      EXPECT_EQ(w.ranks[0].status.diagnostic().node, fault) << w.ranks[0].status.text();
    }
    if (!fails) {
      EXPECT_EQ(after[0], after[1]);
      EXPECT_NE(after[0], before[0]);
    }
    if (fails && !tail) {
      EXPECT_EQ(after[0], before[0]);
    }
    // In the update phase one rank's variables are torn, and it says so until they are written.
    if (fails && tail) {
      w.run();
      EXPECT_NE(w.ranks[0].status.text().find("half-updated"), std::string::npos) << w.ranks[0].status.text();
      for (const char* name : {"w1", "w2"}) {
        auto value = w.ranks[1].session->read_variable(name);
        ASSERT_TRUE(value.ok());
        ASSERT_TRUE(w.ranks[0].session->write_variable(name, value->view()).ok());
      }
    }
    w.run();
    const auto next = w.variables();
    for (size_t r = 0; r < w.ranks.size(); ++r) {
      EXPECT_TRUE(w.ranks[r].status.ok()) << "rank " << r << ", the next run: " << w.ranks[r].status.text();
      EXPECT_EQ(next[r], next[0]);
    }
    EXPECT_NE(next[0], before[0]);
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, PeersMatrix, testing::Values(How{2, "cpu"}, How{3, "cpu"}, How{2, "sim"}, How{3, "sim"}),
                         [](const auto& info) { return info.param.kind + std::to_string(info.param.size); });

TEST_P(PeersMatrix, EachFaultAtEachStepEndsEveryRankAndTheNextRunIsRight) {
  const bool all = std::getenv("HEDDLE_LONG_TESTS") != nullptr;
  const bool on_sim = std::string(GetParam().kind) == "sim";
  std::vector<uint32_t> steps;
  {
    const World w(GetParam().size, GetParam().kind);
    for (uint32_t i = 0; i < plan(w.ranks[0]).steps.size(); ++i) {
      const DeviceWork* const work = plan(w.ranks[0]).steps[i].on_device.get();
      if (!work || work->kind == DeviceWork::Kind::launch) steps.push_back(i);
    }
  }
  ASSERT_GE(steps.size(), 12u);
  size_t runs = 0;
  for (size_t i = 0; i < steps.size(); ++i)
    for (const Wrong wrong : {Wrong::stall, Wrong::kill, Wrong::late, Wrong::error}) {
      if (!all && (i * 4 + static_cast<size_t>(wrong)) % 7 != 0) continue;
      if (on_sim && wrong == Wrong::stall) continue;  // one thread works for all simulated devices: the others would stall too
      try_step(GetParam(), steps[i], wrong);
      ++runs;
      if (HasFatalFailure()) return;
    }
  std::printf("%d ranks on %s: %zu faults at %zu steps\n", GetParam().size, GetParam().kind, runs, steps.size());
}

// One rank has its collectives in another order: all refuse before their first step.
TEST_P(PeersMatrix, AnotherOrderIsRefusedByAll) {
  World w(GetParam().size, GetParam().kind);
  NetBuilder b("learning");
  const ValueId x = b.input("x", DType::f32, Shape{4, 4});
  b.output(b.add1("Sum", "first", {b.add1("ReduceSum", "small", {x})}, {{"communicator", "world"}}, "peers"));
  b.output(b.add1("Sum", "second", {x}, {{"communicator", "world"}}, "peers"));
  SessionOptions how;
  how.communicators = {w.world.communicator(0)};
  auto other = w.runtime->open(b.finish(), how);
  ASSERT_TRUE(other.ok()) << other.status().text();
  w.ranks[0].context.reset();
  w.ranks[0].session.emplace(std::move(*other));
  w.ranks[0].prepare();
  w.run();
  for (const Rank& rank : w.ranks) {
    EXPECT_FALSE(rank.status.ok());
    EXPECT_NE(rank.status.text().find("collectives"), std::string::npos) << rank.status.text();
  }
}

}  // namespace
}  // namespace heddle
