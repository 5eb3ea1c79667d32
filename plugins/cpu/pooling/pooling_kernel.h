// The kernel of all pooling operators: 1 to 3 spatial dimensions, any stride, dilation and padding.
//
// f32, f16 and bf16 run channels-last or row-major with the same bits; other dtypes, indices and powers other than 1 and 2 run row-major.
// The 16-bit types are read as f32, and the result is rounded once.
#pragma once

#include "pooling/pooling_loops.h"
#include "pooling/pooling_window.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"

namespace heddle::cpu {

class PoolDriver {
 public:
  PoolDriver(PoolKind kind, bool global) : global_(global) { rule_.kind = kind; }
  Status create(const CreateContext& context);
  Status prepare(PrepareContext& context);
  Status run(const RunContext& context, int64_t begin, int64_t end) const;

 protected:
  static std::vector<heddle_format> list_formats(const CreateContext& context, bool global);

 private:
  void run_channels_last(const RunContext& context, int64_t first, int64_t last, CancellationPoll& poll) const;
  void pool_channels(const PoolWindow& window, const char* image, int64_t channels, float* y, CancellationPoll& poll) const;
  template <class T>
  void run_row_major(const RunContext& context, int64_t first, int64_t last, CancellationPoll& poll) const;
  // pooling_lines.cc
  bool plan_lines();
  uint64_t line_scratch_bytes() const;
  template <class T>
  void pool_outputs(const PoolLine<T>& line, T divisor, const T* counts = nullptr) const;
  template <class T>
  void run_planes(const RunContext& context, int64_t first, int64_t last, CancellationPoll& poll) const;
  template <class T>
  void run_lines(const RunContext& context, int64_t first, int64_t last, CancellationPoll& poll) const;
  template <class T>
  T pool_one(const T* plane, const PoolWindow& window, int64_t* best, CancellationPoll& poll) const;
  int64_t storage_index(int64_t pixel) const;

  bool global_;
  PoolRule rule_;
  WindowAttributes attributes_;
  Window window_;
  Tiling tiling_;
  heddle_dtype dtype_ = HEDDLE_F32;
  bool channels_last_ = false;
  bool in_lines_ = false;                     // row-major: run_lines() instead of run_row_major()
  int64_t edge_outputs_ = 0;                  // those at either end of a line whose windows may reach beyond it
  int64_t channels_ = 0, channel_block_ = 0;  // channels of one unit of work, channels-last
};

template <PoolKind kind, bool global>
class Pool : public PoolDriver {
 public:
  Pool() : PoolDriver(kind, global) {}
  static std::vector<heddle_format> formats(const CreateContext& context) { return list_formats(context, global); }
};

// Resolves the window over x from the attributes; global ones cover x.
Status resolve_pool(const WindowAttributes& attributes, bool global, Dims x, Window* window);

// True if each plane has one window, which is the plane.
bool covers_planes(const Window& window);

}  // namespace heddle::cpu
