// Conv, ConvTranspose and ConvDataGradient of f64: a plain loop over outputs, row-major. Sums run in double, always in the order channel,
// tap.
#pragma once

#include "conv/conv_tiles.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"

namespace heddle::cpu {

// The element types of convolutions and their gradients.
inline constexpr heddle_dtype_set conv_dtypes = dtypes<f16, bf16, float, double>();

template <bool transposed>
class PlainConvolution {
 public:
  explicit PlainConvolution(bool is_gradient = false) : is_gradient_(is_gradient) {}
  Status create(const CreateContext& context);
  Status prepare(PrepareContext& context);
  Status run(const RunContext& context, int64_t begin, int64_t end) const;

 private:
  template <class T>
  Status run_outputs(const RunContext& context, int64_t first, int64_t last) const;

  const bool is_gradient_;  // the inputs are dY, W and the shape of X
  bool checks_shape_ = false;
  WindowAttributes attributes_;
  Window window_;
  Tiling tiling_;
  int64_t groups_ = 1;
};

class PlainDataGradient : public PlainConvolution<true> {
 public:
  PlainDataGradient() : PlainConvolution(true) {}
};

}  // namespace heddle::cpu
