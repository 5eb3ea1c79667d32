// The training form of a recipe that sorts samples, or elements of sequences, into classes, or scores them: the same layers over variables,
// with a loss.
#pragma once

#include "heddle/status.h"
#include "models/recipes.h"
#include "net/net.h"

namespace heddle::models {

struct TrainingForm {
  Net train;               // outputs "loss"; batch statistics in normalisations, whose running ones are variables
  Net test;                // outputs "loss", "accuracy" and the recipe's own; the same variables
  int64_t parameters = 0;  // elements of those that learn
};

// Parameters become trainable variables with the content that they have, the batch the symbol N, and labels, i64 [N] or [N, length], an
// input. The loss is the mean softmax cross entropy of the logits, and 0.4 of that of the auxiliary ones; of scores of clicks the binary
// one. No gradients: derive/training_net.h adds them. Errors: those of build(); not_implemented for recipes without labels.
Result<TrainingForm> training_form(const std::string& recipe, const RecipeOptions& options);

}  // namespace heddle::models
