// The training form of a recipe that sorts pictures or rows into classes: the same layers over variables, with a loss.
#pragma once

#include "heddle/status.h"
#include "net/net.h"

namespace heddle::models {

struct TrainingForm {
  Net train;  // outputs "loss"; batch statistics in normalisations, whose running ones are variables
  Net test;   // outputs "loss", "accuracy" and the recipe's own; the same variables
};

// Of `net`, whose one output is logits [batch, classes]: parameters become trainable variables with the content that they have, the batch
// the symbol N, and labels, i64 [N], an input. The loss is the mean softmax cross entropy. No gradients: derive/training.h adds them.
// Errors: not_implemented for other nets.
Result<TrainingForm> training_form(const Net& net);

}  // namespace heddle::models
