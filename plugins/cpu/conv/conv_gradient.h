// The gradients of Conv and ConvTranspose, and the operators that they are built from.
//
// ConvDataGradient(dY, W, shape of X) and ConvFilterGradient(X, dY, shape of W) have Conv's attributes. Both accept any X and dY for which
// such windows exist; dY may have fewer positions than the convolution gives, as a transposed one's input with much output_padding has.
#pragma once

#include "shared/image/window.h"
#include "support/cpu_api.h"

namespace heddle::cpu {

// Computes how the windows of a convolution lie on `x` where its output has the extents of `dy`. `transposed`: for the transposed
// convolution that takes dy and gives x (shared/image/window.h).
Status resolve_gradient_window(const WindowAttributes& attributes, Dims x, Dims dy, const std::vector<int64_t>& kernel, bool transposed,
                               Window* window);

// The gradients of Conv and ConvTranspose.
Status conv_gradient(plugin::GradientContext& g);
Status conv_transpose_gradient(plugin::GradientContext& g);

}  // namespace heddle::cpu
