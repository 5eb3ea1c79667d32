// After warm-up nothing of ours allocates: not the runtime, not our plugins' own code, not oneTBB. What oneDNN's execute allocates inside
// is printed apart.
#include <gtest/gtest.h>

#include <cstdio>

#include "allocations.h"
#include "models/recipes.h"
#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_nets;

// Runs each context `runs` times in turn; the count of the calling libraries.
std::map<std::string, int64_t> count_runs(std::vector<Context>& contexts, int runs) {
  for (int i = 0; i < 30; ++i)
    for (Context& c : contexts) EXPECT_TRUE(c.run().ok());
  AllocationCount::start();
  bool ok = true;
  for (int i = 0; i < runs; ++i)
    for (Context& c : contexts) ok = c.run().ok() && ok;
  auto counts = AllocationCount::stop();
  EXPECT_TRUE(ok);
  return counts;
}

void expect_only_onednn(std::map<std::string, int64_t> counts, const std::string& what) {
  int64_t onednn = 0;
  for (auto it = counts.begin(); it != counts.end();) {
    if (it->first.find("dnnl") == std::string::npos) {
      ++it;
      continue;
    }
    onednn += it->second;
    it = counts.erase(it);
  }
  std::printf("%s: %lld allocations inside oneDNN\n", what.c_str(), static_cast<long long>(onednn));
  for (const auto& [library, count] : counts) ADD_FAILURE() << what << ": " << count << " allocations by " << library;
}

TEST(SteadyState, TheCounterSeesAllocations) {
  AllocationCount::start();
  void* volatile p = std::malloc(10);
  auto* volatile q = new int(1);
  const auto counts = AllocationCount::stop();
  std::free(p);
  delete q;
  int64_t total = 0;
  for (const auto& [library, count] : counts) total += count;
  EXPECT_GE(total, 2);
}

TEST(SteadyState, TwoShapesAlternatingOnOneAndTwoThreads) {
  const auto x = blob(Shape{3, 8, 14, 14}, -1.0f, 0.03f);
  for (const int threads : {1, 2}) {
    const Runtime r = runtime(threads);
    Session one = open(r, convolution_net(1)), three = open(r, convolution_net(3));
    std::vector<Context> contexts;
    for (Session* s : {&one, &three}) {
      auto context = s->prepare();
      ASSERT_TRUE(context.ok());
      ASSERT_TRUE(context->bind_input(0, x->data).ok());
      contexts.push_back(std::move(*context));
    }
    expect_only_onednn(count_runs(contexts, 1000), "convolution net, " + std::to_string(threads) + " threads");
  }
}

TEST(SteadyState, SessionRunAllocatesNothingForShapesThatItHasSeen) {
  const Runtime r = runtime(1);
  Session session = open(r, convolution_net(1));
  const auto x = blob(Shape{1, 8, 14, 14}, -1.0f, 0.03f);
  const TensorView in{DType::f32, Shape{1, 8, 14, 14}, const_cast<std::byte*>(x->data)};
  std::vector<float> y(5);
  TensorView out{DType::f32, Shape{1, 5}, y.data()};
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(session.run(&in, 1, &out, 1).ok());
  AllocationCount::start();
  bool ok = true;
  for (int i = 0; i < 1000; ++i) ok = session.run(&in, 1, &out, 1).ok() && ok;
  const auto counts = AllocationCount::stop();
  ASSERT_TRUE(ok);
  expect_only_onednn(counts, "Session::run");
}

TEST(SteadyState, Lenet) {
  auto net = models::build("lenet", {});
  ASSERT_TRUE(net.ok()) << net.status().text();
  for (const int threads : {1, 2}) {
    const Runtime r = runtime(threads);
    Session session = open(r, *net);
    auto context = session.prepare();
    ASSERT_TRUE(context.ok()) << context.status().text();
    const TensorView type = context->input(0);
    const auto x = blob(type.shape, -1.0f, 0.02f);
    ASSERT_TRUE(context->bind_input(0, x->data).ok());
    std::vector<Context> contexts;
    contexts.push_back(std::move(*context));
    expect_only_onednn(count_runs(contexts, 200), "lenet, " + std::to_string(threads) + " threads");
  }
}

}  // namespace
}  // namespace heddle
