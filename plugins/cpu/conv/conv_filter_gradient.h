// The kernels of ConvFilterGradient: f32 by oneDNN, everything else by plain loops.
//
// Each tile computes the gradients of some filters (or of some input channels of all of them, or of some groups), over all images and
// positions in a fixed order: no sum is divided among threads, so any number of them gives the same bits. oneDNN works channels-last. If a
// tile reads X or dY in part, or row-major, it gathers them in the executing thread's scratch.
#pragma once

#include <memory>
#include <vector>

#include "conv/conv_pixels.h"
#include "conv/conv_tiles.h"
#include "onednn/onednn_call.h"
#include "shared/image/window.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"

namespace heddle::cpu {

struct FilterProblem {
  int64_t batch = 0, groups = 1, input_channels = 0, output_channels = 0;
  Window window;
  PixelLayout x, dy;
  int64_t group_inputs() const { return input_channels / groups; }
  int64_t group_outputs() const { return output_channels / groups; }
  double flops() const;
};

// Elements [first, last) of dW, in its order: each the sum over images and positions, in double.
template <class T>
void plain_filter_gradient(const FilterProblem& problem, const T* x, const T* dy, T* dw, int64_t first, int64_t last,
                           CancellationPoll& poll);

class FilterGradientBase {
 public:
  Status create(const CreateContext& context);

 protected:
  Status read_problem(PrepareContext& context);
  void plan_plain(PrepareContext& context);
  Status check_shape(const RunContext& context) const;
  template <class T>
  Status run_plain(const RunContext& context, int64_t begin, int64_t end) const;

  WindowAttributes attributes_;
  int64_t groups_ = 1;
  uint32_t threads_ = 1;
  bool checks_shape_ = false;
  FilterProblem problem_;
  Tiling plain_tiling_;
};

class ConvFilterGradient : public FilterGradientBase {
 public:
  Status prepare(PrepareContext& context);
  Status run(const RunContext& context, int64_t begin, int64_t end) const;
  static std::vector<heddle_format> formats(const CreateContext& context);

 private:
  // How tiles divide dW: into equal parts of the groups, or of the output and input channels of the only one.
  struct Parts {
    int64_t groups = 1, outputs = 1, inputs = 1;
    int64_t count() const { return groups * outputs * inputs; }
  };
  struct ChunkPrimitive {
    onednn::Call call, unpack;  // the sums, in a layout of oneDNN's; the copy to the net's layout
  };
  Parts choose_parts() const;
  // *planned is false if oneDNN is not used or has no fast implementation.
  Status plan_library(PrepareContext& context, bool* planned);
  // Makes the primitive for the stretches of pixels of one shape; one call of oneDNN sums over one stretch.
  Status make_primitive(const ConvTileShape& shape, bool alone, ChunkPrimitive* made, bool* is_fast);
  std::vector<int64_t> filter_dims() const;
  Status run_part(const RunContext& context, int64_t part, char* scratch, CancellationPoll& poll) const;
  // Adds the sums of a later stretch to those that dW holds.
  void add_to(float* dw, const float* sums) const;

  bool by_library_ = false;
  Parts parts_;
  int64_t part_inputs_ = 0, part_outputs_ = 0;  // channels of X and of dY that a tile reads
  ConvTiling chunks_;
  std::vector<std::unique_ptr<ChunkPrimitive>> primitives_;
  uint64_t library_bytes_ = 0, packed_bytes_ = 0, x_offset_ = 0, dy_offset_ = 0, packed_offset_ = 0, sums_offset_ = 0;  // of scratch
};

class PlainFilterGradient : public FilterGradientBase {
 public:
  Status prepare(PrepareContext& context);
  Status run(const RunContext& context, int64_t begin, int64_t end) const;
};

}  // namespace heddle::cpu
