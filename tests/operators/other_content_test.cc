// Kernels that read the content of an input while they run, called with another content than their output was prepared for: they refuse it
// or compute it right, and touch no byte outside their tensors. The registry shows which rows are missing.
#include "operators/other_content.h"

#include <map>
#include <set>

#include "operators/in_children.h"
#include "operators/kernel_run.h"
#include "operators/subnet_host.h"

namespace heddle::testing {
namespace {

using Row = OtherContentRow;

// If and Loop have tests of their own below.
const std::set<std::pair<std::string, std::string>> with_subnets = {{"If", "cond"}, {"Loop", "M"}, {"Loop", "cond"}};

int port_index(const OperatorSchema& schema, const std::string& port) {
  for (uint32_t i = 0; i < schema.op->input_count; ++i)
    if (schema.op->inputs[i]->name == port) return static_cast<int>(i);
  return -1;
}

TEST(OtherContent, EveryInputThatIsReadToPlanOrToIndexHasARow) {
  std::set<std::pair<std::string, std::string>> rows = with_subnets;
  for (const Row& row : other_content_rows()) rows.emplace(row.type, row.port);
  const auto snapshot = cpu_registry().snapshot();
  size_t found = 0;
  for (const std::string& domain : snapshot->domains())
    for (const std::string& name : snapshot->operator_names(domain)) {
      const heddle_operator& op = *snapshot->find_operator(domain, name)->op;
      for (uint32_t i = 0; i < op.input_count; ++i) {
        const heddle_port& port = *op.inputs[i];
        if (!(port.flags & (HEDDLE_PORT_SHAPE_OPERAND | HEDDLE_PORT_HOST)) && port.index_bound_port < 0) continue;
        ++found;
        EXPECT_TRUE(rows.count({name, port.name})) << "input " << port.name << " of " << name << " has no row in other_content_rows.cc";
      }
    }
  EXPECT_GT(found, 30u);
}

// Returns the prepared extents of the first output in the format of errors.
std::string prepared_text(const KernelRun& kernel) {
  std::string text = "[";
  const Shape& shape = kernel.types()[0].shape;
  for (int i = 0; i < shape.rank(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

// Checks the result of a kernel prepared for `row.call` and run with other content.
void check(const Row& row, const KernelRun& kernel, const OperatorCall& call, const ChildResult& ran) {
  ASSERT_EQ(ran.crash, "");
  const auto expected = run_operator(cpu_registry(), call);
  if (ran.answer.rfind("ok", 0) == 0) {
    ASSERT_TRUE(expected.ok()) << "the kernel took what inference refuses: " << expected.status().text();
    EXPECT_TRUE(ran.answer == KernelRun::outputs_text(*expected)) << "another result than that of a kernel prepared for this content";
    return;
  }
  // The kernel refused it. An input that decides extents is named with them.
  if (!(kernel.schema().op->inputs[port_index(kernel.schema(), row.port)]->flags & HEDDLE_PORT_SHAPE_OPERAND)) return;
  EXPECT_NE(ran.answer.find(row.port + " ["), std::string::npos) << ran.answer;
  EXPECT_NE(ran.answer.find("prepared as " + prepared_text(kernel)), std::string::npos) << ran.answer;
}

TEST(OtherContent, IsRefusedOrDoneRightWithinTheBytesOfTheTensors) {
  for (const Row& row : other_content_rows()) {
    KernelRun kernel(row.call);
    ASSERT_EQ(kernel.error(), "") << row.type;
    const int port = port_index(kernel.schema(), row.port);
    ASSERT_GE(port, 0) << row.type << " has no input " << row.port;
    std::vector<OperatorCall> calls = {row.call};
    for (const Tensor& other : row.others) calls.emplace_back(row.call).inputs[static_cast<size_t>(port)] = other;
    for (const Guard guard : {Guard::front, Guard::behind}) {
      const auto results = in_children(calls.size(), [&](size_t i) { return kernel.run(calls[i].inputs, guard); });
      EXPECT_EQ(results[0].answer.substr(0, 2), "ok") << row.type << " with the content that it was prepared for: " << results[0].answer;
      for (size_t i = 0; i < calls.size(); ++i) {
        SCOPED_TRACE(row.type + ", content " + std::to_string(i) + " of " + row.port + (guard == Guard::front ? ", front" : ", behind"));
        check(row, kernel, calls[i], results[i]);
      }
    }
  }
}

// ---------------------------------------------------------------- subnets

TEST(OtherContent, OfALoopsTripCountFitsItsStacksOrIsRefused) {
  const SubnetFunction body = [](const std::vector<Tensor>& in) { return std::vector<Tensor>{flag(true), in[2], in[2]}; };
  for (const int64_t trips : {int64_t{0}, int64_t{2}, int64_t{3}, int64_t{4}, int64_t{4000}, most, least}) {
    const ChildResult ran = in_child([&] {
      ControlCall call = {"Loop", {number(3), flag(true), floats({1, 2})}, {0}, {{"body", body}}, {{"captured", {0}}}, 2};
      call.run_with = {number(trips), flag(true), floats({1, 2})};
      call.guard = Guard::behind;
      const ControlResult r = run_control(call);
      return r.error.empty() ? "ok " + r.outputs[1]->shape.text() : r.error;
    });
    EXPECT_EQ(ran.crash, "") << trips;
    if (trips <= 3)
      EXPECT_EQ(ran.answer, "ok [" + std::to_string(std::max<int64_t>(trips, 0)) + ", 2]");
    else
      EXPECT_EQ(ran.answer, "with M [" + std::to_string(trips) +
                                "] there could be more iterations than the 3 that scan output 0 was prepared "
                                "for: prepare again with this content");
  }
  const ChildResult stopped = in_child([&] {
    ControlCall call = {"Loop", {number(3), flag(true), floats({1, 2})}, {0, 1}, {{"body", body}}, {{"captured", {0}}}, 2};
    call.run_with = {number(3), flag(false), floats({1, 2})};
    call.guard = Guard::behind;
    const ControlResult r = run_control(call);
    return r.error.empty() ? "ok " + r.outputs[1]->shape.text() : r.error;
  });
  EXPECT_EQ(stopped.crash + stopped.answer, "ok [0, 2]");
}

TEST(OtherContent, OfAConditionNeverWritesABranchIntoTheOthersOutput) {
  const SubnetFunction itself = [](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0]}; };
  const SubnetFunction longer = [](const std::vector<Tensor>&) { return std::vector<Tensor>{counted({3000})}; };
  const ChildResult ran = in_child([&] {
    ControlCall call = {"If", {flag(true), floats({1, 2})}, {0}, {{"then_branch", itself}, {"else_branch", longer}}, {}};
    call.run_with = {flag(false), floats({1, 2})};
    call.guard = Guard::behind;
    return run_control(call).error;
  });
  EXPECT_EQ(ran.crash, "");
  EXPECT_EQ(ran.answer, "an output does not fit");
}

}  // namespace
}  // namespace heddle::testing
