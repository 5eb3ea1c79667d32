// The rows of a run: who worked on what, and when.
#include "charts/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "charts/drawn_boxes.h"

namespace heddle::tool {
namespace {

struct MadeRun {
  PlanInfo plan;
  Profile profile;

  size_t add(const std::string& name, StepTime time, int64_t tiles = 1) {
    PlanInfo::Step step;
    step.name = name;
    step.type = "Relu";
    step.device = "cpu:0";
    step.tiles = tiles;
    plan.steps.push_back(step);
    profile.steps.push_back(time);
    return plan.steps.size() - 1;
  }
};

// A row as text: the step of each span with its beginning, its end and its tiles.
std::vector<std::string> texts(const std::vector<TimelineRow>& rows) {
  std::vector<std::string> all;
  for (const TimelineRow& row : rows) {
    all.push_back(row.name + ":");
    for (const TimelineSpan& s : row.spans)
      all.back() += " " + std::to_string(s.step) + "[" + std::to_string(s.begin_ns) + "," + std::to_string(s.end_ns) + "]" +
                    (s.tiles > 0 ? "x" + std::to_string(s.tiles) : "");
  }
  return all;
}

using Texts = std::vector<std::string>;

TEST(TimelineRows, AreThoseOfWorkersWithTheirTiles) {
  MadeRun run;
  run.add("a", {0, 10, 1});
  run.add("b", {10, 30, 3}, 4);
  run.add("not run", {});
  run.profile.tiles = {{1, 0, 0, 2, 10, 20}, {1, 1, 2, 2, 12, 29}};
  EXPECT_EQ(texts(timeline_rows(run.plan, run.profile, 3)),
            (Texts{"worker 0, the caller: 0[0,10] 1[10,20]x2", "worker 1: 1[12,29]x2", "worker 2:"}));
}

TEST(TimelineRows, AreThoseOfStreamsAndCommunicators) {
  MadeRun run;
  run.add("host", {0, 10, 2});
  PlanInfo::Step& enqueued = run.plan.steps[run.add("enqueued", {10, 12, 1})];
  enqueued.on_stream = true;
  enqueued.device = "sim:0";
  enqueued.stream = 1;
  run.add("sum", {12, 50, 1});
  PlanInfo::Collective collective;
  collective.name = "sum";
  collective.communicator = "world";
  run.plan.collectives = {collective};
  EXPECT_EQ(texts(timeline_rows(run.plan, run.profile, 1)),
            (Texts{"worker 0, the caller:", "worker 1: 0[0,10]", "sim:0 stream 1: 1[10,12]", "communicator \"world\": 2[12,50]"}));
}

TEST(TimelineRows, HaveNoSpansThatOverlap) {
  MadeRun run;
  run.add("loop", {0, 100, 1});
  run.add("body", {10, 20, 1});
  run.add("other", {20, 30, 1});
  run.add("after", {100, 110, 1});
  EXPECT_EQ(texts(timeline_rows(run.plan, run.profile, 1)),
            (Texts{"worker 0, the caller: 0[0,100] 3[100,110]", "worker 0, the caller, beside: 1[10,20] 2[20,30]"}));
}

TEST(TimelineChart, NamesSpansRowsAndColours) {
  MadeRun run;
  run.add("the first step", {0, 900000, 1});
  run.add("x", {900000, 1000000, 1}, 2);
  run.plan.steps[1].type = "Conv";
  run.profile.tiles = {{1, 0, 0, 1, 900000, 950000}, {1, 1, 1, 1, 900000, 1000000}};
  const std::string svg = timeline_chart(run.plan, timeline_rows(run.plan, run.profile, 2));
  Texts shown;
  for (const DrawnText& text : drawn_texts(svg)) shown.push_back(text.text);
  for (const char* const text : {"worker 0, the caller", "worker 1", "the first step", "Relu", "Conv", "idle", "us", "500"})
    EXPECT_EQ(std::count(shown.begin(), shown.end(), text), 1) << text;
  EXPECT_EQ(overlaps(svg, 1200), Texts());
  const Texts at_pointer = titles(svg);
  for (const char* const title :
       {"step 0: the first step (Relu), 900.0 us from 0 ns on", "step 1: x (Conv), tiles 1-1 of 2, 100.0 us from 900.0 us on"})
    EXPECT_EQ(std::count(at_pointer.begin(), at_pointer.end(), title), 1) << title;
}

TEST(TimelineChart, OfARunWithoutStepsHasItsRows) {
  const MadeRun run;
  EXPECT_NE(timeline_chart(run.plan, timeline_rows(run.plan, run.profile, 1)).find("worker 0"), std::string::npos);
}

}  // namespace
}  // namespace heddle::tool
