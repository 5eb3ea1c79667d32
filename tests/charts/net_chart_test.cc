// The picture of a net: where its boxes are, with Graphviz and without.
#include "charts/net_chart.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "charts/drawn_boxes.h"
#include "charts/graph_layout.h"
#include "load/temporary_folder.h"
#include "process/external_program.h"

namespace heddle::tool {
namespace {

// A graph without cycles: each box depends on some of those before it.
GraphLayout some_graph(size_t boxes, unsigned seed) {
  std::mt19937 random(seed);
  GraphLayout graph;
  for (size_t i = 0; i < boxes; ++i) {
    graph.boxes.push_back({20.0 + random() % 200, 20.0 + random() % 60, 0, 0});
    for (int line = 0; i > 0 && line < static_cast<int>(random() % 3); ++line) {
      const size_t from = random() % 4 == 0 ? random() % i : i - 1 - random() % std::min<size_t>(i, 5);
      const auto same = [&](const GraphLine& other) { return other.from == from && other.to == i; };
      if (std::none_of(graph.lines.begin(), graph.lines.end(), same)) graph.lines.push_back({from, i, {}});
    }
  }
  return graph;
}

void expect_readable(const GraphLayout& graph) {
  for (size_t i = 0; i < graph.boxes.size(); ++i) {
    const GraphBox& a = graph.boxes[i];
    EXPECT_GE(a.x - a.width / 2, -1);
    EXPECT_LE(a.x + a.width / 2, graph.width + 1);
    EXPECT_GE(a.y - a.height / 2, -1);
    EXPECT_LE(a.y + a.height / 2, graph.height + 1);
    for (size_t j = i + 1; j < graph.boxes.size(); ++j) {
      const GraphBox& b = graph.boxes[j];
      EXPECT_FALSE(std::abs(a.x - b.x) < (a.width + b.width) / 2 - 1 && std::abs(a.y - b.y) < (a.height + b.height) / 2 - 1)
          << i << " " << j;
    }
  }
  for (const GraphLine& line : graph.lines) {
    EXPECT_FALSE(line.path.empty());
    EXPECT_LT(graph.boxes[line.from].y, graph.boxes[line.to].y) << line.from << " " << line.to;
  }
}

TEST(GraphLayout, InLayersHasNoBoxOverAnotherAndLinesGoDown) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    GraphLayout graph = some_graph(1 + seed * 2, seed), again = graph;
    lay_out_in_layers(graph);
    expect_readable(graph);
    lay_out_in_layers(again);
    for (size_t i = 0; i < graph.boxes.size(); ++i) EXPECT_EQ(graph.boxes[i].x, again.boxes[i].x);
  }
  GraphLayout none;
  lay_out_in_layers(none);
  EXPECT_EQ(none.height, 0);
}

// A chain is straight, and a line that passes a box does not go through it.
TEST(GraphLayout, InLayersIsStraightWhereItCanBe) {
  GraphLayout graph;
  for (int i = 0; i < 6; ++i) graph.boxes.push_back({100.0 + 10 * i, 30, 0, 0});
  for (size_t i = 0; i + 1 < 6; ++i) graph.lines.push_back({i, i + 1, {}});
  lay_out_in_layers(graph);
  for (const GraphBox& box : graph.boxes) EXPECT_NEAR(box.x, graph.boxes[0].x, 0.01);
}

TEST(GraphLayout, ByGraphvizIsAsReadable) {
  std::string said;
  if (!run_external({"dot", "-V"}, "", std::chrono::seconds(10), 1000, &said)) GTEST_SKIP() << "Graphviz is not installed";
  for (unsigned seed = 1; seed <= 10; ++seed) {
    GraphLayout graph = some_graph(20, seed);
    ASSERT_TRUE(Graphviz().lay_out(graph));
    expect_readable(graph);
  }
}

// Programs called dot that are none.
TEST(GraphLayout, ByAProgramThatIsNoGraphvizIsRefused) {
  const testing::TemporaryFolder folder;
  const std::string old = std::getenv("PATH");
  const auto refused = [&](const std::string& script, std::chrono::milliseconds limit = std::chrono::seconds(60)) {
    std::ofstream(folder / "dot") << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(folder / "dot", std::filesystem::perms::owner_all);
    GraphLayout graph = some_graph(3, 2);
    Graphviz graphviz(limit);
    const bool first = graphviz.lay_out(graph), second = graphviz.lay_out(graph);
    return !first && !second && graph.width == 0;
  };
  ::setenv("PATH", (folder.path().string() + ":" + old).c_str(), 1);
  const std::string nodes = "node b0 1 1 1 1\nnode b1 1 2 1 1\nnode b2 1 3 1 1\n";
  EXPECT_TRUE(refused("exit 1"));
  EXPECT_TRUE(refused("echo no answer"));
  EXPECT_TRUE(refused("sleep 1000", std::chrono::milliseconds(50)));
  EXPECT_TRUE(refused("exec yes"));
  EXPECT_TRUE(refused("printf 'graph 1 5 5\n" + nodes + "edge b0 b1 99999999999 1 1\n'"));
  EXPECT_TRUE(refused("printf 'graph 1 1e308 5\n" + nodes + "'"));
  EXPECT_TRUE(refused("printf 'graph 1 5 5\nnode b0 1e308 1 1 1\n'"));
  EXPECT_TRUE(refused("printf '" + nodes + "'"));
  ::setenv("PATH", old.c_str(), 1);
}

