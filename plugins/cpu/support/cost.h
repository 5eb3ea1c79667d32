// What families of operators cost, for Op::cost: so many operations for each element.
#pragma once

#include "heddle/op.h"

namespace heddle::cpu {

template <int operations>
void per_input_element(plugin::CostContext& context) {
  context.set_flops(operations * context.elements(0));
}

}  // namespace heddle::cpu
