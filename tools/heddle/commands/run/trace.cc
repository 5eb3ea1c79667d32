#include "commands/run/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/file.h"
#include "base/text/text.h"

namespace heddle::tool {

namespace {

// Nanoseconds as microseconds, exactly.
std::string microseconds(int64_t ns) {
  return fmt::format("{}{}.{:03}", ns < 0 ? "-" : "", std::abs(ns) / 1000, std::abs(ns) % 1000);
}

std::string name_event(const char* what, int worker, const std::string& name) {
  return fmt::format(R"({{"name": "{}", "ph": "M", "pid": 1, "tid": {}, "args": {{"name": {}}}}})", what, worker, quoted(name));
}

}  // namespace

Status write_trace(const std::string& file, const PlanInfo& plan, const ProfiledRun& run, int threads) {
  constexpr int max_workers = 64;  // the most that a step time distinguishes
  std::vector<std::string> events = {name_event("process_name", 0, plan.net.empty() ? "heddle run" : plan.net)};
  for (int worker = 0; worker < std::min(threads, max_workers); ++worker)
    events.push_back(name_event("thread_name", worker, worker == 0 ? "worker 0, the caller" : fmt::format("worker {}", worker)));
  for (size_t i = 0; i < run.profile.steps.size(); ++i) {
    const StepTime& time = run.profile.steps[i];
    const PlanInfo::Step& step = plan.steps[i];
    for (int worker = 0; worker < max_workers; ++worker)
      if (time.workers >> worker & 1)
        events.push_back(fmt::format(R"({{"name": {}, "cat": {}, "ph": "X", "pid": 1, "tid": {}, "ts": {}, "dur": {}, )"
                                     R"("args": {{"kernel": {}, "tiles": {}, "bytes": {}, "flops": {}}}}})",
                                     quoted(step.name), quoted(step.type), worker, microseconds(time.begin_ns),
                                     microseconds(time.end_ns - time.begin_ns), quoted(step.kernel), step.tiles, step.bytes,
                                     step.flops ? shortest(*step.flops) : "null"));
  }
  const std::string text = fmt::format(
      "{{\"displayTimeUnit\": \"ns\", \"otherData\": {{\"run\": {}, \"runs\": {}, \"latency_ns\": {}}}, \"traceEvents\": [\n{}\n]}}\n",
      run.number, run.runs, static_cast<int64_t>(run.ns), join(events, ",\n"));
  HEDDLE_TRY(FileReplacement out, FileReplacement::create(file));
  HEDDLE_CHECK(out.write(text));
  return out.commit();
}

}  // namespace heddle::tool
