// Predicts the time of a run on its devices, by the plan alone.
#include <algorithm>
#include <map>
#include <utility>

#include "heddle/plan_info.h"
#include "session/plain_values.h"

namespace heddle {
namespace {

class Prediction {
 public:
  // `communicates`: collectives take their time.
  Prediction(const PlanInfo& plan, const std::vector<WorkCost>& costs, bool communicates)
      : plan_(plan), costs_(costs), communicates_(communicates), ready_(plan.steps.size(), 0), together_(plan.steps.size()) {}

  PredictedStep run() {
    for (size_t i = 0; i < plan_.steps.size(); ++i) visit(i);
    for (const auto& [device, ns] : communication_) result_.communication_ns = std::max(result_.communication_ns, ns);
    return result_;
  }

 private:
  using StreamOf = std::pair<std::string, uint32_t>;

  static constexpr double max_ns = 9e18;
  // Costs are the caller's: sums of some centuries end there.
  static int64_t sum(int64_t a, int64_t b) {
    int64_t ns = 0;
    return __builtin_add_overflow(a, b, &ns) ? INT64_MAX : ns;
  }
  // By the first rule that names it.
  int64_t cost(const std::string& name, int64_t bytes) const {
    for (const WorkCost& known : costs_)
      if (known.name == name) return sum(known.ns, static_cast<int64_t>(std::min(known.ns_per_byte * static_cast<double>(bytes), max_ns)));
    return 0;
  }
  int64_t cost(const PlanInfo::Step& step) const {
    int64_t ns = 0;
    for (const int64_t bytes : step.copied) ns = sum(ns, cost("copy", bytes));
    if (step.auxiliary && step.type != "CheckIndices") return ns;
    int64_t read = 0;
    for (const PlanInfo::Operand& input : step.inputs)
      if (input.value) read += plan_.values[*input.value].bytes;
    return sum(ns, cost(step.type, read));
  }

  void visit(size_t i) {
    const PlanInfo::Step& step = plan_.steps[i];
    if (step.tail) ready_[i] = std::max(ready_[i], known_);
    if (!step.on_stream) return end(i, ready_[i]);
    int64_t& stream = streams_[{step.device, step.stream}];
    if (step.type == "Fence" || step.type == "Extents") return end(i, std::max(stream, ready_[i]));
    stream = std::max(stream, ready_[i]);
    for (const uint32_t event : step.waits) stream = std::max(stream, events_[event]);
    if (!step.launched_by) return finish(i, sum(stream, cost(step)));
    std::vector<size_t>& members = together_[*step.launched_by];
    members.push_back(i);
    if (*step.launched_by == i) begin_together(members);
  }

  // All begin when the last of their streams has come.
  void begin_together(const std::vector<size_t>& members) {
    int64_t begin = 0, takes = 0;
    for (const size_t i : members) {
      const PlanInfo::Step& step = plan_.steps[i];
      const int64_t own = communicates_ ? cost(step) : 0;
      begin = std::max(begin, streams_[{step.device, step.stream}]);
      takes = std::max(takes, own);
      communication_[step.device] = sum(communication_[step.device], own);
    }
    for (const size_t i : members) finish(i, sum(begin, takes));
  }

  // A step on a device has ended: only the host must know to go on.
  void finish(size_t i, int64_t ns) {
    const PlanInfo::Step& step = plan_.steps[i];
    streams_[{step.device, step.stream}] = ns;
    if (step.records) events_[*step.records] = ns;
    result_.ns = std::max(result_.ns, ns);
  }
  // A step of the host, or what it waits for: the steps after it begin later.
  void end(size_t i, int64_t ns) {
    for (const size_t next : plan_.steps[i].successors) ready_[next] = std::max(ready_[next], ns);
    known_ = std::max(known_, plan_.steps[i].tail ? 0 : ns);
  }

  const PlanInfo& plan_;
  const std::vector<WorkCost>& costs_;
  const bool communicates_;
  // When the host may enqueue the update phase: what it does itself before, or waits for, has ended.
  int64_t known_ = 0;
  std::vector<int64_t> ready_;                 // by step: when the host enqueues it
  std::vector<std::vector<size_t>> together_;  // by the step that launches them
  std::map<StreamOf, int64_t> streams_;        // when the last work ends
  std::map<uint32_t, int64_t> events_;
  std::map<std::string, int64_t> communication_;  // by device
  PredictedStep result_;
};

}  // namespace

PredictedStep predict_step(const PlanInfo& plan, const std::vector<WorkCost>& costs) try {
  PredictedStep step = Prediction(plan, costs, true).run();
  step.exposed_ns = step.ns - Prediction(plan, costs, false).run().ns;
  return step;
} catch (...) {
  return or_empty("no memory to predict a step", []() -> PredictedStep { throw; });
}

}  // namespace heddle
