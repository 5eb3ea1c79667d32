// Pinned memory of the host: it contains the values that devices copy from and to, and nothing else.
#include "compile/plan_check/plan_check.h"
#include "late_nets.h"
#include "simulated.h"
#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_devices;
using testing_nets::subnet;
using testing_nets::yes;

HEDDLE_DEVICE_SUITE(DevicePinned);

SessionOptions whole_there() {
  SessionOptions options = silent();
  options.device = device_name(0);
  return options;
}

uint64_t pageable_copies(Context& context) {
  return counted(Internals::execution(context).plan(), &sim_counts::pageable_copies);
}

// Much work on the host, a small part of which goes to the device and back.
Net host_with_a_detour() {
  NetBuilder b("detour");
  const Shape large{128, 128};
  ValueId x = b.input("x", DType::f32, large);
  const auto product = [&](const char* name, ValueId of) {
    return on(b, "cpu:0", b.add1("MatMul", name, {of, b.constant(std::string("w") + name, whole_numbers(large, 1, 3))}));
  };
  x = product("b", on(b, "cpu:0", b.add1("Tanh", "t", {product("a", x)})));
  const ValueId sum = on(b, "cpu:0", b.add1("ReduceSum", "sum", {x, b.constant_ints("axes", {1})}));
  const ValueId there = on(b, device_name(0), b.add1("Softmax", "there", {sum}));
  b.output(on(b, "cpu:0", b.add1("Mul", "scaled", {x, there})));
  return b.finish();
}

// A loop on the device, with one operator of the body on the host.
Net loop_with_a_host_step() {
  NetBuilder body("trip"), b("loop");
  body.input("turn", DType::i64, Shape{});
  body.output(body.input("go_on", DType::boolean, Shape{}));
  const ValueId v = body.input("v", DType::f32, Shape{40});
  body.output(body.add1("Add", "next", {v, body.add1("Through", "here", {body.add1("Neg", "there", {v})}, {}, "host_only")}));
  const int64_t trips = 3;
  b.output(b.add("Loop", "loop",
                 {b.constant("trips", Blob::copy_of(DType::i64, Shape{}, &trips)), yes(b), b.input("v", DType::f32, Shape{40})}, 1,
                 {{"body", subnet(body)}})[0]);
  return b.finish();
}

TEST_P(DevicePinned, HoldsWhatDevicesCopyAlone) {
  HEDDLE_DEVICE_NEEDS(has_clock);
  auto prepared = prepare(device_runtime(2), host_with_a_detour(), silent());
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  // The sum, and later the value that comes back: 128 numbers each; feeds are not pinned.
  EXPECT_EQ(prepared->plan().pinned_part(), 512);
  EXPECT_GT(prepared->plan().arena_bytes, 64 * 1024);
  EXPECT_EQ(prepared->context.plan()->memory[0].pinned_bytes, 512);
  EXPECT_EQ(prepared->context.plan()->memory[0].peak_bytes, prepared->plan().context_bytes());
  auto host = prepare(device_runtime(2), on_the_host(host_with_a_detour()), silent());
  ASSERT_TRUE(host.ok());
  EXPECT_EQ(host->plan().pinned_part(), 0);
  ASSERT_TRUE(prepared->context.run().ok());
  ASSERT_TRUE(host->context.run().ok());
  EXPECT_EQ(outputs(prepared->context), outputs(host->context));
}

TEST_P(DevicePinned, APlanThatCopiesFromOtherMemoryIsWrong) {
  HEDDLE_DEVICE_NEEDS(has_clock);
  auto prepared = prepare(device_runtime(), host_with_a_detour(), silent());
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  auto& plan = const_cast<Plan&>(prepared->plan());
  EXPECT_TRUE(compiling::check(plan).ok());
  for (PlanValue& value : plan.values)
    if (value.name == plan.copies[0].value) value.place.offset -= plan.pinned_offset();
  const Status wrong = compiling::check(plan);
  EXPECT_NE(wrong.text().find("which is not in pinned memory"), std::string::npos) << wrong.text();
}

TEST_P(DevicePinned, NothingElseIsCopiedFromOrTo) {
  HEDDLE_DEVICE_NEEDS(has_clock);
  for (const Net& net : {mixed_net(), host_with_a_detour(), loop_with_a_host_step(), found()}) {
    SCOPED_TRACE(net.name);
    const SessionOptions options = net.name == "mixed" || net.name == "detour" ? silent(2) : whole_there();
    auto prepared = prepare(device_runtime(2), Net(net), options);
    ASSERT_TRUE(prepared.ok()) << prepared.status().text();
    EXPECT_GT(prepared->plan().pinned_part(), 0);
    ASSERT_TRUE(prepared->context.run().ok());
    const std::vector<std::vector<char>> right = outputs(prepared->context);
    const uint64_t before = pageable_copies(prepared->context);
    ASSERT_TRUE(prepared->context.run().ok());
    EXPECT_EQ(pageable_copies(prepared->context), before);
    // The same holds for a buffer of the caller's.
    const auto bytes = prepared->session.transient_bytes();
    ASSERT_TRUE(bytes.ok());
    std::byte* buffer = nullptr;
    const auto blob = Blob::allocate(DType::u8, Shape{*bytes}, &buffer);
    auto inside = prepared->session.prepare_in(buffer, *bytes);
    ASSERT_TRUE(inside.ok()) << inside.status().text();
    for (size_t i = 0; i < prepared->inputs.size(); ++i) ASSERT_TRUE(inside->bind_input(i, prepared->inputs[i]->data).ok());
    ASSERT_TRUE(inside->run().ok());
    EXPECT_EQ(pageable_copies(*inside), before);
    EXPECT_EQ(outputs(*inside), right);
  }
}

// Each context works at the end of the memory, and as much of it is pinned as any of them needs.
TEST_P(DevicePinned, ContextsShareTheMaximumOfBothParts) {
  HEDDLE_DEVICE_NEEDS(has_clock);
  const Runtime runtime = device_runtime(2);
  const SharedMemory memory;
  std::vector<Prepared> alone;
  std::vector<Context> contexts;
  int64_t most = 0;
  for (const Net& net : {mixed_net(), on_the_host(host_with_a_detour()), host_with_a_detour()}) {
    auto prepared = prepare(runtime, Net(net), silent(2));
    ASSERT_TRUE(prepared.ok()) << prepared.status().text();
    ASSERT_TRUE(prepared->context.run().ok());
    most = std::max(most, prepared->plan().context_bytes());
    auto context = prepared->session.prepare_on(memory);
    ASSERT_TRUE(context.ok()) << context.status().text();
    for (size_t i = 0; i < prepared->inputs.size(); ++i) ASSERT_TRUE(context->bind_input(i, prepared->inputs[i]->data).ok());
    alone.push_back(std::move(*prepared));
    contexts.push_back(std::move(*context));
  }
  EXPECT_EQ(Internals::workspace(memory)->host_bytes(), most);
  uint64_t before = 0;
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < contexts.size(); ++i) {
      ASSERT_TRUE(contexts[i].run().ok());
      EXPECT_EQ(outputs(contexts[i]), outputs(alone[i].context));
    }
    if (round == 0) before = pageable_copies(contexts[0]);
  }
  EXPECT_EQ(pageable_copies(contexts[0]), before);
}

}  // namespace
}  // namespace heddle
