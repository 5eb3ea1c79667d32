// Hazards of launches in groups, planted in simulated devices: the group never begins, as with a vendor's library, and the run says why
// when the device has waited long enough. The next run is right.
#include <cstdlib>

#include "collectives/participants.h"
#include "device/simulated.h"

namespace heddle {
namespace {

using namespace testing_collectives;

// Two sums on each of two devices.
struct Sums {
  Sums() : runtime(runtime_with_devices(2)) {
    NetBuilder b("sums");
    for (int d = 0; d < 2; ++d) {
      const std::string suffix = std::to_string(d);
      const ValueId x = b.input("x" + suffix, DType::f32, {4});
      const ValueId negative = b.add1("Neg", "negative" + suffix, {x});
      b.output(b.add1("AllReduce", "first" + suffix, {negative}, {{"communicator", world}}, "heddle"));
      b.output(b.add1("AllReduce", "second" + suffix, {x}, {{"communicator", world}}, "heddle"));
      for (size_t n = b.net().nodes.size() - 3; n < b.net().nodes.size(); ++n) b.net().nodes[n].device = sim(d);
    }
    auto opened = runtime.open(b.finish(), options_of({2, true}, ""));
    EXPECT_TRUE(opened.ok()) << opened.status().text();
    session.emplace(std::move(*opened));
    auto prepared = session->prepare();
    EXPECT_TRUE(prepared.ok()) << prepared.status().text();
    context.emplace(std::move(*prepared));
    for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(context->bind_input(i, x.data()).ok());
  }
  const Plan& plan() { return Internals::execution(*context).plan(); }
  size_t step(const std::string& name) {
    for (size_t i = 0; i < plan().steps.size(); ++i)
      if (plan().steps[i].name == name) return i;
    ADD_FAILURE() << "the plan has no step " << name;
    return 0;
  }
  uint64_t inner_allocations(size_t device) { return testing_devices::counts(*plan().devices[device].device).inner_allocations; }

  Runtime runtime;
  const std::vector<float> x = {1, 2, 3, 4};
  std::optional<Session> session;
  std::optional<Context> context;
};

void expect_right(Sums& sums) {
  const Status status = sums.context->run();
  EXPECT_TRUE(status.ok()) << status.text();
  for (size_t i = 0; i < 4; ++i) {
    const float sign = i % 2 == 0 ? -1 : 1;
    EXPECT_EQ(copy_of(sums.context->output(i)).as<float>(), (std::vector<float>{2 * sign, 4 * sign, 6 * sign, 8 * sign})) << i;
  }
}

// Runs with `kind` planted in the launch of `name`, and returns the error.
std::string error_with(const std::string& kind, const std::string& name, uint64_t inner_allocations = 0) {
  const std::string step = std::to_string(Sums().step(name));
  const SimSetting rule("FAULTS", kind + "@" + step), timeout("GROUP_TIMEOUT", "200");
  Sums sums;
  const Status status = sums.context->run();
  EXPECT_EQ(status.code(), Code::device_failed) << status.text();
  EXPECT_EQ(sums.inner_allocations(0), inner_allocations);
  EXPECT_EQ(sums.inner_allocations(1), 0u);
  for (int run = 0; run < 50; ++run) expect_right(sums);
  return status.text();
}

void expect_in(const std::string& part, const std::string& text) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(GroupHazards, NothingIsWrongWithoutThem) {
  Sums sums;
  for (int run = 0; run < 3; ++run) expect_right(sums);
  for (const size_t device : {0, 1}) EXPECT_EQ(sums.inner_allocations(device), 0u);
}

// An observer sees a step of a group when all of its group is done.
TEST(GroupHazards, ObserversSeeSums) {
  Sums sums;
  std::map<std::string, std::vector<float>> seen;
  const StepObserver observer = [&](StepView& step) -> Status {
    const PlanStep& planned = sums.plan().steps[step.step()];
    if (planned.type != "AllReduce") return {};
    HEDDLE_TRY(const TensorView sum, step.read_output(0));
    seen[planned.name] = copy_of(sum).as<float>();
    return {};
  };
  RunOptions options;
  options.observer = &observer;
  const Status status = sums.context->run(options);
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(seen.size(), 4u);
  for (const auto& [name, values] : seen)
    EXPECT_EQ(values, name[0] == 'f' ? (std::vector<float>{-2, -4, -6, -8}) : (std::vector<float>{2, 4, 6, 8})) << name;
}

TEST(GroupHazards, AMemberThatIsMissing) {
  const std::string text = error_with("missing", "first1");
  expect_in("\"first0\" (heddle::AllReduce): its group has waited 200 ms: that of device 1 was never launched", text);
}

TEST(GroupHazards, AllMembersThatAreMissing) {
  const SimSetting rule("FAULTS", "missing:AllReduce");
  Sums sums;
  const Status status = sums.context->run();
  EXPECT_EQ(status.code(), Code::device_failed);
  expect_in("no launch of the group is left, as it was told to be", status.text());
  expect_right(sums);
}

TEST(GroupHazards, AnotherOrderOnOneDevice) {
  const std::string text = error_with("swapped", "first1");
  expect_in("its group has waited 200 ms: device ", text);
  expect_in(" is at AllReduce of step ", text);
}

TEST(GroupHazards, AnOrderThatNeverComes) {
  const std::string text = error_with("swapped", "second1");
  expect_in("its group has waited 200 ms: ", text);
  expect_in(" was to come after the next one", text);
}

TEST(GroupHazards, AnAllocationInside) {
  const std::string text = error_with("allocation", "second0", 1);
  expect_in("\"second0\" (heddle::AllReduce): its group has waited 200 ms: not all were launched while memory was allocated", text);
}

// A device that never ends its work before the group keeps the others waiting too.
TEST(GroupHazards, ADeviceThatIsSilent) {
  const std::string text = error_with("silent", "negative1");
  expect_in("its group has waited 200 ms: device 1 is at a wait for an event of step ", text);
}

}  // namespace
}  // namespace heddle
