#include "generate/operators/combine_launches.h"

#include "generate/dtype_names.h"
#include "generate/kernel_text.h"

namespace heddle::cuda {

using operators::Reduction;
using plugin::Status;

namespace {

constexpr unsigned int combine_threads = 256;

// The body of next(left, right).
const char* body_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::prod:
      return "return op_mul(left, right);";
    // Equal numbers, such as zeros of both signs, give the left one.
    case Reduction::min:
      return "return op_min(right, left);";
    case Reduction::max:
      return "return op_max(right, left);";
    default:  // the sum is also that of the mean
      return "return op_add(left, right);";
  }
}

}  // namespace

Status CombineLaunches::choose(const Operands& operands, bool varies, KernelSource* source) {
  if (operands.writes_nothing() && !varies) return {};
  const heddle_tensor& y = *operands.output(0);
  KernelText text("combine", varies || is_wide(y.element_count));
  parameters(operands, text.parameters);
  text.type("T", stored_type(y.dtype));
  text.type("C", compute_type(y.dtype));
  text.function("C next(C left, C right)", body_of(reduction));
  text.function("C last(C value, [[maybe_unused]] const Parameters& p)",
                reduction == Reduction::mean ? "return op_div(value, (C)p.parts);" : "return value;");
  text.kernel("", "combine<F>");
  source->contract = false;
  text.write({"combine"}, source);
  return {};
}

Status CombineLaunches::plan(const Operands& operands, LaunchPlan* plan) const {
  if (operands.writes_nothing()) return {};
  ParameterWriter writer(nullptr, &plan->add(0, combine_threads, blocks_of(operands.output(0)->element_count, combine_threads)));
  parameters(operands, writer);
  return {};
}

void CombineLaunches::parameters(const Operands& operands, ParameterWriter& writer) const {
  const heddle_tensor& y = *operands.output(0);
  const char* const type = stored_type(y.dtype);
  writer.address("", type, "y", Address::output, 0);
  writer.address("const ", type, "own", Address::input, 0);
  writer.address("const ", type, "others", Address::input, 1);
  writer.number("stride", y.element_count);
  writer.number("count", y.element_count);
  writer.number("parts", parts);
  writer.number("self", self);
}

}  // namespace heddle::cuda
