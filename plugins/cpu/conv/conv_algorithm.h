// Convolution algorithms: each computes one tile in channels-last memory; conv_kernel.h converts other layouts to this form.
#pragma once

#include <memory>

#include "conv/conv_tiles.h"
#include "onednn/onednn_epilogue.h"

namespace heddle::cpu {

constexpr double flops_per_ns = 100.0;  // of one thread, a first guess

// Alignment of every part of a tile's scratch: whole cache lines.
constexpr uint64_t scratch_alignment = 64;
constexpr uint64_t aligned(uint64_t bytes) {
  return (bytes + scratch_alignment - 1) / scratch_alignment * scratch_alignment;
}

struct ConvProblem {
  bool transposed = false;
  int64_t batch = 0, groups = 1, input_channels = 0, output_channels = 0;
  Window window;
  bool has_bias = false;  // the bias is a node input or the first fused operator
};

// Pointers of one tile. All are borrowed for the call. A tile has the output channels of its part (ConvTile::channel_part).
struct ConvBuffers {
  const float* x;                // [tile's input pixels, input channels]
  const float* weights;          // the net's own or their f32 form, unless the algorithm packed them in prepare
  const float* bias;             // [tile's channels], or null
  const float* const* operands;  // by epilogue op: SAME_SHAPE [output pixels, channels] of the tile, PER_CHANNEL [channels]
  float* y;                      // [tile's output pixels, tile's channels]; may be the operand of in_place_epilogue_op()
  void* scratch;                 // of scratch_bytes(), aligned to scratch_alignment
  // The packed weights that an earlier tile of the same call of run left in the scratch, counted from 1; 0: none.
  size_t* packed_in_scratch;
};

// Built in prepare, read-only in run.
class ConvAlgorithm {
 public:
  virtual ~ConvAlgorithm() = default;
  // `epilogue_ops`: receives how many the algorithm applied, from the first on; the caller applies the rest.
  virtual Status run_tile(const ConvTile& tile, const ConvBuffers& buffers, size_t* epilogue_ops) const = 0;
  uint64_t scratch_bytes() const { return scratch_bytes_; }
  // The epilogue op whose operand may be the output's own memory; -1: none.
  int32_t in_place_epilogue_op() const { return in_place_epilogue_op_; }

 protected:
  uint64_t scratch_bytes_ = 0;
  int32_t in_place_epilogue_op_ = -1;
};

// The arguments from which an algorithm is made.
struct ConvRequest {
  ConvProblem problem;
  ConvTiling tiling;
  const onednn::Epilogue* epilogue = nullptr;
  size_t first_epilogue_op = 0;  // 1 when the first epilogue op is the bias
  bool constant_weights = false;
  const float* weights = nullptr;   // content, when constant
  heddle_dtype dtype = HEDDLE_F32;  // of the net's weights, of which `weights` may be the f32 form
  uint32_t threads = 1;             // the most that a run may have
  const char* packed_as = "";       // prefix of the names of packed weights, where `weights` are another form of the net's
};

// oneDNN, one primitive per tile shape.
Status make_onednn_conv(const ConvRequest& request, PrepareContext& context, std::unique_ptr<ConvAlgorithm>* algorithm);

}  // namespace heddle::cpu
