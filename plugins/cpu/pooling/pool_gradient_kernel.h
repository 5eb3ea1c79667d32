// The kernel of MaxPoolGradient and AveragePoolGradient: each element of dY is added to the taps of its window.
//
// A tile owns planes (an image's channel) or blocks of channels, and goes through their windows in order: every sum has one order whatever
// the number of threads. f32 runs channels-last or row-major with the same bits, other dtypes row-major; 16-bit floats are summed in float,
// and rounded once.
#pragma once

#include "pooling/pooling_window.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"

namespace heddle::cpu {

class PoolGradientDriver {
 public:
  // The inputs of a max pool's gradient are X and dY, of others dY and the shape of X.
  explicit PoolGradientDriver(bool is_max) : is_max_(is_max) {}
  Status create(const CreateContext& context);
  Status prepare(PrepareContext& context);
  Status run(const RunContext& context, int64_t begin, int64_t end) const;

 protected:
  static std::vector<heddle_format> list_formats(const CreateContext& context, bool is_max);

 private:
  static constexpr int64_t block = 64;  // channels of one unit, channels-last
  // The largest value of one window and its position, for a block of channels.
  struct Best {
    float value[block];
    int32_t at[block];
  };
  void run_channels_last(const RunContext& context, int64_t first, int64_t last, CancellationPoll& poll) const;
  template <class T>
  void run_row_major(const RunContext& context, int64_t first, int64_t last, CancellationPoll& poll) const;
  // Each tap of the window gets dY divided by this.
  double divisor(const PoolWindow& window) const;

  const bool is_max_;
  bool checks_shape_ = false;
  bool count_include_pad_ = false, channels_last_ = false;
  int64_t fixed_divisor_ = 0, channels_ = 0, images_ = 0;
  WindowAttributes attributes_;
  Window window_;
  Tiling tiling_;
};

template <bool is_max>
class PoolGradient : public PoolGradientDriver {
 public:
  PoolGradient() : PoolGradientDriver(is_max) {}
  static std::vector<heddle_format> formats(const CreateContext& context) { return list_formats(context, is_max); }
};

// The gradients of MaxPool, AveragePool, LpPool and their global forms.
Status max_pool_gradient(plugin::GradientContext& g);
Status average_pool_gradient(plugin::GradientContext& g);
Status lp_pool_gradient(plugin::GradientContext& g);
Status global_max_pool_gradient(plugin::GradientContext& g);
Status global_average_pool_gradient(plugin::GradientContext& g);
Status global_lp_pool_gradient(plugin::GradientContext& g);

}  // namespace heddle::cpu
