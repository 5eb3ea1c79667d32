// The kernel classes of Conv, ConvTranspose and ConvDataGradient for f32, f16 and bf16: layouts, tiles, epilogue and scratch around a
// ConvAlgorithm.
//
// The 16-bit types are computed in f32 on converted tiles, and rounded once (support/float_tiles.h). No epilogue ops are fused into them.
//
// Every tile is computed channels-last. Row-major inputs and outputs are transposed tile by tile in the executing thread's scratch, so
// all layouts give the same bits. Tiles that divide the output channels are computed in scratch too, and scattered. See op.h for the
// epilogue ops of a kernel.
#pragma once

#include <algorithm>

#include "conv/conv_blocks.h"
#include "conv/conv_pixels.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/float_tiles.h"
#include "support/strided_copy.h"

namespace heddle::cpu {

// The operation that a driver computes. The inputs of a data gradient are dY, W and the shape of X; it is computed as a transposed
// convolution whose output has the extents of X.
enum class ConvKind { forward, transposed, data_gradient };

class ConvDriver {
 public:
  explicit ConvDriver(ConvKind kind) : kind_(kind), transposed_(kind != ConvKind::forward) {}
  Status create(const CreateContext& context);
  Status prepare(PrepareContext& context);
  Status run(const RunContext& context, int64_t begin, int64_t end) const;

 protected:
  static std::vector<heddle_format> list_formats(const CreateContext& context);

 private:
  static constexpr size_t max_epilogue_ops = 8;
  friend class Convolution;
  friend class TransposedConvolution;
  friend class ConvDataGradient;

  Status read_problem(PrepareContext& context, ConvProblem* problem) const;
  Status read_layouts(PrepareContext& context, const ConvProblem& problem);
  Status choose_algorithm(PrepareContext& context, const ConvRequest& request);
  // Divides the work into tiles for oneDNN; false where it is not used (conv_blocks.h).
  bool divide(double flops, double weight, double bytes);
  void plan_blocks(PrepareContext& context, double flops, double bytes);
  void plan_scratch(PrepareContext& context);
  Status run_blocks(const RunContext& context, int64_t begin, int64_t end, char* scratch) const;
  // `packed`: see ConvBuffers. `poll`: for blocks.
  Status run_tile(const RunContext& context, const ConvTile& tile, char* scratch, size_t* packed, CancellationPoll* poll) const;
  // Computes the sums of a tile, with as many epilogue ops as the algorithm applies.
  Status sum_tile(const ConvTile& tile, const ConvBuffers& buffers, size_t* done) const;
  Status sum_block(const RunContext& context, const ConvTile& tile, float* y, const char* scratch, CancellationPoll& poll) const;
  const float* bias_of(const RunContext& context, const char* scratch) const;
  // True if the algorithm adds this epilogue op's operand from the memory that it writes.
  bool read_in_place(size_t epilogue_op) const;
  bool wants_copy(size_t epilogue_op) const;
  // True if the tiles compute in the output's memory, not in scratch.
  bool written_in_place() const { return y_layout_.channels_last && tiling_.channel_parts == 1 && !in_blocks_ && !is_narrow(); }
  bool is_narrow() const { return in_float_tiles(dtype_); }
  // True if each tile copies its pixels of x.
  bool gathers_input() const { return !in_blocks_ && (!x_layout_.channels_last || is_narrow()); }
  const float* gather_input(const RunContext& context, const ConvTile& tile, char* scratch) const;
  // Converts the operands that all tiles of a call read: dynamic weights, the bias.
  void load_shared(const RunContext& context, char* scratch) const;
  const float* weights_of(const RunContext& context, const char* scratch) const;
  int64_t first_channel(const ConvTile& tile) const { return static_cast<int64_t>(tile.channel_part) * tile_channels_; }
  int64_t channels_of(const ConvTile& tile) const { return std::min(tile_channels_, problem_.output_channels - first_channel(tile)); }
  PixelRange outputs_of(const ConvTile& tile) const;
  // Returns the operand of an epilogue op for this tile, at the tile's first element: in place, or gathered to *copy, which is then
  // advanced, or to y_tile.
  const float* tile_operand(const RunContext& context, size_t epilogue_op, const ConvTile& tile, float* y_tile, float** copy) const;

  const ConvKind kind_;
  const bool transposed_;
  bool checks_shape_ = false;  // data gradient: a run may be given another shape than the planned one
  WindowAttributes attributes_;
  int64_t groups_ = 1;
  uint32_t threads_ = 1;
  onednn::Epilogue epilogue_;
  ConvProblem problem_;
  ConvTiling tiling_;
  std::unique_ptr<ConvAlgorithm> algorithm_;  // null when there is nothing to sum: the output is the bias
  int32_t bias_input_ = -1;
  size_t first_epilogue_op_ = 0;  // 1 if the first is the bias, else 0
  int64_t tile_channels_ = 0;     // output channels of a tile, the last one of blocks may have less
  bool in_blocks_ = false;        // plain loops instead of the algorithm
  int64_t block_pixels_ = 1;
  Tiling block_tiling_;
  PixelLayout x_layout_, y_layout_;
  bool operand_channels_last_[max_epilogue_ops] = {};
  uint64_t epilogue_op_offset_ = 0, x_offset_ = 0, y_offset_ = 0, operand_offset_ = 0, operand_bytes_ = 0;  // in the thread's scratch
  heddle_dtype dtype_ = HEDDLE_F32;
  int64_t weight_count_ = 0;  // elements that a call converts; 0: they are packed, or read as they are
  uint64_t narrow_offset_ = 0, weights_offset_ = 0, bias_offset_ = 0;
};

class Convolution : public ConvDriver {
 public:
  Convolution() : ConvDriver(ConvKind::forward) {}
  static std::vector<heddle_format> formats(const CreateContext& context) { return list_formats(context); }
  static bool accepts_epilogue(const CreateContext& context);
};
class TransposedConvolution : public ConvDriver {
 public:
  TransposedConvolution() : ConvDriver(ConvKind::transposed) {}
  static std::vector<heddle_format> formats(const CreateContext& context) { return list_formats(context); }
  static bool accepts_epilogue(const CreateContext& context);
};
class ConvDataGradient : public ConvDriver {
 public:
  ConvDataGradient() : ConvDriver(ConvKind::data_gradient) {}
  static std::vector<heddle_format> formats(const CreateContext& context) { return list_formats(context); }
  static bool accepts_epilogue(const CreateContext& context);
};

// The kernel for f16 and bf16.
template <ConvKind kind>
class NarrowConvolution : public ConvDriver {
 public:
  NarrowConvolution() : ConvDriver(kind) {}
  static std::vector<heddle_format> formats(const CreateContext& context) { return list_formats(context); }
};

}  // namespace heddle::cpu
