// ReversePass: gradients of the values of one net, from its last operator to its first. The net may be one inside an operator.
#pragma once

#include <vector>

#include "derive/emitter.h"
#include "derive/gradient_sums.h"
#include "derive/polymorphic_types.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

class ReversePass {
 public:
  // Differentiates the operators that `net` has now, and adds operators to it. `types`: of its values. All three must outlive it.
  ReversePass(Net& net, const RegistrySnapshot& registry, const PolymorphicTypes& types);
  ReversePass(const ReversePass&) = delete;
  ReversePass& operator=(const ReversePass&) = delete;

  // Sets the values whose gradients are wanted. Must be called once, before all that follows.
  void want(const std::vector<ValueId>& values);
  // Whether a value depends on something wanted.
  bool depends(ValueId id) const { return depends_[id.index]; }
  // Adds a gradient from outside; those of the value's readers are added to it. Ignored for a value that depends on nothing wanted.
  Status seed(ValueId of, ValueId gradient);
  // Emits the gradients of all values that depend on something wanted.
  Status run();
  // Whether any gradient has arrived at the value.
  bool any(ValueId of) const { return sums_[of.index].any(); }
  // Returns the sum of all gradients that arrived, which is emitted once and is then the value's only part.
  Result<GradientPart> total_of(ValueId of, GradientSum::Form form);

  // Makes the following nodes derive from the value itself, as its sum does: they have its name and its device.
  void derive_from_value(ValueId id);
  Emitter& emitter() { return emitter_; }
  size_t forward_nodes() const { return forward_nodes_; }

 private:
  Status seed_zeros(NodeId id);
  Status visit(NodeId id);
  // Adds the gradient that the reader `from` gives a value to the value's sum. `alone`: the reader gives nothing else.
  Status add(const GradientPart& part, ValueId of, NodeId from, bool alone);

  Net& net_;
  const PolymorphicTypes& types_;
  Emitter emitter_;
  const size_t forward_nodes_;
  std::vector<bool> depends_;      // by value
  std::vector<GradientSum> sums_;  // by value of the net that was given
};

}  // namespace heddle
