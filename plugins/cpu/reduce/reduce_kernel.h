// Reduce: the kernel of the reductions, over any axes of any layout.
//
// A tile folds a part of the elements of a part of the outputs into accumulators (double or 64-bit integers). When the elements were
// divided, accumulators are partial results in scratch, [folded part][output], and finish combines them in order: results do not depend
// on threads. Dtypes that have no loops of their own are converted a stretch at a time.
#pragma once

#include <cstdint>
#include <optional>

#include "reduce/accumulator.h"
#include "shared/computed_extents.h"
#include "shared/dims.h"
#include "shared/reduce_plan.h"
#include "shared/tile_cap.h"
#include "support/cpu_api.h"

namespace heddle::cpu {

enum class Ending { none, mean, log, square_root, log_sum_exp };

struct Reduction {
  Fold fold;
  Ending ending;
};
inline constexpr Reduction reduce_sum = {fold_sum, Ending::none}, reduce_mean = {fold_sum, Ending::mean},
                           reduce_max = {fold_max, Ending::none}, reduce_min = {fold_min, Ending::none},
                           reduce_product = {fold_product, Ending::none}, reduce_l1 = {fold_abs, Ending::none},
                           reduce_l2 = {fold_square, Ending::square_root}, reduce_log_sum = {fold_sum, Ending::log},
                           reduce_log_sum_exp = {fold_exp, Ending::log_sum_exp}, reduce_sum_square = {fold_square, Ending::none};

constexpr int64_t reduce_chunk = 512;  // columns, or converted elements, at a time

// Sets the dimensions that `axes` names, as bits; without axes all, or none with noop_with_empty_axes.
Status reduced_set(int rank, const heddle_tensor* axes, bool keep_when_empty, uint32_t* set);
void reduced_extents(Dims from, uint32_t set, bool keeps_dims, Extents* to);

class Reduce {
 public:
  Status prepare(PrepareContext& context);
  Status run(const RunContext& context, int64_t begin, int64_t end) const;
  Status finish(const RunContext& context) const;

 protected:
  Status create(const CreateContext& context, Reduction reduction);
  // Completes prepare; without a set each run finds it.
  Status plan(PrepareContext& context, std::optional<uint32_t> set);

 private:
  // The memory of one executing thread.
  struct Scratch {
    Accumulator accumulators[reduce_chunk], shifts[reduce_chunk];
    Accumulator converted[reduce_chunk], results[reduce_chunk];
  };
  // Outputs [first_output, last_output) and which of their elements to fold. Accumulators and shifts begin at first_output.
  struct Work {
    const char* input;
    int64_t first_output, last_output, first_folded, last_folded;
    Accumulator* accumulators;
    const Accumulator* shifts;
    Accumulator* converted;
    CancellationPoll* poll;
  };

  ReducePlan plan_of(const heddle_tensor& input, uint32_t set) const;
  void fold(const ReducePlan& plan, Fold kind, const Work& work) const;
  void fold_rows(const ReducePlan& plan, const FoldFunctions& functions, const Work& work) const;
  void fold_columns(const ReducePlan& plan, const FoldFunctions& functions, const Work& work) const;
  void combine(Accumulator* into, const Accumulator* from, int64_t count) const;
  void end(const ReducePlan& plan, Accumulator* accumulators, const Accumulator* shifts, int64_t count) const;
  void store(const ReducePlan& plan, const Accumulator* accumulators, int64_t first, int64_t count, Accumulator* results,
             const heddle_tensor& output) const;
  void run_outputs(const ReducePlan& plan, const RunContext& context, int64_t part, CancellationPoll& poll) const;
  void run_partial(const ReducePlan& plan, const RunContext& context, int64_t part, CancellationPoll& poll) const;

  Reduction reduction_ = reduce_sum;
  bool keep_when_empty_ = false, keeps_dims_ = true;
  bool known_axes_ = false;
  heddle_dtype dtype_ = HEDDLE_DTYPE_NONE, folded_dtype_ = HEDDLE_DTYPE_NONE;
  ReducePlan plan_;
};

}  // namespace heddle::cpu
