// KIND:VALUE,LABELS: the loss that an imported net is to learn by.
#pragma once

#include <memory>
#include <string>

#include "heddle/status.h"
#include "net/net.h"

namespace heddle::trainable {

enum class LossKind { cross_entropy, squared_error, binary_cross_entropy };

struct LossChoice {
  LossKind kind = LossKind::cross_entropy;
  std::string value;   // of the net: logits, or the output that is to become the target
  std::string labels;  // the name of the input that the loss adds

  // Parses "cross_entropy:logits,labels", "mse:output,target" or "bce:logits,target". VALUE may have colons and commas, LABELS no comma.
  // Errors: invalid_argument, unknown_name for a kind that is not known.
  static Result<LossChoice> parse(const std::string& text);
  bool counts_classes() const { return kind == LossKind::cross_entropy; }
};

// Whether the net can have this loss. Errors: unknown_name, with near names, where it has no such value; invalid_argument for a value that
// no operator makes; duplicate_name where it has a value called like the labels, or like the loss and accuracy that are added.
Status check_names(const Net& net, const LossChoice& loss);
// The type of the labels of a value of type `value`. Errors: dtype_mismatch for a value that is not of floats, shape_mismatch for logits
// without an axis of classes.
Result<DeclaredType> labels_type(const LossChoice& loss, const DeclaredType& value);

}  // namespace heddle::trainable
