// The way of a net from resolve to compile in one call, with the time each stage took.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/findings.h"
#include "compile/compile.h"
#include "heddle/copies.h"
#include "heddle/plan.h"
#include "infer/infer.h"
#include "transform/transform.h"

namespace heddle {

struct PipelineOptions {
  std::vector<InputBinding> inputs;
  std::vector<std::pair<std::string, int64_t>> symbols;
  TransformOptions transform;
  CompileOptions compile;
  Copies copies = Copies::warn;
  Limits limits;
  const Interruption* interruption = nullptr;  // of all stages; null: none
};

// A resolved net to a plan. `times` may be null.
Result<std::shared_ptr<const Plan>> build_plan(const Net& resolved, const std::shared_ptr<const RegistrySnapshot>& registry,
                                               const PipelineOptions& options, PlanInfo::Times* times);

// Everything that build_plan would find, for `heddle check`: all of it at once, not only what the first stage finds. An input whose content
// decides shapes and is not given is missing_input where nothing can be told without it.
Findings check_net(const Net& resolved, const std::shared_ptr<const RegistrySnapshot>& registry, const PipelineOptions& options);

// The stages that both share.
InferOptions infer_options(const PipelineOptions& options, Evaluator* evaluator);
void place_and_verify(TypedNet& typed, const PipelineOptions& options, Evaluator* evaluator, Findings& findings);

}  // namespace heddle
