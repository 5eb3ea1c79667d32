#include "session/pipeline.h"

#include "infer/registry_evaluator.h"
#include "plugin/host.h"

namespace heddle {

Compilation compilation(const std::shared_ptr<const RegistrySnapshot>& registry, const CompilationTarget& target,
                        const PipelineOptions& options, Evaluator& evaluator) {
  Compilation c(target, registry, evaluator, options.compile, options.interruption);
  c.inference.inputs = options.inputs;
  c.inference.symbols = options.symbols;
  c.transforms = options.transform;
  return c;
}

Result<std::shared_ptr<const Plan>> build_plan(const Net& resolved, const std::shared_ptr<const RegistrySnapshot>& registry,
                                               const CompilationTarget& target, const PipelineOptions& options, PlanInfo::Times* times) {
  const std::unique_ptr<Evaluator> evaluator = make_registry_evaluator(registry);
  Compilation c = compilation(registry, target, options, *evaluator);
  c.times = times;
  HEDDLE_CHECK(run_stages(c, &resolved));
  for (const Diagnostic& d : c.plan->warnings) log_line(d.severity == Severity::warning ? HEDDLE_LOG_WARNING : HEDDLE_LOG_INFO, d.text());
  for (const Diagnostic& d : c.plan->impossible) log_line(HEDDLE_LOG_WARNING, d.text());
  return c.plan;
}

}  // namespace heddle
