// The training form of a recipe that classifies samples, or elements of sequences, or scores them: the same layers over variables, with a
// loss.
#pragma once

#include "heddle/status.h"
#include "models/recipes.h"
#include "net/net.h"

namespace heddle::models {

struct TrainingForm {
  Net train;               // outputs "loss"; normalisations use batch statistics, and their running ones are variables
  Net test;                // outputs "loss", "accuracy" and the recipe's own; the same variables
  int64_t parameters = 0;  // elements of the trainable ones
};

// Parameters become trainable variables with their present content, the batch the symbol N, and labels, i64 [N] or [N, length], an input.
// The loss is the mean softmax cross entropy of the logits, plus 0.4 of that of the auxiliary ones; for scores of clicks the binary one. No
// gradients: derive/training_net.h adds them. Errors: those of build(); not_implemented for recipes without labels.
Result<TrainingForm> training_form(const std::string& recipe, const RecipeOptions& options);

}  // namespace heddle::models
