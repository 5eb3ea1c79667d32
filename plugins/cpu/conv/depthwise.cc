// The depthwise algorithm: weights packed tap by tap, tiles handed to the loops of this processor. See depthwise.h.
#include "conv/depthwise.h"

#include <cmath>
#include <cstring>
#include <string>

#include "conv/depthwise_rows.h"

namespace heddle::cpu {
namespace {

// Packs [channels, 1, ...] to [taps, channels].
void pack(const float* weights, int64_t taps, int64_t channels, float* packed) {
  for (int64_t tap = 0; tap < taps; ++tap)
    for (int64_t c = 0; c < channels; ++c) packed[tap * channels + c] = weights[c * taps + tap];
}

class Depthwise : public ConvAlgorithm {
 public:
  Status build(const ConvRequest& request, PrepareContext& context);
  Status run_tile(const ConvTile& tile, const ConvBuffers& buffers, size_t* epilogue_ops) const override;

 private:
  void read_clamp(const onednn::Epilogue& epilogue, size_t first);
  DepthwiseAxis axis_of(const ConvTileShape& shape, int dimension) const {
    const Window& window = problem_.window;
    return {shape.input[dimension],   shape.output[dimension],    window.kernel[dimension],
            window.stride[dimension], window.dilation[dimension], shape.pad_begin[dimension]};
  }

  ConvProblem problem_;
  std::vector<ConvTileShape> shapes_;
  const float* packed_ = nullptr;  // of constant weights; owned by the host
  std::vector<float> no_bias_;
  float lower_ = -HUGE_VALF, upper_ = HUGE_VALF;
  size_t epilogue_ops_ = 0;  // how many of them the bounds cover
};

// A relu or clip as the first epilogue op costs nothing here.
void Depthwise::read_clamp(const onednn::Epilogue& epilogue, size_t first) {
  if (first >= epilogue.size() || !epilogue[first].clamps) return;
  lower_ = epilogue[first].lower;
  upper_ = epilogue[first].upper;
  epilogue_ops_ = 1;
}

Status Depthwise::build(const ConvRequest& request, PrepareContext& context) {
  problem_ = request.problem;
  shapes_ = request.tiling.shapes;
  read_clamp(*request.epilogue, request.first_epilogue_op);
  const uint64_t bytes = static_cast<uint64_t>(problem_.window.kernel_count() * problem_.output_channels) * sizeof(float);
  if (request.constant_weights) {
    packed_ = static_cast<const float*>(context.prepack(1, "depthwise," + std::to_string(request.dtype), bytes, [&](void* target) {
      pack(request.weights, problem_.window.kernel_count(), problem_.output_channels, static_cast<float*>(target));
    }));
    if (!packed_) return {HEDDLE_ERROR_OUT_OF_MEMORY, "no memory for packed weights"};
  } else {
    scratch_bytes_ = bytes;
  }
  if (!problem_.has_bias) no_bias_.assign(static_cast<size_t>(problem_.output_channels), 0.0f);
  return {};
}

Status Depthwise::run_tile(const ConvTile& tile, const ConvBuffers& buffers, size_t* epilogue_ops) const {
  const ConvTileShape& shape = shapes_[tile.shape];
  const float* weights = packed_;
  if (!weights) {
    pack(buffers.weights, problem_.window.kernel_count(), problem_.output_channels, static_cast<float*>(buffers.scratch));
    weights = static_cast<const float*>(buffers.scratch);
  }
  DepthwiseTile loops = {};
  loops.weights = weights;
  loops.bias = problem_.has_bias ? buffers.bias : no_bias_.data();
  loops.channels = problem_.output_channels;
  const int columns = problem_.window.spatial - 1;  // their dimension
  if (columns > 0) loops.row = axis_of(shape, 0);
  loops.column = axis_of(shape, columns);
  loops.lower = lower_;
  loops.upper = upper_;
  for (int64_t image = 0; image < shape.images; ++image) {
    loops.x = buffers.x + image * loops.row.input * loops.column.input * loops.channels;
    loops.y = buffers.y + image * loops.row.output * loops.column.output * loops.channels;
    isa_depthwise().run(loops);
  }
  *epilogue_ops = epilogue_ops_;
  return {};
}

}  // namespace

bool is_depthwise(const ConvProblem& problem) {
  constexpr int64_t max_taps = 1024;  // they are summed one after the other
  const Window& window = problem.window;
  if (problem.transposed || window.spatial > 2 || window.kernel[0] > max_taps || window.kernel_count() > max_taps) return false;
  return problem.groups > 1 && problem.groups == problem.input_channels && problem.output_channels == problem.input_channels;
}

Status make_depthwise(const ConvRequest& request, PrepareContext& context, std::unique_ptr<ConvAlgorithm>* algorithm) {
  auto depthwise = std::make_unique<Depthwise>();
  HEDDLE_PLUGIN_CHECK(depthwise->build(request, context));
  *algorithm = std::move(depthwise);
  return {};
}

}  // namespace heddle::cpu
