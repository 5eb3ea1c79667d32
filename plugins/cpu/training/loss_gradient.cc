// The gradients of NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: of the sum, or of each position's loss. For a mean,
// LabelMeanGradient first divides by the sum of weights, and the gradient of the sum follows.
//
// Tiles are ranges of positions, which are independent. f32 runs on the softmax of reduce/softmax_rows.h, in place of its gradient.
#include <algorithm>
#include <cmath>

#include "families.h"
#include "reduce/softmax_rows.h"
#include "shared/tiling.h"
#include "training/loss_support.h"

namespace heddle::cpu {
namespace {

Status infer_loss_gradient(InferContext& context) {
  HEDDLE_PLUGIN_CHECK(check_loss_shapes(context, 3));
  const Dims labels = context.dims(1), dloss = context.dims(2);
  if (dloss.rank > 0 && !std::equal(labels.begin(), labels.end(), dloss.begin(), dloss.end()))
    return invalid("dloss has shape " + dims_text(dloss) + ", expected a scalar or that of the labels, " + dims_text(labels));
  context.set_dims(0, context.dims(0));
  return {};
}

// `softmax`: the loss is of scores; else of logarithms of probabilities.
template <bool softmax>
class LossGradient {
 public:
  Status create(const CreateContext& context) {
    labels_.create(context.attributes);
    return {};
  }
  Status prepare(PrepareContext& context) {
    const heddle_tensor& x = *context.input(0);
    const double cost = !softmax ? 1.0 : x.dtype == HEDDLE_F32 ? 5.0 : 20.0;
    tiling_.plan(context, static_cast<int64_t>(2 * x.byte_size), cost);
    context.set_scratch(0, sizeof(Columns));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    if (writes_nothing(context)) return {};
    return with_float(context.inputs[0]->dtype,
                      [&](auto tag) -> Status { return run_as<typename decltype(tag)::type>(context, begin, end); });
  }

 private:
  // Buffers for neighbouring positions.
  struct Columns {
    float softmax_scratch[2 * softmax_columns];
    double factors[softmax_columns];
    int64_t labels[softmax_columns];  // -1: does not count
  };
  static constexpr int64_t longest = int64_t{1} << 24;  // the longest softmax that is computed as a whole

  template <class T>
  Status run_as(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor &x = *context.inputs[0], &labels = *context.inputs[1];
    const int64_t classes = x.dims[1], inner = dims_of(x).count(2, x.rank);
    const Tiling::Range range = tiling_.range(labels.element_count, begin, end);
    Columns& columns = *thread_scratch<Columns>(context);
    CancellationPoll poll(context);
    for (int64_t i = range.first; i < range.last && !poll.stopped();) {
      const int64_t column = i % inner, n = std::min({inner - column, range.last - i, softmax_columns});
      HEDDLE_PLUGIN_CHECK(find_factors<T>(context, i, n, classes, columns));
      const int64_t first = i / inner * classes * inner + column;
      const T* from = static_cast<const T*>(x.data) + first;
      T* to = static_cast<T*>(context.outputs[0]->data) + first;
      if constexpr (!softmax)
        write_labels(to, n, classes, inner, columns, poll);
      else if constexpr (std::is_same_v<T, float>)
        classes > longest ? write_each(from, to, n, classes, inner, columns, poll) : write(from, to, n, classes, inner, columns, poll);
      else
        write_each(from, to, n, classes, inner, columns, poll);
      i += n;
    }
    return poll.status();
  }

  // Computes weight * dloss of `n` positions from `i` on.
  template <class T>
  Status find_factors(const RunContext& context, int64_t i, int64_t n, int64_t classes, Columns& columns) const {
    const heddle_tensor &labels = *context.inputs[1], &dloss = *context.inputs[2];
    const T* weights = context.input_count > 3 && context.inputs[3] ? static_cast<const T*>(context.inputs[3]->data) : nullptr;
    for (int64_t j = 0; j < n; ++j) {
      const int64_t label = integer_at(labels, i + j);
      columns.labels[j] = -1;
      columns.factors[j] = 0;
      if (!labels_.counts(label)) continue;
      HEDDLE_PLUGIN_CHECK(CountedLabels::check(label, i + j, classes));
      columns.labels[j] = label;
      columns.factors[j] = static_cast<double>(to_arithmetic(static_cast<const T*>(dloss.data)[dloss.rank > 0 ? i + j : 0])) *
                           (weights ? static_cast<double>(to_arithmetic(weights[label])) : 1);
    }
    return {};
  }

