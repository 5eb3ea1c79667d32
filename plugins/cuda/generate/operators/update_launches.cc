#include "generate/operators/update_launches.h"

#include <string>

#include "generate/dtype_names.h"

namespace heddle::cuda {

using plugin::Status;

Status UpdateLaunches::choose(const Operands& operands, bool varies, KernelSource* source) {
  const heddle_tensor& y = *operands.output(0);
  if (operands.writes_nothing() && !varies) return {};
  if (of_ == Update::assign) {
    write_bytes_copy(source, varies || is_wide(static_cast<int64_t>(y.byte_size)));
    return {};
  }
  KernelText text("update", varies || is_wide(y.element_count));
  parameters(operands, text.parameters);
  if (of_ == Update::increment) {
    text.kernel("update", "count_on");
  } else {
    const bool sgd = of_ == Update::sgd;
    text.type("T", stored_type(y.dtype));
    text.type("C", compute_type(y.dtype));
    text.function("C amount([[maybe_unused]] const Parameters& p)", sgd ? "return (C)To<double>::from(p.rate[0]);" : "return (C)1;");
    text.function("C next(C variable, C value, [[maybe_unused]] C amount)",
                  sgd ? "return op_sub(variable, op_mul(amount, value));" : "return op_add(variable, value);");
    text.kernel("update", "update<F>");
  }
  source->contract = false;
  text.write({"some", "update"}, source);
  return {};
}

Status UpdateLaunches::plan(const Operands& operands, LaunchPlan* plan) const {
  if (operands.writes_nothing()) return {};
  if (of_ == Update::assign) {
    plan_bytes_copy(operands, 0, plan, 1);
    return {};
  }
  const int64_t packs = blocks_of(static_cast<int64_t>(operands.output(0)->byte_size), widest_unit);
  ParameterWriter writer(nullptr, &plan->add(0, move_threads, blocks_of(packs, move_threads)));
  parameters(operands, writer);
  return {};
}

void UpdateLaunches::parameters(const Operands& operands, ParameterWriter& writer) const {
  const heddle_tensor& y = *operands.output(0);
  const char* const type = stored_type(y.dtype);
  writer.address("", type, "y", Address::output, 0);
  writer.address("const ", type, "x", Address::input, 0);
  if (of_ == Update::increment) return;
  writer.address("const ", type, "value", Address::input, 1);
  if (of_ == Update::sgd) writer.address("const ", stored_type(operands.input(2)->dtype), "rate", Address::input, 2);
  writer.number("count", y.element_count);
}

}  // namespace heddle::cuda
