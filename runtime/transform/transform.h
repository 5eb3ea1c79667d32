// The transforms: functions from TypedNet to TypedNet. Same net, same bytes out: no clock, no randomness, no globals.
//
// `optimize` runs them in order; each can be run and tested alone. Constant folding takes an Evaluator, nothing else runs a kernel.
#pragma once

#include <string>

#include "base/findings.h"
#include "base/interruption.h"
#include "base/limits.h"
#include "heddle/status.h"
#include "net/evaluator.h"
#include "net/typed_net.h"

namespace heddle {

struct TransformOptions {
  bool fold_constants = true;
  bool fold_batch_normalization = true;
  bool apply_rules = true;
  bool fuse_epilogues = true;
  bool fuse_pointwise = true;
  std::string default_device = "cpu:0";
  Limits limits;
  const Interruption* interruption = nullptr;  // asked between transforms and between folded operators; null: none
};

// Drops nodes whose results nobody reads and Identity nodes.
Result<TypedNet> prune(TypedNet net);
// Values whose inputs are all constants, and values whose content inference followed, become constants (within limits.folded_bytes).
Result<TypedNet> fold_constants(TypedNet net, Evaluator& evaluator, const Limits& limits, const Interruption* interruption = nullptr);
// Conv followed by BatchNormalization in inference form becomes Conv with scaled weights and a bias.
Result<TypedNet> fold_batch_normalization(TypedNet net);
// Replaces what the patterns of the registry's rewrite rules match (plugin/rewrite_rule.h), plugin by plugin in order of loading. A rule
// whose replacement has another type than what it replaces is an error that names it.
Result<TypedNet> apply_rules(TypedNet net);
// Pointwise operators behind a compute kernel that accepts them become its epilogue.
Result<TypedNet> fuse_epilogues(TypedNet net, const std::string& default_device);
// Chains of pointwise operators become one heddle::Pointwise; so does a pointwise operator without a kernel of its own.
Result<TypedNet> fuse_pointwise(TypedNet net, const std::string& default_device, bool chains = true);

// Gives every operator that names no device the default one; with `fall_back`, those that do not run there become the host's, with a
// warning each. Spells names one way. Runs before verify.
TypedNet place(TypedNet net, const std::string& default_device, bool fall_back, Findings& findings);
// Whether devices of this kind have a kernel for heddle::Pointwise.
bool runs_pointwise(const TypedNet& net, const std::string& device);
// A value that is needed elsewhere than it lies goes through a heddle::Copy node, inputs and outputs of the net too. Runs last: a net on
// the host alone comes back as it was.
Result<TypedNet> insert_copies(TypedNet net, const std::string& default_device);

Result<TypedNet> optimize(TypedNet net, Evaluator& evaluator, const TransformOptions& options);

}  // namespace heddle
