// The way of a resolved net through the stages (compile/stages.h): to a plan, or to all that is wrong with it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compile/stages.h"

namespace heddle {

// Of one plan; what is the same for all plans of a session is in its CompilationTarget.
struct PipelineOptions {
  std::vector<InputBinding> inputs;
  std::vector<std::pair<std::string, int64_t>> symbols;
  TransformOptions transform;
  CompileOptions compile;
  const Interruption* interruption = nullptr;  // of all stages; null: none
};

// A resolved net to a plan. `times` may be null.
Result<std::shared_ptr<const Plan>> build_plan(const Net& resolved, const std::shared_ptr<const RegistrySnapshot>& registry,
                                               const CompilationTarget& target, const PipelineOptions& options, PlanInfo::Times* times);

// Everything that build_plan would find, for `heddle check`: all of it at once, not only what the first stage finds. An input whose content
// decides shapes and is not given is missing_input where nothing can be told without it.
Findings check_net(const Net& resolved, const std::shared_ptr<const RegistrySnapshot>& registry, const CompilationTarget& target,
                   const PipelineOptions& options);

// Where both begin. What is handed over by reference outlives it.
Compilation compilation(const std::shared_ptr<const RegistrySnapshot>& registry, const CompilationTarget& target,
                        const PipelineOptions& options, Evaluator& evaluator);

}  // namespace heddle
