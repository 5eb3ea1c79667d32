// Averages: variables that hold the mean of what others were, step by step, kept beside them while a net learns (TrainingOptions::average).
//
// Which is of which stands in the net's metadata, "average of W": name, and is not read off the names.
#pragma once

#include <span>
#include <string>

#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

// A variable `name` that begins as `of` does, and is noted as its average: its first version.
ValueId add_average(Net& net, const Variable& of, const std::string& name);

// Gives the variables of `net` the content of their averages, which any of `nets` may have; those without one stay as they are. How many
// have it. Errors: invalid_argument, where none has; unknown_name, where what is noted is no variable; shape_mismatch.
Result<int64_t> take_averages(Net& net, std::span<const Net> nets);

// Of a net that does not keep them: what is noted goes.
void forget_averages(Net& net);

}  // namespace heddle
