#include "context/value_views.h"

#include <fmt/format.h>

#include <cstring>

#include "base/text/text.h"

namespace heddle {

ValueViews::ValueViews(const Plan& plan, const ContextMemory& memory, VariableStore* variables)
    : plan_(plan), memory_(memory), variables_(variables) {
  extents_.assign(plan.extent_slots, 0);  // 0 is within every bound
  views_.reserve(plan.values.size());
  for (uint32_t i = 0; i < plan.values.size(); ++i) {
    const PlanValue& value = plan.values[i];
    heddle_tensor view = tensor_view(value.type.dtype, value.type.shape, home(value));
    view.layout = value.layout;
    view.extent_axis = value.type.bounded_axis;
    if (value.place.device != 0) view.space = HEDDLE_SPACE_DEVICE;
    if (value.extent_slot >= 0) view.extent = &extents_[static_cast<size_t>(value.extent_slot)];
    if (value.place.kind == MemoryPlace::Kind::constant) view.flags = HEDDLE_TENSOR_CONSTANT;
    add(i, view);
  }
  // Views grow while operands are looked up: collect indices first, pointers afterwards.
  std::vector<uint32_t> indices;
  for (const PlanStep& step : plan.steps)
    for (const auto* list : {&step.inputs, &step.outputs})
      for (const Operand& operand : *list) indices.push_back(operand.value.valid() ? view_of(operand) : UINT32_MAX);
  operands_.reserve(indices.size());
  for (const uint32_t index : indices) operands_.push_back(index == UINT32_MAX ? nullptr : &views_[index]);
}

void ValueViews::add(uint32_t value, const heddle_tensor& view) {
  const MemoryPlace& at = plan_.values[value].place;
  if (at.kind == MemoryPlace::Kind::arena) arena_views_.push_back({size(), at.device, at.offset});
  views_.push_back(view);
}

// Returns the value's own view, or adds one if a step reads the bytes under an equivalent layout.
uint32_t ValueViews::view_of(const Operand& operand) {
  const uint32_t own = operand.value.index;
  heddle_tensor view = views_[own];
  if (plan_.values[own].layout == operand.layout) return own;
  view.layout = operand.layout;
  add(own, view);
  others_.push_back(own);
  return size() - 1;
}

std::byte* ValueViews::home(const PlanValue& value) const {
  const MemoryPlace& at = value.place;
  switch (at.kind) {
    case MemoryPlace::Kind::arena:
      return memory_.arena(at.device) + at.offset;
    case MemoryPlace::Kind::constant:
      if (at.device != 0) return static_cast<std::byte*>(plan_.devices[at.device - 1u].constants[at.index]->get());
      return const_cast<std::byte*>(plan_.constants[at.index]->data);
    case MemoryPlace::Kind::variable:
      if (at.device != 0) return variables_->data_on(at.index, *plan_.devices[at.device - 1u].device);
      return variables_->data(at.index);
    default:
      return nullptr;
  }
}

void ValueViews::move() {
  for (const ArenaView& v : arena_views_) views_[v.view].data = memory_.arena(v.device) + v.offset;
}

void ValueViews::extents_on(uint8_t device, int64_t* extents) {
  for (uint32_t v = 0; v < size(); ++v)
    if (const PlanValue& shown = value(v); shown.extent_slot >= 0 && shown.place.device == device)
      views_[v].extent = extents + shown.extent_slot;
}

// Extents on a device are checked where they are copied to.
Status ValueViews::check_extents() const {
  for (const PlanValue& value : plan_.values) {
    if (value.extent_slot < 0 || value.place.device != 0) continue;
    const int64_t extent = extents_[static_cast<size_t>(value.extent_slot)], bound = value.type.shape[value.type.bounded_axis];
    if (extent >= 0 && extent <= bound) continue;
    Status bad(Code::kernel_failed, fmt::format("wrote extent {}, the bound is {}, for {}", extent, bound, quoted(value.name)),
               "write an extent from 0 to its bound");
    for (const PlanStep& step : plan_.steps)
      for (const Operand& out : step.outputs)
        if (out.value.valid() && &plan_.values[out.value.index] == &value)
          return std::move(bad).at(step.name, display_name(step.domain, step.type)).in_net(plan_.net_name);
    return bad;
  }
  return {};
}

}  // namespace heddle
