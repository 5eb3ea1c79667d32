// The evaluator for authors of kernels (heddle/expression_evaluate.h) against the CPU plugin's Pointwise: every opcode, in every type that
// the runtime computes in.
#include "heddle/expression_evaluate.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "operators/pointwise_support.h"

namespace heddle::testing {
namespace {

using expression::Evaluator;
using expression::Opcode;

// The largest number of f32 numbers between the two results. The runtime has functions of its own for these, which are within a few units
// in the last place of libm's. 0 requires the same bits, or a NaN of any bits for a NaN. All other types compute by the same functions and
// are equal.
const std::map<Opcode, int32_t> max_between = {
    {Opcode::add, 0},         {Opcode::sub, 0},        {Opcode::mul, 0},         {Opcode::div, 0},     {Opcode::min, 0},
    {Opcode::max, 0},         {Opcode::pow, 1},        {Opcode::mod, 0},         {Opcode::fmod, 0},    {Opcode::lt, 0},
    {Opcode::le, 0},          {Opcode::gt, 0},         {Opcode::ge, 0},          {Opcode::eq, 0},      {Opcode::ne, 0},
    {Opcode::logical_and, 0}, {Opcode::logical_or, 0}, {Opcode::logical_xor, 0}, {Opcode::bit_and, 0}, {Opcode::bit_or, 0},
    {Opcode::bit_xor, 0},     {Opcode::shift_left, 0}, {Opcode::shift_right, 0}, {Opcode::neg, 0},     {Opcode::abs, 0},
    {Opcode::exp, 2},         {Opcode::log, 2},        {Opcode::sqrt, 0},        {Opcode::rsqrt, 0},   {Opcode::reciprocal, 0},
    {Opcode::tanh, 3},        {Opcode::erf, 3},        {Opcode::sigmoid, 4},     {Opcode::floor, 0},   {Opcode::ceil, 0},
    {Opcode::round, 0},       {Opcode::sign, 0},       {Opcode::logical_not, 0}, {Opcode::bit_not, 0}, {Opcode::sin, 1},
    {Opcode::cos, 1},         {Opcode::tan, 1},        {Opcode::asin, 1},        {Opcode::acos, 1},    {Opcode::atan, 1},
    {Opcode::sinh, 0},        {Opcode::cosh, 0},       {Opcode::asinh, 0},       {Opcode::acosh, 0},   {Opcode::atanh, 0},
    {Opcode::log1p, 1},       {Opcode::expm1, 1},      {Opcode::isnan, 0},       {Opcode::isinf, 0},   {Opcode::select, 0},
};

template <class T>
std::vector<T> special_numbers() {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_floating_point_v<T>) {
    std::vector<T> values = {T(0),
                             T(1),
                             T(2),
                             T(3),
                             T(0.5),
                             T(1.5),
                             T(2.5),
                             T(1) / T(3),
                             T(0.9),
                             T(7),
                             T(10),
                             T(100),
                             T(1.0e9),
                             T(1e-7),
                             T(88),
                             T(104),
                             T(700),
                             T(1.1e-3),
                             T(16777217.0),
                             T(0.25),
                             T(20),
                             T(3.25),
                             Limits::min(),
                             Limits::denorm_min(),
                             Limits::max(),
                             Limits::infinity(),
                             Limits::quiet_NaN()};
    const size_t positive = values.size();
    for (size_t i = 0; i < positive; ++i) values.push_back(-values[i]);
    return values;
  } else {
    return {T(0),
            T(1),
            T(2),
            T(3),
            T(5),
            T(7),
            T(31),
            T(32),
            T(33),
            T(63),
            T(64),
            T(65),
            T(1000),
            static_cast<T>(-1),
            static_cast<T>(-2),
            static_cast<T>(-3),
            static_cast<T>(-7),
            static_cast<T>(-1000),
            Limits::min(),
            static_cast<T>(Limits::min() + 1),
            Limits::max(),
            static_cast<T>(Limits::max() - 1)};
  }
}

template <class T>
T random_number(std::mt19937_64& random) {
  if constexpr (std::is_floating_point_v<T>) {
    const int scale = static_cast<int>(random() % 12) - 6;
    return std::ldexp(static_cast<T>(static_cast<double>(random()) / 9.2e18 - 1), scale);
  } else {
    return static_cast<T>(random() >> (random() % 64));
  }
}

// Inputs of an operation: special values in all pairs, and random ones.
template <class T>
std::array<std::vector<T>, 3> operands_of(int arity) {
  const std::vector<T> special = special_numbers<T>();
  std::array<std::vector<T>, 3> operands;
  const size_t n = special.size();
  for (size_t i = 0; i < n; ++i)
    for (size_t k = 0; k < (arity == 1 ? 1 : n); ++k) {
      operands[0].push_back(special[i]);
      operands[1].push_back(special[k]);
      operands[2].push_back(special[(3 * i + 7 * k) % n]);
    }
  std::mt19937_64 random(7);
  for (int i = 0; i < 20000; ++i)
    for (auto& operand : operands) operand.push_back(random_number<T>(random));
  return operands;
}

template <class T>
bool equal_bits(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}
// Returns how many numbers a and b are apart in the order of f32. Zeros of different signs are as far apart as can be.
int64_t between(float a, float b) {
  const auto place = [](float x) {
    int32_t bits = 0;
    std::memcpy(&bits, &x, sizeof(bits));
    return bits < 0 ? int64_t{INT32_MIN} - bits : int64_t{bits};
  };
  return (a == 0 || b == 0) && std::signbit(a) != std::signbit(b) ? INT64_MAX : std::abs(place(a) - place(b));
}

template <class T>
::testing::AssertionResult agree(T own, T cpu, int32_t most) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(own) && std::isnan(cpu)) return ::testing::AssertionSuccess();
    if (std::is_same_v<T, float> && most > 0 && !std::isnan(own) && !std::isnan(cpu) && between(own, cpu) <= most)
      return ::testing::AssertionSuccess();
  }
  if (equal_bits(own, cpu)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << own << ", the cpu plugin's is " << cpu;
}

