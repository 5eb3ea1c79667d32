// Shape rules and gradients that collectives share.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "support/cpu_api.h"

namespace heddle::cpu {

inline constexpr heddle_dtype_set reduced_dtypes = dtypes<f16, bf16, float, double, int32_t, int64_t>();

// Each output has the shape of that input.
inline Status infer_same(InferContext& context) {
  for (uint32_t i = 0; i < context.output_count(); ++i) context.set_dims(i, context.dims(i));
  return {};
}

// Fails unless the attribute "reduction" is one of those that have a gradient.
inline Status check_differentiable(const GradientContext& g, std::initializer_list<const char*> reductions) {
  const std::string reduction = g.attributes().s("reduction");
  std::string known;
  for (const char* const name : reductions) {
    if (reduction == name) return {};
    known += (known.empty() ? "" : " and ") + std::string(name);
  }
  return unsupported("the reduction " + reduction + " has no gradient, only " + known);
}

// The gradients of the inputs are what the collective `type` makes of those of the outputs, of all in one step, and then the pointwise
// program `after`, if there is one.
inline Status give_collective(GradientContext& g, const char* type, std::initializer_list<GradientAttribute> attributes,
                              const std::string& after = {}) {
  std::vector<uint32_t> inputs;
  std::vector<GradientValue> gradients;
  for (uint32_t i = 0; i < g.output_count(); ++i) {
    if (!g.dy(i)) continue;
    inputs.push_back(i);
    gradients.push_back(g.dy(i));
  }
  if (inputs.empty()) return {};
  const std::vector<GradientValue> dx = g.emit_all(type, gradients, static_cast<uint32_t>(gradients.size()), attributes, "heddle");
  for (size_t i = 0; i < inputs.size(); ++i)
    g.give(inputs[i], after.empty() ? dx[i] : g.emit("Pointwise", {dx[i]}, {{"program", after}}, "heddle"));
  return {};
}

}  // namespace heddle::cpu
