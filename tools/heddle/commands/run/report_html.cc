#include "commands/run/report_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/file.h"
#include "base/text/text.h"
#include "charts/memory_chart.h"
#include "charts/svg.h"
#include "commands/run/report_collectives.h"

namespace heddle::tool {
namespace {

constexpr const char* style =
    "body{font:14px sans-serif;margin:2em;max-width:1240px}table{border-collapse:collapse}"
    "td,th{border-bottom:1px solid #ccc;padding:2px 8px;text-align:left}td.n{text-align:right}svg{max-width:100%}";

std::string microseconds(double ns) {
  return shortest(static_cast<float>(static_cast<int64_t>(ns / 10)) / 100);
}

double duration_ns(const StepTime& time) {
  return static_cast<double>(time.end_ns - time.begin_ns);
}

std::string cell(const std::string& text, bool number = false) {
  return number ? fmt::format("<td class=\"n\">{}</td>", escape_xml(text)) : fmt::format("<td>{}</td>", escape_xml(text));
}

std::string operand_names(const PlanInfo& plan, const std::vector<PlanInfo::Operand>& operands) {
  std::vector<std::string> texts;
  for (const PlanInfo::Operand& o : operands)
    if (o.value) {
      const PlanInfo::Value& v = plan.values[*o.value];
      texts.push_back(fmt::format("{} {}{}", v.name, to_string(v.dtype), v.shape.text()));
    }
  return join(texts, ", ");
}

std::string step_table(const PlanInfo& plan, const Profile& profile) {
  double total = 0;
  for (const StepTime& s : profile.steps) total += duration_ns(s);
  std::string out =
      "<table><tr><th>#<th>step<th>type<th>kernel<th>device<th>tiles<th>workers<th>us<th>%<th>bytes<th>inputs<th>outputs</tr>\n";
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanInfo::Step& s = plan.steps[i];
    const double ns = duration_ns(profile.steps[i]);
    std::vector<std::string> operators = {s.name};
    operators.insert(operators.end(), s.fused.begin(), s.fused.end());
    const std::string names = join(operators, " + ");
    out += "<tr>" + cell(fmt::to_string(i), true) + cell(names) + cell(s.type) + cell(s.kernel) + cell(s.device) +
           cell(fmt::to_string(s.tiles), true) + cell(fmt::to_string(std::popcount(profile.steps[i].workers)), true) +
           cell(profile.steps[i].ran() ? microseconds(ns) : "-", true) +
           cell(total > 0 ? shortest(static_cast<float>(static_cast<int64_t>(1000 * ns / total)) / 10) : "-", true) +
           cell(fmt::to_string(s.bytes), true) + cell(operand_names(plan, s.inputs)) + cell(operand_names(plan, s.outputs)) + "</tr>\n";
  }
  return out + "</table>\n";
}

// The twenty largest buffers in the arena when it is fullest.
std::string owner_table(const PlanInfo& plan) {
  std::string out = "<h3>Held at the peak</h3>\n<table><tr><th>operator<th>value<th>bytes<th>steps</tr>\n";
  const std::vector<MemoryOwner> owners = memory_by_owner(plan);
  for (size_t i = 0; i < std::min<size_t>(20, owners.size()); ++i)
    out += "<tr>" + cell(owners[i].step) + cell(owners[i].value.empty() ? "scratch" : owners[i].value) +
           cell(fmt::to_string(owners[i].bytes), true) + cell(fmt::format("{}-{}", owners[i].first_step, owners[i].last_step)) + "</tr>\n";
  return out + "</table>\n";
}

// A lane per worker, a box per step that it took part in.
std::string timeline(const PlanInfo& plan, const Profile& profile) {
  int64_t last = 0;
  uint64_t workers = 0;
  for (const StepTime& s : profile.steps) {
    last = std::max(last, s.end_ns);
    workers |= s.workers;
  }
  if (workers == 0) return "<p>No step ran.</p>\n";
  constexpr double width = 1200, lane_height = 28;
  const double scale = width / std::max(1.0, static_cast<double>(last));
  const int lanes = std::bit_width(workers);
  std::string out = fmt::format("<svg id=\"timeline\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1200 {}\" width=\"1200\">\n",
                                static_cast<int>(lane_height) * lanes);
  for (size_t i = 0; i < profile.steps.size(); ++i) {
    const StepTime& time = profile.steps[i];
    for (int lane = 0; lane < lanes; ++lane) {
      if (!(time.workers >> lane & 1)) continue;
      out += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"24\" fill=\"hsl({},60%,70%)\"><title>{}</title></rect>\n",
                         shortest(static_cast<float>(static_cast<double>(time.begin_ns) * scale)), static_cast<int>(lane_height) * lane,
                         shortest(static_cast<float>(std::max(0.3, duration_ns(time) * scale))), i * 47 % 360,
                         escape_xml(fmt::format("{} ({}) {} us, worker {}", plan.steps[i].name, plan.steps[i].type,
                                                microseconds(duration_ns(time)), lane)));
    }
  }
  return out + "</svg>\n";
}

}  // namespace

Status write_report(const std::string& file, const PlanInfo& plan, const ProfiledRun& run, const RunSummary& summary) {
  const std::string title = escape_xml((plan.net.empty() ? summary.net_file : plan.net));
  const PlanInfo::Memory& m = plan.memory[0];
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title><style>{}</style></head>\n<body><h1>{}</h1>\n",
      title, style, title);
  page += fmt::format(
      "<p>{}: {} steps, {} threads, {}. "
      "Planned peak {} bytes ({}), measured {}, lower bound {} ({}), without sharing {}, constants {}.</p>\n",
      escape_xml(summary.net_file), plan.steps.size(), summary.threads, escape_xml(summary.latency), m.peak_bytes,
      human_bytes(m.peak_bytes), summary.measured_peak_bytes, m.lower_bound_bytes, m.lower_bound_kind, human_bytes(m.sum_bytes),
      human_bytes(m.persistent_bytes));
  page += fmt::format("<h2>Timeline of run {} of {}</h2>\n<p>It took {} us{}.</p>\n{}", run.number, run.runs, microseconds(run.ns),
                      run.runs > 1 ? ", as the median" : "", timeline(plan, run.profile));
  page += fmt::format("<h2>Memory</h2>\n{}{}", memory_chart(plan), owner_table(plan));
  page += collectives_section(plan, run.profile);
  page += fmt::format("<h2>Steps</h2>\n{}</body></html>\n", step_table(plan, run.profile));
  HEDDLE_TRY(FileReplacement out, FileReplacement::create(file));
  HEDDLE_CHECK(out.write(page));
  return out.commit();
}

}  // namespace heddle::tool
