// Averages: variables that hold the mean of other variables over the training steps (TrainingOptions::average).
//
// The net's metadata records which variable is the average of which ("average of W": name); it is not derived from the names.
#pragma once

#include <span>
#include <string>

#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

// Adds a variable `name` that begins like `of` and is recorded as its average; returns its first version.
ValueId add_average(Net& net, const Variable& of, const std::string& name);

// Gives the variables of `net` the content of their averages, which any of `nets` may have; those without one stay as they are. Returns how
// many have one. Errors: invalid_argument, where none has; unknown_name, where a recorded average is no variable; shape_mismatch.
Result<int64_t> take_averages(Net& net, std::span<const Net> nets);

// Removes the records of averages from a net that does not keep them.
void forget_averages(Net& net);

}  // namespace heddle
