// Collectives beside the computation, by the clock of simulated devices: no wall time.
#include <algorithm>
#include <cstdlib>
#include <thread>

#include "collectives/trained_replicas.h"
#include "device/simulated.h"
#include "models/training_form.h"
#include "session_plan.h"

namespace heddle {
namespace {

using namespace testing_collectives;

struct Step {
  int64_t ns = 0;             // of the whole step
  int64_t collective_ns = 0;  // of all collectives of one device
  size_t buckets = 0;
  PredictedStep predicted;
};

std::string text_of(const std::vector<WorkCost>& costs) {
  std::string text;
  for (const WorkCost& cost : costs)
    text += (text.empty() ? "" : ",") + cost.name + "=" + std::to_string(cost.ns) + "+" + std::to_string(cost.ns_per_byte);
  return text;
}

// The works that the host enqueues before it waits for the device: each step is one, and one of a group takes its place before.
uint64_t works_before_tail(const Plan& plan) {
  uint64_t works = 0;
  for (uint32_t i = 0; i < plan.graph.tail_begin; ++i)
    if (const DeviceWork* const work = plan.steps[i].on_device.get(); work && work->kind != DeviceWork::Kind::fence)
      works += work->group.empty() && work->launched_by < 0 ? 1 : 2;
  return works;
}

// Copies to the host before the update phase: the host waits for them.
uint64_t copies_before_tail(const Plan& plan) {
  uint64_t copies = 0;
  for (uint32_t i = 0; i < plan.graph.tail_begin; ++i)
    if (const DeviceWork* const work = plan.steps[i].on_device.get(); work && work->copy_kind == HEDDLE_COPY_DEVICE_TO_HOST) ++copies;
  return copies;
}

std::vector<sim_span> spans_of(const sim_native_table& table) {
  std::vector<sim_span> spans(10000);
  spans.resize(std::min<size_t>(spans.size(), table.spans(spans.data(), spans.size())));
  return spans;
}

// Runs, and holds the clock while the host enqueues work, so that the host takes no time by the clock. `works`: of a run.
void run_at_once(Context& context, const Plan& plan, uint64_t works) {
  const sim_native_table& table = testing_devices::native(*plan.devices[0].device);
  const uint64_t before = testing_devices::counted(plan, &sim_counts::works);
  const auto wait_for = [&](uint64_t enqueued) {
    while (testing_devices::counted(plan, &sim_counts::works) - before < enqueued) std::this_thread::yield();
  };
  const auto copied = [&] {
    const std::vector<sim_span> spans = spans_of(table);
    return static_cast<uint64_t>(
        std::count_if(spans.begin(), spans.end(), [](const sim_span& span) { return span.stream_class == HEDDLE_STREAM_FROM_DEVICE; }));
  };
  table.hold_clock();
  std::thread runs([&] {
    const Status ran = context.run();
    EXPECT_TRUE(ran.ok()) << ran.text();
  });
  wait_for(works_before_tail(plan));
  while (copied() < copies_before_tail(plan)) table.advance_clock(100'000);
  wait_for(works);
  table.release_clock();
  runs.join();
}

// A step of a ResNet-18-like net on two devices: as many layers and parameters. Convolutions take half a millisecond, all else 20
// microseconds.
Step step_with(const WorkCost& link) {
  const std::vector<WorkCost> costs = {{"Conv", 500'000},
                                       {"ConvDataGradient", 500'000},
                                       {"ConvFilterGradient", 500'000},
                                       {"BatchNormalization", 20'000},
                                       {"BatchNormalizationGradient", 20'000},
                                       {"Pointwise", 20'000},
                                       {"copy", 1'000},
                                       link};
  const SimSetting clock("COST", text_of(costs)), peers("PEERS", "1");  // so that updates begin without the host
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
  const std::shared_ptr<const Plan> plan = last_plan(*session);
  const sim_native_table& table = testing_devices::native(*plan->devices[0].device);
  EXPECT_TRUE(context->run().ok());  // uploads and first uses
  const uint64_t before = testing_devices::counted(*plan, &sim_counts::works);
  EXPECT_TRUE(context->run().ok());
  const uint64_t works = testing_devices::counted(*plan, &sim_counts::works) - before;
  table.forget_spans();
  const uint64_t begin = table.now();
  run_at_once(*context, *plan, works);
  Step step;
  for (const sim_span& span : spans_of(table)) {
    step.ns = std::max(step.ns, static_cast<int64_t>(span.end_ns - begin));
    if (std::string(span.name) != "AllReduce" || span.device != 0) continue;
    EXPECT_EQ(span.stream_class, HEDDLE_STREAM_COMMUNICATION);
    step.collective_ns += static_cast<int64_t>(span.end_ns - span.begin_ns);
    ++step.buckets;
  }
  step.predicted = predict_step(*context->plan(), costs);
  return step;
}

TEST(Overlap, HidesMostOfTheCommunication) {
  const Step alone = step_with({"AllReduce", 0}), together = step_with({"AllReduce", 50'000, 0.2});  // 50 us, 5 GB/s
  EXPECT_GE(together.buckets, 4u);
  EXPECT_GT(together.collective_ns, 5'000'000);
  const int64_t exposed = together.ns - alone.ns;
  EXPECT_LE(5 * exposed, together.collective_ns) << "a step takes " << alone.ns << " ns without and " << together.ns << " ns with "
                                                 << together.collective_ns << " ns in " << together.buckets << " buckets";
  // The plan says so before.
  EXPECT_EQ(alone.predicted.ns, alone.ns);
  EXPECT_EQ(together.predicted.ns, together.ns);
  EXPECT_EQ(together.predicted.communication_ns, together.collective_ns);
  EXPECT_EQ(together.predicted.exposed_ns, exposed);
  std::printf("step %lld ns without, %lld ns with %lld ns of communication in %zu buckets: %.1f%% exposed\n",
              static_cast<long long>(alone.ns), static_cast<long long>(together.ns), static_cast<long long>(together.collective_ns),
              together.buckets, 100 * static_cast<double>(exposed) / static_cast<double>(together.collective_ns));
}

}  // namespace
}  // namespace heddle
