// The tables of states of a run (run/run_state.h) and of a subnet run that may leave its thread (run/subnets/leave_state.h): every row is
// taken by runs of real nets, but two that only chance brings about, and every other event is refused.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "heddle/session.h"
#include "run/run_state.h"
#include "run/subnets/leave_state.h"
#include "session/session_impl.h"
#include "small_nets.h"
#include "started_crew.h"
#include "state_tables.h"

namespace heddle {
namespace {

using testing_nets::blob;
using testing_nets::subnet;
using testing_nets::view;

const Shape eight{8};

TEST(RunStates, OtherEventsAreRefused) {
  expect_only_its_rows<RunRules>();
}

TEST(LeaveStates, OtherEventsAreRefused) {
  expect_only_its_rows<LeaveRules>();
}

// w = x, in the update phase, by an asynchronous operator or by one of the host.
Net updating_net(Crew& crew, bool asynchronous) {
  NetBuilder b("updates");
  const ValueId w = b.variable("w", blob(eight, 0, 0)), x = b.input("x", DType::f32, eight);
  const ValueId next =
      asynchronous ? started(b, "update", {w, x}, crew, 0, "StartedUpdate") : b.add1("AccumulateAdd", "update", {w, x}, {}, "heddle");
  b.updates(next, w);
  b.output(x);
  return b.finish();
}

// A context whose steps are held until the crew releases them: given up once, asked while it is busy, and used again, or destroyed if not
// `again`.
void give_up_and_recover(Session& session, Crew& crew, bool again) {
  auto context = session.prepare();
  ASSERT_TRUE(context.ok()) << context.status().text();
  EXPECT_EQ(context->run().code(), Code::missing_input);  // refused when it opens
  const std::vector<float> x(8, 1);
  ASSERT_TRUE(context->bind_input(0, x.data()).ok());
  EXPECT_TRUE(context->run().ok());
  crew.fate = [](int64_t) { return Fate::held; };
  std::thread canceller([&] {
    wait_until([&] { return crew.under_way == 1; });
    context->cancel();
  });
  Status status = context->run();
  canceller.join();
  EXPECT_NE(status.text().find("has not completed"), std::string::npos) << status.text();
  status = context->run();
  EXPECT_EQ(status.code(), Code::busy) << status.text();
  crew.release();
  wait_until([&] { return crew.under_way == 0; });
  crew.fate = [](int64_t) { return Fate::late; };
  if (!again) return;
  do status = context->run();
  while (status.code() == Code::busy);
  EXPECT_TRUE(status.ok()) << status.text();
}

TEST(RunStates, EveryTransitionIsTaken) {
  HEDDLE_NEEDS_ASSERTIONS();
  const RowsTaken<RunRules> taken;
  const Runtime runtime = runtime_on(nullptr, 2);
  Crew crew(3);
  crew.abort = [](Starter*, const heddle_run_context*, int64_t) {};
  NetBuilder b("held");
  b.output(started(b, "held", {b.input("x", DType::f32, eight)}, crew, 0));
  Session plain = testing_nets::open(runtime, b.finish());
  give_up_and_recover(plain, crew, true);
  Session updates = testing_nets::open(runtime, updating_net(crew, true));
  give_up_and_recover(updates, crew, false);
  wait_until([&] {  // if its step was about to complete, the context is kept until it has
    Runtime(runtime).trim();
    return Internals::of(runtime).outstanding->kept() == 0;
  });
  Session made = testing_nets::open(runtime, updating_net(crew, false));
  const std::vector<float> x(8, 1);
  EXPECT_TRUE(made.run({view(x.data(), DType::f32, eight)}).ok());
  EXPECT_EQ(taken.missing(), "");
}

// A net whose operator runs a subnet with an asynchronous step and makes mistake number `mistake` with it (0: none). `pending` counts how
// often the run has left its thread.
Net careless_net(Crew& crew, int64_t mistake, std::atomic<int>& pending) {
  NetBuilder first("first"), second("second"), b("outer");
  first.output(started(first, "inside", {first.input("x", DType::f32, eight)}, crew, 0));
  second.output(second.add1("Neg", "neg", {second.input("x", DType::f32, eight)}));
  b.output(b.add1("Careless", "careless", {b.input("x", DType::f32, eight)},
                  {{"mistake", mistake},
                   {"pending", static_cast<int64_t>(reinterpret_cast<intptr_t>(&pending))},
                   {"first", subnet(first)},
                   {"second", subnet(second)}},
                  "started"));
  return b.finish();
}

// Runs the net; its step completes when `release` is called, after the run has left its thread.
void run_careless(const Runtime& runtime, int64_t mistake, bool succeeds, const std::function<void(Crew&, std::atomic<int>&)>& release) {
  Crew crew(17);
  std::atomic<int> pending{0};
  Session session = testing_nets::open(runtime, careless_net(crew, mistake, pending));
  const std::vector<float> x(8, 1);
  crew.fate = [](int64_t) { return Fate::held; };
  std::thread releaser([&] {
    wait_until([&] { return pending > 0; });
    release(crew, pending);
  });
  EXPECT_EQ(session.run({view(x.data(), DType::f32, eight)}).ok(), succeeds);
  releaser.join();
}

TEST(LeaveStates, EveryTransitionIsTaken) {
  HEDDLE_NEEDS_ASSERTIONS();
  const RowsTaken<LeaveRules> taken;
  const Runtime runtime = runtime_on(nullptr, 2);
  constexpr int64_t none = 0, does_not_ask_again = 5, lingers = 6;
  const auto complete = [](Crew& crew) {
    crew.release();
    wait_until([&] { return crew.completed == 1; });
  };
  const auto at_last = [&](Crew& crew, std::atomic<int>&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // for the kernel to return
    complete(crew);
  };
  run_careless(runtime, none, true, at_last);
  run_careless(runtime, does_not_ask_again, false, at_last);
  // The step completes before the kernel has returned.
  run_careless(runtime, lingers, true, [&](Crew& crew, std::atomic<int>& pending) {
    complete(crew);
    pending = 0;
  });
  // Between the engine's decision to leave and the note of it something comes up: only chance brings that about.
  LeaveState state;
  EXPECT_EQ(state.on(LeaveRules::Event::start), LeaveState::State::running);
  EXPECT_EQ(state.on(LeaveRules::Event::wake), LeaveState::State::running_woken);
  EXPECT_FALSE(state.is_away());
  EXPECT_EQ(state.on(LeaveRules::Event::leave), LeaveState::State::left_woken);
  EXPECT_TRUE(state.has_left());
  EXPECT_EQ(taken.missing(), "");
}

}  // namespace
}  // namespace heddle
