// The transforms: functions from TypedNet to TypedNet. Same net, same bytes out: no clock, no randomness, no globals.
//
// `transforms` lists them in order; each can be run and tested alone. Constant folding takes an Evaluator, nothing else runs a kernel.
#pragma once

#include <functional>
#include <span>

#include "base/threads/interruption.h"
#include "device/compilation_target.h"
#include "heddle/status.h"
#include "net/evaluator.h"
#include "net/typed_net.h"

namespace heddle {

struct TransformOptions {
  bool lower_einsum = true;
  bool fold_constants = true;
  bool fold_batch_normalization = true;
  bool apply_rules = true;
  bool fuse_epilogues = true;
  bool fuse_pointwise = true;
  const Interruption* interruption = nullptr;  // asked between transforms and between folded operators; null: none
};

// Drops nodes whose results are never read, and Identity nodes.
Result<TypedNet> prune(TypedNet net);
// Einsum becomes sums, permutations and products of matrices, which have faster kernels. It stays where extents are known only while it
// runs, where it takes an operand's diagonal, where what it would become does not run, and on devices that have a kernel of their own
// for Einsum where that multiplies without moving anything.
Result<TypedNet> lower_einsum(TypedNet net);
// Values whose inputs are all constants, and values whose content inference followed, become constants (within the limit folded_bytes).
Result<TypedNet> fold_constants(TypedNet net, Evaluator& evaluator, const CompilationTarget& target,
                                const Interruption* interruption = nullptr);
// Conv followed by BatchNormalization in inference form becomes Conv with scaled weights and a bias.
Result<TypedNet> fold_batch_normalization(TypedNet net);
// Replaces what the patterns of the registry's rewrite rules match (plugin/rewrite_rule.h), plugin by plugin in order of loading. A rule
// whose replacement has another type than what it replaces is an error that names it.
Result<TypedNet> apply_rules(TypedNet net);
// Pointwise operators behind a compute kernel that accepts them become its epilogue.
Result<TypedNet> fuse_epilogues(TypedNet net);
// Chains of pointwise operators become one heddle::Pointwise; so does a pointwise operator without a kernel of its own.
Result<TypedNet> fuse_pointwise(TypedNet net, bool chains = true);

// A value that is needed elsewhere than it lies goes through a heddle::Copy node, inputs and outputs of the net too. Runs last: a net on
// the host alone comes back as it was. Between two devices it goes straight where one reaches the other, else by way of the host.
Result<TypedNet> insert_copies(TypedNet net, const CompilationTarget& target);

// What every transform may ask for.
struct TransformContext {
  Evaluator& evaluator;
  const CompilationTarget& target;
  const TransformOptions& options;
};

struct Transform {
  const char* name;
  bool TransformOptions::*enabled;  // null: always
  std::function<Result<TypedNet>(TypedNet net, const TransformContext& context)> run;
};

// All of them, in the order in which they run.
std::span<const Transform> transforms();

// Runs a list of them. Where the target asks for checks (CompilationTarget::check_plans), the net is judged behind each: one that it broke
// is Code::internal and names the transform. Errors: the transforms'; cancelled, deadline_exceeded.
Result<TypedNet> run_transforms(TypedNet net, std::span<const Transform> list, const TransformContext& context);

// Runs them all.
Result<TypedNet> optimize(TypedNet net, Evaluator& evaluator, const CompilationTarget& target, const TransformOptions& options = {});

}  // namespace heddle
