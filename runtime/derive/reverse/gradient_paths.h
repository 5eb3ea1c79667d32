// Which values of a net gradients go through, determined before any are emitted.
#pragma once

#include <cstddef>
#include <vector>

#include "base/ids.h"
#include "derive/polymorphic_types.h"
#include "net/net.h"

namespace heddle {

// Whether a gradient goes from the outputs of `node` to that input: the input is a real value, and its port lets gradients through.
bool carries_gradient(const Node& node, size_t input, const PolymorphicTypes& types);
// Whether a gradient comes from that output: it is a real value, and its port lets gradients through.
bool gives_gradient(const Node& node, size_t output, const PolymorphicTypes& types);
// Whether `node` is heddle::ZeroGradient, which gives its input a gradient of zeros.
bool sends_zeros(const Node& node);

// By value: whether it depends on one of `wanted`, through nodes that carry gradients.
std::vector<bool> dependents(const Net& net, const PolymorphicTypes& types, const std::vector<ValueId>& wanted);
// By value: whether a gradient may arrive at it when one arrives at each of `from`. `depends`: the result of dependents().
std::vector<bool> reached_from(const Net& net, const PolymorphicTypes& types, const std::vector<bool>& depends,
                               const std::vector<ValueId>& from);

}  // namespace heddle
