// The bindings of a context: where views point to, what moves with the memory, and what is refused.
#include "context/bindings.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace heddle {
namespace {

constexpr int64_t value_bytes = 4 * sizeof(float);
constexpr size_t buffer_bytes = 256;

struct alignas(arena_alignment) Buffer {
  std::array<std::byte, buffer_bytes> bytes = {};
  float* at(int64_t offset) { return reinterpret_cast<float*>(bytes.data() + offset); }
};

// y = last(first(x)), all f32[4]; the intermediate value is at the beginning of the arena, y follows it. Nothing is ever run.
Plan chain() {
  Plan plan;
  plan.net_name = "chain";
  const auto value = [&](const char* name, MemoryPlace place) {
    PlanValue& v = plan.values.emplace_back();
    v.name = name;
    v.type.dtype = DType::f32;
    v.type.shape = Shape{4};
    v.place = place;
    return ValueId{static_cast<uint32_t>(plan.values.size() - 1)};
  };
  const ValueId x = value("x", {MemoryPlace::Kind::input, 0, 0, 0});
  const ValueId between = value("between", {MemoryPlace::Kind::arena, 0, 0, 0});
  const ValueId y = value("y", {MemoryPlace::Kind::arena, 0, 1, 64});
  plan.steps.resize(2);
  plan.steps[0].inputs.push_back({x, {}});
  plan.steps[0].outputs.push_back({between, {}});
  plan.steps[1].inputs.push_back({between, {}});
  plan.steps[1].outputs.push_back({y, {}});
  plan.inputs = {x};
  plan.outputs = {y};
  plan.output_staging = {-1};
  plan.arena_bytes = 128;
  return plan;
}

// The parts of a context of that plan, in a buffer of the test's.
struct Parts {
  explicit Parts(const Plan& plan, Buffer& buffer)
      : memory(*ContextMemory::create(plan, nullptr, buffer.bytes.data(), buffer_bytes)),
        views(plan, memory, nullptr),
        bindings(plan, memory, views) {}
  ContextMemory memory;
  ValueViews views;
  Bindings bindings;
};

bool says(const Status& status, const std::string& text) {
  return status.text().find(text) != std::string::npos;
}

TEST(RunBindings, StepsSeeWhatIsBound) {
  const Plan plan = chain();
  Buffer arena;
  Parts parts(plan, arena);
  float x[4] = {}, y[4] = {};
  heddle_tensor** const operands = parts.views.operands();
  EXPECT_EQ(operands[0]->data, nullptr);
  EXPECT_EQ(operands[1]->data, arena.at(0));
  EXPECT_EQ(operands[3]->data, arena.at(64));
  parts.bindings.bind_input(0, x);
  parts.bindings.bind_output(0, y);
  EXPECT_EQ(operands[0]->data, x);
  EXPECT_EQ(operands[3]->data, y);
  EXPECT_EQ(parts.bindings.output(0).data, y);
  parts.bindings.unbind();
  EXPECT_EQ(operands[0]->data, nullptr);
  EXPECT_EQ(operands[3]->data, arena.at(64));
}

TEST(RunBindings, EveryInputMustBeBound) {
  const Plan plan = chain();
  Buffer arena;
  Parts parts(plan, arena);
  EXPECT_EQ(parts.bindings.check_bound().code(), Code::missing_input);
  EXPECT_TRUE(says(parts.bindings.check_bound(), "\"x\""));
  float x[4] = {};
  parts.bindings.bind_input(0, x);
  parts.bindings.bind_input(0, x);
  EXPECT_TRUE(parts.bindings.check_bound().ok());
  parts.bindings.bind_input(0, nullptr);
  EXPECT_EQ(parts.bindings.check_bound().code(), Code::missing_input);
}

TEST(RunBindings, OutputsLieWhereNothingElseDoes) {
  const Plan plan = chain();
  Buffer arena, outside;
  Parts parts(plan, arena);
  parts.bindings.bind_input(0, outside.at(0));
  EXPECT_TRUE(parts.bindings.check_overlaps().ok());
  // Adjacent buffers do not overlap, one byte less does.
  parts.bindings.bind_output(0, outside.bytes.data() + value_bytes);
  EXPECT_TRUE(parts.bindings.check_overlaps().ok());
  parts.bindings.bind_output(0, outside.bytes.data() + value_bytes - 1);
  const Status over_input = parts.bindings.check_overlaps();
  EXPECT_EQ(over_input.code(), Code::invalid_argument);
  EXPECT_TRUE(says(over_input, "output \"y\" lies in the memory of input \"x\"")) << over_input.text();
  parts.bindings.bind_output(0, arena.at(64));
  EXPECT_TRUE(says(parts.bindings.check_overlaps(), "output \"y\" lies in the context's own memory"));
  // A second check gives the same error.
  EXPECT_FALSE(parts.bindings.check_overlaps().ok());
}

TEST(RunBindings, MoveWithTheMemoryAndLeaveResultsBehind) {
  const Plan plan = chain();
  Buffer first, second;
  Parts parts(plan, first);
  float x[4] = {}, y[4] = {};
  parts.bindings.bind_input(0, x);
  EXPECT_EQ(parts.bindings.output(0).data, nullptr);  // nothing has run
  parts.bindings.begin_run();
  EXPECT_EQ(parts.bindings.output(0).data, first.at(64));
  const auto move_to = [&](Buffer& buffer) {
    parts.memory.move_to(buffer.bytes.data());
    parts.views.move();
    parts.bindings.move();
  };
  move_to(second);
  EXPECT_EQ(parts.bindings.output(0).data, nullptr);
  heddle_tensor** const operands = parts.views.operands();
  EXPECT_EQ(operands[0]->data, x);
  EXPECT_EQ(operands[1]->data, second.at(0));
  EXPECT_EQ(operands[3]->data, second.at(64));
  // A bound output stays bound; one that is unbound later is in the current memory.
  parts.bindings.bind_output(0, y);
  move_to(first);
  EXPECT_EQ(operands[3]->data, y);
  parts.bindings.bind_output(0, nullptr);
  EXPECT_EQ(operands[3]->data, first.at(64));
}

// Two outputs are one value: the first is computed in the bound buffer, the second is copied.
TEST(RunBindings, SecondOutputsOfTheSameBytesAreCopied) {
  Plan plan = chain();
  plan.outputs.push_back(plan.outputs[0]);
  plan.output_staging.push_back(-1);
  Buffer arena;
  Parts parts(plan, arena);
  float y[4] = {}, again[4] = {};
  parts.bindings.bind_output(0, y);
  parts.bindings.bind_output(1, again);
  ASSERT_EQ(parts.views.operands()[3]->data, y);
  y[2] = 7;
  EXPECT_TRUE(parts.bindings.copy_outputs({}).ok());
  EXPECT_EQ(again[2], 7);
}

TEST(RunBindings, ContentsThatDecideShapesAreThoseOfThePlan) {
  Plan plan = chain();
  const float known[4] = {1, 2, 3, 4};
  plan.known_inputs.push_back({0, Blob::copy_of(DType::f32, Shape{4}, known)});
  Buffer arena;
  Parts parts(plan, arena);
  float x[4] = {1, 2, 3, 4};
  parts.bindings.bind_input(0, x);
  EXPECT_TRUE(parts.bindings.check_contents().ok());
  x[3] = 5;
  const Status other = parts.bindings.check_contents();
  EXPECT_EQ(other.code(), Code::shape_mismatch);
  EXPECT_TRUE(says(other, "input \"x\" decides shapes")) << other.text();
}

// A step that reads the bytes under another layout has a view of its own, which follows the value's.
TEST(RunBindings, ViewsUnderAnotherLayoutAreBoundToo) {
  Plan plan = chain();
  heddle_layout columns = {};
  columns.rank = 1;
  plan.steps[0].inputs[0].layout = plan.steps[1].inputs[0].layout = columns;
  Buffer first, second;
  Parts parts(plan, first);
  float x[4] = {};
  parts.bindings.bind_input(0, x);
  EXPECT_EQ(parts.views.size(), 5u);
  EXPECT_EQ(&parts.views.value(3), &plan.values[0]);
  EXPECT_EQ(&parts.views.value(4), &plan.values[1]);
  EXPECT_EQ(parts.views.operands()[0]->data, x);
  parts.memory.move_to(second.bytes.data());
  parts.views.move();
  EXPECT_EQ(parts.views.operands()[2]->data, second.at(0));
}

TEST(ContextMemory, RefusesBuffersThatAreTooSmallOrUnaligned) {
  const Plan plan = chain();
  Buffer buffer;
  const auto code = [&](int64_t offset, int64_t bytes) {
    const auto memory = ContextMemory::create(plan, nullptr, buffer.bytes.data() + offset, bytes);
    return memory.ok() ? Code::ok : memory.status().code();
  };
  EXPECT_EQ(code(0, 128), Code::ok);
  EXPECT_EQ(code(64, 128), Code::ok);
  EXPECT_EQ(code(0, 127), Code::invalid_argument);
  EXPECT_EQ(code(0, -1), Code::invalid_argument);
  EXPECT_EQ(code(32, 128), Code::invalid_argument);
}

TEST(ContextMemory, ThreadsHaveScratchOfTheirOwnBehindTheArena) {
  Plan plan = chain();
  plan.thread_scratch_bytes = 64;
  plan.max_threads = 2;
  plan.steps[1].scratch_offset = 64;
  plan.steps[1].scratch_bytes = 10;
  Buffer buffer;
  const auto memory = *ContextMemory::create(plan, nullptr, buffer.bytes.data(), buffer_bytes);
  EXPECT_EQ(memory.thread_scratch(0), buffer.bytes.data() + 128);
  EXPECT_EQ(memory.thread_scratch(1), buffer.bytes.data() + 192);
  EXPECT_EQ(memory.scratch(1), buffer.bytes.data() + 64);
  EXPECT_EQ(memory.subnet_memory(1), buffer.bytes.data() + 128);
  plan.max_threads = 1;
  EXPECT_EQ(memory.thread_scratch(1), buffer.bytes.data() + 128);
}

}  // namespace
}  // namespace heddle
