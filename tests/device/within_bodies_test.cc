// If, Loop and Scan whose bodies capture values from outside: each operator, by the kind of value and by its place. The bits are the
// host's.
#include <fmt/format.h>

#include "lstm_loop.h"

namespace heddle {
namespace {

using namespace testing_devices;
using testing_nets::subnet;
using testing_nets::yes;

HEDDLE_DEVICE_SUITE(DeviceCaptures);

// Constants of up to 4,096 elements are known while the body is inferred, larger ones are not.
enum class Taken : uint8_t { small_constant, large_constant, variable, input, computed };
enum class By : uint8_t { branch, loop, scan, branch_in_loop };

constexpr Taken all_taken[] = {Taken::small_constant, Taken::large_constant, Taken::variable, Taken::input, Taken::computed};
constexpr By all_by[] = {By::branch, By::loop, By::scan, By::branch_in_loop};

ValueId taken(NetBuilder& b, Taken what, const Shape& shape) {
  switch (what) {
    case Taken::small_constant:
    case Taken::large_constant:
      return b.constant("k", whole_numbers(shape, 5, 2));
    case Taken::variable:
      return b.variable("k", whole_numbers(shape, 5, 2));
    case Taken::input:
      return b.input("k", DType::f32, shape);
    default:
      return b.add1("Neg", "k", {b.input("before_k", DType::f32, shape)});
  }
}

// y = x op k, in a body that captures both from outside.
std::shared_ptr<const Net> branch(const char* name, const char* type, const Shape& shape) {
  NetBuilder body(name);
  const ValueId x = body.input("x", DType::f32, shape), k = body.input("k", DType::f32, shape);
  body.output(body.add1(type, "o", {x, k}));
  return subnet(body);
}

std::shared_ptr<const Net> loop_body(const Shape& shape, bool branches) {
  NetBuilder body("again");
  body.input("turn", DType::i64, Shape{});
  const ValueId go_on = body.input("go_on", DType::boolean, Shape{});
  const ValueId x = body.input("x", DType::f32, shape), k = body.input("k", DType::f32, shape);
  body.output(body.add1("Identity", "still", {go_on}));
  body.output(branches ? body.add("If", "chosen", {go_on, x, k}, 1,
                                  {{"then_branch", branch("sum", "Add", shape)}, {"else_branch", branch("difference", "Sub", shape)}})[0]
                       : body.add1("Add", "o", {x, k}));
  return subnet(body);
}

Net capturing_net(By by, Taken what) {
  const Shape shape = what == Taken::large_constant ? Shape{5000} : Shape{4};
  NetBuilder b(fmt::format("captures {} {}", static_cast<int>(by), static_cast<int>(what)));
  const ValueId x = b.add1("Abs", "begin", {b.input("x", DType::f32, shape)}), k = taken(b, what, shape);
  if (by == By::branch) {
    b.output(b.add("If", "y", {b.input("c", DType::boolean, Shape{}), x, k}, 1,
                   {{"then_branch", branch("sum", "Add", shape)}, {"else_branch", branch("difference", "Sub", shape)}})[0]);
  } else if (by == By::scan) {
    NetBuilder body("step");
    const ValueId state = body.input("state", DType::f32, shape), slice = body.input("slice", DType::f32, Shape{});
    const ValueId inside = body.input("k", DType::f32, shape);
    body.output(body.add1("Add", "sum", {body.add1("Mul", "scaled", {inside, slice}), state}));
    body.output(body.add1("ReduceSum", "total", {inside}, {{"keepdims", int64_t{0}}}));
    for (const ValueId out : b.add("Scan", "y", {x, b.input("slices", DType::f32, Shape{3}), k}, 2,
                                   {{"body", subnet(body)}, {"num_scan_inputs", int64_t{1}}, {"captured", int64_t{1}}}))
      b.output(out);
  } else {
    b.output(b.add("Loop", "y", {number(b, "trips", 3), yes(b), x, k}, 1,
                   {{"body", loop_body(shape, by == By::branch_in_loop)}, {"captured", int64_t{1}}})[0]);
  }
  return b.finish();
}

std::vector<std::vector<char>> results_of_two_runs(const Net& net, const SessionOptions& options) {
  auto prepared = prepare(device_runtime(2), Net(net), options);
  EXPECT_TRUE(prepared.ok()) << prepared.status().text();
  if (!prepared.ok()) return {};
  std::vector<std::vector<char>> all;
  for (int run = 0; run < 2; ++run) {
    const Status status = prepared->context.run();
    EXPECT_TRUE(status.ok()) << status.text();
    for (std::vector<char>& output : outputs(prepared->context)) all.push_back(std::move(output));
  }
  return all;
}

SessionOptions placed_on_the_device() {
  SessionOptions options = silent();
  options.device = device_name(0);
  options.copies = Copies::automatic;
  return options;
}

TEST_P(DeviceCaptures, GiveTheBitsOfTheHost) {
  for (const By by : all_by)
    for (const Taken what : all_taken) {
      const Net net = capturing_net(by, what);
      SCOPED_TRACE(net.name);
      const std::vector<std::vector<char>> right = results_of_two_runs(net, {});
      ASSERT_FALSE(right.empty());
      EXPECT_EQ(results_of_two_runs(net, placed_on_the_device()), right);
    }
}

// The body captures a small constant, and works on a value whose extents only the run knows.
TEST_P(DeviceCaptures, OfALateBodyGiveTheBitsOfTheHost) {
  for (const bool computed : {false, true}) {
    NetBuilder b("late"), kept("kept"), other("other");
    const ValueId x = b.input("x", DType::f32, Shape{3, 4});
    const ValueId some = b.add1("NonZero", "some", {x});
    const ValueId k = taken(b, computed ? Taken::computed : Taken::small_constant, Shape{1});
    const ValueId found = b.add1("Cast", "found", {some}, {{"to", int64_t{1}}});
    for (NetBuilder* body : {&kept, &other}) {
      const ValueId value = body->input("v", DeclaredType()), inside = body->input("k", DeclaredType());
      body->output(body->add1(body == &kept ? "Add" : "Mul", "o", {value, inside}));
    }
    b.output(b.add("If", "y", {b.input("c", DType::boolean, Shape{}), found, k}, 1,
                   {{"then_branch", subnet(kept)}, {"else_branch", subnet(other)}})[0]);
    const Net net = b.finish();
    const std::vector<std::vector<char>> right = results_of_two_runs(net, {});
    ASSERT_FALSE(right.empty());
    EXPECT_EQ(results_of_two_runs(net, placed_on_the_device()), right) << computed;
  }
}

}  // namespace
}  // namespace heddle
