// The gradient of one node: what it emits, by what its operator says of it.
#pragma once

#include <optional>
#include <vector>

#include "derive/emitter.h"
#include "derive/polymorphic_types.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

// The gradient of one value as one reader of it gives it: a tensor of its shape, or rows of it.
struct GradientPart {
  ValueId dense;
  ValueId indices{}, values{};  // of rows: dense is invalid then
  bool unique = false, sorted = false;
  // Of `dense`: it has zeros for what a choice of the forward (Where, a select) has not taken. What it is multiplied by further back may
  // be infinite or a NaN there, and is not to be seen.
  bool chosen = false;
  bool any() const { return dense.valid() || values.valid(); }
  bool by_rows() const { return values.valid(); }
};

struct NodeGradientCall {
  const Net& net;  // which the emitter adds to
  NodeId node;
  const PolymorphicTypes& types;          // of what was there before anything was emitted
  std::vector<ValueId> output_gradients;  // invalid: none arrives
  std::vector<bool> wanted;               // by input: a real value whose gradient is needed
  bool chosen = false;                    // of every output gradient that arrives: GradientPart::chosen
  const Node& forward() const { return net[node]; }
};

// How the gradient of an operator is had.
enum class GradientForm { none, pointwise, nodes, callback, subnets };
GradientForm gradient_form(const Node& node);

// By input. Errors: unsupported, where the operator has none, naming the node; what its gradient says.
Result<std::vector<GradientPart>> node_gradient(const NodeGradientCall& call, Emitter& emitter);

// Each form: the symbolic derivative of its expression, the operators that its schema lists, what its callback builds, and the gradients of
// its subnets.
Result<std::vector<GradientPart>> pointwise_gradient(const NodeGradientCall& call, Emitter& emitter);
Result<std::vector<GradientPart>> listed_gradient(const NodeGradientCall& call, Emitter& emitter);
Result<std::vector<GradientPart>> callback_gradient(const NodeGradientCall& call, Emitter& emitter);
Result<std::vector<GradientPart>> if_gradient(const NodeGradientCall& call, Emitter& emitter);
Result<std::vector<GradientPart>> scan_gradient(const NodeGradientCall& call, Emitter& emitter);
Result<std::vector<GradientPart>> loop_gradient(const NodeGradientCall& call, Emitter& emitter);

// The sum of `value` over what was spread.
Result<ValueId> sum_over(Emitter& emitter, ValueId value, const PolymorphicTypes::Spread& spread);
// A tensor of that dtype and of the shape of `like`, which is `shape` where every run has the same, all of whose elements are `number`.
Result<ValueId> filled(Emitter& emitter, DType dtype, const std::optional<Shape>& shape, ValueId like, double number);
// A tensor of the shape and dtype of `like`, all of whose elements are `number`.
Result<ValueId> filled_like(Emitter& emitter, const PolymorphicTypes& types, ValueId like, double number);

}  // namespace heddle
