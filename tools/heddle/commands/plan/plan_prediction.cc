#include "commands/plan/plan_prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/text/text.h"
#include "tensors/inputs.h"

namespace heddle::tool {
namespace {

// Parses NS or NS+NS_PER_BYTE.
bool parse_cost(const std::string& text, WorkCost* cost) {
  const size_t plus = text.find('+');
  if (!parse_int(text.substr(0, plus), &cost->ns) || cost->ns < 0) return false;
  if (plus == std::string::npos) return true;
  const char *const begin = text.data() + plus + 1, *const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(begin, end, cost->ns_per_byte);
  return error == std::errc() && at == end && cost->ns_per_byte >= 0 && cost->ns_per_byte < 1e9;
}

}  // namespace

Result<std::vector<WorkCost>> parse_costs(const std::vector<std::string>& texts) {
  std::vector<WorkCost> costs;
  HEDDLE_TRY(const std::vector<NameValue> values, split_name_values("--cost", texts));
  for (const auto& [name, text] : values) {
    WorkCost cost;
    const size_t domain = name.rfind("::");
    cost.name = domain == std::string::npos ? name : name.substr(domain + 2);
    if (!parse_cost(text, &cost))
      return Status(Code::invalid_argument, fmt::format("--cost {} is not NAME=NS or NAME=NS+NS_PER_BYTE", quoted(name + "=" + text)),
                    "give nanoseconds, as in Conv=500000 or AllReduce=50000+0.2");
    costs.push_back(std::move(cost));
  }
  return costs;
}

std::vector<Diagnostic> unused_costs(const PlanInfo& plan, const std::vector<WorkCost>& costs) {
  std::vector<Diagnostic> warnings;
  for (const WorkCost& cost : costs) {
    const bool used = std::any_of(plan.steps.begin(), plan.steps.end(), [&](const PlanInfo::Step& step) {
      return step.on_stream && (step.type == cost.name || (cost.name == "copy" && !step.copied.empty()));
    });
    if (used) continue;
    Status status(Code::unknown_name, fmt::format("--cost {}: no step on a device is of this type", quoted(cost.name)),
                  "use the types that heddle plan lists");
    status.diagnostic().severity = Severity::warning;
    warnings.push_back(status.diagnostic());
  }
  return warnings;
}

Json prediction_json(const PredictedStep& step) {
  return {{"ns", step.ns}, {"communication_ns", step.communication_ns}, {"exposed_ns", step.exposed_ns}};
}

std::string prediction_text(const PredictedStep& step) {
  const double exposed =
      step.communication_ns > 0 ? 100.0 * static_cast<double>(step.exposed_ns) / static_cast<double>(step.communication_ns) : 0;
  return fmt::format("predicted: {} ns on devices, of which communication takes {} ns; {} ns of it ({:.1f}%) are exposed", step.ns,
                     step.communication_ns, step.exposed_ns, exposed);
}

}  // namespace heddle::tool
