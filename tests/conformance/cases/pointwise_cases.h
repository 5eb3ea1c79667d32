// What the rows of the elementwise operators share: lists of calls over dtypes and shapes, and numbers that are special.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "conformance/reference.h"

namespace heddle::conformance {

using Names = std::vector<std::string>;  // of dtypes
using Cases = std::vector<Case>;
using Inputs = std::vector<Number>;

extern const Names float_names, signed_integer_names, unsigned_integer_names;
Names joined(const std::vector<Names>& lists);
Cases joined(const std::vector<Cases>& lists);

// `call` with each of the dtypes in the place of "T". For numbers that not every dtype of an operator holds, where the suite's own T won't
// do.
Cases each(const Names& dtypes, Kind kind, const std::string& call);
// `call` once for each range, written " = LOW..HIGH" in the place of "@".
Cases over_ranges(Kind kind, const std::string& call, const Names& ranges);
// `call`, which writes "T" and "SPECIAL", the elements of a list of special_count: NaN, infinities, zeros, ones, denormals and the largest
// numbers of each floating-point dtype.
Cases over_special(Kind kind, const std::string& call);
constexpr int special_count = 18;
// `count` words, again and again those given: for large tensors of numbers that are not random.
std::string repeated(const Names& words, int count);

// The shapes of an operator of one input; "" as range: the suite's random numbers.
Cases one_input_cases(const std::string& range = "");
// Of one of two inputs, which broadcast.
Cases two_inputs(const std::string& range_a, const std::string& range_b);

// f of each element of the input, as its dtype.
Reference of_one(Number (*f)(Number));
// f of two inputs, as the dtype of the first, or `as`.
Reference of_two(Number (*f)(Number, Number), DType as = DType::none);

// NaN where either is.
Number lesser(Number a, Number b);
Number greater(Number a, Number b);

// Units in the last place of dtypes other than f32, given those of f32: f16 and bf16 are computed in f32 and rounded once, at the end, so
// that they may be off only next to a tie, by what f32 is.
std::map<DType, double> beside_f32(double ulps, double ulps_of_f64);

extern const std::map<Kind, std::string> no_strides, one_input_only;

}  // namespace heddle::conformance
