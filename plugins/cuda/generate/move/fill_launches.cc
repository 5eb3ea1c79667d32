#include "generate/move/fill_launches.h"

#include <type_traits>

#include "generate/dtype_names.h"
#include "shared/dtype_dispatch.h"
#include "shared/extent_rules.h"
#include "shared/scalar.h"

namespace heddle::cuda {

using plugin::Status;

Status FillLaunches::choose(const Operands& operands, bool varies, KernelSource* source) {
  varies_ = varies;
  for (uint32_t i = 0; i < host_operands(); ++i) varies_ = varies_ || !operands.is_constant(i);
  if (operands.writes_nothing() && !varies_) return {};
  const heddle_tensor& y = *operands.output(0);
  wide_ = varies_ || is_wide(y.element_count);
  KernelText text("fill", wide_);
  text.type("T", counts() ? stored_type(y.dtype) : unit_type(static_cast<int64_t>(plugin::byte_width(y.dtype))));
  text.constant("FLOATS", y.dtype == HEDDLE_F32 || y.dtype == HEDDLE_F64);
  all_parameters(operands, true, text.parameters);
  text.kernel("fill", kernel());
  source->contract = false;
  text.write({"move", "fill"}, source);
  return {};
}

Status FillLaunches::plan(const Operands& operands, LaunchPlan* plan) const {
  if (operands.writes_nothing()) return {};
  for (uint32_t i = 0; i < host_operands(); ++i)
    if (!operands.is_known(i)) return {};
  HEDDLE_PLUGIN_CHECK(check(operands));
  const int64_t units = blocks_of(operands.output(0)->element_count, together(operands));
  ParameterWriter writer(nullptr, &plan->add(0, move_threads, blocks_of(units, move_threads)));
  all_parameters(operands, false, writer);
  return {};
}

void FillLaunches::all_parameters(const Operands& operands, bool for_text, ParameterWriter& writer) const {
  writer.address("", "T", "y", Address::output, 0);
  writer.number("count", operands.output(0)->element_count);
  parameters(operands, for_text, writer);
}

// ---------------------------------------------------------------- ConstantOfShape

Status ConstantLaunches::check(const Operands& operands) const {
  return operators::check_planned({{"input", operands.input(0)}}, *operands.output(0),
                                  [&](operators::Extents* to) { return operators::constant_extents(*operands.input(0), to); });
}

void ConstantLaunches::parameters(const Operands& operands, bool, ParameterWriter& writer) const {
  const size_t width = plugin::byte_width(operands.output(0)->dtype);
  uint64_t bits = width == 8 ? value : value & ((uint64_t{1} << (8 * width)) - 1);
  for (size_t bytes = width; bytes < 8; bytes *= 2) bits |= bits << (8 * bytes);
  writer.number("value", static_cast<int64_t>(bits));
}

// ---------------------------------------------------------------- EyeLike

void EyeLaunches::parameters(const Operands& operands, bool, ParameterWriter& writer) const {
  const heddle_tensor& y = *operands.output(0);
  writer.number("columns", y.dims[1]);
  writer.number("column_divider", divider_of(y.dims[1], wide_));
  writer.number("k", k);
  writer.number("value", static_cast<int64_t>(operators::one_of(y.dtype)));
}

// ---------------------------------------------------------------- Range

Status RangeLaunches::check(const Operands& operands) const {
  const heddle_tensor &start = *operands.input(0), &limit = *operands.input(1), &delta = *operands.input(2);
  return operators::check_planned({{"start", &start}, {"limit", &limit}, {"delta", &delta}}, *operands.output(0),
                                  [&](operators::Extents* to) {
                                    to->push(0);
                                    return operators::with_dtype(start.dtype, [&](auto tag) -> Status {
                                      using N = typename decltype(tag)::type;
                                      if constexpr (std::is_arithmetic_v<N>) {
                                        const auto number = [](const heddle_tensor& t) { return *static_cast<const N*>(t.data); };
                                        return operators::range_count<N>(number(start), number(limit), number(delta), &to->values[0]);
                                      } else {
                                        return plugin::invalid("Range needs numbers");
                                      }
                                    });
                                  });
}

void RangeLaunches::parameters(const Operands& operands, bool for_text, ParameterWriter& writer) const {
  const heddle_dtype dtype = operands.output(0)->dtype;
  const auto write = [&](const char* name, const heddle_tensor& operand) {
    if (dtype == HEDDLE_F32 || dtype == HEDDLE_F64) {
      writer.number(name, for_text ? 0.0 : operators::number_at(operand, 0));
      return;
    }
    writer.number(name, for_text ? int64_t{0} : operators::with_dtype(dtype, [&operand](auto tag) -> int64_t {
                    using N = typename decltype(tag)::type;
                    if constexpr (std::is_integral_v<N>) return static_cast<int64_t>(*static_cast<const N*>(operand.data));
                    return 0;
                  }));
  };
  write("start", *operands.input(0));
  write("delta", *operands.input(2));
}

}  // namespace heddle::cuda
