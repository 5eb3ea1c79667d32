// When each thread, stream and communicator worked on what in one run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/observe.h"
#include "heddle/plan_info.h"

namespace heddle::tool {

struct TimelineSpan {
  size_t step = 0;
  int64_t begin_ns = 0, end_ns = 0;
  int64_t first_tile = 0, tiles = 0;  // the range that was done; 0 tiles: all of the step
};

struct TimelineRow {
  enum class Kind { worker, stream, communicator };
  Kind kind = Kind::worker;
  std::string name;                 // "worker 0, the caller", "sim:0 stream 1", "communicator \"world\""
  std::vector<TimelineSpan> spans;  // by their beginning
};

// Returns a row for each of `threads` workers, each stream of each device, and each communicator. Spans of a row do not overlap: a step
// that began before another was over is in a further row. A step of several tiles is shown as its ranges ran; a step of the host that goes
// on after its thread has left it, as a collective of processes, is in the row of its communicator. A step of a stream is shown as the host
// enqueued it; fences, in which the host waits for streams, have a row.
std::vector<TimelineRow> timeline_rows(const PlanInfo& plan, const Profile& profile, int threads);

// Returns an SVG of the rows over time: gaps are waits, in another shade; names where they have room; more at the pointer. Spans are
// elements of class "span" with the attributes data-step and data-name, so that a script of the page can zoom and search.
std::string timeline_chart(const PlanInfo& plan, const std::vector<TimelineRow>& rows);

// Returns nanoseconds as people read them: "1.25 ms".
std::string duration_text(double ns);

}  // namespace heddle::tool
