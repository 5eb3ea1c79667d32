// What the readers of one value give it: the sum of all, in the order of the readers.
#pragma once

#include <string>
#include <vector>

#include "derive/node_gradient.h"

namespace heddle {

class GradientSum {
 public:
  // Of the reader `from`; in any order.
  void add(GradientPart part, NodeId from) { parts_.push_back({part, from}); }
  // Of a loss, where the value is one.
  void add_seed(ValueId ones) { parts_.push_back({{ones, {}, {}, false, false}, NodeId()}); }
  bool any() const { return !parts_.empty(); }

  enum class Form { as_given, dense };
  // Emits the sum. `of`: the value. Errors: unsupported, where some are by rows, others not, and `form` leaves it so, or where rows are
  // taken on several devices.
  Result<GradientPart> total(const Net& net, ValueId of, const PolymorphicTypes& types, Form form, Emitter& emitter);

 private:
  struct Part {
    GradientPart part;
    NodeId from;  // invalid: a loss
  };
  Status check_rows(const Net& net, ValueId of) const;
  Result<GradientPart> joined(const Net& net, ValueId of, const PolymorphicTypes& types, Emitter& emitter) const;

  std::vector<Part> parts_;
};

}  // namespace heddle
