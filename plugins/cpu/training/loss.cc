// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: the loss of one class label per position, [N, C, d...] against [N, d...].
//
// Tiles are ranges of positions. Sums over all positions are made tile by tile in double and combined in tile order, so the result does
// not depend on the number of threads.
#include "families.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/scalar.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/gradients.h"
#include "training/loss_support.h"

namespace heddle::cpu {
namespace {

enum class Reduction : uint8_t { none, mean, sum };

Status parse_reduction(const Attributes& attributes, Reduction* reduction) {
  static constexpr const char* names[] = {"none", "mean", "sum"};
  const std::string text = attributes.s("reduction");
  for (int i = 0; i < 3; ++i)
    if (text == names[i]) return *reduction = static_cast<Reduction>(i), Status();
  return invalid("reduction is \"" + text + "\", expected none, mean or sum");
}

Status infer_loss(InferContext& context) {
  Reduction reduction;
  HEDDLE_PLUGIN_CHECK(parse_reduction(context.attributes, &reduction));
  HEDDLE_PLUGIN_CHECK(check_loss_shapes(context, 2));
  if (reduction == Reduction::none)
    context.set_dims(0, context.dims(1));
  else
    context.set_dims(0, std::vector<int64_t>());
  context.set_dims(1, context.dims(0));
  return {};
}

// `softmax`: the input is scores; else logarithms of probabilities.
template <bool softmax>
class Loss {
 public:
  Status create(const CreateContext& context) {
    labels_.create(context.attributes);
    return parse_reduction(context.attributes, &reduction_);
  }
  Status prepare(PrepareContext& context) {
    const heddle_tensor& x = *context.input(0);
    const int64_t bytes = static_cast<int64_t>(softmax ? x.byte_size : context.input(1)->byte_size);
    tiling_.plan(context, bytes, softmax ? 20.0 : 4.0);
    tiles_ = context.tiles();
    context.set_scratch(static_cast<uint64_t>(tiles_) * sizeof(Partial));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    return with_float(context.inputs[0]->dtype, [&](auto tag) -> Status {
      for (int64_t tile = begin; tile < end; ++tile) HEDDLE_PLUGIN_CHECK(run_tile<typename decltype(tag)::type>(context, tile));
      return {};
    });
  }
  Status finish(const RunContext& context) const {
    if (reduction_ == Reduction::none || !context.outputs[0]) return {};
    const auto* partials = step_scratch<const Partial>(context);
    Partial all = {0, 0};
    for (int64_t tile = 0; tile < tiles_; ++tile) {
      all.loss += partials[tile].loss;
      all.weight += partials[tile].weight;
    }
    return with_float(context.inputs[0]->dtype, [&](auto tag) -> Status {
      using T = typename decltype(tag)::type;
      *static_cast<T*>(context.outputs[0]->data) = from_arithmetic<T>(reduction_ == Reduction::sum ? all.loss : all.loss / all.weight);
      return {};
    });
  }

 private:
  struct Partial {
    double loss, weight;
  };

  template <class T>
  Status run_tile(const RunContext& context, int64_t tile) const {
    const heddle_tensor &x = *context.inputs[0], &labels = *context.inputs[1];
    const T* weights = context.input_count > 2 && context.inputs[2] ? static_cast<const T*>(context.inputs[2]->data) : nullptr;
    T* log_probabilities = context.output_count > 1 && context.outputs[1] ? static_cast<T*>(context.outputs[1]->data) : nullptr;
    T* losses = reduction_ == Reduction::none && context.outputs[0] ? static_cast<T*>(context.outputs[0]->data) : nullptr;
    const int64_t classes = x.dims[1], inner = dims_of(x).count(2, x.rank);
    const Tiling::Range range = tiling_.range(labels.element_count, tile, tile + 1);
    Partial sum = {0, 0};
    CancellationPoll poll(context);
    double shifts[loss_columns] = {};
    for (int64_t i = range.first, n; i < range.last; i += n) {
      n = std::min({inner - i % inner, range.last - i, loss_columns});
      const T* scores = static_cast<const T*>(x.data) + i / inner * classes * inner + i % inner;
      if (softmax) log_sums_exp(scores, classes, inner, n, shifts, poll);
      if (log_probabilities)
        write_shifted(scores, log_probabilities + (scores - static_cast<const T*>(x.data)), classes, inner, n, shifts, poll);
      if (poll.stopped()) return cancelled();
      for (int64_t j = 0; j < n; ++j) {
        const int64_t label = integer_at(labels, i + j);
        const bool counts = labels_.counts(label);
        if (counts) HEDDLE_PLUGIN_CHECK(CountedLabels::check(label, i + j, classes));
        const double weight = !counts ? 0 : weights ? static_cast<double>(to_arithmetic(weights[label])) : 1;
        const double loss = counts ? weight * (shifts[j] - static_cast<double>(to_arithmetic(scores[label * inner + j]))) : 0;
        if (losses) losses[i + j] = from_arithmetic<T>(loss);
        sum.loss += loss;
        sum.weight += weight;
      }
    }
    step_scratch<Partial>(context)[tile] = sum;
    return {};
  }

  // to = from - shift, for each of the columns.
  template <class T>
  static void write_shifted(const T* from, T* to, int64_t classes, int64_t inner, int64_t columns, const double* shifts,
                            CancellationPoll& poll) {
    const int64_t stretch = inner == 1 ? classes : columns;
    for (int64_t c = 0; c < classes * columns && !poll.stops(4 * stretch); c += stretch, from += inner, to += inner)
      for (int64_t j = 0; j < stretch; ++j)
        to[j] = from_arithmetic<T>(static_cast<double>(to_arithmetic(from[j])) - shifts[inner == 1 ? 0 : j]);
  }

