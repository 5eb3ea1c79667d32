// Compiles expression.h and expression_evaluate.h as a plugin's compiler does, as C++17. Reads texts, one a line, and prints the program of
// each to the bit, its canonical text, and its results for some elements; then numbers and their texts. Two builds of this program must
// print the same, whatever compiler, library and locale they have (expression_both_ways.sh). The optional argument is a locale, whose
// decimal point is a comma.
#include <cinttypes>
#include <clocale>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include "heddle/expression_evaluate.h"

namespace expression = heddle::expression;

namespace {

uint64_t bits_of(double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return std::isnan(value) ? 0 : bits;
}

std::string listed(const expression::Program& program) {
  std::string text;
  for (const std::string& name : program.inputs) text += name + " ";
  for (const expression::Instruction& i : program.code) {
    char line[120];
    std::snprintf(line, sizeof(line), "| %d %d %d %d %016" PRIx64 " ", static_cast<int>(i.op), i.a, i.b, i.c, bits_of(i.literal));
    text += line;
  }
  return text;
}

// Returns the last element of a run whose inputs are all `x`.
float run(const expression::Program& program, float x) {
  std::string error;
  const auto evaluator = expression::Evaluator<float>::of(program, error);
  if (!evaluator) return 0;
  std::vector<float> scratch(evaluator->scratch_bytes() / sizeof(float)), output(300);
  const std::vector<expression::Evaluator<float>::Input> inputs(program.inputs.size(), {&x, 0});
  evaluator->run(300, inputs.data(), output.data(), scratch.data());
  return output.back();
}

bool show(const std::string& text) {
  expression::Program program;
  std::string error;
  if (!expression::parse(text, {}, program, error)) {
    std::printf("%s: %s\n", text.c_str(), error.c_str());
    return true;
  }
  const std::string printed = expression::print(program);
  std::printf("%s\n  %s\n  %s\n", text.c_str(), listed(program).c_str(), printed.c_str());
  const std::string why = expression::refusal<double>(program);
  // Parsing the printed text gives the same operations, although statements come first.
  expression::Program again;
  again.inputs = program.inputs;
  bool same = expression::parse(printed, {}, again, error) && again.inputs == program.inputs &&
              expression::operations(again) == expression::operations(program);
  if (same && why.empty()) {
    const std::vector<double> inputs(program.inputs.size() + 1, 0.75);
    const double value = expression::evaluate(program, inputs.data()).value();
    std::printf("  is %016" PRIx64 " at 0.75, in f32 %016" PRIx64 "\n", bits_of(value), bits_of(static_cast<double>(run(program, 0.75f))));
    same = bits_of(expression::evaluate(again, inputs.data()).value()) == bits_of(value);
  } else {
    std::printf("  %s\n", why.c_str());
  }
  if (!same) std::printf("is read as another program: %s %s\n", listed(again).c_str(), error.c_str());
  return same;
}

// Returns true if parsing the printed number gives the same bits.
bool show_number(double value) {
  const std::string text = expression::detail::print_number(value);
  const char* const begin = text.c_str() + (text[0] == '-' ? 1 : 0);
  const char* const end = expression::detail::number_end(begin);
  double read = 0;
  const bool whole = *end == '\0' && expression::detail::read_number(begin, end, read);
  std::printf("%016" PRIx64 " %s\n", bits_of(value), text.c_str());
  if (whole && bits_of(text[0] == '-' ? -read : read) == bits_of(value)) return true;
  std::printf("is read as another number\n");
  return false;
}

bool show_numbers() {
  using Limits = std::numeric_limits<double>;
  bool good = true;
  const auto show_both = [&](double value) { good = show_number(value) && show_number(-value) && good; };
  // Around a power of two, neighbouring numbers are closer on one side than on the other.
  for (int exponent = -1074; exponent < 1024; ++exponent)
    for (const double value : {std::ldexp(1.0, exponent), std::nextafter(std::ldexp(1.0, exponent), 0.0), std::pow(10.0, exponent / 4)})
      if (value <= Limits::max()) show_both(value);
  uint64_t state = 1;
  for (int i = 0; i < 5000; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    double value = 0;
    std::memcpy(&value, &state, sizeof(value));
    if (std::isfinite(value)) show_both(value);
    show_both(static_cast<double>(state >> (state & 63)));
    show_both(static_cast<double>(state % 1000003) * 1e-3);
  }
  return good;
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1 && (!std::setlocale(LC_ALL, arguments[1]) || std::strcmp(std::localeconv()->decimal_point, ",") != 0)) {
    std::fprintf(stderr, "no locale \"%s\" with a comma\n", arguments[1]);
    return 2;
  }
  bool good = true;
  for (std::string line; std::getline(std::cin, line);) good = show(line) && good;
  for (const char* text :
       {"1.5e3 + .25", "1e999 * x", "x - 1e-999", "2e + x", "0x10", "1.", ".", "-.5e-1", "123456789012345678901234567890e-5 + x",
        "2.2250738585072011e-308", "9007199254740993 + x", "x + 1,5", "0e999 + x"})
    good = show(text) && good;
  return show_numbers() && good ? 0 : 1;
}
