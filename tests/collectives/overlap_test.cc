// Collectives beside the computation, by the clock of simulated devices: no wall time.
#include <algorithm>
#include <cstdlib>

#include "collectives/trained_replicas.h"
#include "device/simulated.h"
#include "models/training_form.h"
#include "session_plan.h"

namespace heddle {
namespace {

using namespace testing_collectives;

class CostSetting {
 public:
  explicit CostSetting(const std::string& costs) { ::setenv("HEDDLE_SIM_COST", costs.c_str(), 1); }
  ~CostSetting() { ::unsetenv("HEDDLE_SIM_COST"); }
};

struct Step {
  uint64_t ns = 0;             // of the whole step
  uint64_t collective_ns = 0;  // of all collectives of one device
  size_t buckets = 0;
};

// A step of a ResNet-18-like net on two devices: as many layers and parameters. Convolutions take half a millisecond, all
// else 20 microseconds; the link has the given delay, and a rate.
Step step_with(const std::string& link) {
  const CostSetting costs(
      "Conv=500000,ConvDataGradient=500000,ConvFilterGradient=500000,BatchNormalization=20000,"
      "BatchNormalizationGradient=20000,Relu=20000,Add=20000,copy=1000,AllReduce=" +
      link);
  const Runtime runtime = runtime_with_devices(2);
  models::RecipeOptions recipe;
  recipe.batch = 2;
  auto form = models::training_form("resnet18", recipe);
  EXPECT_TRUE(form.ok()) << form.status().text();
  Job job{std::move(form->train), {}, {}};
  job.how.losses = {"loss"};
  auto nets = training_nets(runtime, {2, true}, job);
  EXPECT_TRUE(nets.ok()) << nets.status().text();
  auto session = runtime.open(*nets, options_of({2, true}, ""));
  EXPECT_TRUE(session.ok()) << session.status().text();
  const std::vector<float> image(2 * 3 * 224 * 224, 0.5F);
  const std::vector<int64_t> labels = {1, 2};
  const std::vector<TensorView> inputs = {{DType::f32, Shape{2, 3, 224, 224}, const_cast<float*>(image.data())},
                                          {DType::i64, Shape{2}, const_cast<int64_t*>(labels.data())}};
  auto context = session->prepare(inputs);
  EXPECT_TRUE(context.ok()) << context.status().text();
  if (!context.ok()) return {};
  for (size_t i = 0; i < inputs.size(); ++i) EXPECT_TRUE(context->bind_input(i, inputs[i].data).ok());
  EXPECT_TRUE(context->run().ok());  // uploads and first uses
  const std::shared_ptr<const Plan> plan = last_plan(*session);
  const sim_native_table& table = testing_devices::native(*plan->devices[0].device);
  table.forget_spans();
  const Status ran = context->run();
  EXPECT_TRUE(ran.ok()) << ran.text();
  std::vector<sim_span> spans(10000);
  spans.resize(std::min<size_t>(spans.size(), table.spans(spans.data(), spans.size())));
  Step step;
  uint64_t begin = UINT64_MAX, end = 0;
  for (const sim_span& span : spans) {
    begin = std::min(begin, span.begin_ns);
    end = std::max(end, span.end_ns);
    if (std::string(span.name) != "AllReduce" || span.device != 0) continue;
    EXPECT_EQ(span.stream_class, HEDDLE_STREAM_COMMUNICATION);
    step.collective_ns += span.end_ns - span.begin_ns;
    ++step.buckets;
  }
  step.ns = end - begin;
  return step;
}

TEST(Overlap, HidesMostOfTheCommunication) {
  const Step alone = step_with("0"), together = step_with("50000+0.2");  // 50 us, 5 GB/s
  EXPECT_GE(together.buckets, 4u);
  EXPECT_GT(together.collective_ns, 5'000'000u);
  const double exposed = static_cast<double>(together.ns) - static_cast<double>(alone.ns);
  EXPECT_LE(exposed, 0.2 * static_cast<double>(together.collective_ns))
      << "a step takes " << alone.ns << " ns without and " << together.ns << " ns with " << together.collective_ns << " ns in "
      << together.buckets << " buckets";
  std::printf("step %llu ns without, %llu ns with %llu ns of communication in %zu buckets: %.1f%% exposed\n",
              static_cast<unsigned long long>(alone.ns), static_cast<unsigned long long>(together.ns),
              static_cast<unsigned long long>(together.collective_ns), together.buckets,
              100 * exposed / static_cast<double>(together.collective_ns));
}

}  // namespace
}  // namespace heddle
