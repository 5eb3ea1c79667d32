// Faults of a device at the steps of data-parallel training: one error that names the operator and the device, variables that are as before
// or updated on all devices alike, and a next run that is right.
#include <cstdlib>
#include <regex>

#include "collectives/training_jobs.h"
#include "compile/plan.h"
#include "session_plan.h"

namespace heddle {
namespace {

using namespace testing_collectives;

// A session of a job on two devices, and a context with the inputs of its first step.
struct Training {
  explicit Training(const Job& job) : runtime(runtime_with_devices(2)) {
    auto made = training_nets(runtime, {2, true}, job);
    EXPECT_TRUE(made.ok()) << made.status().text();
    net = Internals::of(*made).nets[0];
    auto opened = runtime.open(*made, options_of({2, true}, ""));
    EXPECT_TRUE(opened.ok()) << opened.status().text();
    session.emplace(std::move(*opened));
    std::vector<TensorView> inputs;
    for (const Array& input : job.steps[0]) inputs.push_back({input.dtype, input.shape, const_cast<char*>(input.bytes.data())});
    auto prepared = session->prepare(inputs);
    EXPECT_TRUE(prepared.ok()) << prepared.status().text();
    context.emplace(std::move(*prepared));
    for (size_t i = 0; i < inputs.size(); ++i) EXPECT_TRUE(context->bind_input(i, inputs[i].data).ok());
  }
  // All variables and their replicas.
  Trained state() const {
    Trained state;
    state.status = testing_collectives::detail::read_variables(*session, net, &state);
    return state;
  }

  Runtime runtime;
  Net net;
  std::optional<Session> session;
  std::optional<Context> context;
};

// The name of an operator without its replica's device: of a group, the error may name any member.
std::string without_device(const std::string& name) {
  return std::regex_replace(name, std::regex("@sim:[0-9]+"), "");
}

void check_job(const Job& job, const std::string& name, size_t* runs) {
  SCOPED_TRACE(name);
  Training clean(job);
  const Trained before = clean.state();
  const std::shared_ptr<const Plan> plan = last_plan(*clean.session);
  ASSERT_TRUE(clean.context->run().ok());
  const Trained after = clean.state();
  expect_alike({after});
  EXPECT_NE(before.variables, after.variables);
  const bool all = std::getenv("HEDDLE_LONG_TESTS") != nullptr;
  const size_t begin = *runs % 7;
  for (size_t i = begin; i < plan->steps.size(); i += all ? 1 : 7) {
    const PlanStep& step = plan->steps[i];
    if (!step.on_device || step.on_device->kind == DeviceWork::Kind::fence || step.on_device->kind == DeviceWork::Kind::kernel) continue;
    const bool copies = step.on_device->kind == DeviceWork::Kind::copy;
    for (const std::string kind : {"enqueue", copies ? "copy" : "late"}) {
      SCOPED_TRACE(kind + " at " + std::to_string(i) + ", \"" + step.name + "\" (" + step.type.text() + ")");
      const SimSetting fault("FAULTS", kind + "@" + std::to_string(i));
      Training training(job);
      const Status status = training.context->run();
      ASSERT_EQ(status.code(), Code::device_failed) << status.text();
      const int32_t checked = step.on_device->checks_for;  // what fails a check is told of the step that it is for
      const std::string& told = checked < 0 ? step.name : plan->steps[static_cast<size_t>(checked)].name;
      EXPECT_EQ(without_device(status.diagnostic().node), without_device(told)) << status.text();
      EXPECT_NE(status.text().find("sim:"), std::string::npos) << status.text();
      EXPECT_TRUE(status.diagnostic().attached.empty()) << status.text();
      if (i < plan->graph.tail_begin) {
        const Trained state = training.state();
        ASSERT_TRUE(state.status.ok()) << state.status.text();
        expect_alike({state});
        EXPECT_EQ(state.variables, before.variables);
      } else if (const Status torn = training.context->run(); !torn.ok()) {  // an update itself has failed
        EXPECT_EQ(torn.code(), Code::hazard) << torn.text();
        EXPECT_NE(torn.text().find("was left half-updated by a run that failed; write it"), std::string::npos) << torn.text();
        for (const auto& [name, value] : before.variables)
          ASSERT_TRUE(training.session->write_variable(name, {value.dtype, value.shape, const_cast<char*>(value.bytes.data())}).ok());
      } else {
        const Trained state = training.state();  // no update had begun, and this run has made all
        expect_alike({state});
        EXPECT_EQ(state.variables, after.variables);
        continue;
      }
      const Status again = training.context->run();
      ASSERT_TRUE(again.ok()) << again.text();
      const Trained right = training.state();
      expect_alike({right});
      EXPECT_EQ(right.variables, after.variables);
      ++*runs;
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(ReplicaFaults, EndOneRunAndLeaveAllAlike) {
  size_t runs = 0;
  Job sigmoid = sigmoid_job(DType::f32, 12, 1);
  sigmoid.how.optimizer = "adam";
  sigmoid.how.clip_norm = 0.05;
  check_job(sigmoid, "sigmoid", &runs);
  Job lookup = lookup_job(12, 1);
  lookup.how.parallel.single = {"other"};
  check_job(lookup, "lookup", &runs);
  check_job(normalised_job(12, 1), "normalised", &runs);
  EXPECT_GT(runs, 30u);
}

}  // namespace
}  // namespace heddle
