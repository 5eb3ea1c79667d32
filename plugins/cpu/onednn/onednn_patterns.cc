// The table of expressions that are post-ops. See onednn_patterns.h.
#include "onednn/onednn_patterns.h"

#include <cmath>

namespace heddle::cpu::onednn {
namespace {

using expression::Instruction;
using expression::Opcode;

// The sources of the post-op's alpha and beta. Names in the text besides acc and operand match any number.
struct Pattern {
  const char* text;
  dnnl_alg_kind_t algorithm;
  double alpha, beta;  // used unless a name below is matched
  enum class Set { none, a, b, ab, minus_b } set = Set::none;
};

using Set = Pattern::Set;
constexpr double no_bound = HUGE_VAL;
// linear is a fused multiplication and addition: one factor with -0 added, or 1 with one term, so that only one of them rounds and a zero
// keeps its sign.
const Pattern patterns[] = {
    {"max(acc, 0)", dnnl_eltwise_relu, 0, 0},
    {"select(lt(acc, 0), a * acc, acc)", dnnl_eltwise_relu, 0, 0, Set::a},
    {"select(le(acc, 0), a * acc, acc)", dnnl_eltwise_relu, 0, 0, Set::a},
    {"select(ge(acc, 0), acc, a * acc)", dnnl_eltwise_relu, 0, 0, Set::a},
    {"select(gt(acc, 0), acc, a * acc)", dnnl_eltwise_relu, 0, 0, Set::a},
    {"min(max(acc, a), b)", dnnl_eltwise_clip, 0, 0, Set::ab},
    {"max(min(acc, b), a)", dnnl_eltwise_clip, 0, 0, Set::ab},
    {"select(le(acc, a), a, select(ge(acc, b), b, acc))", dnnl_eltwise_clip, 0, 0, Set::ab},
    {"max(acc, a)", dnnl_eltwise_clip, 0, no_bound, Set::a},
    {"min(acc, b)", dnnl_eltwise_clip, -no_bound, 0, Set::b},
    {"select(le(acc, a), a, max(acc, a))", dnnl_eltwise_clip, 0, no_bound, Set::a},
    {"select(ge(acc, b), b, min(acc, b))", dnnl_eltwise_clip, -no_bound, 0, Set::b},
    {"acc * acc", dnnl_eltwise_square, 0, 0},
    {"acc * a", dnnl_eltwise_linear, 0, -0.0, Set::a},
    {"acc + b", dnnl_eltwise_linear, 1, 0, Set::b},
    {"acc - b", dnnl_eltwise_linear, 1, 0, Set::minus_b},
};

struct BinaryPattern {
  const char* text;
  dnnl_alg_kind_t algorithm;
};
const BinaryPattern binary_patterns[] = {
    {"acc + operand", dnnl_binary_add},     {"acc * operand", dnnl_binary_mul}, {"max(acc, operand)", dnnl_binary_max},
    {"min(acc, operand)", dnnl_binary_min}, {"acc - operand", dnnl_binary_sub}, {"acc / operand", dnnl_binary_div},
};

// For zeros of both signs min and max give the second operand, so they do not commute.
bool commutes(Opcode op) {
  return op == Opcode::add || op == Opcode::mul;
}

// Equality that distinguishes the signs of zeros.
bool same_number(double x, double y) {
  return x == y && std::signbit(x) == std::signbit(y);
}

// Unifies a pattern with an expression, from the results down.
class Matcher {
 public:
  Matcher(const expression::Program& pattern, const expression::Program& subject) : pattern_(pattern), subject_(subject) {}
  bool run() { return match(static_cast<int32_t>(pattern_.code.size()) - 1, static_cast<int32_t>(subject_.code.size()) - 1); }
  double number(const char* name) const { return *name == 'a' ? a_ : b_; }

 private:
  bool match(int32_t p, int32_t s) {
    const Instruction& want = pattern_.code[static_cast<size_t>(p)];
    const Instruction& have = subject_.code[static_cast<size_t>(s)];
    if (want.op == Opcode::input) return match_name(pattern_.inputs[static_cast<size_t>(want.a)], have);
    if (want.op != have.op) return false;
    if (want.op == Opcode::constant) return same_number(want.literal, have.literal);
    const double a = a_, b = b_;
    if (match_operands(want, have.a, have.b, have.c)) return true;
    a_ = a;
    b_ = b;
    return commutes(want.op) && match_operands(want, have.b, have.a, have.c);
  }
  bool match_operands(const Instruction& want, int32_t a, int32_t b, int32_t c) {
    return (want.a < 0 || match(want.a, a)) && (want.b < 0 || match(want.b, b)) && (want.c < 0 || match(want.c, c));
  }
  bool match_name(const std::string& name, const Instruction& have) {
    if (name == "acc" || name == "operand") return have.op == Opcode::input && subject_.inputs[static_cast<size_t>(have.a)] == name;
    if (have.op != Opcode::constant) return false;
    double& bound = name == "a" ? a_ : b_;
    if (std::isnan(bound)) bound = have.literal;
    return same_number(bound, have.literal);
  }

