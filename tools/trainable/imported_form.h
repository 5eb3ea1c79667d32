// The training form of an imported net: the same operators over variables, with a loss.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/text/limit_names.h"
#include "heddle/status.h"
#include "net/net.h"
#include "plugin/registry.h"
#include "trainable/loss_choice.h"
#include "trainable/weight_choice.h"

namespace heddle::trainable {

struct ImportedForm {
  Net train;                         // output "loss"; BatchNormalization and Dropout train
  Net test;                          // outputs "loss", for classes "accuracy", and the model's own; the same variables, in inference mode
  std::vector<std::string> weights;  // the variables of "train" that learn, in the net's order
  int64_t parameters = 0;            // their elements
  // Results of Identity, each with the weight that it copies: parameters that were equal when the exporter wrote them, and learn as one.
  std::vector<std::pair<std::string, std::string>> copies;
};

// `net` is imported with its dropouts (ImportOptions::keep_dropouts). The weights that `request` chooses become trainable variables
// (weight_choice.h), running statistics others. Dims stay as the model has them. There are no gradients: derive/training_net.h adds them.
// Errors: those of resolve and inference, check_names(), labels_type() and choose_weights(); unsupported for a BatchNormalization inside of
// a branch or body, and for running statistics that are no constants; invalid_argument where no weight is read on the way to the loss.
Result<ImportedForm> imported_form(Net net, const WeightRequest& request, const LossChoice& loss,
                                   const std::shared_ptr<const RegistrySnapshot>& registry, const Limits& limits = {});

}  // namespace heddle::trainable
