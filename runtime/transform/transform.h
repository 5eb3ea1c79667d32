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
  const Interruption* interruption = nullptr;  // polled between transforms and between folded operators; null: none
};

// Drops nodes whose results are never read, and Identity nodes.
Result<TypedNet> prune(TypedNet net);
// Replaces Einsum by sums, permutations and products of matrices, which have faster kernels. It stays where extents are known only while it
// runs, where its only operand names a label twice (of several operands, each such diagonal becomes an Einsum of its own), where the
// replacement does not run, and on devices that have a kernel of their own for Einsum where that multiplies without moving anything.
Result<TypedNet> lower_einsum(TypedNet net);
// Makes constants of values whose inputs are all constants, and of values whose content inference followed (within the limit folded_bytes).
Result<TypedNet> fold_constants(TypedNet net, Evaluator& evaluator, const CompilationTarget& target,
                                const Interruption* interruption = nullptr);
// Turns Conv followed by BatchNormalization in inference form into Conv with scaled weights and a bias.
Result<TypedNet> fold_batch_normalization(TypedNet net);
// Replaces the patterns of the registry's rewrite rules (plugin/rewrite_rule.h), plugin by plugin in order of loading. A rule whose
// replacement has another type than the pattern's output is an error that names it.
Result<TypedNet> apply_rules(TypedNet net);
// Makes pointwise operators after a compute kernel that accepts them its epilogue.
Result<TypedNet> fuse_epilogues(TypedNet net);
// Fuses chains of pointwise operators into one heddle::Pointwise, and converts each pointwise operator without a kernel of its own.
Result<TypedNet> fuse_pointwise(TypedNet net, bool chains = true);

// Inserts a heddle::Copy node for each value that is needed elsewhere than it lies, inputs and outputs of the net too. Runs last: a net on
// the host alone is returned unchanged. A copy between two devices is direct where one reaches the other, else by way of the host.
Result<TypedNet> insert_copies(TypedNet net, const CompilationTarget& target);

// The arguments available to every transform.
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

// Returns all transforms, in the order in which they run.
std::span<const Transform> transforms();

// Runs the transforms of `list`. With CompilationTarget::check_plans the net is checked after each: a broken net is Code::internal and
// names the transform. Errors: the transforms'; cancelled, deadline_exceeded.
Result<TypedNet> run_transforms(TypedNet net, std::span<const Transform> list, const TransformContext& context);

// Runs all transforms.
Result<TypedNet> optimize(TypedNet net, Evaluator& evaluator, const CompilationTarget& target, const TransformOptions& options = {});

}  // namespace heddle
