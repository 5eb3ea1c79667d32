#include "generate/reduce/reduce_fold.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "generate/dtype_names.h"

namespace heddle::cuda {
namespace {

bool is_real(heddle_dtype dtype) {
  return dtype == HEDDLE_F16 || dtype == HEDDLE_BF16 || dtype == HEDDLE_F32 || dtype == HEDDLE_F64;
}

// Returns the end of a dtype's range that the extremum of no elements is, as on the host.
std::string end_of_range(heddle_dtype dtype, bool lowest, const std::string& type) {
  if (is_real(dtype)) return std::string(lowest ? "-" : "") + "infinity_of((" + type + ")0)";
  const int bits = 8 * static_cast<int>(plugin::byte_width(dtype));
  const bool has_sign = dtype == HEDDLE_I8 || dtype == HEDDLE_I16 || dtype == HEDDLE_I32 || dtype == HEDDLE_I64;
  uint64_t end = has_sign ? uint64_t{1} << (bits - 1) : 0;  // as its bits
  if (has_sign && lowest) end = ~end + 1;
  if (!lowest) end = dtype == HEDDLE_BOOL ? 1 : has_sign ? end - 1 : bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  char text[40];
  std::snprintf(text, sizeof(text), "(%s)0x%" PRIx64 "ull", type.c_str(), end);
  return text;
}

// Returns a literal of f64 that every compiler reads the same.
std::string real_literal(double value, const std::string& type) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  char text[64];
  std::snprintf(text, sizeof(text), "(%s)__longlong_as_double(0x%" PRIx64 "ll)", type.c_str(), bits);
  return text;
}

// Returns sums of `term`: for integers in 64 bits, for real numbers in `S`.
FoldText sum_text(const std::string& S, const std::string& term, const std::string& value) {
  return {S, "A{}", "added(a, " + term + ")", "joined(a, b)", value, ""};
}

std::string extreme_text(bool maximum, bool last, const char* b) {
  return std::string("farther<") + (maximum ? "true, " : "false, ") + (last ? "true" : "false") + ">(a, " + b + ")";
}

// Returns the fold of integers: sums in i64 or u64, which wrap.
FoldText integer_fold(const ReduceShape& shape) {
  const std::string C = compute_type(shape.input), wide = C == "u64" ? "u64" : "i64", S = "Plain<" + wide + ">", x = "(" + wide + ")x";
  switch (shape.kind) {
    case ReduceKind::mean:
      return sum_text(S, x, "p.divisor == 0 ? (" + wide + ")0 : value_of(a) / (" + wide + ")p.divisor");
    case ReduceKind::l1:
      return sum_text(S, C == "u64" ? x : "op_abs(" + x + ")", "value_of(a)");
    case ReduceKind::l2:
      return sum_text("Plain<double>", "(double)x * (double)x", "(" + wide + ")op_sqrt(value_of(a))");
    case ReduceKind::sum_square:
      return sum_text(S, "op_mul(" + x + ", " + x + ")", "value_of(a)");
    case ReduceKind::log_sum:
      return sum_text(S, x, "(" + wide + ")op_log((double)value_of(a))");
    case ReduceKind::product:
      return {wide, "(A)1", "op_mul(a, " + x + ")", "op_mul(a, b)", "a", ""};
    default:
      return sum_text(S, x, "value_of(a)");
  }
}

// Returns the fold of floats, in C. Products, whose errors accumulate and which may leave the range of f32 halfway, are in f64, and so are
// the squares of a norm, which may be beyond f32 where the norm is not.
FoldText real_fold(const ReduceShape& shape) {
  const std::string C = compute_type(computed_in(shape));
  const std::string S = sum_type(shape.input, C), value = "value_of(a)", count = "(C)p.divisor", epsilon = "(C)p.epsilon";
  const std::string square = "op_mul(x, x)", one = "One<" + C + ">", softened = "Softened<" + C + ">", moments = "Moments<" + C + ">";
  const auto known = [](FoldText text, const std::string& result) {
    text.result = result;
    return text;
  };
  switch (shape.kind) {
    case ReduceKind::mean:
      return sum_text(S, "x", value + " / " + count);
    case ReduceKind::mean_shift:
      return known(sum_text(S, "x", "mean_of(a, p.divisor)"), "Mean<" + C + ">");
    case ReduceKind::l1:
      return sum_text(S, "op_abs(x)", value);
    case ReduceKind::l2:
      return sum_text("Plain<double>", "(double)x * (double)x", "(" + C + ")op_sqrt(" + value + ")");
    case ReduceKind::sum_square:
      return sum_text(S, square, value);
    case ReduceKind::log_sum:
      return sum_text(S, "x", "op_log(" + value + ")");
    case ReduceKind::power: {
      const std::string p = real_literal(shape.exponent, C), inverse = real_literal(1 / shape.exponent, C);
      return sum_text(S, "op_pow(op_abs(x), " + p + ")", "op_pow(" + value + ", " + inverse + ")");
    }
    case ReduceKind::log_sum_exp:
      return sum_text(S, "op_exp(x - shift)", "shift + op_log(" + value + ")");
    case ReduceKind::softened:
      return known(sum_text(S, "op_exp(x - shift)", softened + "{shift, (C)1 / " + value + "}"), softened);
    case ReduceKind::softened_log:
      return known(sum_text(S, "op_exp(x - shift)", softened + "{shift, op_log(" + value + ")}"), softened);
    case ReduceKind::moments:
    case ReduceKind::moments_beside:
      return {
          "Spread<" + S + ">",
          "A{}",
          "added(a, away_from(shift, x))",
          "joined(a, b)",
          "moments_of<" + std::string(shape.kind == ReduceKind::moments_beside ? "true" : "false") + ">(shift, a, p.divisor, p.epsilon)",
          moments};
    case ReduceKind::inverse_root:
      return known(sum_text(S, square, one + "{(C)1 / op_sqrt(" + value + " / " + count + " + " + epsilon + ")}"), one);
    case ReduceKind::norm1:
      return known(sum_text(S, "op_abs(x)", one + "{" + value + "}"), one);
    case ReduceKind::norm2:
      return known(sum_text(S, square, one + "{op_sqrt(" + value + ")}"), one);
    case ReduceKind::product:
      return {"double", "(A)1", "a * (double)x", "a * b", "a", ""};
    default:
      return sum_text(S, "x", value);
  }
}

}  // namespace

