#include "commands/run/trace.h"

#include <algorithm>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"

namespace heddle::tool {

Status write_trace(const std::string& file, const Plan& plan, const std::vector<StepSpan>& spans) {
  uint64_t first = UINT64_MAX;
  for (const StepSpan& s : spans)
    if (s.begin) first = std::min(first, s.begin);
  std::string text = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n";
  bool comma = false;
  for (size_t i = 0; i < spans.size(); ++i) {
    if (!spans[i].begin) continue;
    const PlanStep& step = plan.steps[i];
    for (int worker = 0; worker < 64; ++worker) {
      if (!(spans[i].workers >> worker & 1)) continue;
      text += std::string(comma ? ",\n" : "") + "{\"name\": " + quoted(step.name) + ", \"cat\": " + quoted(step.type) +
              ", \"ph\": \"X\", \"pid\": 1, \"tid\": " + std::to_string(worker) +
              ", \"ts\": " + shortest(ticks_to_ns(spans[i].begin - first) * 1e-3) +
              ", \"dur\": " + shortest(ticks_to_ns(spans[i].end - spans[i].begin) * 1e-3) +
              ", \"args\": {\"kernel\": " + quoted(step.kernel->name) + ", \"tiles\": " + std::to_string(step.tiles) +
              ", \"bytes\": " + std::to_string(step.bytes) + ", \"flops\": " + (step.flops ? shortest(*step.flops) : "null") + "}}";
      comma = true;
    }
  }
  text += "\n]}\n";
  HEDDLE_TRY(FileReplacement out, FileReplacement::create(file));
  HEDDLE_CHECK(out.write(text));
  return out.commit();
}

}  // namespace heddle::tool
