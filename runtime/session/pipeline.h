// Runs a resolved net through the stages (compile/stages.h), to make a plan or to find all errors of the net.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compile/stages.h"

namespace heddle {

// The options of one plan; those that are the same for all plans of a session are in its CompilationTarget.
struct PipelineOptions {
  std::vector<InputBinding> inputs;
  std::vector<std::pair<std::string, int64_t>> symbols;
  TransformOptions transform;
  CompileOptions compile;
  const Interruption* interruption = nullptr;  // interrupts any stage; null: none
};

// Makes a plan of a resolved net. `times` may be null.
Result<std::shared_ptr<const Plan>> build_plan(const Net& resolved, const std::shared_ptr<const RegistrySnapshot>& registry,
                                               const CompilationTarget& target, const PipelineOptions& options, PlanInfo::Times* times);

// Returns everything that build_plan would find, for `heddle check`: the findings of all stages, not only those of the first that fails. An
// input whose content decides shapes and is not given is missing_input where nothing can be inferred without it.
Findings check_net(const Net& resolved, const std::shared_ptr<const RegistrySnapshot>& registry, const CompilationTarget& target,
                   const PipelineOptions& options);

// Makes the state that both functions begin with. Arguments passed by reference must outlive it.
Compilation compilation(const std::shared_ptr<const RegistrySnapshot>& registry, const CompilationTarget& target,
                        const PipelineOptions& options, Evaluator& evaluator);

}  // namespace heddle
