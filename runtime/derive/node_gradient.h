// The gradient of one node: what it emits, as its operator declares it.
#pragma once

#include <optional>
#include <vector>

#include "derive/emitter.h"
#include "derive/polymorphic_types.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

// The gradient of one value from one of its readers: a tensor of its shape, or rows of it.
struct GradientPart {
  ValueId dense;
  ValueId indices{}, values{};  // of a gradient by rows: dense is invalid then
  bool unique = false, sorted = false;
  // True if `dense` has zeros for elements that a choice of the forward (Where, a select) has not taken. Factors further back may be
  // infinite or a NaN there, and must not show in the result.
  bool chosen = false;
  bool any() const { return dense.valid() || values.valid(); }
  bool by_rows() const { return values.valid(); }
};

struct NodeGradientCall {
  const Net& net;  // the emitter adds to it
  NodeId node;
  const PolymorphicTypes& types;          // of the net before anything was emitted
  std::vector<ValueId> output_gradients;  // invalid: none arrives
  std::vector<bool> wanted;               // by input: it is a real value whose gradient is needed
  bool chosen = false;                    // every output gradient that arrives is: GradientPart::chosen
  const Node& forward() const { return net[node]; }
};

// How an operator declares its gradient.
enum class GradientForm { none, pointwise, nodes, callback, subnets };
GradientForm gradient_form(const Node& node);

// Returns the gradients by input. Errors: unsupported, naming the node, where the operator has no gradient; the errors of its gradient.
Result<std::vector<GradientPart>> node_gradient(const NodeGradientCall& call, Emitter& emitter);

// The four forms: the symbolic derivative of the expression, the operators that the schema lists, those that a callback builds, and the
// gradients of the subnets.
Result<std::vector<GradientPart>> pointwise_gradient(const NodeGradientCall& call, Emitter& emitter);
Result<std::vector<GradientPart>> listed_gradient(const NodeGradientCall& call, Emitter& emitter);
Result<std::vector<GradientPart>> callback_gradient(const NodeGradientCall& call, Emitter& emitter);
Result<std::vector<GradientPart>> if_gradient(const NodeGradientCall& call, Emitter& emitter);
Result<std::vector<GradientPart>> scan_gradient(const NodeGradientCall& call, Emitter& emitter);
Result<std::vector<GradientPart>> loop_gradient(const NodeGradientCall& call, Emitter& emitter);

// Emits the sum of `value` over the axes that were spread.
Result<ValueId> sum_over(Emitter& emitter, ValueId value, const PolymorphicTypes::Spread& spread);
// Emits a tensor of that dtype, all of whose elements are `number`, of the shape of `like`, which is `shape` where every run has the same.
Result<ValueId> filled(Emitter& emitter, DType dtype, const std::optional<Shape>& shape, ValueId like, double number);
// Emits a tensor of the shape and dtype of `like`, all of whose elements are `number`.
Result<ValueId> filled_like(Emitter& emitter, const PolymorphicTypes& types, ValueId like, double number);

}  // namespace heddle
