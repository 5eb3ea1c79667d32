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
  // Of the operators that `net` has now; it adds to them. `types`: of its values. All three outlive it.
  ReversePass(Net& net, const RegistrySnapshot& registry, const PolymorphicTypes& types);
  ReversePass(const ReversePass&) = delete;
  ReversePass& operator=(const ReversePass&) = delete;

  // Says what gradients are wanted of. Once, before all that follows.
  void want(const std::vector<ValueId>& values);
  // Whether a value depends on something wanted.
  bool depends(ValueId id) const { return depends_[id.index]; }
  // A gradient that comes from outside; those of the value's readers are added to it. Of what depends on nothing wanted: it is ignored.
  Status seed(ValueId of, ValueId gradient);
  // Emits what gives gradients to all that depends on something wanted.
  Status run();
  // Whether any gradient has arrived there.
  bool any(ValueId of) const { return sums_[of.index].any(); }
  // The sum of all that arrived, which is emitted once and is the value's only part then.
  Result<GradientPart> total_of(ValueId of, GradientSum::Form form);

  // What is emitted for the value itself, as its sum, has its name and its device from now on.
  void derive_from_value(ValueId id);
  Emitter& emitter() { return emitter_; }
  size_t forward_nodes() const { return forward_nodes_; }

 private:
  Status seed_zeros(NodeId id);
  Status visit(NodeId id);
  // What the reader `from` gives a value, into the value's sum. `alone`: it gives nothing else.
  Status add(const GradientPart& part, ValueId of, NodeId from, bool alone);

  Net& net_;
  const PolymorphicTypes& types_;
  Emitter emitter_;
  const size_t forward_nodes_;
  std::vector<bool> depends_;      // by value
  std::vector<GradientSum> sums_;  // by value of the net that was given
};

}  // namespace heddle
