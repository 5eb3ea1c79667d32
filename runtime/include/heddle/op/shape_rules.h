// Shape rules for declarations, and their helpers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/op/views.h"

namespace heddle {
namespace plugin {

// A rule for the shape of an output, for Op::out(). same_as() gives the output the dims of an input port.
struct ShapeRule {
  enum Kind { none, same, broadcast_all, rank_0 } kind = none;
  const char* port = nullptr;
};
inline ShapeRule same_as(const char* input_port) {
  return {ShapeRule::same, input_port};
}
// The NumPy-style broadcast of all inputs.
inline ShapeRule broadcast() {
  return {ShapeRule::broadcast_all, nullptr};
}

// The shape of a scalar: one element, rank 0.
inline ShapeRule scalar() {
  return {ShapeRule::rank_0, nullptr};
}

// Replaces `a` by the dims to which `a` and `b` broadcast by NumPy's rule; returns false if the two do not fit.
inline bool broadcast_dims(std::vector<int64_t>& a, Dims b) {
  const size_t rank = static_cast<size_t>(b.rank);
  if (rank > a.size()) a.insert(a.begin(), rank - a.size(), 1);
  const size_t shift = a.size() - rank;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t y = b.data[i];
    int64_t& x = a[shift + i];
    if (x == y || y == 1) continue;
    if (x != 1) return false;
    x = y;
  }
  return true;
}
inline std::string dims_text(Dims d) {
  std::string s = "[";
  for (int i = 0; i < d.rank; ++i) s += (i ? ", " : "") + std::to_string(d.data[i]);
  return s + "]";
}

}  // namespace plugin
}  // namespace heddle
