// Compares training with PyTorch's, in f64: losses of every step and variables after the last, for small nets under every optimizer.
#include <cstring>
#include <set>

#include "derive/parity/parity_training.h"

namespace heddle {
namespace {

using namespace testing_derive;

// Compares to 1e-9 of the largest.
void expect_close(const std::string& what, const std::vector<double>& is, const std::vector<double>& expected) {
  ASSERT_EQ(is.size(), expected.size()) << what;
  double largest = 0, worst = 0;
  for (const double number : expected) largest = std::max(largest, std::abs(number));
  for (size_t i = 0; i < is.size(); ++i) worst = std::isnan(is[i]) ? is[i] : std::max(worst, std::abs(is[i] - expected[i]));
  EXPECT_LE(worst, 1e-9 * largest) << what << ", of " << largest;
}

class Parity : public testing::TestWithParam<const char*> {};

// One net that was derived once is trained with batches of several sizes.
TEST_P(Parity, LossesAndVariablesAreThoseOfPyTorch) {
  const ParityFile file = parity_file(GetParam());
  ASSERT_GE(file.runs.size(), 4u);
  const Net net = net_of(GetParam(), file);
  std::vector<Feed> feeds;
  std::set<int64_t> sizes;
  for (const NamedNumbers& batch : file.batches) feeds.emplace_back(net, batch), sizes.insert(batch.at("labels").shape[0]);
  ASSERT_GT(sizes.size(), 1u);
  const Runtime runtime = testing_nets::runtime();
  for (const ParityRun& run : file.runs) {
    SCOPED_TRACE(run.name);
    auto trains = trained(net, run);
    ASSERT_TRUE(trains.ok()) << trains.status().text();
    Session session = testing_nets::open(runtime, std::move(*trains));
    std::vector<std::vector<double>> losses(run.losses.size());
    const size_t steps = run.losses[0].second.size();
    ASSERT_EQ(steps, 20u);
    for (size_t step = 0; step < steps; ++step) {
      const std::vector<double> now = losses_of(session, feeds[step % feeds.size()], losses.size());
      ASSERT_EQ(now.size(), losses.size());
      for (size_t i = 0; i < now.size(); ++i) losses[i].push_back(now[i]);
    }
    for (size_t i = 0; i < losses.size(); ++i) expect_close(run.losses[i].first, losses[i], run.losses[i].second);
    for (const auto& [name, expected] : run.variables) expect_close(name, variable_of(session, name), expected.data);
  }
}

TEST(ParityFiles, EveryOptimizerIsInThem) {
  for (const char* const net : {"mlp", "convolution", "lstm", "transformer", "inception", "residual"}) {
    std::set<std::string> run;
    for (const ParityRun& each : parity_file(net).runs) run.insert(each.optimizer);
    for (const Optimizer& optimizer : optimizers()) EXPECT_EQ(run.count(optimizer.name), 1u) << net << " " << optimizer.name;
  }
}

// The batch is so large that operators are divided, and gradients of one row of the table come from many places.
TEST_P(Parity, AnyNumberOfThreadsGivesTheSameBits) {
  const ParityFile file = parity_file(GetParam());
  const Net net = net_of(GetParam(), file);
  NamedNumbers batch = file.batches[0];
  for (auto& [name, numbers] : batch) {
    const std::vector<double> some = numbers.data;
    numbers.shape[0] = file.batches[0].count("x") && file.batches[0].at("x").shape.rank() == 4 ? 800 : 4000;  // images are larger
    numbers.data.resize(static_cast<size_t>(numbers.shape.element_count()));
    for (size_t i = 0; i < numbers.data.size(); ++i) numbers.data[i] = some[(i + i / some.size()) % some.size()];
  }
  const Feed feed(net, batch);
  const auto run = std::find_if(file.runs.begin(), file.runs.end(), [](const ParityRun& r) { return r.optimizer == "adam"; });
  ASSERT_NE(run, file.runs.end());
  std::vector<std::vector<double>> expected;
  for (const int threads : {1, 2, 3}) {
    auto trains = trained(net, *run);
    ASSERT_TRUE(trains.ok()) << trains.status().text();
    Session session = testing_nets::open(testing_nets::runtime(threads), std::move(*trains));
    std::vector<std::vector<double>> found;
    for (int step = 0; step < 3; ++step) found.push_back(losses_of(session, feed, run->losses.size()));
    for (const auto& [name, values] : run->variables) found.push_back(variable_of(session, name));
    if (threads == 1) expected = found;
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_TRUE(std::memcmp(found[i].data(), expected[i].data(), found[i].size() * sizeof(double)) == 0) << threads << " threads: " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Nets, Parity,
                         testing::Values("mlp", "convolution", "embedding", "transformer", "inception", "lstm", "residual", "bags"),
                         [](const auto& of) { return std::string(of.param); });

}  // namespace
}  // namespace heddle
