#include "commands/run/trace.h"

#include <fmt/format.h>

#include "base/file.h"
#include "base/text.h"

namespace heddle::tool {

Status write_trace(const std::string& file, const PlanInfo& plan, const Profile& profile) {
  std::string text = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n";
  bool comma = false;
  for (size_t i = 0; i < profile.steps.size(); ++i) {
    const StepTime& time = profile.steps[i];
    const PlanInfo::Step& step = plan.steps[i];
    for (int worker = 0; worker < 64; ++worker) {
      if (!(time.workers >> worker & 1)) continue;
      text +=
          fmt::format(R"({}{{"name": {}, "cat": {}, "ph": "X", "pid": 1, "tid": {}, "ts": {}, "dur": {}, )"
                      R"("args": {{"kernel": {}, "tiles": {}, "bytes": {}, "flops": {}}}}})",
                      comma ? ",\n" : "", quoted(step.name), quoted(step.type), worker, shortest(static_cast<double>(time.begin_ns) * 1e-3),
                      shortest(static_cast<double>(time.end_ns - time.begin_ns) * 1e-3), quoted(step.kernel), step.tiles, step.bytes,
                      step.flops ? shortest(*step.flops) : "null");
      comma = true;
    }
  }
  text += "\n]}\n";
  HEDDLE_TRY(FileReplacement out, FileReplacement::create(file));
  HEDDLE_CHECK(out.write(text));
  return out.commit();
}

}  // namespace heddle::tool
