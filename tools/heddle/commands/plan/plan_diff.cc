#include "commands/plan/plan_diff.h"

#include <map>

#include "base/text.h"

namespace heddle::tool {
namespace {

std::string operand_type(const PlanInfo& plan, const PlanInfo::Operand& operand) {
  if (!operand.value) return "-";
  const PlanInfo::Value& value = plan.values[*operand.value];
  return to_string(value.dtype) + value.shape.text() + " " + operand.layout;
}

// What a step is but its name and where its values lie.
std::string step_text(const PlanInfo& plan, const PlanInfo::Step& step) {
  std::string out = word(step.type) + " kernel " + word(step.kernel) + " on " + word(step.device) + " tiles " + std::to_string(step.tiles);
  if (!step.fused.empty()) out += " fused " + words(step.fused, "+");
  for (const PlanInfo::Operand& o : step.inputs) out += ", " + operand_type(plan, o);
  out += " ->";
  for (const PlanInfo::Operand& o : step.outputs) out += " " + operand_type(plan, o);
  return out;
}

std::map<std::string, std::string> steps_of(const PlanInfo& plan) {
  std::map<std::string, std::string> steps;
  for (const PlanInfo::Step& s : plan.steps) steps[s.name] = step_text(plan, s);
  return steps;
}

}  // namespace

Json plan_diff(const PlanInfo& plan, const PlanInfo& other) {
  const auto before = steps_of(plan), after = steps_of(other);
  Json only = Json::array(), added = Json::array(), changed = Json::array();
  for (const auto& [name, text] : before) {
    const auto it = after.find(name);
    if (it == after.end())
      only.push_back(name);
    else if (it->second != text)
      changed.push_back({{"name", name}, {"from", text}, {"to", it->second}});
  }
  for (const auto& [name, text] : after)
    if (!before.contains(name)) added.push_back(name);
  return {{"steps", static_cast<int64_t>(other.steps.size()) - static_cast<int64_t>(plan.steps.size())},
          {"peak_bytes", other.memory[0].peak_bytes - plan.memory[0].peak_bytes},
          {"only_in_this", only},
          {"only_in_other", added},
          {"changed", changed}};
}

std::string plan_diff_text(const PlanInfo& plan, const PlanInfo& other) {
  const Json diff = plan_diff(plan, other);
  std::string out;
  for (const Json& name : diff["only_in_this"]) out += "- " + quoted(name.get<std::string>()) + "\n";
  for (const Json& name : diff["only_in_other"]) out += "+ " + quoted(name.get<std::string>()) + "\n";
  for (const Json& step : diff["changed"])
    out += "~ " + quoted(step["name"].get<std::string>()) + "\n    " + step["from"].get<std::string>() + "\n    " +
           step["to"].get<std::string>() + "\n";
  return out + "steps " + std::to_string(plan.steps.size()) + " -> " + std::to_string(other.steps.size()) + ", peak " +
         std::to_string(plan.memory[0].peak_bytes) + " -> " + std::to_string(other.memory[0].peak_bytes) + " bytes";
}

}  // namespace heddle::tool