FoldText fold_text(const ReduceShape& shape) {
  const std::string C = compute_type(computed_in(shape)), extreme = "Extreme<" + C + ">";
  switch (shape.kind) {
    case ReduceKind::max:
      return {C, end_of_range(shape.input, true, C), "op_max(a, x)", "op_max(a, b)", "a", ""};
    case ReduceKind::min:
      return {C, end_of_range(shape.input, false, C), "op_min(a, x)", "op_min(a, b)", "a", ""};
    case ReduceKind::largest_shift:
      return {C, end_of_range(shape.input, true, C), "op_max(a, x)", "op_max(a, b)", "a", C};
    case ReduceKind::finite_shift:
      return {C, end_of_range(shape.input, true, C), "op_max(a, x)", "op_max(a, b)", "is_finite(a) ? a : (C)0", C};
    case ReduceKind::arg_max:
    case ReduceKind::arg_min: {
      const bool maximum = shape.kind == ReduceKind::arg_max;
      return {extreme,
              "A{(C)0, -1}",
              extreme_text(maximum, shape.last_index, "A{x, (i64)position}"),
              extreme_text(maximum, shape.last_index, "b"),
              "a.index",
              ""};
    }
    case ReduceKind::first_largest:
      return {extreme, "A{(C)0, -1}", extreme_text(true, false, "A{x, (i64)position}"), extreme_text(true, false, "b"), "a", extreme};
    default:
      return is_real(shape.input) ? real_fold(shape) : integer_fold(shape);
  }
}

}  // namespace heddle::cuda
