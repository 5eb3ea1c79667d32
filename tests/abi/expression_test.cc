// Tests how texts of expression.h are parsed and which are refused. expression_both_ways.sh compares compilers, libraries and locales.
#include "heddle/expression.h"

#include <gtest/gtest.h>

#include <limits>

namespace heddle {
namespace {

// Returns the program's one constant, or the error in the text.
std::string constant_in(const std::string& text) {
  expression::Program program;
  std::string error;
  if (!expression::parse(text, {}, program, error)) return error;
  return program.code.size() == 1 ? expression::print(program) : "more than one instruction";
}

TEST(Expression, NumbersAreTheNearestAndPrintedShortest) {
  EXPECT_EQ(constant_in("1.50e0"), "1.5");
  EXPECT_EQ(constant_in(".25E+1"), "2.5");
  EXPECT_EQ(constant_in("-7."), "-7");
  EXPECT_EQ(constant_in("-0"), "-0");
  EXPECT_EQ(constant_in("0.1000000000000000055511151231257827"), "0.1");
  EXPECT_EQ(constant_in("9007199254740993"), "9007199254740992");
  EXPECT_EQ(constant_in("5e-324"), "5e-324");
  EXPECT_EQ(constant_in("5.6843418860808015e-14"), "5.684341886080802e-14") << "2^-44";
  EXPECT_EQ(constant_in("1.7976931348623157e308"), "1.7976931348623157e+308");
  EXPECT_EQ(constant_in("0e999"), "0");
}

TEST(Expression, WhatIsNoNumberIsRefused) {
  EXPECT_EQ(constant_in("1e999"), "number out of range: 1e999");
  EXPECT_EQ(constant_in("-1e-999"), "number out of range: 1e-999");
  EXPECT_EQ(constant_in("."), "bad number");
  EXPECT_EQ(constant_in("1,5"), "unexpected ','");
  EXPECT_EQ(constant_in("0x10"), "unexpected 'x'");
  EXPECT_EQ(constant_in("2e"), "unexpected 'e'");
  EXPECT_EQ(constant_in("1.2.3"), "unexpected '.'");
}

// Only ASCII letters count as letters, however the host's locale classifies other bytes.
TEST(Expression, NamesAreLettersDigitsAndUnderlines) {
  expression::Program program;
  std::string error;
  ASSERT_TRUE(expression::parse("\t_a1 +\r\n B_2", {}, program, error)) << error;
  EXPECT_EQ(program.inputs, (std::vector<std::string>{"_a1", "B_2"}));
  for (const char* text : {"\xe4 + 1", "a\xa0+ 1"}) EXPECT_FALSE(expression::parse(text, {}, program, error)) << text;
}

}  // namespace
}  // namespace heddle
