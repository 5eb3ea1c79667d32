#include "generate/operators/update_launches.h"

#include <string>

#include "generate/dtype_names.h"

namespace heddle::cuda {

using plugin::Status;

Status UpdateLaunches::choose(const Operands& operands, bool varies, KernelSource* source) {
  const heddle_tensor& y = *operands.output(0);
  if (operands.writes_nothing() && !varies) return {};
  KernelText text("update", varies || is_wide(static_cast<int64_t>(of_ == Update::assign ? y.byte_size : y.element_count)));
  parameters(operands, text.parameters);
  text.function("bool applies([[maybe_unused]] const Parameters& p)",
                operands.input(apply_port()) ? "return p.apply->byte != 0;" : "return true;");
  if (of_ == Update::increment) {
    text.kernel("update", "count_on<F>");
  } else if (of_ == Update::assign) {
    text.kernel("update", "assign<F>");
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
  text.write({"fault", "some", "move", "update"}, source);
  return {};
}

Status UpdateLaunches::plan(const Operands& operands, LaunchPlan* plan) const {
  if (operands.writes_nothing()) return {};
  const int64_t packs = blocks_of(static_cast<int64_t>(operands.output(0)->byte_size), widest_unit);
  ParameterWriter writer(nullptr, &plan->add(0, move_threads, blocks_of(packs, move_threads)));
  parameters(operands, writer);
  return {};
}

void UpdateLaunches::parameters(const Operands& operands, ParameterWriter& writer) const {
  const heddle_tensor& y = *operands.output(0);
  const bool assigns = of_ == Update::assign;
  const char* const type = assigns ? "u8" : stored_type(y.dtype);
  writer.holds();
  if (operands.input(apply_port())) writer.address("const ", "boolean", "apply", Address::input, apply_port());
  writer.address("", type, "y", Address::output, 0);
  writer.address("const ", type, "x", Address::input, assigns ? 1 : 0);
  if (assigns) writer.number("bytes", static_cast<int64_t>(y.byte_size));
  if (assigns || of_ == Update::increment) return;
  writer.address("const ", type, "value", Address::input, 1);
  if (of_ == Update::sgd) writer.address("const ", stored_type(operands.input(2)->dtype), "rate", Address::input, 2);
  writer.number("count", y.element_count);
}

}  // namespace heddle::cuda
