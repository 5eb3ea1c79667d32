// training_net: a net with losses becomes one that learns: gradients, what is done to them, and an update of each variable in each run.
//
// Once, for every shape, as differentiate(). State of the optimizer is variables beside those that it is of ("w.velocity"), and begins with
// zeros; the number of steps done is a variable too, and the learning rate a value ("learning_rate") that the net computes from it.
// Averages of variables ("w.average") begin where these do (net/averages.h).
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
  const char* rows_type;              // indices and values in the place of the gradient, then perhaps bags and weights
  std::vector<const char*> state;     // suffixes of the names of its variables
  bool counts_steps;                  // an input behind the rate is the number of this step, from 1 on
  std::vector<std::string> settings;  // attributes that may be given; rowwise=1: `rows_type` has one number of state for each row
  std::vector<Attribute> always;      // attributes that it has
  bool decays_apart = false;          // `type` has no weight_decay: it is added to the gradient before
};
// All of them: sgd, momentum, nesterov, adagrad, rmsprop, adam, adamw.
const std::vector<Optimizer>& optimizers();

// `net` is resolved and has trainable variables. The losses leave the net, and "learning_rate" behind them. Errors: those of
// differentiate(); unknown_name for an optimizer or setting that is not known; invalid_argument for a net that updates a trainable variable
// itself; unsupported for averages of f16 and bf16.
Result<Net> training_net(const Net& net, const std::shared_ptr<const RegistrySnapshot>& registry, Evaluator& evaluator,
                         const TrainingOptions& options, const Limits& limits = {});

}  // namespace heddle
