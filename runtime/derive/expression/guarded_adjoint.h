// Adjoints of a program with choices: the derivative of a value, and the conditions under which it has one.
//
// In select(c, f(x), g(x)) only one branch has a derivative. Were dy set to 0 for the other and then multiplied by g'(x), an infinite g'(x)
// would make NaN of it: 0 * inf. So an adjoint goes back through the branch unchanged, together with the conditions that guard it, and the
// select is put around it where it joins others or arrives at an input.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "derive/expression/expression_builder.h"

namespace heddle {

// Conditions that all hold, as a path from the root of a tree.
using Guard = int;
constexpr Guard unconditional = 0;

struct Adjoint {
  int value;
  Guard guard;    // where it doesn't hold the adjoint is zero, whatever `value` is
  Guard pending;  // on the way to `guard`: if this holds and `guard` doesn't, `value` is zero already
};

class GuardedAdjoints {
 public:
  explicit GuardedAdjoints(ExpressionBuilder& builder) : builder_(builder) {}

  // Returns `outer` and that `condition` is not zero (or is, if !holds). None: that is never so.
  std::optional<Guard> within(Guard outer, int condition, bool holds);
  // Returns the sum of at least one term.
  Adjoint sum(std::vector<Adjoint> terms);
  // Returns the value of the adjoint, and zero where its guard doesn't hold.
  int value_of(const Adjoint& adjoint) { return choose(adjoint.value, adjoint.pending, unconditional); }

 private:
  struct Node {
    Guard outer;
    int condition;
    bool holds;
    size_t depth;
  };

  const Node& node(Guard guard) const { return nodes_[static_cast<size_t>(guard)]; }
  Guard deeper(Guard a, Guard b) const { return node(a).depth < node(b).depth ? b : a; }
  Guard shallower(Guard a, Guard b) const { return node(a).depth < node(b).depth ? a : b; }
  Guard common(Guard a, Guard b) const;
  // Returns `value`, and zero where `outer` holds but not all of the conditions from there to `guard`.
  int choose(int value, Guard guard, Guard outer);
  // Returns, as a value, whether all conditions from `outer` to `guard` hold.
  int truth_of(Guard guard, Guard outer);
  bool are_sides_of_one_choice(Guard a, Guard b) const;
  // The step from `outer` on the way to `guard`.
  Guard child_towards(Guard guard, Guard outer) const;
  // The sum of the two values, valid where `outer` holds.
  int sum_of_values(const Adjoint& a, const Adjoint& b, Guard outer);
  // The sum of two adjoints.
  Adjoint added(const Adjoint& a, const Adjoint& b);

  ExpressionBuilder& builder_;
  std::vector<Node> nodes_ = {{unconditional, -1, true, 0}};
};

}  // namespace heddle
