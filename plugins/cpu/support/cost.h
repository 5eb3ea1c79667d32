// Costs of operator families, for Op::cost: a number of operations for each element.
#pragma once

#include "heddle/op.h"

namespace heddle::cpu {

template <int operations>
void per_input_element(plugin::CostContext& context) {
  context.set_flops(operations * context.elements(0));
}

}  // namespace heddle::cpu
