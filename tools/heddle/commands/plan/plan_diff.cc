#include "commands/plan/plan_diff.h"

#include <fmt/format.h>

#include <map>

#include "base/text/text.h"
#include "charts/memory_chart.h"

namespace heddle::tool {
namespace {

std::string operand_type(const PlanInfo& plan, const PlanInfo::Operand& operand) {
  if (!operand.value) return "-";
  const PlanInfo::Value& value = plan.values[*operand.value];
  return fmt::format("{}{} {}", to_string(value.dtype), value.shape.text(), operand.layout);
}

// A step's text, except for its name and the offsets of its values.
std::string step_text(const PlanInfo& plan, const PlanInfo::Step& step) {
  std::string out = fmt::format("{} kernel {} on {} tiles {}", word(step.type), word(step.kernel), word(step.device), step.tiles);
  if (!step.fused.empty()) out += fmt::format(" fused {}", words(step.fused, "+"));
  for (const PlanInfo::Operand& o : step.inputs) out += fmt::format(", {}", operand_type(plan, o));
  out += " ->";
  for (const PlanInfo::Operand& o : step.outputs) out += fmt::format(" {}", operand_type(plan, o));
  return out;
}

// Adds the steps of a plan and, as "loop/body/step", those of its subnets.
void add_steps(const PlanInfo& plan, const std::string& within, std::map<std::string, std::string>& steps) {
  for (const PlanInfo::Step& s : plan.steps) {
    const std::string name = fmt::format("{}{}", within, s.name);
    steps[name] = step_text(plan, s);
    for (size_t i = 0; i < s.subnets.size(); ++i) {
      if (!s.subnets[i]) continue;
      const std::string& subnet = s.subnets[i]->net;
      add_steps(*s.subnets[i], subnet.empty() ? fmt::format("{}/{}/", name, i) : fmt::format("{}/{}/", name, subnet), steps);
    }
  }
}

std::map<std::string, std::string> steps_of(const PlanInfo& plan) {
  std::map<std::string, std::string> steps;
  add_steps(plan, {}, steps);
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

std::string plan_diff_svg(const PlanInfo& plan, const std::string& name, const PlanInfo& other, const std::string& other_name) {
  const Json diff = plan_diff(plan, other);
  std::map<std::string, StepChange> changes, other_changes;
  for (const Json& name : diff["only_in_this"]) changes[name.get<std::string>()] = StepChange::only_here;
  for (const Json& name : diff["only_in_other"]) other_changes[name.get<std::string>()] = StepChange::only_here;
  for (const Json& step : diff["changed"]) changes[step["name"].get<std::string>()] = StepChange::changed;
  for (const Json& step : diff["changed"]) other_changes[step["name"].get<std::string>()] = StepChange::changed;
  return memory_chart_of_two({plan, name, changes}, {other, other_name, other_changes});
}

std::string plan_diff_text(const PlanInfo& plan, const PlanInfo& other) {
  const Json diff = plan_diff(plan, other);
  std::string out;
  for (const Json& name : diff["only_in_this"]) out += fmt::format("- {}\n", quoted(name.get<std::string>()));
  for (const Json& name : diff["only_in_other"]) out += fmt::format("+ {}\n", quoted(name.get<std::string>()));
  for (const Json& step : diff["changed"])
    out += fmt::format("~ {}\n    {}\n    {}\n", quoted(step["name"].get<std::string>()), step["from"].get<std::string>(),
                       step["to"].get<std::string>());
  return out + fmt::format("steps {} -> {}, peak {} -> {} bytes", plan.steps.size(), other.steps.size(), plan.memory[0].peak_bytes,
                           other.memory[0].peak_bytes);
}

}  // namespace heddle::tool
