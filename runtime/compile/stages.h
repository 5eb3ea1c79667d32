// The stages between resolve and run, in order: infer, place, verify, transform, compile. This is the only list of them: code that makes
// plans, that only checks a net, and that compiles the nets inside nets all goes through it, so that a new stage is added here and nowhere
// else.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/text/findings.h"
#include "compile/compile.h"
#include "device/compilation_target.h"
#include "heddle/plan_info.h"
#include "infer/infer.h"
#include "transform/transform.h"

namespace heddle {

// What to do after a stage has found a mistake.
enum class OnFindings : uint8_t {
  stop,     // end: the stage's error is the result
  collect,  // report what can still be found in the rest of the net; skip stages that need a sound net
};

// One net on its way through the stages. Not synchronised; the objects it refers to must outlive it.
struct Compilation {
  Compilation(const CompilationTarget& compiled_for, std::shared_ptr<const RegistrySnapshot> operators, Evaluator& contents,
              const CompileOptions& options, const Interruption* until = nullptr)
      : target(compiled_for), registry(std::move(operators)), evaluator(contents), compiling(options), interruption(until) {}

  const CompilationTarget& target;
  const std::shared_ptr<const RegistrySnapshot> registry;
  Evaluator& evaluator;
  const CompileOptions& compiling;
  const Interruption* const interruption;  // for all stages; null: none
  InferOptions inference;                  // without evaluator, limits and interruption, which are the compilation's
  TransformOptions transforms;             // likewise
  OnFindings on_findings = OnFindings::stop;
  bool subnet = false;               // of an operator: verified with the net around it
  PlanInfo::Times* times = nullptr;  // null: not measured

  // The results so far.
  Findings findings;
  TypedNet typed;                    // from infer to transform
  std::shared_ptr<const Plan> plan;  // from compile
};

struct Stage {
  const char* name;
  Status (*run)(Compilation& c, const Net* resolved);
  int64_t PlanInfo::Times::*time;  // the sum to which its time is added
  bool takes_mistakes;             // runs on a net with findings too, where they are collected
  bool of_subnets;                 // runs for nets inside nets too
};

// Returns all stages, in order.
std::span<const Stage> stages();

// From the stage named `first` up to, but without, the one named `before`; null: from the first one, to the last. Ranges that adjoin leave
// no stage out.
struct StageRange {
  const char* first = nullptr;
  const char* before = nullptr;
};

// Runs the stages of `range` on `c`. `resolved` is the input of infer, null where the range begins later and c.typed is given. Errors: with
// OnFindings::stop that of the first stage that fails; with OnFindings::collect none, they are in c.findings.
Status run_stages(Compilation& c, const Net* resolved, const StageRange& range = {});

}  // namespace heddle
