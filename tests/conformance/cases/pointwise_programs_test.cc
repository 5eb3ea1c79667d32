// Tests that the programs which heddle::Pointwise is called with contain every opcode.
#include "conformance/cases/pointwise_programs.h"

#include <gtest/gtest.h>

#include <set>

#include "heddle/expression.h"

namespace heddle::conformance {
namespace {

TEST(PointwisePrograms, HaveEveryOpcode) {
  std::set<expression::Opcode> called;
  for (const PointwiseProgram& p : pointwise_programs()) {
    expression::Program program;
    std::string error;
    ASSERT_TRUE(expression::parse(p.text, {}, program, error)) << p.text << ": " << error;
    for (const expression::Instruction& instruction : program.code) called.insert(instruction.op);
  }
  for (int op = 0; op < expression::opcode_count; ++op)
    EXPECT_TRUE(called.contains(static_cast<expression::Opcode>(op))) << expression::info(static_cast<expression::Opcode>(op)).name;
}

}  // namespace
}  // namespace heddle::conformance
