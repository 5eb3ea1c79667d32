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

struct WeightRequest {
  std::vector<std::string> patterns;      // each is one name or several with commas between them, where * stands for any text
  std::vector<std::string> initializers;  // names of the constants that are no results of Constant nodes
};

// Marks, by value, the constants that are trained. The weights of a net are its initializers of floats with at least one axis and one
// element that an operator takes as a parameter; exporters write mere numbers as Constant nodes, so that these are weights only in a net
// that has no others. A pattern takes the weights whose names it matches, and any constant of floats that a parameter may be if it is its
// whole name; without patterns all weights are marked. Errors: unknown_name, with near names, for a pattern that matches no constant;
// unsupported for quantised weights, and for a name of integers; invalid_argument where all that it matches is no parameter, and for a net
// without weights.
Result<std::vector<char>> choose_weights(const Net& net, const WeightRequest& request);

}  // namespace heddle::trainable
