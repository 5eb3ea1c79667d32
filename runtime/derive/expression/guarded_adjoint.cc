#include "derive/expression/guarded_adjoint.h"

#include <algorithm>

namespace heddle {

using expression::Opcode;

std::optional<Guard> GuardedAdjoints::within(Guard outer, int condition, bool holds) {
  if (const std::optional<double> known = builder_.number(condition)) {
    if ((*known != 0) == holds) return outer;
    return std::nullopt;
  }
  if (builder_.is(condition, Opcode::logical_not)) return within(outer, builder_.at(condition).a, !holds);
  for (Guard g = outer; g != unconditional; g = node(g).outer) {
    if (node(g).condition != condition) continue;
    if (node(g).holds == holds) return outer;
    return std::nullopt;
  }
  for (size_t k = 1; k < nodes_.size(); ++k)
    if (nodes_[k].outer == outer && nodes_[k].condition == condition && nodes_[k].holds == holds) return static_cast<Guard>(k);
  nodes_.push_back({outer, condition, holds, node(outer).depth + 1});
  return static_cast<Guard>(nodes_.size() - 1);
}

Guard GuardedAdjoints::common(Guard a, Guard b) const {
  while (a != b) {
    Guard& lower = node(a).depth < node(b).depth ? b : a;
    lower = node(lower).outer;
  }
  return a;
}

int GuardedAdjoints::choose(int value, Guard guard, Guard outer) {
  for (; node(guard).depth > node(outer).depth; guard = node(guard).outer) {
    const int zero = builder_.constant(0);
    value = node(guard).holds ? builder_.select(node(guard).condition, value, zero) : builder_.select(node(guard).condition, zero, value);
  }
  return value;
}

int GuardedAdjoints::truth_of(Guard guard, Guard outer) {
  int all = -1;
  for (; guard != outer; guard = node(guard).outer) {
    const Node& n = node(guard);
    const int own = n.holds ? n.condition : builder_.make(Opcode::logical_not, n.condition);
    all = all < 0 ? own : builder_.make(Opcode::logical_and, own, all);
  }
  return all;
}

bool GuardedAdjoints::are_sides_of_one_choice(Guard a, Guard b) const {
  const Node &of_a = node(a), &of_b = node(b);
  return a != b && of_a.depth == of_b.depth && of_a.outer == of_b.outer && of_a.condition == of_b.condition;
}

Guard GuardedAdjoints::child_towards(Guard guard, Guard outer) const {
  while (guard != outer && node(guard).outer != outer) guard = node(guard).outer;
  return guard;
}

int GuardedAdjoints::sum_of_values(const Adjoint& a, const Adjoint& b, Guard outer) {
  const Guard side_of_a = child_towards(a.guard, outer), side_of_b = child_towards(b.guard, outer);
  const bool one_choice = side_of_a != outer && side_of_b != outer && node(side_of_a).condition == node(side_of_b).condition;
  if (!one_choice) return builder_.add(choose(a.value, a.pending, outer), choose(b.value, b.pending, outer));
  const int of_a = choose(a.value, a.pending, side_of_a), of_b = choose(b.value, b.pending, side_of_b);
  const Node& side = node(side_of_a);
  return side.holds ? builder_.select(side.condition, of_a, of_b) : builder_.select(side.condition, of_b, of_a);
}

Adjoint GuardedAdjoints::added(const Adjoint& a, const Adjoint& b) {
  const Guard outer = common(a.guard, b.guard);
  const Guard pending = deeper(shallower(a.pending, outer), shallower(b.pending, outer));
  const int value = sum_of_values(a, b, outer);
  if (outer == a.guard || outer == b.guard || are_sides_of_one_choice(a.guard, b.guard)) return {value, outer, pending};
  const int either = builder_.make(Opcode::logical_or, truth_of(a.guard, outer), truth_of(b.guard, outer));
  const std::optional<Guard> guard = within(outer, either, true);
  return {value, guard.value_or(outer), pending};
}

// Adds the deepest term first, to the one that it shares most conditions with: so both sides of a choice are there when they are joined.
Adjoint GuardedAdjoints::sum(std::vector<Adjoint> terms) {
  while (terms.size() > 1) {
    size_t deepest = 0;
    for (size_t k = 1; k < terms.size(); ++k)
      if (node(terms[k].guard).depth > node(terms[deepest].guard).depth) deepest = k;
    // Among terms that share equally many, the other side of the last choice is preferred.
    const auto nearness = [&](size_t other) {
      const Guard a = terms[deepest].guard, b = terms[other].guard;
      return 2 * node(common(a, b)).depth + (are_sides_of_one_choice(a, b) ? 1 : 0);
    };
    size_t nearest = deepest == 0 ? 1 : 0;
    for (size_t k = nearest + 1; k < terms.size(); ++k)
      if (k != deepest && nearness(k) > nearness(nearest)) nearest = k;
    const auto [first, second] = std::minmax(deepest, nearest);
    terms[first] = added(terms[first], terms[second]);
    terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(second));
  }
  return terms.front();
}

}  // namespace heddle
