// The failure log: which failure of a run is reported, what is attached to it, and which report of a step counts.
#include "run/failure_log.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "schedule/run_control.h"

namespace heddle {
namespace {

// Steps "step0", "step1", ... of a net "net", each reading an f32[2, 3]; none has run.
Plan plan_of(size_t steps) {
  Plan plan;
  plan.net_name = "net";
  plan.values.resize(1);
  plan.values[0].type.dtype = DType::f32;
  plan.values[0].type.shape = Shape{2, 3};
  plan.steps.resize(steps);
  for (size_t i = 0; i < steps; ++i) {
    PlanStep& step = plan.steps[i];
    step.name = "step" + std::to_string(i);
    step.type = "Relu";
    step.inputs.push_back({ValueId{0}, {}});
  }
  return plan;
}

bool contains(const Status& status, const std::string& text) {
  return status.text().find(text) != std::string::npos;
}

TEST(FailureLog, ReportsTheFirstStepOfThePlanAndAttachesTheOthers) {
  const Plan plan = plan_of(5);
  FailureLog log(plan);
  log.note(3, HEDDLE_ERROR_INVALID, "third");
  log.report(3, HEDDLE_ERROR_INVALID);
  log.note(1, HEDDLE_ERROR_INVALID, "first");
  log.report(1, HEDDLE_ERROR_INVALID);
  log.report(4, HEDDLE_ERROR_INVALID, "fourth");
  const Status error = log.error(stop_failed);
  EXPECT_EQ(error.diagnostic().node, "step1");
  EXPECT_TRUE(contains(error, "first") && contains(error, "on cpu:0 with inputs f32[2, 3]")) << error.text();
  ASSERT_EQ(error.diagnostic().attached.size(), 2u);
  EXPECT_EQ(error.diagnostic().attached[0].node, "step3");
  EXPECT_EQ(error.diagnostic().attached[1].node, "step4");
}

TEST(FailureLog, AStepWithoutInputsIsNotSaidToHaveSome) {
  Plan plan = plan_of(1);
  plan.steps[0].inputs.clear();
  FailureLog log(plan);
  log.report(0, HEDDLE_ERROR_INVALID, "it failed");
  const std::string text = log.error(stop_failed).text();
  EXPECT_NE(text.find("on cpu:0"), std::string::npos) << text;
  EXPECT_EQ(text.find("with inputs"), std::string::npos) << text;
}

// Steps that were requested to end because another failed are attached after the others, whatever their place in the plan.
// A step that was signalled to end says nothing beside the failure because of which it was.
TEST(FailureLog, WhatWasCancelledIsNotTheReason) {
  const Plan plan = plan_of(4);
  FailureLog log(plan);
  log.report(0, HEDDLE_ERROR_CANCELLED, "told to end");
  log.report(2, HEDDLE_ERROR_INVALID, "the reason");
  log.report(3, HEDDLE_ERROR_INVALID, "another");
  const Status error = log.error(stop_failed);
  EXPECT_EQ(error.diagnostic().node, "step2");
  ASSERT_EQ(error.diagnostic().attached.size(), 1u);
  EXPECT_EQ(error.diagnostic().attached[0].node, "step3");
}

// Such a step is the reason if no other step failed and nothing had requested it to end.
TEST(FailureLog, AStepThatSaysByItselfThatItWasCancelledIsNamed) {
  const Plan plan = plan_of(4);
  FailureLog log(plan);
  log.report(2, HEDDLE_ERROR_CANCELLED);
  const Status error = log.error(stop_failed);
  EXPECT_EQ(error.code(), Code::kernel_failed);
  EXPECT_EQ(error.diagnostic().node, "step2");
  EXPECT_NE(error.text().find("answers that it was cancelled, and nothing had told it to end"), std::string::npos) << error.text();
  EXPECT_EQ(log.error(stop_cancelled).code(), Code::cancelled);
  EXPECT_EQ(log.error(stop_deadline).code(), Code::deadline_exceeded);
  const bool run_around_ends = true;
  EXPECT_EQ(log.error(stop_failed, run_around_ends).code(), Code::cancelled);
}

// A refusal by the host is reported beside the kernel's own text, and only if the step fails.
TEST(FailureLog, ARefusalStandsBesideTheKernelsWords) {
  const Plan plan = plan_of(4);
  FailureLog log(plan);
  log.note_refusal(1, {Code::kernel_failed, "it asked for too much", "mend the kernel"});
  EXPECT_EQ(log.error(stop_cancelled).code(), Code::cancelled);
  log.report(1, HEDDLE_ERROR_OUT_OF_MEMORY, "nothing came");
  const Status error = log.error(stop_failed);
  EXPECT_EQ(error.code(), Code::kernel_failed);
  EXPECT_EQ(error.diagnostic().node, "step1");
  EXPECT_EQ(error.diagnostic().message.rfind("nothing came: it asked for too much", 0), 0u) << error.text();
  log.clear();
  EXPECT_TRUE(log.refusal_of(1).ok());
}

// A lost device refuses all that follows: these refusals are reported only if there is no other failure.
TEST(FailureLog, WhatALostDeviceRefusedIsNoNewsBesideWhatLostIt) {
  Plan plan = plan_of(3);
  for (PlanStep& step : plan.steps) {
    step.on_device = std::make_unique<DeviceWork>();
    step.on_device->device = 1;
  }
  PlanDevice device;
  plan.devices.push_back(device);
  FailureLog log(plan);
  log.note(0, HEDDLE_ERROR_DEVICE_LOST, "the device is lost");
  log.report(0, HEDDLE_ERROR_DEVICE_LOST);
  EXPECT_EQ(log.error(stop_failed).diagnostic().node, "step0");
  log.report(2, HEDDLE_ERROR_DEVICE_LOST, "an address");
  const Status error = log.error(stop_failed);
  EXPECT_EQ(error.diagnostic().node, "step2");
  EXPECT_TRUE(error.diagnostic().attached.empty()) << error.text();
}

// A kernel may leave a text and then not fail after all.
TEST(FailureLog, WhatWasOnlyNotedIsNoFailure) {
  const Plan plan = plan_of(2);
  FailureLog log(plan);
  log.note(0, HEDDLE_ERROR_INVALID, "said in passing");
  EXPECT_FALSE(log.reported_from(0));
  log.report(1, HEDDLE_ERROR_INTERNAL);
  EXPECT_TRUE(log.reported_from(1));
  EXPECT_FALSE(log.reported_from(2));
  const Status error = log.error(stop_failed);
  EXPECT_EQ(error.diagnostic().node, "step1");
  EXPECT_TRUE(error.diagnostic().attached.empty());
}

TEST(FailureLog, ACauseStandsUntilAKernelHasAWordOfItsOwn) {
  const Plan plan = plan_of(1);
  FailureLog log(plan);
  log.note_cause(0, {Code::shape_mismatch, "inside the subnet"});
  EXPECT_EQ(log.of_kernel(0, HEDDLE_ERROR_INVALID).code(), Code::shape_mismatch);
  log.note(0, HEDDLE_ERROR_INVALID, {});
  EXPECT_EQ(log.of_kernel(0, HEDDLE_ERROR_INVALID).code(), Code::shape_mismatch);
  log.note(0, HEDDLE_ERROR_INTERNAL, "my own");
  log.report(0, HEDDLE_ERROR_INVALID);
  EXPECT_EQ(log.error(stop_failed).code(), Code::kernel_failed);
  EXPECT_TRUE(contains(log.error(stop_failed), "my own"));
}

// Reports of a step after its first failure are consequences of that.
TEST(FailureLog, TheFirstReportOfAStepCounts) {
  const Plan plan = plan_of(1);
  FailureLog log(plan);
  log.report(0, HEDDLE_ERROR_DEVICE, "the peer is lost");
  log.note(0, HEDDLE_ERROR_CANCELLED, "told to end");
  log.note_cause(0, {Code::cancelled, "told to end"});
  log.report(0, HEDDLE_ERROR_CANCELLED, "cancelled");
  EXPECT_EQ(log.error(stop_failed).code(), Code::device_failed);
  EXPECT_TRUE(contains(log.error(stop_failed), "the peer is lost"));
}

TEST(FailureLog, WithoutAFailureTheRunWasToldToEnd) {
  const Plan plan = plan_of(1);
  FailureLog log(plan);
  EXPECT_EQ(log.error(stop_cancelled).code(), Code::cancelled);
  EXPECT_EQ(log.error(stop_deadline).code(), Code::deadline_exceeded);
  // A kernel that stops because the deadline passed did not fail.
  log.report(0, HEDDLE_ERROR_CANCELLED);
  EXPECT_EQ(log.error(stop_deadline).code(), Code::deadline_exceeded);
  log.clear();
  EXPECT_FALSE(log.reported_from(0));
  EXPECT_EQ(log.error(stop_cancelled).code(), Code::cancelled);
}

TEST(FailureLog, FencesOfADeviceGiveWayToWhatFailedBeforeThem) {
  Plan plan = plan_of(3);
  for (const size_t i : {0, 2}) plan.steps[i].on_device = std::make_unique<DeviceWork>();
  plan.steps[2].on_device->kind = DeviceWork::Kind::fence;
  FailureLog log(plan);
  log.report(2, HEDDLE_ERROR_INTERNAL);
  log.forget_fences(2);
  EXPECT_TRUE(log.reported_from(2));
  log.forget_fences(1);
  EXPECT_FALSE(log.reported_from(2));
  log.report(0, HEDDLE_ERROR_INTERNAL, "the kernel");
  const Status error = log.error(stop_failed);
  EXPECT_EQ(error.diagnostic().node, "step0");
  EXPECT_TRUE(error.diagnostic().attached.empty());
}

TEST(FailureLog, TakesNotesFromAllThreads) {
  constexpr uint32_t count = 64;
  const Plan plan = plan_of(count);
  FailureLog log(plan);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&log, t] {
      for (uint32_t step = t; step < count; step += 4) {
        log.note(step, HEDDLE_ERROR_INVALID, "said by " + std::to_string(step));
        log.report(step, HEDDLE_ERROR_INVALID);
      }
    });
  for (std::thread& thread : threads) thread.join();
  const Status error = log.error(stop_failed);
  EXPECT_EQ(error.diagnostic().node, "step0");
  EXPECT_EQ(error.diagnostic().attached.size(), count - 1);
}

}  // namespace
}  // namespace heddle
