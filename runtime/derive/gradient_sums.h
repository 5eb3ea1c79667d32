// The sum of the gradients that the readers of one value give it, added up as they arrive: a part needs no memory once it is in the sum.
#pragma once

#include <string>
#include <vector>

#include "derive/node_gradient.h"

namespace heddle {

class GradientSum {
 public:
  // Adds a dense part (not by rows) to the sum so far, by operators that `emitter` emits now. The order of additions is that of the calls.
  // `from`: the reader; invalid: a loss. `alone`: nothing else was emitted for that reader that is still to be read.
  Status add(const Net& net, const GradientPart& part, NodeId from, bool alone, Emitter& emitter);
  // Adds a part by rows, which is kept until total().
  void add_rows(GradientPart part, NodeId from) { rows_.push_back({part, from}); }
  bool any() const { return dense_.valid() || !rows_.empty(); }

  enum class Form { as_given, dense };
  // Emits the remaining additions. `of`: the value. Afterwards the result is the only part. Errors: unsupported, where some parts are by
  // rows, others not, and `form` leaves it so, or where rows are taken on several devices.
  Result<GradientPart> total(const Net& net, ValueId of, const PolymorphicTypes& types, Form form, Emitter& emitter);

 private:
  struct Rows {
    GradientPart part;
    NodeId from;  // invalid: a sum that total() made
  };
  Status check_rows(const Net& net, ValueId of) const;
  Result<GradientPart> joined_rows(const Net& net, const PolymorphicTypes& types, Emitter& emitter) const;

  ValueId dense_;       // the sum so far of all dense parts
  bool chosen_ = true;  // whether all of them are: GradientPart::chosen
  NodeId dense_from_;   // the first, in program order, of the readers in it
  std::vector<Rows> rows_;
};

}  // namespace heddle