  const expression::Program& pattern_;
  const expression::Program& subject_;
  double a_ = std::nan(""), b_ = std::nan("");
};

// Parsed at the first use; in the order of post_op_texts().
const std::vector<expression::Program>& parsed_patterns() {
  static const std::vector<expression::Program> parsed = [] {
    std::vector<expression::Program> programs;
    for (const std::string& text : post_op_texts()) {
      std::string error;
      expression::Program& pattern = programs.emplace_back();
      if (!expression::parse(text, {}, pattern, error)) pattern.code.clear();
    }
    return programs;
  }();
  return parsed;
}

bool matches(const expression::Program& pattern, const expression::Program& program, double* a, double* b) {
  if (pattern.code.empty()) return false;
  Matcher matcher(pattern, program);
  if (!matcher.run()) return false;
  *a = matcher.number("a");
  *b = matcher.number("b");
  return true;
}

MatchedPostOp bound(const Pattern& pattern, double a, double b) {
  double alpha = pattern.alpha, beta = pattern.beta;
  if (pattern.set == Set::a || pattern.set == Set::ab) alpha = a;
  if (pattern.set == Set::b || pattern.set == Set::ab) beta = b;
  if (pattern.set == Set::minus_b) beta = -b;
  MatchedPostOp match = {MatchedPostOp::Kind::eltwise, pattern.algorithm, static_cast<float>(alpha), static_cast<float>(beta)};
  float lower = 0, upper = 0;
  match.drops_nan = is_clamp(match, &lower, &upper);
  // oneDNN's cache of primitives treats zeros of both signs as the same parameter: matches where the sign matters are not used.
  const bool negative_zero = (match.alpha == 0 && std::signbit(match.alpha)) || (match.beta == 0 && std::signbit(match.beta));
  if (pattern.algorithm == dnnl_eltwise_clip && negative_zero) return {};
  if (pattern.algorithm == dnnl_eltwise_linear && (match.alpha == 0 || (pattern.set != Set::a && match.beta == 0))) return {};
  // With equal bounds the result depends on the order. oneDNN scales values that are not above zero, including zeros, so that the sign of
  // the factor shows; and a relu of factor 0 is one with a bound.
  if (pattern.algorithm == dnnl_eltwise_clip && !(match.alpha < match.beta)) return {};
  if (pattern.set == Set::a && pattern.algorithm == dnnl_eltwise_relu && !(match.alpha > 0 && std::isfinite(match.alpha))) return {};
  return match;
}

}  // namespace

bool is_clamp(const MatchedPostOp& match, float* lower, float* upper) {
  if (match.kind != MatchedPostOp::Kind::eltwise) return false;
  const bool relu = match.algorithm == dnnl_eltwise_relu && match.alpha == 0;
  if (!relu && match.algorithm != dnnl_eltwise_clip) return false;
  *lower = relu ? 0.0f : match.alpha;
  *upper = relu ? HUGE_VALF : match.beta;
  return true;
}

MatchedPostOp match_post_op(const expression::Program& program) {
  double a = 0, b = 0;
  const expression::Program* parsed = parsed_patterns().data();
  for (const Pattern& pattern : patterns)
    if (matches(*parsed++, program, &a, &b)) return bound(pattern, a, b);
  for (const BinaryPattern& pattern : binary_patterns) {
    if (!matches(*parsed++, program, &a, &b)) continue;
    const bool drops_nan = pattern.algorithm == dnnl_binary_max || pattern.algorithm == dnnl_binary_min;
    return {MatchedPostOp::Kind::binary, pattern.algorithm, 0, 0, drops_nan};
  }
  return {};
}

std::vector<std::string> post_op_texts() {
  std::vector<std::string> texts;
  for (const Pattern& pattern : patterns) texts.emplace_back(pattern.text);
  for (const BinaryPattern& pattern : binary_patterns) texts.emplace_back(pattern.text);
  return texts;
}

}  // namespace heddle::cpu::onednn
