// Compares symbolic derivatives with differences: of random programs, and of the expression of every operator that has one.
#include <gtest/gtest.h>

#include <set>

#include "derive/expression/difference_quotient.h"
#include "derive/expression/expression_derivative.h"
#include "derive/expression/random_programs.h"
#include "plugin/pointwise_lowering.h"
#include "stages.h"

namespace heddle::testing_derive {
namespace {

using expression::Opcode;
using expression::Program;

struct Count {
  size_t points = 0, compared = 0, not_zero = 0;
};

// Compares derivatives by all inputs at one point, with and without the forward result.
void compare(const Program& program, const std::vector<double>& at, const std::string& what, Count& count) {
  std::vector<size_t> inputs;
  for (size_t i = 0; i < program.inputs.size(); ++i) inputs.push_back(i);
  std::vector<double> given = at;
  const double dy = 1.5;
  given.push_back(dy);
  given.push_back(*expression::evaluate<double>(program, at.data()));
  for (const ResultOfForward result : {ResultOfForward::kept, ResultOfForward::gone}) {
    auto derivatives = expression_derivatives(program, inputs, result);
    ASSERT_TRUE(derivatives.ok()) << what << ": " << derivatives.status().text();
    for (const size_t i : inputs) {
      ++count.points;
      const std::optional<double> numeric = difference_quotient(program, at, i);
      if (!numeric) continue;
      ++count.compared;
      count.not_zero += *numeric != 0;
      const double n = *numeric, a = *expression::evaluate<double>((*derivatives)[i], given.data()) / dy;
      EXPECT_LE(std::fabs(a - n) / std::fmax(1, std::fmax(std::fabs(a), std::fabs(n))), 1e-6)
          << what << "\nby x" << i << ": " << expression::print((*derivatives)[i]) << "\nis " << a << ", by differences " << n << " at "
          << ::testing::PrintToString(at);
      ASSERT_FALSE(std::isnan(a)) << what << "\nby x" << i << ": " << expression::print((*derivatives)[i]) << "\nat "
                                  << ::testing::PrintToString(at);
    }
  }
}

TEST(DerivativeDifferences, OfAThousandRandomPrograms) {
  uint64_t state = 20250611;
  RandomPrograms random(state);
  Count count;
  std::set<Opcode> met;
  size_t programs = 0, tried = 0;
  for (; programs < 1000 && tried < 4000 && !HasFailure(); ++tried) {
    Program program = random.any(1 + below(state, 3), 6 + below(state, 20));
    expression::prune(program);
    const size_t before = count.not_zero;
    for (int point = 0; point < 4; ++point) {
      std::vector<double> at;
      for (size_t i = 0; i < program.inputs.size(); ++i) at.push_back(uniform(state) * 4 - (below(state, 2) ? 2.0 : 0.0));
      compare(program, at, expression::print(program), count);
    }
    if (count.not_zero == before) continue;  // floor of a value, or constant
    ++programs;
    for (const expression::Instruction& i : program.code) met.insert(i.op);
  }
  std::printf("%zu of %zu points compared, %zu of them not 0, of %zu programs with derivatives among %zu\n", count.compared, count.points,
              count.not_zero, programs, tried);
  EXPECT_EQ(programs, 1000u);
  EXPECT_GT(count.compared * 3, count.points * 2);
  for (int op = 0; op < expression::opcode_count; ++op)
    EXPECT_EQ(met.contains(static_cast<Opcode>(op)), op < 2 || is_of_floats(static_cast<Opcode>(op)))
        << expression::info(static_cast<Opcode>(op)).name;
}

// Covers all values of string attributes that the expression depends on, and all subsets of the optional inputs.
void compare_operator(const OperatorSchema& schema, Count& count) {
  std::vector<std::vector<Attribute>> settings = {{}};
  for (uint32_t i = 0; i < schema.op->attribute_count; ++i) {
    const heddle_attribute_schema& attribute = *schema.op->attributes[i];
    if (attribute.type == HEDDLE_ATTRIBUTE_STRING)
      for (const std::string& word : expression::mentioned(schema.op->pointwise, std::string(attribute.name) + "_is_"))
        settings.push_back({{attribute.name, word}});
    if (attribute.type == HEDDLE_ATTRIBUTE_INT) settings.push_back({{attribute.name, int64_t{1}}});
  }
  const size_t inputs = schema.op->input_count;
  uint64_t state = 7;
  for (const std::vector<Attribute>& attributes : settings)
    for (size_t subset = 0; subset < size_t{1} << inputs; ++subset) {
      std::vector<bool> present;
      for (size_t i = 0; i < inputs; ++i) present.push_back((subset >> i & 1) != 0);
      bool all_required = true;
      for (size_t i = 0; i < schema.required_inputs; ++i) all_required = all_required && present[i];
      if (!all_required) continue;
      auto text = pointwise_program(schema, attributes, present);
      ASSERT_TRUE(text.ok()) << schema.name << ": " << text.status().text();
      Program program;
      for (size_t i = 0; i < inputs; ++i) program.input("x" + std::to_string(i));
      std::string error;
      ASSERT_TRUE(expression::parse(*text, {}, program, error)) << schema.name << ": " << error;
      for (int point = 0; point < 200; ++point) {
        std::vector<double> at;
        for (size_t i = 0; i < inputs; ++i) {
          const bool is_boolean = schema.op->inputs[i]->dtypes == HEDDLE_DTYPE_BIT(HEDDLE_BOOL);
          at.push_back(is_boolean ? static_cast<double>(below(state, 2)) : uniform(state) * 6 - 3);
        }
        compare(program, at, schema.name + ": " + *text, count);
        if (::testing::Test::HasFailure()) return;
      }
    }
}

TEST(DerivativeDifferences, OfEveryPointwiseOperatorOfTheCpuPlugin) {
  const std::shared_ptr<const RegistrySnapshot> registry = testing_stages::registry();
  size_t operators = 0;
  for (const std::string& domain : registry->domains())
    for (const std::string& name : registry->operator_names(domain)) {
      const OperatorSchema& schema = *registry->find_operator(domain, name);
      if (!schema.op->pointwise) continue;
      bool takes_f64 = false;
      for (uint32_t i = 0; i < schema.op->input_count; ++i)
        takes_f64 = takes_f64 || (schema.op->inputs[i]->dtypes & HEDDLE_DTYPE_BIT(HEDDLE_F64)) != 0;
      if (!takes_f64) continue;
      ++operators;
      Count count;
      compare_operator(schema, count);
      EXPECT_GT(count.compared * 4, count.points) << name << ": too few points were compared";
    }
  std::printf("%zu operators\n", operators);
  EXPECT_GE(operators, 50u) << "this test no longer sees the operators";
}

}  // namespace
}  // namespace heddle::testing_derive
