#include "session/pipeline.h"

#include "base/clock.h"
#include "base/device_name.h"
#include "device/device_manager.h"
#include "infer/registry_evaluator.h"
#include "plugin/host.h"
#include "verify/verify.h"

namespace heddle {
namespace {

// Adds the time until it is read to a stage.
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

InferOptions infer_options(const PipelineOptions& options, Evaluator* evaluator) {
  InferOptions infer;
  infer.inputs = options.inputs;
  infer.symbols = options.symbols;
  infer.evaluator = evaluator;
  infer.limits = options.limits;
  infer.interruption = options.interruption;
  return infer;
}

void place_and_verify(TypedNet& typed, const PipelineOptions& options, Evaluator* evaluator, Findings& findings) {
  const std::string device = full_device_name({}, options.compile.default_device);
  const bool there = is_host(device) || check_device(*typed.registry, device).ok();
  Findings fallen_back;
  typed = place(std::move(typed), device, there && options.copies != Copies::strict, fallen_back);
  for (Diagnostic d : fallen_back.all()) {
    // Under --copies auto it is what was asked for, but not done in silence.
    if (options.copies == Copies::automatic) {
      d.severity = Severity::note;
      d.hint = "load a plugin that has one";
    }
    findings.add(Status(std::move(d)));
  }
  VerifyOptions verification;
  verification.default_device = options.compile.default_device;
  verification.copies = options.copies;
  verification.evaluator = evaluator;
  verify(typed, verification, findings);
}

Result<std::shared_ptr<const Plan>> build_plan(const Net& resolved, const std::shared_ptr<const RegistrySnapshot>& registry,
                                               const PipelineOptions& options, PlanInfo::Times* times) {
  PlanInfo::Times ignored;
  PlanInfo::Times& t = times ? *times : ignored;
  const std::unique_ptr<Evaluator> evaluator = make_registry_evaluator(registry);
  Stopwatch watch;
  HEDDLE_TRY(TypedNet typed, infer(resolved, registry, infer_options(options, evaluator.get())));
  watch.add_to(t.infer_ns);
  // Before transforms, so that findings speak of the user's operators.
  Findings findings;
  place_and_verify(typed, options, evaluator.get(), findings);
  if (findings.failed()) return findings.status();
  watch.add_to(t.verify_ns);
  TransformOptions transform_options = options.transform;
  transform_options.interruption = options.interruption;
  HEDDLE_TRY(typed, optimize(std::move(typed), *evaluator, transform_options));
  watch.add_to(t.transform_ns);
  CompileOptions compile_options = options.compile;
  compile_options.evaluator = evaluator.get();
  compile_options.prepare_ns = &t.prepare_ns;
  compile_options.interruption = options.interruption;
  std::vector<Diagnostic> warnings;
  for (const Diagnostic& d : findings.all())
    if (d.severity == Severity::warning || d.code == Code::no_kernel) warnings.push_back(d);
  HEDDLE_TRY(auto plan, compile(std::move(typed), compile_options, std::move(warnings)));
  for (const Diagnostic& d : plan->warnings) log_line(d.severity == Severity::warning ? HEDDLE_LOG_WARNING : HEDDLE_LOG_INFO, d.text());
  watch.add_to(t.compile_ns);
  t.compile_ns -= t.prepare_ns;
  return plan;
}

}  // namespace heddle
