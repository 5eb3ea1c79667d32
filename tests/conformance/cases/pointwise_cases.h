// Helpers for the rows of the elementwise operators: lists of calls over dtypes and shapes, and special numbers.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "conformance/reference.h"

namespace heddle::conformance {

using Names = std::vector<std::string>;  // dtypes
using Cases = std::vector<Case>;
using Inputs = std::vector<Number>;

extern const Names float_names, signed_integer_names, unsigned_integer_names;
Names joined(const std::vector<Names>& lists);
Cases joined(const std::vector<Cases>& lists);

// Returns `call` with each of the dtypes in the place of "T". For numbers that not every dtype of an operator holds, where the suite's own
// T does not suffice.
Cases each(const Names& dtypes, Kind kind, const std::string& call);
// Returns `call` once for each range, written " = LOW..HIGH" in the place of "@".
Cases over_ranges(Kind kind, const std::string& call, const Names& ranges);
// Returns the calls of `call`, which writes "T" and "SPECIAL", the elements of a list of special_count: NaN, infinities, zeros, ones,
// denormals and the largest numbers of each floating-point dtype.
Cases over_special(Kind kind, const std::string& call);
constexpr int special_count = 18;
// Returns `count` words by repeating the given ones: for large tensors of numbers that are not random.
std::string repeated(const Names& words, int count);

// Returns the shapes of an operator of one input; "" as range: the suite's random numbers.
Cases one_input_cases(const std::string& range = "");
// Returns the shapes of an operator of two inputs, which broadcast.
Cases two_inputs(const std::string& range_a, const std::string& range_b);

// A reference that gives f of each element of the input, as its dtype.
Reference of_one(Number (*f)(Number));
// A reference that gives f of two inputs, as the dtype of the first, or `as`.
Reference of_two(Number (*f)(Number, Number), DType as = DType::none);

// Returns NaN if either is NaN.
Number lesser(Number a, Number b);
Number greater(Number a, Number b);

// Returns the allowed error of dtypes other than f32, given that of f32: f16 and bf16 are computed in f32 and rounded once, at the end, so
// they may be off only next to a tie, by the error of f32.
std::map<DType, double> beside_f32(double ulps, double ulps_of_f64);

extern const std::map<Kind, std::string> no_strides, one_input_only;

}  // namespace heddle::conformance
