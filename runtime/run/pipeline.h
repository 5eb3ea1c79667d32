// The way of a net from resolve to compile in one call, with the time each stage took.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/findings.h"
#include "compile/compile.h"
#include "heddle/copies.h"
#include "infer/infer.h"
#include "transform/transform.h"

namespace heddle {

struct StageTimes {
  int64_t load_ns = 0, resolve_ns = 0, infer_ns = 0, transform_ns = 0, verify_ns = 0, compile_ns = 0, prepare_ns = 0;
};

struct PipelineOptions {
  std::vector<InputBinding> inputs;
  std::vector<std::pair<std::string, int64_t>> symbols;
  TransformOptions transform;
  CompileOptions compile;
  Copies copies = Copies::warn;
  Limits limits;
};

// A resolved net to a plan. `times` may be null.
Result<std::shared_ptr<const Plan>> build_plan(const Net& resolved, const std::shared_ptr<const RegistrySnapshot>& registry,
                                               const PipelineOptions& options, StageTimes* times);

// Infer and verify alone, for `heddle check`: all findings.
Findings check_net(const Net& resolved, const std::shared_ptr<const RegistrySnapshot>& registry, const PipelineOptions& options);

}  // namespace heddle