expression::Program parsed(const std::string& text, std::vector<std::string> inputs) {
  expression::Program program;
  program.inputs = std::move(inputs);
  std::string error;
  EXPECT_TRUE(expression::parse(text, {}, program, error)) << text << ": " << error;
  return program;
}

template <class T>
Evaluator<T> made(const expression::Program& program) {
  std::string error;
  auto evaluator = Evaluator<T>::of(program, error);
  EXPECT_TRUE(evaluator) << error;
  return std::move(evaluator).value();
}

template <class T>
std::vector<T> scratch_of(const Evaluator<T>& evaluator) {
  return std::vector<T>(evaluator.scratch_bytes() / sizeof(T));
}

// Returns the evaluator's results for those inputs, computed by blocks; checks that single elements give the same.
template <class T>
std::vector<T> evaluated(const expression::Program& program, const std::vector<std::vector<T>>& inputs) {
  const Evaluator<T> evaluator = made<T>(program);
  std::vector<T> scratch = scratch_of(evaluator), result(inputs[0].size());
  std::vector<typename Evaluator<T>::Input> sources;
  for (const auto& input : inputs) sources.push_back({input.data(), 1});
  evaluator.run(static_cast<int64_t>(result.size()), sources.data(), result.data(), scratch.data());
  for (size_t i = 0; i < result.size(); i += 97) {
    std::vector<T> element;
    for (const auto& input : inputs) element.push_back(input[i]);
    EXPECT_TRUE(agree(expression::evaluate<T>(program, element.data()).value(), result[i], 0));
  }
  return result;
}

template <class T>
void expect_agreement(Opcode op, int32_t most) {
  const expression::OpcodeInfo& info = expression::info(op);
  const auto operands = operands_of<T>(info.arity);
  std::string text = std::string(info.name) + "(x0";
  std::vector<std::string> names = {"x0"};
  std::vector<Tensor> tensors;
  std::vector<std::vector<T>> inputs;
  for (int i = 0; i < info.arity; ++i) {
    if (i > 0) text += ", " + names.emplace_back("x" + std::to_string(i));
    inputs.push_back(operands[static_cast<size_t>(i)]);
    tensors.push_back(tensor(Shape{static_cast<int64_t>(inputs.back().size())}, inputs.back()));
  }
  text += ")";
  const expression::Program program = parsed(text, names);
  OperatorCall call = call_of("Pointwise", tensors, {{"program", text}, {"dtype", static_cast<int64_t>(dtype_of<T>())}});
  call.domain = "heddle";
  const auto cpu = run_operator(cpu_registry(), call);
  const std::string why = expression::refusal<T>(program);
  if (!why.empty()) {
    ASSERT_FALSE(cpu.ok()) << text << " is refused here: " << why;
    EXPECT_NE(cpu.status().text().find(why), std::string::npos) << cpu.status().text();
    std::string error;
    EXPECT_FALSE(Evaluator<T>::of(program, error));
    EXPECT_EQ(error, why);
    EXPECT_FALSE(expression::evaluate<T>(program, nullptr));
    return;
  }
  ASSERT_TRUE(cpu.ok()) << cpu.status().text();
  const std::vector<T> expected = values<T>(*(*cpu)[0]), own = evaluated(program, inputs);
  int failures = 0;
  for (size_t i = 0; i < own.size() && failures < 5; ++i) {
    const auto same = agree(own[i], expected[i], most);
    if (same) continue;
    ++failures;
    ADD_FAILURE() << text << " of " << inputs[0][i] << ", " << operands[1][i] << ", " << operands[2][i] << " is " << same.message();
  }
}

