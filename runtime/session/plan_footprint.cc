#include "session/plan_footprint.h"

#include <algorithm>
#include <unordered_set>

namespace heddle {
namespace {

// Measured on nets of ten to a million operators: a step with its kernel's state, names, operands and edges takes 1.6 KB.
constexpr int64_t step_bytes = 1600, value_bytes = 200;

using Contents = std::unordered_set<const void*>;

int64_t footprint(const Plan& plan, const Contents& of_net) {
  int64_t bytes = static_cast<int64_t>(sizeof(Plan)) + step_bytes * static_cast<int64_t>(plan.steps.size()) +
                  value_bytes * static_cast<int64_t>(plan.values.size());
  for (const auto& constant : plan.constants)
    if (constant && of_net.count(constant->data) == 0) bytes += constant->bytes;
  // Equal packed constants are shared by the plans of a session.
  for (const auto& pack : plan.packs)
    if (pack) bytes += pack->bytes / std::max<int64_t>(pack.use_count(), 1);
  for (const PlanDevice& device : plan.devices) bytes += device.memory.persistent_bytes;
  for (const PlanStep& step : plan.steps)
    for (const NestedPlan& nested : *step.nested) bytes += footprint(*nested.plan, of_net);
  return bytes;
}

}  // namespace

int64_t plan_footprint(const Plan& plan, const Net& net) {
  Contents of_net;
  for (const Value& value : net.values)
    if (value.kind == Value::Kind::constant && value.content.blob) of_net.insert(value.content.blob->data);
  return footprint(plan, of_net);
}

}  // namespace heddle