  template <class T>
  static void clear(T* to, int64_t n, int64_t classes, int64_t inner, CancellationPoll& poll) {
    for (int64_t c = 0; c < classes && !poll.stops(n / 4); ++c) std::fill_n(to + c * inner, n, T{});
  }
  template <class T>
  static void write_labels(T* to, int64_t n, int64_t classes, int64_t inner, const Columns& columns, CancellationPoll& poll) {
    clear(to, n, classes, inner, poll);
    for (int64_t j = 0; j < n; ++j)
      if (columns.labels[j] >= 0) to[columns.labels[j] * inner + j] = from_arithmetic<T>(-columns.factors[j]);
  }
  // (softmax - 1 at the label) * factor
  static void write(const float* from, float* to, int64_t n, int64_t classes, int64_t inner, Columns& columns, CancellationPoll& poll) {
    if (poll.stops(2 * n * classes)) return;
    if (inner == 1)
      isa_softmaxes().rows[softmax_plain](from, to, 1, classes);
    else
      isa_softmaxes().columns[softmax_plain](from, to, classes, inner, n, columns.softmax_scratch);
    float factors[softmax_columns];
    for (int64_t j = 0; j < n; ++j) factors[j] = static_cast<float>(columns.factors[j]);
    for (int64_t j = 0; j < n; ++j)
      if (columns.labels[j] >= 0) to[columns.labels[j] * inner + j] -= 1;
    if (inner == 1)
      for (int64_t c = 0; c < classes; ++c) to[c] *= factors[0];
    else
      for (int64_t c = 0; c < classes; ++c)
        for (int64_t j = 0; j < n; ++j) to[c * inner + j] *= factors[j];
    for (int64_t j = 0; j < n; ++j)
      if (columns.labels[j] < 0) clear(to + j, 1, classes, inner, poll);
  }
  template <class T>
  static void write_each(const T* from, T* to, int64_t n, int64_t classes, int64_t inner, const Columns& columns, CancellationPoll& poll) {
    for (int64_t j = 0; j < n; ++j) {
      if (columns.labels[j] < 0) {
        clear(to + j, 1, classes, inner, poll);
        continue;
      }
      const double shift = log_sum_exp(from + j, classes, inner, poll);
      for (int64_t c = 0; c < classes && !poll.stops(10); ++c) {
        const double probability = std::exp(static_cast<double>(to_arithmetic(from[c * inner + j])) - shift);
        to[c * inner + j] = from_arithmetic<T>((c == columns.labels[j] ? probability - 1 : probability) * columns.factors[j]);
      }
    }
  }

  CountedLabels labels_;
  Tiling tiling_;
};

// ---------------------------------------------------------------- the divisor of a mean

Status infer_label_mean(InferContext& context) {
  if (context.dims(0).rank != 0) return invalid("dloss has shape " + dims_text(context.dims(0)) + ", expected a scalar");
  if (context.has_input(2) && context.dims(2).rank != 1)
    return invalid("the weights have shape " + dims_text(context.dims(2)) + ", expected [C]");
  context.set_dims(0, context.dims(0));
  return {};
}

// Tiles are ranges of labels; their sums are combined in tile order.
class LabelMeanGradient {
 public:
  Status create(const CreateContext& context) {
    labels_.create(context.attributes);
    return {};
  }
  Status prepare(PrepareContext& context) {
    tiling_.plan(context, static_cast<int64_t>(context.input(1)->byte_size), 2);
    tiles_ = context.tiles();
    context.set_scratch(static_cast<uint64_t>(tiles_) * sizeof(double));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    return with_float(context.inputs[0]->dtype, [&](auto tag) -> Status {
      for (int64_t tile = begin; tile < end; ++tile) HEDDLE_PLUGIN_CHECK(run_tile<typename decltype(tag)::type>(context, tile));
      return {};
    });
  }
  Status finish(const RunContext& context) const {
    const double* sums = step_scratch<double>(context);
    double sum = 0;
    for (int64_t tile = 0; tile < tiles_; ++tile) sum += sums[tile];
    return with_float(context.inputs[0]->dtype, [&](auto tag) -> Status {
      using T = typename decltype(tag)::type;
      *static_cast<T*>(context.outputs[0]->data) = from_arithmetic<T>(number_at(*context.inputs[0], 0) / sum);
      return {};
    });
  }

 private:
  static constexpr int64_t stretch =
      512;  // this many are summed separately: a long sum of few different numbers rounds the same way again and again

