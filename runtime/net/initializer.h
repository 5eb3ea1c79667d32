// Initializer: the first content of a variable as a rule instead of bytes: "kaiming_normal(1.4142135623730951)".
//
// The numbers depend only on the rule, shape, dtype, the variable's name and a seed (Philox, by element): they are the same on every
// machine with the same libm, for any number of threads.
//
// - constant(x): any dtype
// - uniform(low, high), normal(mean, deviation): of f16, bf16, f32 and f64, as all below
// - xavier_uniform(gain), xavier_normal(gain): Glorot and Bengio (AISTATS 2010); gain 1 where it is left out
// - kaiming_uniform(gain, fan_in), kaiming_normal(gain, fan_in): He et al. (ICCV 2015); gain sqrt(2), for ReLU, and fan_in where they are
//   left out; fan_out instead is what a matrix of [inputs, outputs] wants
// - orthogonal(gain): Saxe et al. (ICLR 2014), of the matrix [dim 0, all others]; gain 1
//
// "normal(0, 1) as w" draws the numbers that the rule draws for a variable named w: used for a variable that begins with the same values,
// such as an average of w.
//
// Fans are those of PyTorch: of [outputs, inputs, window...], fan_in is inputs x window and fan_out outputs x window.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/status.h"
#include "heddle/tensor.h"

namespace heddle {

class Initializer {
 public:
  enum class Rule : uint8_t { constant, uniform, normal, xavier_uniform, xavier_normal, kaiming_uniform, kaiming_normal, orthogonal };

  // Errors: syntax, with the permitted forms.
  static Result<Initializer> parse(std::string_view text);
  // Returns the rule by which any variable begins as variable `name` does by the rule `text`.
  static std::string drawn_as(const std::string& text, const std::string& name);
  // Checks that the rule can fill such a variable. Errors: dtype_mismatch; shape_mismatch, for rules that need two dims or more.
  Status check(DType dtype, const Shape& shape) const;
  // Row-major. `name`: of the variable.
  void fill(DType dtype, const Shape& shape, std::string_view name, uint64_t seed, std::byte* data) const;

 private:
  double scale(const Shape& shape) const;
  void fill_orthogonal(const Shape& shape, uint64_t seed, std::vector<double>& values) const;

  Rule rule_ = Rule::constant;
  double first_ = 0, second_ = 0;  // as written; of one number, `first_`
  bool fan_out_ = false;
  std::string as_;  // whose numbers are drawn; empty: the variable's own
};

}  // namespace heddle