  CountedLabels labels_;
  Reduction reduction_ = Reduction::mean;
  int64_t tiles_ = 1;
  Tiling tiling_;
};

// The class weights have no gradient, as in PyTorch.
template <bool softmax>
Status loss_gradient(GradientContext& g) {
  const GradientAttribute ignored = g.same("ignore_index");
  GradientValue gradient;
  if (GradientValue dloss = g.dy(0)) {
    if (g.attributes().s("reduction") == "mean") dloss = g.emit("LabelMeanGradient", {dloss, g.x(1), g.x(2)}, {ignored}, "heddle");
    const char* const op = softmax ? "SoftmaxCrossEntropyLossGradient" : "NegativeLogLikelihoodLossGradient";
    gradient = g.emit(op, {g.x(0), g.x(1), dloss, g.x(2)}, {ignored}, "heddle");
  }
  if (softmax && g.dy(1)) {
    const GradientValue sum = g.emit("ReduceSum", {g.dy(1), g.ints({1})});
    const GradientValue of_logarithms = pointwise(g, "x0 - exp(x1) * x2", {g.dy(1), g.y(1), sum});
    gradient = gradient ? g.emit("Add", {gradient, of_logarithms}) : of_logarithms;
  }
  g.give(0, gradient);
  return {};
}

}  // namespace

void add_loss(Builder& plugin) {
  plugin.add(
      Op("NegativeLogLikelihoodLoss", "", 13)
          .doc("Computes the negative log-likelihood of targets: for each position, their sum, or their mean, as `reduction` says (none, "
               "sum, mean). The mean is the sum divided by the weights of all targets that count. Targets equal to ignore_index do not.")
          .formula("loss = -weight[target] input[target]")
          .shapes("input is [N, C, ...], target is [N, ...]; loss has the dims of target with reduction \"none\", else it is one number")
          .in("input", float_dtypes)
          .in("target", index_dtypes, nullptr)
          .optional("weight", float_dtypes)
          .not_differentiable()
          .out("loss", {}, float_dtypes)
          .maybe("ignore_index", HEDDLE_ATTRIBUTE_INT)
          .attribute("reduction", "mean")
          .infer(infer_loss)
          .gradient<loss_gradient<false>>()
          .cpu<Loss<false>>()
          .example("f32[3,3] = -0.5 -1 -2 -1.5 -0.25 -3 -4 -1 -0.5, i64[3] = 0 2 1 -> f32[] = 1.5", "NumPy, ONNX Runtime, ONNX reference")
          .example("f32[3,3] = -0.5 -1 -2 -1.5 -0.25 -3 -4 -1 -0.5, i32[3] = 0 2 1, f32[3] = 1 2 0.5; reduction=\"sum\""
                   " -> f32[] = 4",
                   "NumPy, ONNX Runtime, ONNX reference")
          .example("f32[2,2,2] = -0.5 -1 -2 -0.25 -1 -3 -0.75 -0.5, i64[2,2] = 0 1 1 -1, f32[2] = 2 0.5; ignore_index=-1, "
                   "reduction=\"none\" -> f32[2,2] = 1 0.125 0.375 0",
                   "NumPy, ONNX Runtime, ONNX reference"));
  plugin.add(Op("SoftmaxCrossEntropyLoss", "", 13)
                 .doc("Computes the cross entropy of the softmax of scores with labels: for each position, their sum, or their mean, as "
                      "`reduction` says (none, sum, mean), and the logarithms of the softmax. The mean is the sum divided by the weights "
                      "of all labels that count. Labels equal to ignore_index do not.")
                 .formula("output = -weights[label] log_prob[label]; log_prob = scores - ln(sum(exp(scores)))")
                 .shapes("scores is [N, C, ...], labels is [N, ...]; output has the dims of labels with reduction \"none\", else it is one "
                         "number; log_prob has those of scores")
                 .in("scores", float_dtypes)
                 .in("labels", index_dtypes, nullptr)
                 .optional("weights", float_dtypes)
                 .not_differentiable()
                 .out("output", {}, float_dtypes)
                 .optional_out("log_prob", {}, float_dtypes)
                 .maybe("ignore_index", HEDDLE_ATTRIBUTE_INT)
                 .attribute("reduction", "mean")
                 .infer(infer_loss)
                 .gradient<loss_gradient<true>>()
                 .cpu<Loss<true>>()
                 .example("f32[2,3] = 1 0 -1 0.5 2 0, i64[2] = 0 2"
                          " -> f32[] = 1.356981, f32[2,3] = -0.407606 -1.407606 -2.407606 -1.806356 -0.3063557 -2.306356",
                          "NumPy, ONNX Runtime, ONNX reference")
                 .example("f32[3,3] = 1 0 -1 0.5 2 0 0 0 1, i32[3] = 0 2 1, f32[3] = 1 2 0.5; ignore_index=1"
                          " -> f32[] = 1.040523",
                          "NumPy, ONNX Runtime, ONNX reference")
                 .example("f32[2,2,2] = 1 0 -1 0.5 2 0 0 0, i64[2,2] = 0 1 1 0; reduction=\"none\""
                          " -> f32[2,2] = 0.126928 0.474077 2.126928 0.6931472",
                          "NumPy, ONNX Runtime, ONNX reference")
                 .example("f32[2,3] = 1 0 -1 0.5 2 0, i64[2] = 0 2; reduction=\"sum\" -> f32[] = 2.713962",
                          "NumPy, ONNX Runtime, ONNX reference"));
}

}  // namespace heddle::cpu
