// look NET: what a net became, how long each step took, what each computed and who holds the memory; for a net whose inputs declare shapes
// and are f32, such as `heddle model lenet`.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "heddle/session.h"

namespace {

void show_plan(const heddle::PlanInfo& plan) {
  const heddle::PlanInfo::Memory& host = plan.memory[0];
  std::printf("plan: %zu steps, peak %lld bytes, lower bound %lld (%s)\n", plan.steps.size(), static_cast<long long>(host.peak_bytes),
              static_cast<long long>(host.lower_bound_bytes), host.lower_bound_kind.c_str());
  const std::vector<heddle::MemoryOwner> owners = heddle::memory_by_owner(plan);
  for (size_t i = 0; i < std::min<size_t>(3, owners.size()); ++i)
    std::printf("  at its fullest %lld bytes are %s of \"%s\"\n", static_cast<long long>(owners[i].bytes),
                owners[i].value.empty() ? "scratch" : "a value", owners[i].step.c_str());
}

heddle::Status run_and_look(const char* net) {
  heddle::RuntimeOptions one_thread;
  one_thread.threads = 1;
  HEDDLE_TRY(const heddle::Runtime runtime, heddle::Runtime::create(one_thread));
  HEDDLE_TRY(heddle::Session session, runtime.open(net));
  HEDDLE_TRY(heddle::Context context, session.prepare());
  std::vector<std::vector<float>> inputs;
  for (size_t i = 0; i < context.input_count(); ++i) {
    inputs.emplace_back(static_cast<size_t>(context.input(i).shape.element_count()), 0.5f);
    HEDDLE_CHECK(context.bind_input(i, inputs.back().data()));
  }
  const auto plan = context.plan();
  show_plan(*plan);

  heddle::Profile profile;
  heddle::RunOptions timed;
  timed.profile = &profile;
  HEDDLE_CHECK(context.run(timed));
  for (size_t i = 0; i < plan->steps.size(); ++i) {
    const heddle::StepTime& time = profile.steps[i];
    std::printf("  %-20s %-12s %8lld ns\n", plan->steps[i].name.c_str(), plan->steps[i].type.c_str(),
                static_cast<long long>(time.end_ns - time.begin_ns));
  }

  const heddle::StepObserver largest = [&](heddle::StepView& view) -> heddle::Status {
    HEDDLE_TRY(const heddle::TensorView y, view.read_output(0));
    if (y.dtype != heddle::DType::f32) return {};
    const auto* values = static_cast<const float*>(y.data);
    float most = 0;
    for (int64_t i = 0; i < y.shape.element_count(); ++i) most = std::max(most, std::abs(values[i]));
    std::printf("  %-20s largest magnitude %g\n", plan->steps[view.step()].name.c_str(), static_cast<double>(most));
    return {};
  };
  heddle::RunOptions observed;
  observed.observer = &largest;
  HEDDLE_CHECK(context.run(observed));
  std::printf("the context holds %lld bytes, %s as planned\n", static_cast<long long>(context.held_bytes()),
              context.held_bytes() == plan->memory[0].peak_bytes ? "exactly" : "not");
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: look NET\n"), 2;
  const heddle::Status status = run_and_look(argv[1]);
  if (!status.ok()) return std::fprintf(stderr, "%s\n", status.text().c_str()), 1;
  return 0;
}
