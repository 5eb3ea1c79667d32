// Which constants of an imported net become variables that learn.
#pragma once

#include <string>
#include <vector>

#include "heddle/status.h"
#include "net/net.h"

namespace heddle::trainable {

// Whether an input holds no parameter whatever its name: the running mean and variance of a normalisation, the region and factors of a
// resizing, the ratio of a dropout, bounds and fillings.
bool holds_no_parameter(const Node& node, size_t input);

// Marks, by value, the constants that are trained. Without patterns these are all constants of floats with at least one axis and one
// element that an operator of the net takes as a parameter. A pattern is one name or several with commas between them, where * stands for
// any text; it takes those among these constants whose names it matches, and a constant without axes too if it is its whole name. Errors:
// unknown_name, with near names, for a pattern that matches no constant; unsupported for quantised weights, and for a name of integers;
// invalid_argument where all that it matches is no parameter, and for a net without weights.
Result<std::vector<char>> choose_weights(const Net& net, const std::vector<std::string>& patterns);

}  // namespace heddle::trainable
