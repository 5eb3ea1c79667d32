// The kernel classes of Conv and ConvTranspose for f32: layouts, tiles, epilogue and scratch around a ConvAlgorithm.
//
// Every tile is computed channels-last. Row-major inputs and outputs are transposed tile by tile in the executing thread's scratch, so
// all layouts give the same bits. See op.h for the stages of a kernel.
#pragma once

#include "conv_algorithm.h"
#include "strided_copy.h"

namespace heddle::cpu {

// Where one tensor's pixels are.
struct PixelLayout {
  bool channels_last = true;
  int64_t channels = 0, pixels = 0;  // per image
};

class ConvDriver {
 public:
  explicit ConvDriver(bool transposed) : transposed_(transposed) {}
  Status create(const CreateContext& context);
  Status prepare(PrepareContext& context);
  Status run(const RunContext& context, int64_t begin, int64_t end) const;

 protected:
  static std::vector<heddle_format> list_formats(const CreateContext& context);

 private:
  static constexpr size_t most_stages = 8;
  friend class Convolution;
  friend class TransposedConvolution;

  Status read_problem(PrepareContext& context, ConvProblem* problem) const;
  Status read_layouts(PrepareContext& context, const ConvProblem& problem);
  Status choose_algorithm(PrepareContext& context, ConvRequest request);
  void plan_scratch(PrepareContext& context);
  Status run_tile(const RunContext& context, const ConvTile& tile, char* scratch) const;
  const float* bias_of(const RunContext& context) const;
  bool wants_copy(size_t stage) const;
  // The operand of a stage for this tile; same-shape ones at the tile's first element, in place or in `copy`.
  const float* tile_operand(const RunContext& context, size_t stage, const ConvTile& tile, const float* y_tile, float* copy) const;

  bool transposed_;
  WindowAttributes attributes_;
  int64_t groups_ = 1;
  onednn::Epilogue epilogue_;
  ConvProblem problem_;
  ConvTiling tiling_;
  std::unique_ptr<ConvAlgorithm> algorithm_;  // null when there is nothing to sum: the output is the bias
  int32_t bias_input_ = -1;
  size_t first_stage_ = 0;  // behind the bias
  PixelLayout x_layout_, y_layout_;
  bool operand_channels_last_[most_stages] = {};
  uint64_t stage_offset_ = 0, x_offset_ = 0, y_offset_ = 0, operand_offset_ = 0, operand_bytes_ = 0;  // in the thread's scratch
};

class Convolution : public ConvDriver {
 public:
  Convolution() : ConvDriver(false) {}
  static std::vector<heddle_format> formats(const CreateContext& context) { return list_formats(context); }
  static bool accepts_epilogue(const CreateContext& context);
};
class TransposedConvolution : public ConvDriver {
 public:
  TransposedConvolution() : ConvDriver(true) {}
  static std::vector<heddle_format> formats(const CreateContext& context) { return list_formats(context); }
  static bool accepts_epilogue(const CreateContext& context);
};

}  // namespace heddle::cpu
