#include "compile/stages.h"

#include <string_view>

#include "base/threads/clock.h"
#include "compile/plan_check/plan_check.h"
#include "place/place.h"
#include "verify/verify.h"

namespace heddle {
namespace {

Status infer_stage(Compilation& c, const Net* resolved) {
  InferOptions options = c.inference;
  options.evaluator = &c.evaluator;
  options.limits = c.target.limits;
  options.interruption = c.interruption;
  c.typed = infer_all(*resolved, c.registry, options, c.findings);
  return {};
}

Status place_stage(Compilation& c, const Net*) {
  c.typed = place(std::move(c.typed), c.target, c.findings);
  return {};
}

// Runs before transforms, so that findings name the user's operators.
Status verify_stage(Compilation& c, const Net*) {
  VerifyOptions options;
  options.evaluator = &c.evaluator;
  verify(c.typed, c.target, options, c.findings);
  return {};
}

Status transform_stage(Compilation& c, const Net*) {
  TransformOptions options = c.transforms;
  options.interruption = c.interruption;
  HEDDLE_TRY(c.typed, optimize(std::move(c.typed), c.evaluator, c.target, options));
  return {};
}

// The time of kernels' create and prepare is counted separately.
Status compile_stage(Compilation& c, const Net*) {
  int64_t prepare_ns = 0;
  CompileOptions options = c.compiling;
  options.evaluator = &c.evaluator;
  options.interruption = c.interruption;
  options.prepare_ns = &prepare_ns;
  std::vector<Diagnostic> warnings;
  for (const Diagnostic& d : c.findings.all())
    if (d.severity == Severity::warning || d.code == Code::no_kernel || d.code == Code::wrong_device) warnings.push_back(d);
  auto plan = compile(std::move(c.typed), c.target, options, std::move(warnings));
  if (c.times) {
    c.times->prepare_ns += prepare_ns;
    c.times->compile_ns -= prepare_ns;
  }
  HEDDLE_TRY(c.plan, std::move(plan));
  if (c.target.check_plans && c.plan->steps.size() <= compiling::judged_steps) return compiling::check(*c.plan).in_net(c.plan->net_name);
  return {};
}

// Adds the time since it was last read to a stage.
class Stopwatch {
 public:
  void add_to(int64_t& stage) {
    const uint64_t now = ticks();
    stage += static_cast<int64_t>(ticks_to_ns(now - start_));
    start_ = now;
  }

 private:
  uint64_t start_ = ticks();
};

}  // namespace

std::span<const Stage> stages() {
  // In the order in which a net goes through them.
  static constexpr Stage list[] = {
      {"infer", infer_stage, &PlanInfo::Times::infer_ns, true, true},
      {"place", place_stage, &PlanInfo::Times::verify_ns, true, true},
      {"verify", verify_stage, &PlanInfo::Times::verify_ns, true, false},
      {"transform", transform_stage, &PlanInfo::Times::transform_ns, false, true},
      {"compile", compile_stage, &PlanInfo::Times::compile_ns, false, true},
  };
  return list;
}

Status run_stages(Compilation& c, const Net* resolved, const StageRange& range) {
  Stopwatch watch;
  bool within = range.first == nullptr;
  for (const Stage& stage : stages()) {
    if (range.before && std::string_view(stage.name) == range.before) break;
    within = within || std::string_view(stage.name) == range.first;
    if (!within || (c.subnet && !stage.of_subnets)) continue;
    if (c.findings.failed() && !stage.takes_mistakes) break;
    Status status = stage.run(c, resolved);
    if (c.times) watch.add_to(c.times->*stage.time);
    if (c.on_findings == OnFindings::stop) {
      HEDDLE_CHECK(std::move(status));
      if (c.findings.failed()) return c.findings.status();
    } else {
      c.findings.add(std::move(status));
    }
  }
  return {};
}

}  // namespace heddle
