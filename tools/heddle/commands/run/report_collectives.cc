#include "commands/run/report_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text/text.h"
#include "charts/svg.h"

namespace heddle::tool {
namespace {

using Interval = std::pair<int64_t, int64_t>;

// Returns the parts of time that any of the intervals covers, in order.
std::vector<Interval> joined(std::vector<Interval> all) {
  std::sort(all.begin(), all.end());
  std::vector<Interval> parts;
  for (const Interval& next : all)
    if (!parts.empty() && next.first <= parts.back().second)
      parts.back().second = std::max(parts.back().second, next.second);
    else
      parts.push_back(next);
  return parts;
}

int64_t length(const std::vector<Interval>& parts) {
  int64_t ns = 0;
  for (const Interval& part : parts) ns += part.second - part.first;
  return ns;
}

}  // namespace

MeasuredCommunication measured_communication(const PlanInfo& plan, const Profile& profile) {
  std::vector<Interval> collectives, others;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanInfo::Step& step = plan.steps[i];
    if (step.on_stream || !profile.steps[i].ran()) continue;
    const bool is_collective = std::any_of(plan.collectives.begin(), plan.collectives.end(),
                                           [&](const PlanInfo::Collective& collective) { return collective.name == step.name; });
    (is_collective ? collectives : others).emplace_back(profile.steps[i].begin_ns, profile.steps[i].end_ns);
  }
  // Exposed is the time that all of them cover, less the time that the others cover.
  std::vector<Interval> all = collectives;
  all.insert(all.end(), others.begin(), others.end());
  return {length(joined(std::move(collectives))), length(joined(std::move(all))) - length(joined(std::move(others)))};
}

std::string collectives_section(const PlanInfo& plan, const Profile& profile) {
  if (plan.collectives.empty()) return {};
  std::string out = "<h2>Collectives</h2>\n";
  for (const PlanInfo::CommunicatorUse& c : plan.communicators) {
    const std::string place = c.devices.empty() ? "the host" : join(c.devices, ", ");
    out += fmt::format("<p>Communicator {} on {}, collectives {:016x}. {}</p>\n", escape_xml(quoted(c.name)), escape_xml(place), c.hash,
                       escape_xml(c.buckets));
  }
  if (const MeasuredCommunication measured = measured_communication(plan, profile); measured.ns > 0)
    out += fmt::format("<p>Collectives were under way for {} ns, {} ns of these beside no other step.</p>\n", measured.ns,
                       measured.exposed_ns);
  out += "<table><tr><th>#<th>operator<th>device<th>communicator<th>tensors<th>bytes<th>signature</tr>\n";
  for (size_t i = 0; i < plan.collectives.size(); ++i) {
    const PlanInfo::Collective& c = plan.collectives[i];
    out += fmt::format(
        "<tr><td class=\"n\">{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td></tr>\n", i,
        escape_xml(c.name), escape_xml(c.device), escape_xml(c.communicator), c.tensors, c.bytes, escape_xml(c.signature));
  }
  return out + "</table>\n";
}

}  // namespace heddle::tool
