#include "commands/run/report_html.h"

#include <fmt/format.h>

#include "base/text/text.h"
#include "charts/memory_chart.h"
#include "charts/net_chart.h"
#include "charts/svg.h"
#include "charts/timeline.h"
#include "commands/run/report_collectives.h"
#include "commands/run/report_page.h"
#include "commands/run/report_tables.h"
#include "common/standard_streams.h"

namespace heddle::tool {
namespace {

std::string timeline_section(const PlanInfo& plan, const ProfiledRun& run, int threads) {
  std::string out = fmt::format("<h2>Timeline of run {} of {}</h2>\n<p>It took {}{}.{}</p>\n", run.number, run.runs, duration_text(run.ns),
                                run.runs > 1 ? ", the median; a step may have taken longer in this run than in others" : "",
                                run.profile.tiles_left_out > 0
                                    ? fmt::format(" {} ranges of tiles had no room in the profile.", run.profile.tiles_left_out)
                                    : std::string());
  out +=
      "<p class=\"bar\"><button id=\"closer\">+</button> <button id=\"farther\">-</button> <button id=\"whole\">whole</button> "
      "<input id=\"search\" type=\"search\" placeholder=\"search steps\"> Turn the wheel to zoom, drag to move, and point at a step for "
      "its "
      "numbers.</p>\n";
  return out + timeline_chart(plan, timeline_rows(plan, run.profile, threads));
}

// The planned memory of each device; `measured` is the host's peak.
std::string peaks_text(const PlanInfo& plan, int64_t measured) {
  std::string out;
  for (size_t d = 0; d < plan.memory.size(); ++d) {
    const PlanInfo::Memory& m = plan.memory[d];
    out += fmt::format("{}Planned peak of {}: {} bytes ({}){}, lower bound {} ({}), without sharing {}, constants {}.", d > 0 ? "<br>" : "",
                       escape_xml(m.device), m.peak_bytes, human_bytes(m.peak_bytes),
                       d == 0 ? fmt::format(", measured {}", measured) : std::string(), m.lower_bound_bytes, m.lower_bound_kind,
                       human_bytes(m.sum_bytes), human_bytes(m.persistent_bytes));
  }
  return out;
}

}  // namespace

Status write_report(const std::string& file, const PlanInfo& plan, const ProfiledRun& run, const RunSummary& summary) {
  const std::string title = escape_xml(plan.net.empty() ? summary.net_file : fmt::format("{} of {}", plan.net, summary.net_file));
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title><style>{}</style></head>\n<body><h1>{}</h1>\n",
      title, report_style, title);
  page += fmt::format("<p>{}: {}, {}, {}.</p>\n", escape_xml(summary.net_file), counted(static_cast<int64_t>(plan.steps.size()), "step"),
                      counted(summary.threads, "thread"), escape_xml(summary.latency));
  page += fmt::format("<p>{}</p>\n", peaks_text(plan, summary.measured_peak_bytes));
  page += timeline_section(plan, run, summary.threads);
  page += fmt::format("<h2>The slowest steps, and why</h2>\n{}", slowest_table(plan, run, summary.roofline));
  if (!summary.roofline) page += fmt::format("<p>Shares of the roofline are missing: {}</p>\n", escape_xml(summary.without_roofline));
  page += fmt::format("<h2>Memory</h2>\n{}{}", memory_chart(plan), owner_table(plan));
  page += fmt::format(
      "<h2>Operators</h2>\n<p class=\"bar\"><button id=\"net-closer\">+</button> <button id=\"net-farther\">-</button> "
      "<button id=\"net-whole\">whole</button></p>\n<div class=\"net\">{}</div>\n",
      net_chart(plan));
  page += collectives_section(plan, run.profile);
  page += fmt::format("<h2>Steps</h2>\n<div class=\"wide\">{}</div>\n<script>{}</script></body></html>\n",
                      step_table(plan, run, summary.roofline), report_script);
  return write_output(file, page);
}

}  // namespace heddle::tool
