// The conditions under which a run must end: its deadline, its caller, or the run around it.
#include "run/run_scope.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

// Ten steps, the last two of which update variables.
StepGraph with_tail() {
  StepGraph graph;
  graph.count = 10;
  graph.tail_begin = 8;
  return graph;
}

TEST(RunScope, EndsAtItsDeadlineOrWhenItIsCancelled) {
  const StepGraph graph = with_tail();
  RunScope scope(graph);
  scope.begin({}, 0, 3);
  EXPECT_EQ(scope.state().step, 3u);
  EXPECT_FALSE(scope.stop_requested());
  EXPECT_FALSE(scope.should_stop(0));
  scope.cancel();
  EXPECT_TRUE(scope.stop_requested());
  EXPECT_EQ(scope.stop_reason(), stop_cancelled);
  scope.begin({}, 1, 0);  // passed long ago
  EXPECT_TRUE(scope.should_stop(7));
  EXPECT_EQ(scope.stop_reason(), stop_deadline);
  scope.cancel();
  EXPECT_EQ(scope.stop_reason(), stop_deadline);  // the first reason stays
}

TEST(RunScope, ACancellationBeforeTheRunCounts) {
  const StepGraph graph = with_tail();
  RunScope scope(graph);
  const std::atomic<bool> cancelled{true};
  RunSettings settings;
  settings.cancelled = &cancelled;
  scope.begin(settings, 0, 0);
  EXPECT_EQ(scope.stop_reason(), stop_cancelled);
}

TEST(RunScope, StepsOfTheTailAreNotStopped) {
  const StepGraph graph = with_tail();
  RunScope outer(graph), inner(graph, &outer, 8);
  outer.begin({}, 1, 0);
  inner.begin({}, 1, 0);
  EXPECT_TRUE(outer.should_stop(7));
  EXPECT_FALSE(outer.should_stop(8));
  EXPECT_FALSE(inner.should_stop(0));  // inside a step of the outer one's tail
}

TEST(RunScope, RunsOfSubnetsEndWithTheRunAroundThem) {
  const StepGraph graph = with_tail();
  RunScope outer(graph), middle(graph, &outer, 1), inner(graph, &middle, 2);
  for (RunScope* scope : {&outer, &middle, &inner}) scope->begin({}, 0, 0);
  EXPECT_TRUE(inner.is_subnet());
  EXPECT_FALSE(outer.is_subnet());
  EXPECT_FALSE(inner.should_stop(0));
  outer.cancel();
  EXPECT_TRUE(inner.should_stop(0));
  EXPECT_TRUE(inner.outer_should_stop());
  EXPECT_FALSE(inner.stop_requested());  // its own caller did not request it
}

TEST(RunScope, CountsRunsOfSubnetsAtAnyDepthTogether) {
  const StepGraph graph = with_tail();
  RunScope outer(graph), middle(graph, &outer, 1), inner(graph, &middle, 2);
  outer.begin({}, 0, 0);
  EXPECT_EQ(outer.count_subnet_run(), 0);
  middle.begin({}, 0, 0);
  EXPECT_EQ(middle.count_subnet_run(), 1);
  inner.begin({}, 0, 0);
  EXPECT_EQ(inner.count_subnet_run(), 2);
  outer.begin({}, 0, 0);
  EXPECT_EQ(inner.count_subnet_run(), 0);
}

}  // namespace
}  // namespace heddle
