// The picture of a plan's memory: everything that it says is the plan's, and can be read.
#include "charts/memory_chart.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include "charts/drawn_boxes.h"

namespace heddle::tool {
namespace {

// A chain of steps, each of which reads the value of the one before.
PlanInfo chain(size_t steps, int64_t bytes, const std::string& suffix = "") {
  PlanInfo plan;
  plan.net = "chain" + suffix;
  for (size_t i = 0; i < steps; ++i) {
    PlanInfo::Value value;
    value.name = "value" + std::to_string(i) + suffix;
    value.dtype = DType::f32;
    value.shape = Shape{bytes / 4};
    value.bytes = bytes;
    value.place = PlanInfo::Place::arena;
    value.buffer = static_cast<uint32_t>(i);
    value.offset = static_cast<int64_t>(i % 2) * bytes;
    plan.values.push_back(value);
    PlanInfo::Step step;
    step.name = "step" + std::to_string(i) + suffix;
    step.type = "Relu";
    step.device = "cpu:0";
    if (i > 0) step.inputs.push_back({i - 1, "row-major", false});
    step.outputs.push_back({i, "row-major", false});
    if (i + 1 < steps) step.successors.push_back(i + 1);
    plan.steps.push_back(step);
  }
  plan.outputs = {steps - 1};
  PlanInfo::Memory host;
  host.device = "cpu";
  host.arena_bytes = 2 * bytes;
  host.peak_bytes = 2 * bytes + 4096;
  host.lower_bound_bytes = host.peak_bytes;
  host.lower_bound_kind = "max-live";
  host.sum_bytes = static_cast<int64_t>(steps) * bytes;
  host.persistent_bytes = 12345;
  plan.memory = {host};
  return plan;
}

bool says(const std::string& svg, const std::string& text) {
  const std::vector<DrawnText> all = drawn_texts(svg);
  return std::any_of(all.begin(), all.end(), [&](const DrawnText& t) { return t.text.find(text) != std::string::npos; });
}

TEST(MemoryChart, SaysWhatThePlanSays) {
  const std::string svg = memory_chart(chain(5, 1 << 20));
  for (const char* const text : {"Memory of chain", "cpu: peak 2.0 MiB, lower bound 2.0 MiB (max-live), without sharing 5.0 MiB",
                                 "The plan holds 12.1 KiB of constants besides.", "value0", "1.0 MiB", "peak", "lower bound", "step",
                                 "0.5 MiB", "scratch of threads", "output of the net",
                                 "Values live at their peak, step 1: step1 (Relu): 2.0 MiB in 2 buffers, of 2.0 MiB for values"})
    EXPECT_TRUE(says(svg, text)) << text;
  const std::vector<std::string> shown = titles(svg);
  for (const char* const title : {"value1 f32[262144], 1048576 bytes (1.0 MiB), at 1048576, steps 1-2, written by step1",
                                  "scratch of threads, 4096 bytes (4.0 KiB)", "step 3: step3 (Relu)"})
    EXPECT_EQ(std::count(shown.begin(), shown.end(), title), 1) << title;
}

TEST(MemoryChart, HasNoTextOverAnother) {
  for (const size_t steps : {1u, 2u, 7u, 40u, 300u})
    for (const char* const suffix : {"", "/a/very/long/name/that/has/no/room/anywhere/in/the/picture/of/it"}) {
      const std::string svg = memory_chart(chain(steps, 100000, suffix));
      EXPECT_EQ(overlaps(svg, 1200), std::vector<std::string>()) << steps << suffix;
    }
  EXPECT_EQ(overlaps(memory_chart(chain(9, 100352)), 1200), std::vector<std::string>()) << "a peak of 200 KiB has a tick";
}

TEST(MemoryChart, TellsThePartsOfATraining) {
  PlanInfo plan = chain(30, 4096);
  for (size_t i = 15; i < 25; ++i) plan.steps[i].name += ".gradient.Relu";
  for (size_t i = 25; i < 30; ++i) plan.steps[i].tail = true;
  const std::string svg = memory_chart(plan);
  for (const char* const text : {"forward", "backward", "update", "gradient"}) EXPECT_TRUE(says(svg, text)) << text;
  EXPECT_FALSE(says(memory_chart(chain(30, 4096)), "backward"));
}

TEST(MemoryChart, HasAPartForEachDevice) {
  PlanInfo plan = chain(6, 4096);
  PlanInfo::Memory device = plan.memory[0];
  device.device = "sim:0";
  device.peak_bytes = device.arena_bytes;
  plan.memory.push_back(device);
  plan.values[2].device = plan.values[3].device = 1;
  plan.memory[0].pinned_bytes = 1024;
  const std::string svg = memory_chart(plan);
  EXPECT_TRUE(says(svg, "cpu: peak 12.0 KiB"));
  EXPECT_TRUE(says(svg, "sim:0: peak 8.0 KiB"));
  EXPECT_TRUE(says(svg, "pinned, for copies"));
  EXPECT_EQ(overlaps(svg, 1200), std::vector<std::string>());
}

TEST(MemoryChart, OfANetWithoutAnyMemoryIsEmpty) {
  PlanInfo plan = chain(1, 4);
  plan.values[0].place = PlanInfo::Place::input;
  plan.memory[0] = PlanInfo::Memory();
  plan.memory[0].device = "cpu";
  EXPECT_TRUE(says(memory_chart(plan), "cpu: peak 0 B"));
  plan.steps.clear();
  EXPECT_TRUE(says(memory_chart(plan), "over 0 steps"));
}

// Ten thousand steps: what can't be seen by itself is drawn together.
TEST(MemoryChart, OfALargeNetIsNoLargeFile) {
  const std::string svg = memory_chart(chain(10000, 4096));
  EXPECT_LT(svg.size(), 1u << 20);
  const std::vector<std::string> shown = titles(svg);
  EXPECT_TRUE(std::any_of(shown.begin(), shown.end(), [](const std::string& title) {
    return title.rfind("10000 buffers too small to be drawn by themselves, each of at most 4096 bytes", 0) == 0;
  }));
}

TEST(MemoryChart, OfTwoPlansHasOneScaleAndMarksWhatDiffers) {
  const PlanInfo small = chain(4, 1000), large = chain(6, 1000000);
  const std::string first = "small.heddle", second = "large.heddle";
  const std::map<std::string, StepChange> changes = {{"step1", StepChange::changed}}, other_changes = {{"step5", StepChange::only_here}};
  const std::string svg = memory_chart_of_two({small, first, changes}, {large, second, other_changes});
  EXPECT_EQ(overlaps(svg, 1200), std::vector<std::string>());
  for (const char* const text :
       {"Memory of chain of small.heddle", "Compared with chain of large.heddle, whose peak of cpu is 328.76 times that above",
        "same step in both plans", "step of this plan alone"})
    EXPECT_TRUE(says(svg, text)) << text;
  const std::regex axis(">1.5 MiB<");
  EXPECT_EQ(std::distance(std::sregex_iterator(svg.begin(), svg.end(), axis), {}), 2) << "the same ticks";
  EXPECT_NE(svg.find("class=\"changed box\"><title>step 1: step1 "), std::string::npos);
  EXPECT_NE(svg.find("class=\"only box\"><title>step 5: step5 "), std::string::npos);
}

TEST(MemoryChart, ShowsNamesAsText) {
  const std::string svg = memory_chart(chain(2, 1 << 20, "</title><script>alert(1)</script>&\""));
  EXPECT_EQ(svg.find("<script>"), std::string::npos);
  EXPECT_NE(svg.find("&lt;script&gt;"), std::string::npos);
}

TEST(FittingText, IsNoWiderThanItsRoom) {
  EXPECT_EQ(fitting_text("abcdef", 1000), "abcdef");
  EXPECT_EQ(fitting_text("abcdefgh", text_width("abcdef")), "abc...");
  EXPECT_EQ(fitting_text("abcdefgh", 10), "");
  EXPECT_EQ(fitting_text("\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4", text_width("abcde")), "\xC3\xA4...")
      << "other characters may be twice as wide";
}

TEST(FittingName, IsTheLastPartsThatHaveRoom) {
  EXPECT_EQ(fitting_name("layer1.0.conv3", 1000), "layer1.0.conv3");
  EXPECT_EQ(fitting_name("layer1.0.conv3", text_width(".0.conv3")), ".0.conv3");
  EXPECT_EQ(fitting_name("layer1.0.conv3", text_width(".conv3")), ".conv3");
  EXPECT_EQ(fitting_name("layer1.0.downsample.0", text_width("layer...")), "layer...");
  EXPECT_EQ(fitting_name("layer1.0.convolution", text_width("layer...")), "layer...");
  EXPECT_EQ(fitting_name("layer1.0.convolution", text_width("layer")), "");
}

}  // namespace
}  // namespace heddle::tool