// Every opcode: one without a row in the table, or without a function in the evaluator, fails.
TEST(ExpressionEvaluate, EveryOperationIsTheRuntimes) {
  ASSERT_EQ(max_between.size() + 2, static_cast<size_t>(expression::opcode_count)) << "input and constant have no row";
  for (int i = static_cast<int>(Opcode::constant) + 1; i < expression::opcode_count; ++i) {
    const auto op = static_cast<Opcode>(i);
    const auto row = max_between.find(op);
    ASSERT_NE(row, max_between.end()) << expression::info(op).name << " has no row";
    expect_agreement<float>(op, row->second);
    expect_agreement<double>(op, 0);
    expect_agreement<int32_t>(op, 0);
    expect_agreement<int64_t>(op, 0);
    expect_agreement<uint64_t>(op, 0);
  }
}

// Each operation has a meaning for some type; the sets of those without one for floats and for integers are documented for authors.
TEST(ExpressionEvaluate, RefusesWhatHasNoMeaningForTheType) {
  std::set<std::string> floats, integers;
  for (int i = static_cast<int>(Opcode::constant) + 1; i < expression::opcode_count; ++i) {
    const expression::OpcodeInfo& info = expression::info(static_cast<Opcode>(i));
    const std::vector<std::string> texts = {"(x)", "(x, x)", "(x, x, x)"};
    const expression::Program program = parsed(std::string(info.name) + texts[static_cast<size_t>(info.arity) - 1], {"x"});
    if (!expression::refusal<float>(program).empty()) floats.emplace(info.name);
    if (!expression::refusal<int64_t>(program).empty()) integers.emplace(info.name);
  }
  EXPECT_EQ(floats, (std::set<std::string>{"bit_and", "bit_or", "bit_xor", "bit_not", "shift_left", "shift_right"}));
  EXPECT_EQ(integers, (std::set<std::string>{"acos",  "acosh",   "asin",  "asinh", "atan",  "atanh", "cos",   "cosh",
                                             "erf",   "exp",     "expm1", "isinf", "isnan", "log",   "log1p", "reciprocal",
                                             "rsqrt", "sigmoid", "sin",   "sinh",  "sqrt",  "tan",   "tanh"}));
  EXPECT_EQ(expression::refusal<int32_t>(parsed("x * 0.5", {"x"})), "constant 0.5 is not an integer, but the inputs are");
  EXPECT_EQ(expression::refusal<int32_t>(parsed("select(lt(x, 3), nan, x)", {"x"})), "constant nan is not an integer, but the inputs are");
  EXPECT_EQ(expression::refusal<float>({}), "a program without instructions has no result");
  expression::Program broken = parsed("x + 1", {"x"});
  broken.code.back().b = 2;
  EXPECT_EQ(expression::refusal<float>(broken), "instruction 2 reads what does not stand before it");
  broken = parsed("x", {"x"});
  broken.inputs.clear();
  EXPECT_EQ(expression::refusal<float>(broken), "instruction 0 reads what does not stand before it");
}

// Literals beyond the range of an integer become the nearest end of the range.
TEST(ExpressionEvaluate, LiteralsOfIntegersAreTheRuntimes) {
  for (const char* text : {"x0 + 1e30", "x0 - 1e30", "x0 + 9223372036854775807", "x0 * 0 + 4294967296", "x0 * 0 - inf"}) {
    const int64_t x = 5;
    EXPECT_EQ(expression::evaluate(parsed(text, {"x0"}), &x).value(), values<int64_t>(*evaluate(text, {tensor<int64_t>(Shape{1}, {x})}))[0])
        << text;
  }
}

