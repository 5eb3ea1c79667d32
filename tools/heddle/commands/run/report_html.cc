#include "commands/run/report_html.h"

#include <algorithm>
#include <bit>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "commands/plan/plan_text.h"

namespace heddle::tool {
namespace {

constexpr const char* style =
    "body{font:14px sans-serif;margin:2em;max-width:1240px}table{border-collapse:collapse}"
    "td,th{border-bottom:1px solid #ccc;padding:2px 8px;text-align:left}td.n{text-align:right}svg{max-width:100%}";

std::string microseconds(double ns) {
  return shortest(static_cast<float>(static_cast<int64_t>(ns / 10)) / 100);
}

double duration_ns(const StepSpan& span) {
  return span.begin ? ticks_to_ns(span.end - span.begin) : 0;
}

std::string cell(const std::string& text, bool number = false) {
  return (number ? "<td class=\"n\">" : "<td>") + escape_xml(text) + "</td>";
}

std::string operand_names(const Plan& plan, const std::vector<Operand>& operands) {
  std::vector<std::string> texts;
  for (const Operand& o : operands)
    if (o.value.valid()) {
      const PlanValue& v = plan.values[o.value.index];
      texts.push_back(v.name + " " + to_string(v.type.dtype) + v.type.shape.text());
    }
  return join(texts, ", ");
}

std::string step_table(const Plan& plan, const std::vector<StepSpan>& spans) {
  double total = 0;
  for (const StepSpan& s : spans) total += duration_ns(s);
  std::string out =
      "<table><tr><th>#<th>step<th>type<th>kernel<th>device<th>tiles<th>workers<th>us<th>%<th>bytes<th>inputs<th>outputs</tr>\n";
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& s = plan.steps[i];
    const double ns = duration_ns(spans[i]);
    out += "<tr>" + cell(std::to_string(i), true) + cell(s.name + (s.fused.empty() ? "" : " + " + join(s.fused, " + "))) + cell(s.type) +
           cell(s.kernel->name) + cell(s.device) + cell(std::to_string(s.tiles), true) +
           cell(std::to_string(std::popcount(spans[i].workers)), true) + cell(spans[i].begin ? microseconds(ns) : "-", true) +
           cell(total > 0 ? shortest(static_cast<float>(static_cast<int64_t>(1000 * ns / total)) / 10) : "-", true) +
           cell(std::to_string(s.bytes), true) + cell(operand_names(plan, s.inputs)) + cell(operand_names(plan, s.outputs)) + "</tr>\n";
  }
  return out + "</table>\n";
}

// A lane per worker, a box per step that it took part in.
std::string timeline(const Plan& plan, const std::vector<StepSpan>& spans) {
  uint64_t first = UINT64_MAX, last = 0, workers = 0;
  for (const StepSpan& s : spans) {
    if (!s.begin) continue;
    first = std::min(first, s.begin);
    last = std::max(last, s.end);
    workers |= s.workers;
  }
  if (last == 0) return "<p>No step ran.</p>\n";
  constexpr double width = 1200, lane_height = 28;
  const double scale = width / std::max(1.0, ticks_to_ns(last - first));
  const int lanes = std::bit_width(workers);
  std::string out = "<svg id=\"timeline\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1200 " +
                    std::to_string(static_cast<int>(lane_height) * lanes) + "\" width=\"1200\">\n";
  for (size_t i = 0; i < spans.size(); ++i) {
    if (!spans[i].begin) continue;
    for (int lane = 0; lane < lanes; ++lane) {
      if (!(spans[i].workers >> lane & 1)) continue;
      out += "<rect x=\"" + shortest(static_cast<float>(ticks_to_ns(spans[i].begin - first) * scale)) + "\" y=\"" +
             std::to_string(static_cast<int>(lane_height) * lane) + "\" width=\"" +
             shortest(static_cast<float>(std::max(0.3, duration_ns(spans[i]) * scale))) + "\" height=\"24\" fill=\"hsl(" +
             std::to_string(i * 47 % 360) + ",60%,70%)\"><title>" +
             escape_xml(plan.steps[i].name + " (" + plan.steps[i].type + ") " + microseconds(duration_ns(spans[i])) + " us, worker " +
                        std::to_string(lane)) +
             "</title></rect>\n";
    }
  }
  return out + "</svg>\n";
}

}  // namespace

Status write_report(const std::string& file, const Plan& plan, const std::vector<StepSpan>& spans, const RunSummary& summary) {
  const std::string title = escape_xml((plan.net_name.empty() ? summary.net_file : plan.net_name));
  const MemoryReport& m = plan.memory;
  std::string page = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" + title + "</title><style>" + style +
                     "</style></head>\n<body><h1>" + title + "</h1>\n<p>" + escape_xml(summary.net_file) + ": " +
                     std::to_string(plan.steps.size()) + " steps, " + std::to_string(summary.threads) + " threads, " +
                     escape_xml(summary.latency) + ". Planned peak " + std::to_string(m.peak_bytes) + " bytes (" +
                     human_bytes(m.peak_bytes) + "), measured " + std::to_string(summary.measured_peak_bytes) + ", lower bound " +
                     std::to_string(m.lower_bound_bytes) + " (" + m.lower_bound_kind + "), without sharing " + human_bytes(m.sum_bytes) +
                     ", constants " + human_bytes(m.persistent_bytes) + ".</p>\n";
  page += "<h2>Timeline of the last run</h2>\n" + timeline(plan, spans);
  page += "<h2>Memory</h2>\n" + plan_svg(plan);
  page += "<h2>Steps</h2>\n" + step_table(plan, spans) + "</body></html>\n";
  HEDDLE_TRY(FileReplacement out, FileReplacement::create(file));
  HEDDLE_CHECK(out.write(page));
  return out.commit();
}

}  // namespace heddle::tool
