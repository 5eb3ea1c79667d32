// Losses and the accuracy as operators that are added to a net: each is the mean over all elements, a scalar of the logits' dtype.
//
// `name` becomes the name of the result; the operators before it get names that the net has not.
#pragma once

#include <string>

#include "net/net.h"

namespace heddle::trainable {

// The mean softmax cross entropy: logits [N, classes, ...], labels i64 [N, ...].
ValueId cross_entropy(NetBuilder& builder, const std::string& name, ValueId logits, ValueId labels);
// The mean of -log of the probability that sigmoid(score) gives the target, from 0 to 1: log(1 + exp(score)) - score * target. Both have
// one shape and dtype.
ValueId binary_cross_entropy(NetBuilder& builder, const std::string& name, ValueId score, ValueId target);
// The mean of (output - target)^2, of one shape and dtype.
ValueId mean_squared_error(NetBuilder& builder, const std::string& name, ValueId output, ValueId target);
// The part of the labels that is the class with the greatest logit, f32. `axis`: that of the classes.
ValueId class_accuracy(NetBuilder& builder, const std::string& name, ValueId logits, ValueId labels, int64_t axis);
// The mean, as f32, of a bool value.
ValueId part_that_is_true(NetBuilder& builder, const std::string& name, ValueId is_right);

}  // namespace heddle::trainable
