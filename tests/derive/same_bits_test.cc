// Training gives the same bits however it is run: 20 steps of small nets on any number of threads, in shuffled schedules, with memory
// shared or not, and spread over the host and two simulated devices.
#include <cstring>

#include "derive/parity/parity_training.h"

namespace heddle {
namespace {

using namespace testing_derive;

constexpr int steps = 20;

struct How {
  int threads = 1;
  uint64_t shuffle_seed = 0;  // 0: not shuffled
  bool share_memory = true, spread = false, commit_late = true;
};

class SameBits : public testing::TestWithParam<const char*> {
 protected:
  const ParityFile file_ = parity_file(GetParam());
  const Net net_ = net_of(GetParam(), file_);

  static Runtime runtime(int threads) {
    RuntimeOptions options;
    options.plugins = {HEDDLE_BINARY_DIR "/lib/cpu.so", HEDDLE_BINARY_DIR "/lib/sim.so"};
    options.default_plugins = false;
    options.threads = threads;
    auto made = Runtime::create(options);
    EXPECT_TRUE(made.ok()) << made.status().text();
    return *made;
  }

  // Returns the losses of all steps, then the variables.
  Values trained_with(const Runtime& runtime, const How& how) const {
    const auto run = std::find_if(file_.runs.begin(), file_.runs.end(), [](const ParityRun& r) { return r.optimizer == "adam"; });
    EXPECT_NE(run, file_.runs.end());
    Net net = net_;
    constexpr const char* devices[] = {"cpu:0", "sim:0", "sim:1"};
    for (size_t i = 0; i < net.nodes.size() && how.spread; ++i)
      net.nodes[i].device = devices[net.nodes[i].type == "Gather" ? 1 : i % 3];  // lookups of one table belong on one device
    auto trains = trained(net, *run);
    EXPECT_TRUE(trains.ok()) << trains.status().text();
    SessionOptions options;
    options.copies = Copies::automatic;
    options.commit_late = how.commit_late;
    Session session = testing_nets::open(runtime, std::move(*trains), options);
    Internals::of(session).pipeline.compile.share_memory = how.share_memory;
    Internals::of(session).scheduler.shuffle_seed = how.shuffle_seed;
    if (how.threads > 1 || how.shuffle_seed != 0) Internals::of(session).scheduler.mode = ScheduleMode::parallel;
    Values found;
    std::vector<Feed> feeds;
    for (const NamedNumbers& batch : file_.batches) feeds.emplace_back(net_, batch);
    for (int step = 0; step < steps; ++step)
      found.push_back(losses_of(session, feeds[static_cast<size_t>(step) % feeds.size()], run->losses.size()));
    for (const auto& [name, values] : run->variables) found.push_back(variable_of(session, name));
    if (how.spread) {
      const auto plan = *session.plan(feeds[0].views());
      EXPECT_EQ(plan->memory.size(), 3u) << "all devices work";
    }
    return found;
  }

  static void expect_same(const Values& found, const Values& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i].size(), expected[i].size());
      EXPECT_TRUE(std::memcmp(found[i].data(), expected[i].data(), found[i].size() * sizeof(double)) == 0) << i;
    }
  }
};

TEST_P(SameBits, OfThreadsMemoryCommitsAndDevices) {
  const Values expected = trained_with(runtime(1), {});
  EXPECT_NE(expected[0], expected[steps - 2]);  // both are losses of the same batch: the net learns
  for (const int threads : {1, 2, 3, 8}) {
    const Runtime r = runtime(threads);
    for (const bool share_memory : {true, false})
      for (const bool spread : {false, true})
        for (const bool commit_late : {true, false}) {
          SCOPED_TRACE(testing::Message() << threads << " threads, memory sharing " << share_memory << ", spread " << spread
                                          << ", committed late " << commit_late);
          expect_same(trained_with(r, {threads, 0, share_memory, spread, commit_late}), expected);
        }
  }
}

TEST_P(SameBits, OfAHundredShuffledSchedules) {
  const Values expected = trained_with(runtime(1), {});
  const Runtime r = runtime(3);
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    expect_same(trained_with(r, {3, seed, seed % 2 == 0, seed % 10 == 0, true}), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Nets, SameBits, testing::Values("convolution", "embedding", "transformer"),
                         [](const auto& of) { return std::string(of.param); });

}  // namespace
}  // namespace heddle
