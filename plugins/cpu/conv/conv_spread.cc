// Transposed convolutions as products and copies. See conv_spread.h.
#include "conv/conv_spread.h"

#include <algorithm>

namespace heddle::cpu {
namespace {

constexpr int64_t max_row = 1 << 14;          // input pixels
constexpr int64_t max_tile_floats = 1 << 18;  // of a product, which is copied while it is in the cache
constexpr int64_t min_tile_pixels = 64;       // fewer make slow products

int64_t row_pixels(const Window& window) {
  return window.input[1] * window.input[2];
}

// From [inputs, outputs, taps] to [taps, outputs, inputs], which the product calls [channels, inputs].
void permute_weights(const ConvProblem& problem, const float* weights, float* permuted) {
  const int64_t inputs = problem.input_channels, outputs = problem.output_channels, taps = problem.window.kernel_count();
  for (int64_t i = 0; i < inputs; ++i)
    for (int64_t o = 0; o < outputs; ++o)
      for (int64_t tap = 0; tap < taps; ++tap) permuted[(tap * outputs + o) * inputs + i] = weights[(i * outputs + o) * taps + tap];
}

class Spread : public ConvAlgorithm {
 public:
  Status build(const ConvRequest& request, PrepareContext& context);
  Status run_tile(const ConvTile& tile, const ConvBuffers& buffers, size_t* epilogue_ops) const override;

 private:
  void place(const ConvTileShape& shape, const float* product, const float* bias, float* y) const;

  ConvProblem problem_;
  std::vector<ConvTileShape> shapes_;
  std::unique_ptr<ConvAlgorithm> product_;
  bool constant_weights_ = false;
  uint64_t weights_offset_ = 0, product_offset_ = 0;  // in the scratch
};

Status Spread::build(const ConvRequest& request, PrepareContext& context) {
  problem_ = request.problem;
  shapes_ = request.tiling.shapes;
  constant_weights_ = request.constant_weights;
  const int64_t channels = problem_.output_channels * problem_.window.kernel_count();
  const onednn::Epilogue none;
  ConvRequest product = request;
  product.problem.transposed = product.problem.has_bias = false;
  product.problem.output_channels = channels;
  product.problem.window = Window();
  product.problem.window.spatial = 1;
  product.packed_as = "spread,";
  product.epilogue = &none;
  product.first_epilogue_op = 0;
  int64_t most = 0;
  for (ConvTileShape& shape : product.tiling.shapes) {
    const int64_t pixels = shape.input[0] * row_pixels(problem_.window);
    shape = ConvTileShape();
    shape.input[0] = shape.output[0] = pixels;
    most = std::max(most, pixels);
  }
  std::vector<float> permuted;
  if (constant_weights_) {
    permuted.resize(static_cast<size_t>(channels * problem_.input_channels));
    permute_weights(problem_, request.weights, permuted.data());
    product.weights = permuted.data();
  }
  HEDDLE_PLUGIN_CHECK(make_onednn_conv(product, context, &product_));
  weights_offset_ = aligned(product_->scratch_bytes());
  product_offset_ = weights_offset_;
  if (!constant_weights_) product_offset_ += aligned(static_cast<uint64_t>(channels * problem_.input_channels) * sizeof(float));
  scratch_bytes_ = product_offset_ + aligned(static_cast<uint64_t>(most * channels) * sizeof(float));
  return {};
}

// Copies the product, of which each pixel has [taps, channels], to the output pixels, and adds the bias.
void Spread::place(const ConvTileShape& shape, const float* product, const float* bias, float* y) const {
  const Window& window = problem_.window;
  const int64_t channels = problem_.output_channels;
  for (int64_t r = 0; r < shape.input[0]; ++r)
    for (int64_t c = 0; c < shape.input[1]; ++c)
      for (int64_t d = 0; d < shape.input[2]; ++d)
        for (int64_t tap = 0; tap < window.kernel_count(); ++tap, product += channels) {
          const int64_t row = r * window.stride[0] + tap / (window.kernel[1] * window.kernel[2]);
          const int64_t column = c * window.stride[1] + tap / window.kernel[2] % window.kernel[1];
          const int64_t depth = d * window.stride[2] + tap % window.kernel[2];
          float* const target = y + ((row * window.output[1] + column) * window.output[2] + depth) * channels;
          for (int64_t i = 0; i < channels; ++i) target[i] = bias ? product[i] + bias[i] : product[i];
        }
}

Status Spread::run_tile(const ConvTile& tile, const ConvBuffers& buffers, size_t* epilogue_ops) const {
  *epilogue_ops = 0;
  auto* const scratch = static_cast<char*>(buffers.scratch);
  auto* const product = reinterpret_cast<float*>(scratch + product_offset_);
  ConvBuffers of_product = buffers;
  of_product.bias = nullptr;
  of_product.y = product;
  if (!constant_weights_) {
    auto* const permuted = reinterpret_cast<float*>(scratch + weights_offset_);
    if (*buffers.packed_in_scratch == 0) permute_weights(problem_, buffers.weights, permuted);
    of_product.weights = permuted;
  }
  size_t none = 0;
  HEDDLE_PLUGIN_CHECK(product_->run_tile(tile, of_product, &none));
  place(shapes_[tile.shape], product, problem_.has_bias ? buffers.bias : nullptr, buffers.y);
  return {};
}

}  // namespace

bool is_spread(const ConvProblem& problem) {
  const Window& window = problem.window;
  if (!problem.transposed || problem.groups != 1 || problem.input_channels == 0 || window.input_count() == 0) return false;
  if (window.kernel_count() == 1 || row_pixels(window) > max_row) return false;
  for (int i = 0; i < max_spatial; ++i)
    if (window.kernel[i] != window.stride[i] || window.dilation[i] != 1 || window.pad_begin[i] != 0 ||
        window.output[i] != window.input[i] * window.stride[i])
      return false;
  return true;
}

ConvTiling divide_spread(const ConvProblem& problem, int64_t tile_count, int64_t least) {
  const Window& window = problem.window;
  const int64_t rows = problem.batch * window.input[0], row = row_pixels(window), pixels = rows * row;
  const int64_t floats = pixels * problem.output_channels * window.kernel_count();
  const int64_t wanted = std::min(std::max(tile_count, floats / max_tile_floats), std::max<int64_t>(1, pixels / min_tile_pixels));
  const int64_t tiles = std::min(rows, std::max(wanted, least));
  const int64_t output_row = window.output[1] * window.output[2] * window.stride[0];
  ConvTiling tiling;
  if (tiles < least) return tiling;
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t first = rows * t / tiles, count = rows * (t + 1) / tiles - first;
    ConvTileShape shape;
    std::copy_n(window.input, max_spatial, shape.input);
    std::copy_n(window.output, max_spatial, shape.output);
    shape.input[0] = count;
    shape.output[0] = count * window.stride[0];
    add_tile(shape, {0, first * row, count * row, first * output_row, count * output_row, 0}, &tiling);
  }
  return tiling;
}

Status make_spread(const ConvRequest& request, PrepareContext& context, std::unique_ptr<ConvAlgorithm>* algorithm) {
  auto spread = std::make_unique<Spread>();
  HEDDLE_PLUGIN_CHECK(spread->build(request, context));
  *algorithm = std::move(spread);
  return {};
}

}  // namespace heddle::cpu
