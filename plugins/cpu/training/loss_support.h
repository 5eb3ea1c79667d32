// Helpers of the losses of class labels and their gradients: shapes, which labels count, and the logarithm of a sum of exponentials.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "reduce/accumulator.h"
#include "shared/dims.h"
#include "shared/scalar.h"
#include "shared/tile_cap.h"
#include "support/cpu_api.h"
#include "support/float_sums.h"

namespace heddle::cpu {

// Scores [N, C, d...], labels [N, d...] and, at `weights` if it is there, weights [C].
inline Status check_loss_shapes(const InferContext& context, uint32_t weights) {
  const Dims x = context.dims(0), labels = context.dims(1);
  if (x.rank < 2 || x[1] < 1) return invalid("the scores have shape " + dims_text(x) + ", expected [N, C] or [N, C, d...] with C > 0");
  std::vector<int64_t> expected = vector_of(x);
  expected.erase(expected.begin() + 1);
  if (!std::equal(expected.begin(), expected.end(), labels.begin(), labels.end()))
    return invalid("the labels have shape " + dims_text(labels) + ", expected " + dims_text(dims_of(expected)));
  if (context.has_input(weights) && (context.dims(weights).rank != 1 || context.dims(weights)[0] != x[1]))
    return invalid("the weights have shape " + dims_text(context.dims(weights)) + ", expected [" + std::to_string(x[1]) + "]");
  return {};
}

// Selects the labels that count: all but those that are the attribute ignore_index.
class CountedLabels {
 public:
  void create(const Attributes& attributes) {
    has_ignored_ = attributes.has("ignore_index");
    ignored_ = attributes.i("ignore_index");
  }
  bool counts(int64_t label) const { return !(has_ignored_ && label == ignored_); }
  static Status check(int64_t label, int64_t position, int64_t classes) {
    if (label >= 0 && label < classes) return {};
    return invalid("label " + std::to_string(label) + " at position " + std::to_string(position) + " is outside [0, " +
                   std::to_string(classes - 1) + "]");
  }

 private:
  bool has_ignored_ = false;
  int64_t ignored_ = 0;
};

// log(sum of exp(x)) of `classes` elements a stride apart.
template <class T>
double log_sum_exp(const T* column, int64_t classes, int64_t stride, CancellationPoll& poll) {
  using A = Arithmetic<T>;
  A largest = to_arithmetic(column[0]);
  for (int64_t c = 1; c < classes && !poll.stops(2); ++c) largest = std::max(largest, to_arithmetic(column[c * stride]));
  if (std::isinf(largest)) return std::numeric_limits<double>::quiet_NaN();  // inf - inf, as LogSoftmax of the same scores
  double sum = 0;
  for (int64_t c = 0; c < classes && !poll.stops(10); ++c)
    sum += static_cast<double>(std::exp(to_arithmetic(column[c * stride]) - largest));
  return static_cast<double>(largest) + std::log(sum);
}

// Computes log_sum_exp of `columns` neighbouring columns, at most loss_columns. f32 and narrower floats are folded by the loops of
// reductions.
constexpr int64_t loss_columns = 128;
template <class T>
void log_sums_exp(const T* x, int64_t classes, int64_t stride, int64_t columns, double* sums, CancellationPoll& poll) {
  if constexpr (std::is_same_v<T, double>) {
    for (int64_t j = 0; j < columns; ++j) sums[j] = log_sum_exp(x + j, classes, stride, poll);
    return;
  }
  const FoldFunctions* const folds = isa_folds().functions[fold_type(dtype_of<T>::id)];
  const auto fold = [&](const FoldFunctions& functions, int64_t operations, const double* shifts, double* accumulators) {
    const int64_t together = std::max<int64_t>(1, CancellationPoll::between / (operations * columns));
    for (int64_t c = 0; c < classes; c += together) {
      const int64_t n = std::min(together, classes - c);
      if (poll.stops(operations * n * columns)) return;
      if (stride == 1)
        functions.row(x + c, n, shifts, accumulators);
      else
        functions.columns(x + c * stride, n, stride, columns, shifts, accumulators);
    }
  };
  double largest[loss_columns];
  std::fill(largest, largest + columns, -std::numeric_limits<double>::infinity());
  fold(folds[fold_max], 1, nullptr, largest);
  std::fill(sums, sums + columns, 0.0);
  fold(folds[fold_exp], 8, largest, sums);
  for (int64_t j = 0; j < columns; ++j)
    sums[j] = std::isinf(largest[j]) ? std::numeric_limits<double>::quiet_NaN() : largest[j] + std::log(sums[j]);
}

}  // namespace heddle::cpu
