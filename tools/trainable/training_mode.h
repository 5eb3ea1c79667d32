// The steps from a net of constants, in inference mode, to one whose weights are variables and whose normalisations and dropouts train.
//
// Pure; each changes the net that it is given. The net inside an operator (a branch, a body) stays as it is.
#pragma once

#include <string>
#include <vector>

#include "net/net.h"

namespace heddle::trainable {

// Returns `wanted`, or the first of wanted_2, wanted_3, ... that no value and no node of the net has.
std::string unused_name(const Net& net, const std::string& wanted);

// Whether the input is the running mean or variance of a BatchNormalization.
bool is_running_statistic(const Node& node, size_t input);
// Marks, by value, those that are read as running statistics.
std::vector<char> running_statistics(const Net& net);

// Makes the marked constants variables with their name and content. Running statistics are not trainable, all others are.
void use_variables(Net& net, const std::vector<char>& marked);

// Gives each Dropout the training mode.
void train_dropouts(NetBuilder& builder);
// Makes each BatchNormalization use the statistics of the batch, and update the running ones, which are variables already.
void train_normalisations(NetBuilder& builder);

}  // namespace heddle::trainable
