// Which values of a net gradients go through, before any is emitted.
#pragma once

#include <cstddef>
#include <vector>

#include "base/ids.h"
#include "derive/polymorphic_types.h"
#include "net/net.h"

namespace heddle {

// Whether a gradient goes from the outputs of `node` to that input: it is a real value, and its port lets gradients through.
bool carries_gradient(const Node& node, size_t input, const PolymorphicTypes& types);
// Whether one comes from that output: it is a real value, and its port lets gradients through.
bool gives_gradient(const Node& node, size_t output, const PolymorphicTypes& types);
// heddle::ZeroGradient, which sends its input zeros.
bool sends_zeros(const Node& node);

// By value: whether it depends on one of `wanted`, through what carries gradients.
std::vector<bool> dependents(const Net& net, const PolymorphicTypes& types, const std::vector<ValueId>& wanted);
// By value: whether a gradient may arrive at it when one arrives at each of `from`. `depends`: of dependents().
std::vector<bool> reached_from(const Net& net, const PolymorphicTypes& types, const std::vector<bool>& depends,
                               const std::vector<ValueId>& from);

}  // namespace heddle
