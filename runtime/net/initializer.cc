#include "net/initializer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "base/element.h"
#include "base/half.h"
#include "base/text/text.h"
#include "heddle/op/philox.h"
#include "net/call_text.h"

namespace heddle {
namespace {

struct Known {
  const char* name;
  Initializer::Rule rule;
  int numbers;                      // how many the rule is written with
  std::optional<double> otherwise;  // the default of one that may be left out
};
constexpr Known known[] = {
    {"constant", Initializer::Rule::constant, 1, {}},
    {"uniform", Initializer::Rule::uniform, 2, {}},
    {"normal", Initializer::Rule::normal, 2, {}},
    {"xavier_uniform", Initializer::Rule::xavier_uniform, 1, 1.0},
    {"xavier_normal", Initializer::Rule::xavier_normal, 1, 1.0},
    {"kaiming_uniform", Initializer::Rule::kaiming_uniform, 1, 1.4142135623730951},
    {"kaiming_normal", Initializer::Rule::kaiming_normal, 1, 1.4142135623730951},
    {"orthogonal", Initializer::Rule::orthogonal, 1, 1.0},
};

Status not_one(std::string_view text) {
  return {
      Code::syntax, fmt::format("{} is no initializer", quoted(std::string(text))),
      "write constant(x), uniform(low, high), normal(mean, deviation), xavier_uniform(gain), xavier_normal(gain), kaiming_uniform(gain), "
      "kaiming_normal(gain) or orthogonal(gain), and after it, if at all, as NAME"};
}

// Separates a rule from the name of the variable whose numbers it draws. No rule contains it, a name may.
constexpr std::string_view as_another = " as ";

// Whether a variable of that dtype can have the constant's value, up to rounding of floats.
bool holds(DType dtype, double value) {
  if (dtype == DType::f64) return true;
  if (dtype == DType::f32 || dtype == DType::bf16) return std::abs(value) <= static_cast<double>(std::numeric_limits<float>::max());
  if (dtype == DType::f16) return std::abs(value) <= 65504;
  if (dtype == DType::boolean) return value == 0 || value == 1;
  const bool is_signed = dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32 || dtype == DType::i64;
  const int bits = static_cast<int>(byte_width(dtype)) * 8;
  const double most = std::ldexp(1.0, is_signed ? bits - 1 : std::min(bits, 63)), least = is_signed ? -most : 0;
  return value == std::floor(value) && value >= least && value < most;
}

template <class T>
void store(std::byte* data, size_t i, T value) {
  std::memcpy(data + i * sizeof(T), &value, sizeof(T));
}

void store(DType dtype, std::byte* data, size_t i, double value) {
  switch (dtype) {
    case DType::f64:
      return store(data, i, value);
    case DType::f32:
      return store(data, i, static_cast<float>(value));
    case DType::f16:
      return store(data, i, f16_of_float(static_cast<float>(value)));
    case DType::bf16:
      return store(data, i, bf16_of_float(static_cast<float>(value)));
    case DType::boolean:
      return store(data, i, static_cast<uint8_t>(value != 0));
    default:
      break;
  }
  // Integers, of any width: little-endian as files are.
  const auto whole = static_cast<int64_t>(value);
  const auto width = static_cast<size_t>(byte_width(dtype));
  std::memcpy(data + i * width, &whole, width);
}

uint64_t hash_of(std::string_view name) {  // FNV-1a
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * UINT64_C(0x100000001b3);
  return hash;
}

// Two numbers are drawn from each block.
struct Draws {
  plugin::Philox philox;
  explicit Draws(uint64_t seed) : philox(seed, 0x1417, 0) {}
  double uniform(size_t i) const {
    const plugin::Philox::Block b = philox.block(i / 2);
    return i % 2 == 0 ? plugin::unit_double(b[0], b[1]) : plugin::unit_double(b[2], b[3]);
  }
  double normal(size_t i) const {
    const plugin::Philox::Block b = philox.block(i / 2);
    return plugin::normal_pair(plugin::unit_double(b[0], b[1]), plugin::unit_double(b[2], b[3]))[i % 2];
  }
};

}  // namespace

std::string Initializer::drawn_as(const std::string& text, const std::string& name) {
  return text.find(as_another) == std::string::npos ? text + std::string(as_another) + name : text;
}

Result<Initializer> Initializer::parse(std::string_view text) {
  const size_t rule_end = text.find(as_another);
  std::optional<CallText> call = CallText::parse(text.substr(0, rule_end));
  const auto found = std::find_if(std::begin(known), std::end(known), [&](const Known& k) { return call && k.name == call->name; });
  if (found == std::end(known)) return not_one(text);
  Initializer made;
  made.rule_ = found->rule;
  if (rule_end != std::string_view::npos) {
    made.as_ = std::string(text.substr(rule_end + as_another.size()));
    if (made.as_.empty()) return not_one(text);
  }
  std::vector<std::string>& words = call->words;
  const bool has_fan = made.rule_ == Rule::kaiming_uniform || made.rule_ == Rule::kaiming_normal;
  if (has_fan && !words.empty() && (words.back() == "fan_in" || words.back() == "fan_out")) {
    made.fan_out_ = words.back() == "fan_out";
    words.pop_back();
  }
  if (words.empty() && found->otherwise) {
    made.first_ = *found->otherwise;
    return made;
  }
  if (static_cast<int>(words.size()) != found->numbers) return not_one(text);
  for (size_t i = 0; i < words.size(); ++i) {
    const std::optional<double> value = CallText::number(words[i]);
    if (!value) return not_one(text);
    (i == 0 ? made.first_ : made.second_) = *value;
  }
  return made;
}

Status Initializer::check(DType dtype, const Shape& shape) const {
  if (rule_ == Rule::constant && !holds(dtype, first_))
    return {Code::dtype_mismatch, fmt::format("no {} is {}", to_string(dtype), first_), "write a number that the variable can hold"};
  if ((rule_ == Rule::normal && second_ < 0) || (rule_ == Rule::uniform && second_ < first_))
    return {Code::syntax, fmt::format("{} and {} make no distribution", first_, second_),
            "write the lower bound first, and a deviation of 0 or more"};
  if (rule_ != Rule::constant && (!holds(DType::f32, first_) || !holds(DType::f32, second_)))
    return {Code::syntax, fmt::format("{} and {} are too large", first_, second_), "write numbers that f32 has"};
  if (rule_ != Rule::constant && !is_float(dtype))
    return {Code::dtype_mismatch, fmt::format("a variable of {} has no random numbers", to_string(dtype)), "give it a constant"};
  if (rule_ > Rule::normal && shape.rank() < 2)
    return {Code::shape_mismatch, fmt::format("a variable of shape {} has no fans", shape.text()), "give it uniform, normal or constant"};
  return {};
}

// The deviation of normal numbers; half of the range of uniform ones, which is symmetric about zero.
double Initializer::scale(const Shape& shape) const {
  double window = 1;
  for (int d = 2; d < shape.rank(); ++d) window *= static_cast<double>(shape[d]);
  const double fan_in = static_cast<double>(shape[1]) * window, fan_out = static_cast<double>(shape[0]) * window;
  switch (rule_) {
    case Rule::xavier_uniform:
      return first_ * std::sqrt(6 / (fan_in + fan_out));
    case Rule::xavier_normal:
      return first_ * std::sqrt(2 / (fan_in + fan_out));
    case Rule::kaiming_uniform:
      return first_ * std::sqrt(3 / (fan_out_ ? fan_out : fan_in));
    default:
      return first_ / std::sqrt(fan_out_ ? fan_out : fan_in);
  }
}

// Makes the rows (or the columns, if they are fewer) orthonormal one after the other, twice each (Giraud et al., 2005).
void Initializer::fill_orthogonal(const Shape& shape, uint64_t seed, std::vector<double>& values) const {
  const auto rows = static_cast<size_t>(shape[0]), columns = rows == 0 ? 0 : values.size() / rows;
  const bool tall = rows > columns;
  const size_t vectors = tall ? columns : rows, length = tall ? rows : columns;
  const Draws draws(seed);
  std::vector<double> q(values.size());
  for (size_t i = 0; i < q.size(); ++i) q[i] = draws.normal(i);
  for (size_t v = 0; v < vectors; ++v) {
    double* const own = q.data() + v * length;
    for (int pass = 0; pass < 2; ++pass)
      for (size_t w = 0; w < v; ++w) {
        const double* const other = q.data() + w * length;
        double product = 0;
        for (size_t i = 0; i < length; ++i) product += own[i] * other[i];
        for (size_t i = 0; i < length; ++i) own[i] -= product * other[i];
      }
    double square = 0;
    for (size_t i = 0; i < length; ++i) square += own[i] * own[i];
    const double norm = std::sqrt(square);
    for (size_t i = 0; i < length && norm > 0; ++i) own[i] /= norm;
  }
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c) values[r * columns + c] = first_ * (tall ? q[c * length + r] : q[r * length + c]);
}