// Programs of several operations, whose values share registers: those of all operators that declare a text, and longer ones.
TEST(ExpressionEvaluate, TextsOfOperatorsAreTheRuntimes) {
  std::vector<std::string> texts = {"t = x0 * x1; s = t + t; select(lt(s, t), s - 1, t * s) + x0", "x1", "0.5", "a = x0 + x1; b = a * a; a",
                                    "((x0 + 1) * (x1 + 2) + (x0 + 3) * (x1 + 4)) / ((x0 + 5) * (x1 + 6) - (x0 + 7) * (x1 + 8))"};
  const auto snapshot = cpu_registry().snapshot();
  for (const auto& plugin : snapshot->plugins())
    for (const OperatorSchema& schema : plugin->operators)
      if (schema.op->pointwise) texts.emplace_back(schema.op->pointwise);
  ASSERT_GT(texts.size(), 40u);
  int compared = 0;
  for (const std::string& text : texts) {
    expression::Program program = parsed(text, {});
    // Inputs and attributes are treated alike, and printed under Pointwise's names for inputs.
    if (program.inputs.empty()) program.inputs.emplace_back();
    std::vector<std::vector<double>> inputs;
    std::vector<Tensor> tensors;
    std::mt19937_64 random(3);
    for (size_t i = 0; i < program.inputs.size(); ++i) {
      program.inputs[i] = "x" + std::to_string(i);
      std::vector<double>& input = inputs.emplace_back(700);
      for (double& x : input) x = random_number<double>(random);
      tensors.push_back(tensor(Shape{700}, input));
    }
    const std::string own = expression::refusal<double>(program);
    OperatorCall call =
        call_of("Pointwise", tensors, {{"program", expression::print(program)}, {"dtype", static_cast<int64_t>(DType::f64)}});
    call.domain = "heddle";
    const auto cpu = run_operator(cpu_registry(), call);
    EXPECT_EQ(own.empty(), cpu.ok()) << text << ": " << own << cpu.status().text();
    if (!own.empty() || !cpu.ok()) continue;
    ++compared;
    const std::vector<double> expected = values<double>(*(*cpu)[0]), result = evaluated(program, inputs);
    for (size_t i = 0; i < result.size(); ++i) ASSERT_TRUE(agree(result[i], expected[i], 0)) << text << ", element " << i;
  }
  EXPECT_GT(compared, 40);
}

TEST(ExpressionEvaluate, RunsOfAnyLengthWriteThatManyElements) {
  const Evaluator<float> evaluator = made<float>(parsed("acc * operand + 1", {"acc", "operand"}));
  for (const int64_t n : {0, 1, 7, 255, 256, 257, 1000}) {
    std::vector<float> acc(static_cast<size_t>(n)), output(acc.size() + 1, -1), scratch = scratch_of(evaluator);
    std::iota(acc.begin(), acc.end(), 0.0f);
    const float factor = 3;
    evaluator.run(n, {{acc.data(), 1}, {&factor, 0}}, output.data(), scratch.data());
    for (size_t i = 0; i < acc.size(); ++i) ASSERT_EQ(output[i], 3 * acc[i] + 1) << i << " of " << n;
    EXPECT_EQ(output.back(), -1) << n;
  }
}

TEST(ExpressionEvaluate, InputsMayLieApartAndOnesThatAreNotReadMayBeAbsent) {
  const Evaluator<float> evaluator = made<float>(parsed("acc * operand + acc", {"acc", "unused", "operand"}));
  std::vector<float> acc(3 * 1000), backwards(1000), output(1000), scratch = scratch_of(evaluator);
  std::iota(acc.begin(), acc.end(), 0.0f);
  std::iota(backwards.begin(), backwards.end(), 0.0f);
  evaluator.run(1000, {{acc.data() + 1, 3}, {nullptr, 0}, {backwards.data() + 999, -1}}, output.data(), scratch.data());
  for (size_t i = 0; i < output.size(); ++i) ASSERT_EQ(output[i], acc[3 * i + 1] * backwards[999 - i] + acc[3 * i + 1]) << i;
}

// This holds also where an input is read by the first and by the last operation.
TEST(ExpressionEvaluate, TheOutputMayBeTheMemoryOfAnInput) {
  const Evaluator<float> evaluator = made<float>(parsed("(acc + operand) * (operand - acc) + acc", {"acc", "operand"}));
  std::vector<float> acc(1000), operand(1000), scratch = scratch_of(evaluator);
  std::iota(acc.begin(), acc.end(), 0.0f);
  std::iota(operand.begin(), operand.end(), 7.0f);
  std::vector<float> apart(1000), over_acc = acc, over_operand = operand;
  evaluator.run(1000, {{acc.data(), 1}, {operand.data(), 1}}, apart.data(), scratch.data());
  evaluator.run(1000, {{over_acc.data(), 1}, {operand.data(), 1}}, over_acc.data(), scratch.data());
  evaluator.run(1000, {{acc.data(), 1}, {over_operand.data(), 1}}, over_operand.data(), scratch.data());
  EXPECT_EQ(over_acc, apart);
  EXPECT_EQ(over_operand, apart);
}

}  // namespace
}  // namespace heddle::testing
