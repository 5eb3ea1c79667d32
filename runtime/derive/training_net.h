// training_net: turns a net with losses into one that learns: adds gradients, their processing, and an update of each variable in each run.
//
// Done once, for every shape, like differentiate(). State of the optimizer is kept in variables named after those that it belongs to
// ("w.velocity"), and begins with zeros; the number of steps done is a variable too, and the learning rate a value ("learning_rate") that
// the net computes from it. Averages of variables ("w.average") begin with the values of these (net/averages.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "derive/differentiate.h"

namespace heddle {

// An optimizer: the operators that update a variable by a gradient of its shape, and by rows of it.
struct Optimizer {
  const char* name;                   // "adam"
  const char* type;                   // of domain heddle: inputs variable, states..., gradient, learning rate, steps if it counts them
  const char* rows_type;              // with indices and values instead of the gradient, then perhaps bags and weights
  std::vector<const char*> state;     // suffixes of the names of its variables
  bool counts_steps;                  // an input after the rate is the number of this step, from 1 on
  std::vector<std::string> settings;  // attributes that may be given; rowwise=1: `rows_type` has one number of state for each row
  std::vector<Attribute> always;      // attributes that are always set
  bool decays_apart = false;          // `type` has no weight_decay: it is added to the gradient first
};
// All of them: sgd, momentum, nesterov, adagrad, rmsprop, adam, adamw.
const std::vector<Optimizer>& optimizers();

// `net` is resolved and has trainable variables. The losses become outputs of the net, followed by "learning_rate". Errors: those of
// differentiate(); unknown_name for an optimizer or setting that is not known; invalid_argument for a net that updates a trainable variable
// itself; unsupported for averages of f16 and bf16.
Result<Net> training_net(const Net& net, const std::shared_ptr<const RegistrySnapshot>& registry, Evaluator& evaluator,
                         const TrainingOptions& options, const Limits& limits = {});

}  // namespace heddle
