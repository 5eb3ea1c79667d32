#include "commands/run/report_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "base/text/text.h"
#include "charts/svg.h"
#include "charts/timeline.h"

namespace heddle::tool {
namespace {

std::string text_cell(const std::string& text) {
  return fmt::format("<td>{}</td>", escape_xml(text));
}

// A number as people read it, and as the page sorts it.
std::string number_cell(double value, const std::string& text) {
  return fmt::format("<td class=\"n\" data-v=\"{}\">{}</td>", shortest(value), escape_xml(text));
}

std::string count_cell(int64_t value) {
  return fmt::format("<td class=\"n\">{}</td>", value);
}

std::string time_cell(const StepTime& time) {
  const auto ns = static_cast<double>(time.end_ns - time.begin_ns);
  return time.ran() ? number_cell(ns, duration_text(ns)) : "<td class=\"n\">-</td>";
}

std::string spread_cell(const StepSpread& spread) {
  return number_cell(static_cast<double>(spread.median_ns),
                     fmt::format("{} ({} - {})", duration_text(static_cast<double>(spread.median_ns)),
                                 duration_text(static_cast<double>(spread.min_ns)), duration_text(static_cast<double>(spread.max_ns))));
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

std::string names_of(const PlanInfo::Step& step) {
  std::vector<std::string> operators = {step.name};
  operators.insert(operators.end(), step.fused.begin(), step.fused.end());
  return join(operators, " + ");
}

// Billions a second: of floating-point operations, or of bytes.
std::string rate_cell(std::optional<double> count, int64_t ns) {
  if (!count || ns <= 0) return "<td class=\"n\">-</td>";
  const double rate = *count / static_cast<double>(ns);
  return number_cell(rate, fmt::format("{:.1f}", rate));
}

// The share of the machine's rate; none: the step is not the host's, or does nothing that is counted.
std::optional<double> roofline_share(const PlanInfo::Step& step, int64_t ns, const std::optional<Roofline>& roofline) {
  if (!roofline || step.on_stream || ns <= 0) return std::nullopt;
  const double least = roofline->min_ns(step);
  return least > 0 ? std::optional(least / static_cast<double>(ns)) : std::nullopt;
}

std::string share_cell(const PlanInfo::Step& step, int64_t ns, const std::optional<Roofline>& roofline) {
  const std::optional<double> share = roofline_share(step, ns, roofline);
  return share ? number_cell(*share, fmt::format("{:.0f}%", 100 * *share)) : "<td class=\"n\">-</td>";
}

// Says what bounds a step.
std::string reason(const PlanInfo::Step& step, int64_t ns, const std::optional<Roofline>& roofline) {
  constexpr double low = 0.25, over = 1.05;
  constexpr int64_t short_ns = 5000;
  const std::optional<double> share = roofline_share(step, ns, roofline);
  if (step.on_stream) return "on a device: the host's time to enqueue it, or for a copy to do it";
  if (!roofline) return "the machine's rates were not measured";
  if (!share) return "nothing is known of its bytes and operations";
  const bool is_memory_bound = roofline->is_memory_bound(step);
  const double rate =
      is_memory_bound ? static_cast<double>(step.bytes) / static_cast<double>(ns) : step.flops.value_or(0) / static_cast<double>(ns);
  const char* const unit = is_memory_bound ? "GB/s" : "GFLOP/s";
  const Roofline::Rates& rates_here = roofline->rates(step);
  const double most = (is_memory_bound ? rates_here.bytes_per_second : rates_here.flops_per_second) / 1e9;
  const std::string rates = fmt::format("{:.1f} of {:.1f} {}", rate, most, unit);
  if (is_memory_bound && *share > over) return fmt::format("memory-bound, from caches: {}", rates);
  if (*share >= low) return fmt::format("{}: {}", is_memory_bound ? "memory-bound" : "compute-bound", rates);
  if (ns < short_ns) return fmt::format("too short to be bound by the machine: {}", rates);
  return fmt::format("kernel-bound, the machine can do more: {}", rates);
}

}  // namespace

std::string step_table(const PlanInfo& plan, const ProfiledRun& run, const std::optional<Roofline>& roofline) {
  const auto ns_of = [](const StepTime& time) { return time.end_ns - time.begin_ns; };
  int64_t total = 0;
  for (const StepTime& time : run.profile.steps) total += ns_of(time);
  std::string out =
      "<table id=\"steps\" class=\"sorted\"><thead><tr><th>#<th>step<th>type<th>kernel<th>device<th>tiles<th>workers<th>time<th>%"
      "<th>median (min - max)<th>bytes<th>GFLOP/s<th>GB/s<th>of roofline<th>inputs<th>outputs</tr></thead><tbody>\n";
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanInfo::Step& s = plan.steps[i];
    const StepTime& time = run.profile.steps[i];
    const double share = total > 0 ? 100 * static_cast<double>(ns_of(time)) / static_cast<double>(total) : 0;
    out += "<tr>" + count_cell(static_cast<int64_t>(i)) + text_cell(names_of(s)) + text_cell(s.type) + text_cell(s.kernel) +
           text_cell(s.device) + count_cell(s.tiles) + count_cell(std::popcount(time.workers)) + time_cell(time) +
           number_cell(share, fmt::format("{:.1f}", share)) + spread_cell(run.spread[i]) + count_cell(s.bytes) +
           rate_cell(s.flops, run.spread[i].median_ns) + rate_cell(static_cast<double>(s.bytes), run.spread[i].median_ns) +
           share_cell(s, run.spread[i].median_ns, roofline) + text_cell(operand_names(plan, s.inputs)) +
           text_cell(operand_names(plan, s.outputs)) + "</tr>\n";
  }
  return out + "</tbody></table>\n";
}

std::string slowest_table(const PlanInfo& plan, const ProfiledRun& run, const std::optional<Roofline>& roofline) {
  constexpr size_t most = 10;
  std::vector<size_t> order;
  for (size_t i = 0; i < plan.steps.size(); ++i)
    if (plan.steps[i].type != "Fence") order.push_back(i);
  const bool has_fences = order.size() < plan.steps.size();
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return run.spread[a].median_ns > run.spread[b].median_ns; });
  order.resize(std::min(order.size(), most));
  std::string out;
  if (roofline)
    out = fmt::format(
        "<p>This machine's rates: {:.1f} GFLOP/s in a product of matrices of 1024 x 1024 and {:.1f} GB/s in a sum of two tensors of 32 MiB "
        "with the run's threads, {:.1f} GFLOP/s and {:.1f} GB/s with one, which bound a step of one tile. The share of the roofline is the "
        "least time that a step's operations and bytes need at these rates, divided by the time that it takes: over 100% its data was in "
        "caches, or its kernel is faster than that product. From 25% on, a step is called bound by what needs more time, below that by its "
        "kernel.</p>\n",
        roofline->all_threads.flops_per_second / 1e9, roofline->all_threads.bytes_per_second / 1e9,
        roofline->one_thread.flops_per_second / 1e9, roofline->one_thread.bytes_per_second / 1e9);
  out += "<table><tr><th>#<th>step<th>type<th>median (min - max)<th>of roofline<th>why</tr>\n";
  for (const size_t i : order) {
    if (run.spread[i].max_ns == 0) continue;
    const PlanInfo::Step& s = plan.steps[i];
    const int64_t ns = run.spread[i].median_ns;
    out += "<tr>" + count_cell(static_cast<int64_t>(i)) + text_cell(names_of(s)) + text_cell(s.type) + spread_cell(run.spread[i]) +
           share_cell(s, ns, roofline) + text_cell(reason(s, ns, roofline)) + "</tr>\n";
  }
  out += "</table>\n";
  if (has_fences)
    out +=
        "<p>How long a device works on a step is not measured. Fences, in which the host waits until it is done, are in the timeline and "
        "in "
        "the table of all steps below; they may overlap.</p>\n";
  return out;
}

std::string owner_table(const PlanInfo& plan) {
  constexpr size_t max_rows = 20;
  std::string out;
  for (size_t device = 0; device < plan.memory.size(); ++device) {
    const std::vector<MemoryOwner> owners = memory_by_owner(plan, device);
    if (owners.empty()) continue;
    out += fmt::format("<h3>Live at the peak on {}</h3>\n<table><tr><th>operator<th>value<th>bytes<th>steps</tr>\n",
                       escape_xml(plan.memory[device].device));
    for (size_t i = 0; i < std::min(max_rows, owners.size()); ++i)
      out += "<tr>" + text_cell(owners[i].step) + text_cell(owners[i].value.empty() ? "scratch" : owners[i].value) +
             count_cell(owners[i].bytes) + text_cell(fmt::format("{}-{}", owners[i].first_step, owners[i].last_step)) + "</tr>\n";
    out += "</table>\n";
    if (owners.size() > max_rows) out += fmt::format("<p>and {} more</p>\n", owners.size() - max_rows);
  }
  return out;
}

}  // namespace heddle::tool
