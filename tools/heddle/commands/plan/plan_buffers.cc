// plan --buffers: the offset planner alone, on a table of buffers.
#include <fmt/format.h>

#include "base/text/text.h"
#include "base/threads/clock.h"
#include "commands/plan/plan_arguments.h"
#include "common/file_roles.h"
#include "common/standard_streams.h"
#include "memory/buffers_csv.h"

namespace heddle::tool {

Status plan_buffers(const PlanArguments& o, Report& report) {
  HEDDLE_TRY(const Limits limits, o.limits.limits());
  FileRoles roles;
  roles.reads(o.buffers);
  if (!o.output.empty()) HEDDLE_CHECK(roles.writes("-o", o.output));
  if (roles.uses_standard_output()) HEDDLE_CHECK(report.give_up_standard_output());
  HEDDLE_TRY(const BufferTable table, load_buffers_csv(o.buffers, limits));
  offsets::PackOptions options;
  if (!o.capacity.empty() && !parse_size(o.capacity, &options.capacity))
    return {Code::invalid_argument, fmt::format("--capacity {} is not a size", quoted(o.capacity)), "write it like 512MiB"};
  const uint64_t begin = ticks();
  if (o.time_limit_s > 0) {
    options.effort = INT64_MAX;
    const uint64_t end = begin + ns_to_ticks(o.time_limit_s * 1e9);
    options.stop = [end] { return ticks() >= end; };
  }
  HEDDLE_TRY(const offsets::Solution solution, offsets::pack(table.problem, options));
  report.json["solve_ns"] = static_cast<int64_t>(ticks_to_ns(ticks() - begin));
  report.json["peak_bytes"] = solution.height;
  report.json["lower_bound_bytes"] = solution.lower_bound;
  report.json["optimal"] = solution.optimal;
  const std::string text = format_buffers_csv(table, solution);
  if (!o.output.empty()) HEDDLE_CHECK(write_output(o.output, text));
  report.say(fmt::format("peak {} bytes, lower bound {}{}, by {}", solution.height, solution.lower_bound,
                         solution.optimal ? ", optimal" : "", solution.method));
  if (o.output.empty()) report.say_lines(text);
  return {};
}

}  // namespace heddle::tool
