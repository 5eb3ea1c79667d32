// infer: Net x shapes -> TypedNet. The dtype and extents of every value, and the content of small values that decide extents.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/text/findings.h"
#include "base/text/limit_names.h"
#include "base/threads/interruption.h"
#include "heddle/status.h"
#include "net/evaluator.h"
#include "net/typed_net.h"
#include "plugin/registry.h"

namespace heddle {

// What is known about one net input when a plan is made.
struct InputBinding {
  TensorType type;                      // dtype none: as the net declares
  std::shared_ptr<const Blob> content;  // for inputs that decide shapes; null: unknown
};

struct InferOptions {
  std::vector<InputBinding> inputs;                      // by position; may be shorter than net.inputs
  std::vector<std::pair<std::string, int64_t>> symbols;  // extents of symbolic dims; symbols are also bound by the inputs' shapes
  Evaluator* evaluator = nullptr;                        // null: no content is followed
  Limits limits;
  const Interruption* interruption = nullptr;  // null: none
  bool contents_vary = false;                  // of inputs without content, from run to run; else what decides shapes has to be given
};
// For a subnet, from what a plugin shows for its inputs: types, and the contents of small ones that have data.
// Ok where an operator may do without a subnet that failed so: its operators do not fit what they are given, or nothing runs them. Else the
// failure itself: what was stopped, is over a limit or was placed against a rule is no matter of the subnet alone.
Status may_be_left_out(const Status& failure);
InferOptions subnet_options(std::span<const heddle_tensor* const> inputs, Evaluator* evaluator, const Limits& limits);

// `net` must be resolved. All findings are reported: dtype_mismatch, shape_mismatch, unbound_symbol (naming input and symbol), ... Pure.
Result<TypedNet> infer(Net net, const std::shared_ptr<const RegistrySnapshot>& registry, const InferOptions& options);
// The same as far as it goes: what is behind a mistake has no dtype.
TypedNet infer_all(Net net, const std::shared_ptr<const RegistrySnapshot>& registry, const InferOptions& options, Findings& findings);

// Symbols of the extents of a net's inputs.
std::vector<std::string> symbol_names(const Net& net);

// What inference says of a node's outputs, for the judge of transforms. `evaluator`: for nets inside nets, null: none. The net is as before
// when it returns.
Result<std::vector<TensorType>> inferred_types(TypedNet& net, NodeId node, Evaluator* evaluator);

// Infers one node that was added to `net` (its outputs' types are written). For transforms.
Status infer_node(TypedNet& net, NodeId node);

}  // namespace heddle
