// Transposed convolutions whose windows neither overlap nor leave a gap (kernel = stride, no padding): each input pixel has output pixels
// of its own, so that they are a 1x1 convolution with `taps` times as many channels, and a copy of each pixel's channels to their places.
//
// oneDNN's deconvolutions add windows up, and are not divided into tiles; up-sampling layers of U-Nets took five times as long by them.
#pragma once

#include "conv/conv_algorithm.h"

namespace heddle::cpu {

bool is_spread(const ConvProblem& problem);
// Divides one into about `tile_count` tiles, at least `least`, of whole rows of the input; none if its rows are too few or too long.
ConvTiling divide_spread(const ConvProblem& problem, int64_t tile_count, int64_t least);
Status make_spread(const ConvRequest& request, PrepareContext& context, std::unique_ptr<ConvAlgorithm>* algorithm);

}  // namespace heddle::cpu
