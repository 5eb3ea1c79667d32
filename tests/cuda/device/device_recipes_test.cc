// The recipes of whole models on the CUDA device, on the library that stands in for NVIDIA's: the host's results, no step on the host, and
// the same few calls in every run.
#include <algorithm>
#include <cmath>

#include "device_program.h"
#include "models/recipes.h"

namespace heddle::cuda {
namespace {

using namespace testing_standin;

class CudaRecipes : public StandinTest, public ::testing::WithParamInterface<const char*> {
 protected:
  static Net net() {
    auto made = models::build(GetParam(), {});
    EXPECT_TRUE(made.ok()) << made.status().text();
    return std::move(*made);
  }
};

// Returns floats from -1 to 1, and indices that are in range.
std::vector<std::shared_ptr<const Blob>> inputs_of(const Session& session) {
  std::vector<std::shared_ptr<const Blob>> all;
  for (const PortInfo& port : session.inputs()) {
    std::byte* data = nullptr;
    all.push_back(Blob::allocate(port.dtype, port.shape, &data));
    for (int64_t i = 0; i < port.shape.element_count(); ++i) {
      const float number = static_cast<float>(i * 7919 % 1000) / 500 - 1;
      const int64_t index = i * 7919 % std::max<int64_t>(port.index_bound, 1);
      if (port.dtype == DType::f32) std::memcpy(data + i * 4, &number, 4);
      if (port.dtype == DType::i64) std::memcpy(data + i * 8, &index, 8);
    }
  }
  return all;
}

struct Run {
  Session session;
  std::vector<std::shared_ptr<const Blob>> inputs;
  Context context;
};
Result<Run> prepare_run(const Runtime& runtime, Net net, const SessionOptions& options) {
  HEDDLE_TRY(Session session, runtime.open(std::move(net), options));
  std::vector<std::shared_ptr<const Blob>> inputs = inputs_of(session);
  std::vector<TensorView> views;
  for (const auto& input : inputs) views.push_back({input->dtype, input->shape, const_cast<std::byte*>(input->data)});
  HEDDLE_TRY(Context context, session.prepare(views));
  for (size_t i = 0; i < views.size(); ++i) HEDDLE_CHECK(context.bind_input(i, views[i].data));
  return Run{std::move(session), std::move(inputs), std::move(context)};
}

TEST_P(CudaRecipes, HasTheHostsResults) {
  const Runtime runtime = cuda_runtime(2);
  auto host = prepare_run(runtime, net(), {}), there = prepare_run(runtime, net(), on_cuda());
  ASSERT_TRUE(host.ok()) << host.status().text();
  ASSERT_TRUE(there.ok()) << there.status().text();
  const Status of_host = host->context.run(), of_device = there->context.run();
  ASSERT_TRUE(of_host.ok()) << of_host.text();
  ASSERT_TRUE(of_device.ok()) << of_device.text();
  for (size_t i = 0; i < host->context.output_count(); ++i) {
    const TensorView expected = host->context.output(i), got = there->context.output(i);
    ASSERT_EQ(expected.dtype, DType::f32);
    float largest = 0, difference = 0;
    for (int64_t k = 0; k < expected.shape.element_count(); ++k) {
      const float theirs = static_cast<const float*>(expected.data)[k], ours = static_cast<const float*>(got.data)[k];
      ASSERT_TRUE(std::isfinite(ours)) << k;
      largest = std::max(largest, std::abs(theirs));
      difference = std::max(difference, std::abs(theirs - ours));
    }
    EXPECT_GT(largest, 0.1F);
    EXPECT_LT(difference, 1e-4F * largest);
    RecordProperty("relative_difference", std::to_string(difference / largest));
  }
  EXPECT_EQ(broken(), "");
}

TEST_P(CudaRecipes, MakesTheSameFewCallsInEveryRun) {
  const StandinSetting idle("IDLE", "1");
  const Standin& cuda = Standin::get();
  const Runtime runtime = cuda_runtime();
  auto there = prepare_run(runtime, net(), on_cuda());
  ASSERT_TRUE(there.ok()) << there.status().text();
  const Plan& plan = Internals::execution(there->context).plan();
  for (const PlanStep& step : plan.steps) EXPECT_TRUE(step.on_device) << step.name << " is on the host";
  ASSERT_TRUE(there->context.run().ok());
  std::vector<std::string> first;
  for (int i = 0; i < 10; ++i) {
    const std::vector<std::string> calls = calls_of_a_run(cuda, there->context);
    if (i == 0) first = calls;
    const auto [at, other] = std::mismatch(calls.begin(), calls.end(), first.begin(), first.end());
    EXPECT_TRUE(at == calls.end() && other == first.end())
        << "run " << i << " makes " << calls.size() << " calls, the first " << first.size() << "; call " << at - calls.begin() << " is "
        << (at == calls.end() ? "missing" : *at) << ", the last " << calls.back();
  }
  EXPECT_LE(static_cast<double>(first.size()), 2.5 * static_cast<double>(plan.steps.size()))
      << first.size() << " calls of " << plan.steps.size() << " steps: " << ::testing::PrintToString([&] {
           std::map<std::string, int> counts;
           for (const std::string& call : first) ++counts[call];
           return counts;
         }());
  RecordProperty("calls_per_step", std::to_string(static_cast<double>(first.size()) / static_cast<double>(plan.steps.size())));
  EXPECT_EQ(broken(), "");
}

INSTANTIATE_TEST_SUITE_P(Models, CudaRecipes,
                         ::testing::Values("resnet50", "mobilenet_v2", "inception_v3", "encoder", "lstm_tagger", "dlrm", "unet"),
                         [](const auto& name) { return std::string(name.param); });

}  // namespace
}  // namespace heddle::cuda