  template <class T>
  Status run_tile(const RunContext& context, int64_t tile) const {
    const heddle_tensor& labels = *context.inputs[1];
    const heddle_tensor* weights = context.input_count > 2 ? context.inputs[2] : nullptr;
    const Tiling::Range range = tiling_.range(labels.element_count, tile, tile + 1);
    CancellationPoll poll(context);
    double sum = 0;
    for (int64_t first = range.first; first < range.last && !poll.stops(2 * stretch); first += stretch) {
      double part = 0;
      for (int64_t i = first; i < std::min(range.last, first + stretch); ++i) {
        const int64_t label = integer_at(labels, i);
        if (!labels_.counts(label)) continue;
        if (weights) HEDDLE_PLUGIN_CHECK(CountedLabels::check(label, i, weights->element_count));
        part += weights ? static_cast<double>(to_arithmetic(static_cast<const T*>(weights->data)[label])) : 1;
      }
      sum += part;
    }
    step_scratch<double>(context)[tile] = sum;
    return poll.status();
  }

  CountedLabels labels_;
  int64_t tiles_ = 1;
  Tiling tiling_;
};

template <bool softmax>
Op loss_gradient_operator(const char* name) {
  Op op(name, "heddle");
  op.in("scores", float_dtypes)
      .in("labels", index_dtypes, nullptr)
      .in("dloss", float_dtypes)
      .optional("weights", float_dtypes)
      .out("dscores", {}, float_dtypes)
      .maybe("ignore_index", HEDDLE_ATTRIBUTE_INT)
      .precision(HEDDLE_PRECISION_FULL)
      .infer(infer_loss_gradient)
      .cpu<LossGradient<softmax>>();
  return op;
}

}  // namespace

void add_loss_gradient(Builder& plugin) {
  plugin.add(
      loss_gradient_operator<false>("NegativeLogLikelihoodLossGradient")
          .doc("Computes the gradient of the input of NegativeLogLikelihoodLoss, of each position or of their sum.")
          .shapes("dscores has the dims of scores")
          .example("f32[2,3] = -0.5 -1 -2 -1.5 -0.25 -3, i64[2] = 0 2, f32[] = 2 -> f32[2,3] = -2 0 0 0 0 -2", "by hand")
          .example("f32[2,2,2], i64[2,2] = 0 1 1 -1, f32[2,2] = 1 2 3 4, f32[2] = 2 0.5; ignore_index=-1 -> f32[2,2,2] = -2 0 0 -1 0 "
                   "0 -1.5 0",
                   "by hand"));
  plugin.add(
      loss_gradient_operator<true>("SoftmaxCrossEntropyLossGradient")
          .doc("Computes the gradient of the scores of SoftmaxCrossEntropyLoss, of each position or of their sum.")
          .formula("dscores = dloss weights[label] (softmax(scores) - onehot(label))")
          .shapes("dscores has the dims of scores")
          .example("f32[2,3] = 1 0 -1 0.5 2 0, i64[2] = 0 2, f32[] = 1 -> f32[2,3] = -0.334759 0.2447285 0.09003057 0.1642516 0.7361247 "
                   "-0.900376352",
                   "by hand")
          .example("f32[1,2,3] = 0 0 0 0 0 0, i32[1,3] = 0 1 7, f32[1,3] = 1 2 3, f32[2] = 1 0.5; ignore_index=7 -> f32[1,2,3] = -0.5 "
                   "0.5 0 0.5 -0.5 0",
                   "by hand"));
  plugin.add(Op("LabelMeanGradient", "heddle")
                 .doc("Divides dloss by the weights of all labels that count: it turns the gradient of a mean into that of the sum.")
                 .shapes("dsum has no dims: it is one number")
                 .in("dloss", float_dtypes)
                 .in("labels", index_dtypes, nullptr)
                 .optional("weights", float_dtypes)
                 .out("dsum", {}, float_dtypes)
                 .maybe("ignore_index", HEDDLE_ATTRIBUTE_INT)
                 .precision(HEDDLE_PRECISION_FULL)
                 .infer(infer_label_mean)
                 .cpu<LabelMeanGradient>()
                 .example("f32[] = 3, i64[2,2] = 0 1 2 1 -> f32[] = 0.75", "by hand")
                 .example("f32[] = 3, i32[4] = 0 1 -1 1, f32[2] = 0.5 2; ignore_index=-1 -> f32[] = 0.6666667", "by hand"));
}

}  // namespace heddle::cpu
