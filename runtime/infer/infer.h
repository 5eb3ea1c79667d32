// infer: Net x shapes -> TypedNet. Computes the dtype and extents of every value, and the content of small values that decide extents.
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

// The facts about one net input that are known when a plan is made.
struct InputBinding {
  TensorType type;                      // dtype none: as the net declares
  std::shared_ptr<const Blob> content;  // for inputs that decide shapes; null: unknown
};

struct InferOptions {
  std::vector<InputBinding> inputs;                      // by position; may be shorter than net.inputs
  std::vector<std::pair<std::string, int64_t>> symbols;  // extents of symbolic dims; symbols are also bound by the inputs' shapes
  Evaluator* evaluator = nullptr;                        // null: no content is followed
  Limits limits;
  const Interruption* interruption = nullptr;  // null: cannot be interrupted
  bool contents_vary = false;  // of inputs without content, from run to run; false: content that decides shapes has to be given
};
// For a subnet that was inferred from the types that a plugin shows for its inputs, and the contents of small ones that have data. Returns
// ok where an operator may do without a subnet that failed so: its operators do not fit their inputs, or nothing runs them. Else returns
// the failure itself: an interruption, a limit or a placement rule concerns more than the subnet.
Status may_be_left_out(const Status& failure);
InferOptions subnet_options(std::span<const heddle_tensor* const> inputs, Evaluator* evaluator, const Limits& limits);

// `net` must be resolved. All findings are reported: dtype_mismatch, shape_mismatch, unbound_symbol (naming input and symbol), ... Pure.
Result<TypedNet> infer(Net net, const std::shared_ptr<const RegistrySnapshot>& registry, const InferOptions& options);
// Infers as far as possible: values that depend on a mistake have no dtype.
TypedNet infer_all(Net net, const std::shared_ptr<const RegistrySnapshot>& registry, const InferOptions& options, Findings& findings);

// The symbols in the extents of a net's inputs.
std::vector<std::string> symbol_names(const Net& net);

// Infers the types of a node's outputs, to check transforms. `evaluator`: for nets inside nets, null: none. Leaves the net unchanged.
Result<std::vector<TensorType>> inferred_types(TypedNet& net, NodeId node, Evaluator* evaluator);

// Infers one node that was added to `net` (its outputs' types are written). For transforms.
Status infer_node(TypedNet& net, NodeId node);

}  // namespace heddle