// Each box depends on all before it: lines have no bends without a bound.
TEST(GraphLayout, OfADenseGraphIsNotLargerThanItsLines) {
  GraphLayout graph;
  for (size_t i = 0; i < 300; ++i) {
    graph.boxes.push_back({80, 40, 0, 0});
    for (size_t from = 0; from < i; ++from) graph.lines.push_back({from, i, {}});
  }
  lay_out_in_layers(graph);
  expect_readable(graph);
  size_t bytes = 0;
  for (const GraphLine& line : graph.lines) bytes += line.path.size();
  EXPECT_LT(bytes / graph.lines.size(), 150u);
}

// An input and a view of it are one box, and fences, in which the host waits, none.
TEST(NetChart, HasABoxForEachInputAndNoneForFences) {
  PlanInfo plan;
  plan.net = "views";
  plan.memory.resize(1);
  plan.memory[0].device = "cpu";
  for (const char* const name : {"x", "flat", "y"}) {
    PlanInfo::Value value;
    value.name = name;
    value.place = std::string(name) == "y" ? PlanInfo::Place::arena : PlanInfo::Place::input;
    plan.values.push_back(value);
  }
  for (const char* const type : {"Softmax", "Fence"}) {
    PlanInfo::Step step;
    step.name = std::string("the ") + type;
    step.type = type;
    step.device = "cpu:0";
    if (step.type == "Softmax") {
      step.inputs.push_back({1, "row-major", false});
      step.outputs.push_back({2, "row-major", false});
    }
    plan.steps.push_back(step);
  }
  const std::string svg = net_chart(plan);
  EXPECT_NE(svg.find("<title>input x "), std::string::npos) << svg;
  EXPECT_EQ(svg.find("input flat"), std::string::npos);
  EXPECT_EQ(svg.find("the Fence"), std::string::npos);
  EXPECT_NE(svg.find("the Softmax"), std::string::npos);
}

TEST(ExternalProgram, MayBeMissingFailOrTakeTooLong) {
  using std::chrono::milliseconds;
  constexpr size_t max = size_t{2} << 20;
  std::string output;
  EXPECT_FALSE(run_external({"heddle-has-no-such-program"}, "", milliseconds(5000), max, &output));
  EXPECT_FALSE(run_external({"false"}, "input that it does not read", milliseconds(5000), max, &output));
  EXPECT_TRUE(run_external({"true"}, std::string(8 << 20, 'x'), milliseconds(60000), max, &output));  // this process gets no SIGPIPE
  EXPECT_FALSE(run_external({"sleep", "1000"}, "", milliseconds(50), max, &output));
  EXPECT_FALSE(run_external({"sh", "-c", "exec >&-; sleep 1000"}, "", milliseconds(50), max, &output))
      << "its output is closed, and it goes on";
  EXPECT_FALSE(run_external({"yes"}, "", milliseconds(60000), max, &output));
  const std::string large(1 << 20, 'x');
  EXPECT_TRUE(run_external({"cat"}, large, milliseconds(60000), max, &output));
  EXPECT_EQ(output, large);
}

PlanInfo long_chain(size_t steps) {
  PlanInfo plan;
  plan.net = "long";
  plan.memory.resize(1);
  plan.memory[0].device = "cpu";
  for (size_t i = 0; i < steps; ++i) {
    PlanInfo::Value value;
    value.name = "v" + std::to_string(i);
    plan.values.push_back(value);
    PlanInfo::Step step;
    step.name = "s" + std::to_string(i);
    step.type = "Relu";
    step.device = "cpu:0";
    if (i > 0) step.inputs.push_back({i - 1, "row-major", false});
    step.outputs.push_back({i, "row-major", false});
    plan.steps.push_back(step);
  }
  plan.outputs = {steps - 1};
  return plan;
}

TEST(NetChart, OfALargeNetHasSeveralStepsToABox) {
  const std::string svg = net_chart(long_chain(10000));
  EXPECT_LT(svg.size(), 1u << 20);
  EXPECT_EQ(overlaps(svg, 1e9), std::vector<std::string>());
  EXPECT_NE(svg.find(">steps 0 to 16<"), std::string::npos);
  const std::string small = net_chart(long_chain(3));
  for (const char* const text : {">s0<", ">s2<", ">v2<", ">input or output<"}) EXPECT_NE(small.find(text), std::string::npos) << text;
}

// The third step reads a view, which no step makes: it hangs on the step that wrote the bytes, also where several steps share a box.
TEST(NetChart, LeadsViewsFromWhatWroteTheirBytes) {
  PlanInfo plan = long_chain(3);
  for (PlanInfo::Value& value : plan.values) value.place = PlanInfo::Place::arena;
  for (uint32_t i = 0; i < 3; ++i) plan.values[i].buffer = i;
  plan.values.push_back(plan.values[1]);
  plan.values.back().name = "view";
  plan.steps[2].inputs[0].value = 3;
  const std::string svg = net_chart(plan);
  const auto lines = [&] {
    size_t count = 0;
    for (size_t at = svg.find("class=\"edge\""); at != std::string::npos; at = svg.find("class=\"edge\"", at + 1)) ++count;
    return count;
  };
  EXPECT_EQ(lines(), 3u) << "two between steps, one to the output";
}

}  // namespace
}  // namespace heddle::tool
