#include "commands/run/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/text/text.h"
#include "charts/timeline.h"
#include "common/standard_streams.h"

namespace heddle::tool {

namespace {

// Nanoseconds as microseconds, exactly.
std::string microseconds(int64_t ns) {
  return fmt::format("{}{}.{:03}", ns < 0 ? "-" : "", std::abs(ns) / 1000, std::abs(ns) % 1000);
}

// The number of a row as Chrome's format has it. Perfetto takes thread 0 for the process's first thread, which is another row's if one has
// the number of the process.
size_t thread_of(size_t row) {
  return row + 1;
}

std::string name_event(const char* what, size_t row, const std::string& name) {
  return fmt::format(R"({{"name": "{}", "ph": "M", "pid": 1, "tid": {}, "args": {{"name": {}}}}})", what, thread_of(row), quoted(name));
}

std::string span_event(const PlanInfo& plan, const ProfiledRun& run, const TimelineSpan& span, size_t row) {
  const PlanInfo::Step& step = plan.steps[span.step];
  const StepSpread& spread = run.spread[span.step];
  const std::string range =
      span.tiles == 0 ? "null" : fmt::format("\"{}-{} of {}\"", span.first_tile, span.first_tile + span.tiles - 1, step.tiles);
  return fmt::format(R"({{"name": {}, "cat": {}, "ph": "X", "pid": 1, "tid": {}, "ts": {}, "dur": {}, )"
                     R"("args": {{"step": {}, "kernel": {}, "tiles": {}, "range": {}, "bytes": {}, "flops": {}, )"
                     R"("of_all_runs_ns": {{"min": {}, "median": {}, "max": {}}}}}}})",
                     quoted(step.name), quoted(step.type), thread_of(row), microseconds(span.begin_ns),
                     microseconds(span.end_ns - span.begin_ns), span.step, quoted(step.kernel), step.tiles, range, step.bytes,
                     step.flops ? shortest(*step.flops) : "null", spread.min_ns, spread.median_ns, spread.max_ns);
}

}  // namespace

Status write_trace(const std::string& file, const PlanInfo& plan, const ProfiledRun& run, int threads) {
  const std::vector<TimelineRow> rows = timeline_rows(plan, run.profile, threads);
  std::vector<std::string> events = {name_event("process_name", 0, plan.net.empty() ? "heddle run" : plan.net)};
  for (size_t i = 0; i < rows.size(); ++i) {
    events.push_back(name_event("thread_name", i, rows[i].name));
    events.push_back(
        fmt::format(R"({{"name": "thread_sort_index", "ph": "M", "pid": 1, "tid": {}, "args": {{"sort_index": {}}}}})", thread_of(i), i));
  }
  for (size_t i = 0; i < rows.size(); ++i)
    for (const TimelineSpan& span : rows[i].spans) events.push_back(span_event(plan, run, span, i));
  const std::string text = fmt::format(
      "{{\"displayTimeUnit\": \"ns\", \"otherData\": {{\"run\": {}, \"runs\": {}, \"latency_ns\": {}}}, \"traceEvents\": [\n{}\n]}}\n",
      run.number, run.runs, static_cast<int64_t>(run.ns), join(events, ",\n"));
  return write_output(file, text);
}

}  // namespace heddle::tool
