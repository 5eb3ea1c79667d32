// What the readers of one value give it, added up as it arrives: a reader's gradient needs no memory once it is in the sum.
#pragma once

#include <string>
#include <vector>

#include "derive/node_gradient.h"

namespace heddle {

class GradientSum {
 public:
  // Adds a part of the whole shape to the sum so far, by operators that `emitter` emits now. The result's order of additions is that of
  // the calls. `part`: not by rows. `from`: the reader; invalid: a loss. `alone`: nothing else was emitted for that reader that is still
  // to be read.
  Status add(const Net& net, const GradientPart& part, NodeId from, bool alone, Emitter& emitter);
  // Parts by rows are kept until total().
  void add_rows(GradientPart part, NodeId from) { rows_.push_back({part, from}); }
  bool any() const { return dense_.valid() || !rows_.empty(); }

  enum class Form { as_given, dense };
  // Emits what is left to be added. `of`: the value. Errors: unsupported, where some parts are by rows, others not, and `form` leaves it
  // so, or where rows are taken on several devices. The result is the only part from then on.
  Result<GradientPart> total(const Net& net, ValueId of, const PolymorphicTypes& types, Form form, Emitter& emitter);

 private:
  struct Rows {
    GradientPart part;
    NodeId from;  // invalid: a sum that total() made
  };
  Status check_rows(const Net& net, ValueId of) const;
  Result<GradientPart> joined_rows(const Net& net, const PolymorphicTypes& types, Emitter& emitter) const;

  ValueId dense_;       // the sum of all parts of the whole shape so far
  bool chosen_ = true;  // of all of them: GradientPart::chosen
  NodeId dense_from_;   // the first, in program order, of the readers in it
  std::vector<Rows> rows_;
};

}  // namespace heddle