void Initializer::fill(DType dtype, const Shape& shape, std::string_view name, uint64_t seed, std::byte* data) const {
  const auto count = static_cast<size_t>(shape.element_count());
  const uint64_t own_seed = seed * UINT64_C(0x9e3779b97f4a7c15) ^ hash_of(as_.empty() ? name : std::string_view(as_));
  if (rule_ == Rule::orthogonal) {
    std::vector<double> values(count);
    fill_orthogonal(shape, own_seed, values);
    for (size_t i = 0; i < count; ++i) store(dtype, data, i, values[i]);
    return;
  }
  const Draws draws(own_seed);
  const double scaled = rule_ > Rule::normal && count > 0 ? scale(shape) : 0;
  for (size_t i = 0; i < count; ++i) {
    double value = first_;
    if (rule_ == Rule::uniform) value = first_ + (second_ - first_) * draws.uniform(i);
    if (rule_ == Rule::normal) value = first_ + second_ * draws.normal(i);
    if (rule_ == Rule::xavier_uniform || rule_ == Rule::kaiming_uniform) value = scaled * (2 * draws.uniform(i) - 1);
    if (rule_ == Rule::xavier_normal || rule_ == Rule::kaiming_normal) value = scaled * draws.normal(i);
    store(dtype, data, i, value);
  }
}

}  // namespace heddle
