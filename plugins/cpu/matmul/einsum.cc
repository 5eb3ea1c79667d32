// Einsum: a sum of products over named dimensions, "bij, bjk -> bik". General loops over strides, for equations that are not worth
// rewriting as a matrix product. Tiles are ranges of the output's elements, or parts of the sums of one element.
#include <algorithm>

#include "families.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/products/sum_of_products.h"
#include "shared/scalar.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/gradients.h"
#include "support/strided_copy.h"

namespace heddle::cpu {
namespace {

Status infer_einsum(InferContext& context) {
  std::vector<Dims> operands;
  for (uint32_t i = 0; i < context.input_count(); ++i) operands.push_back(context.dims(i));
  SumOfProducts sum;
  HEDDLE_PLUGIN_CHECK(make_sum_of_products(context.attributes.s("equation"), operands, &sum));
  context.set_dims(0, sum.extents, sum.output_rank);
  return {};
}

// One multiplication for each operand but the first and one addition, for each element of all dimensions.
void einsum_cost(CostContext& context) {
  std::vector<Dims> operands;
  for (uint32_t i = 0; context.has_input(i); ++i) operands.push_back(context.dims(i));
  SumOfProducts sum;
  if (make_sum_of_products(context.attributes.s("equation"), operands, &sum).ok())
    context.set_flops(std::min(sum.products() * sum.operand_count, 8e18));
}

// Where few outputs are sums of many products, the sums are divided too: tile t is part t % parts_ of output t / parts_, and finish adds
// the parts up in order.
class Einsum {
 public:
  Status create(const CreateContext& context) {
    equation_ = context.attributes.s("equation");
    return {};
  }
  Status prepare(PrepareContext& context) {
    std::vector<Dims> operands;
    for (uint32_t i = 0; i < context.input_count(); ++i) operands.push_back(dims_of(*context.input(i)));
    sum_ = {};
    HEDDLE_PLUGIN_CHECK(make_sum_of_products(equation_, operands, &sum_));
    tiling_.plan(context, sum_.products() * sum_.operand_count, 16.0);
    // Without a sum, one operand is copied, its diagonals by strides that add up.
    copies_ = sum_.operand_count == 1 && sum_.label_count == sum_.output_rank;
    if (copies_) {
      const heddle_tensor& y = *context.output(0);
      const auto width = static_cast<int64_t>(byte_width(y.dtype));
      copy_ = StridedCopy(width);
      for (int64_t d = sum_.output_rank - 1, stride = width; d >= 0; stride *= sum_.extents[d--])
        copy_.add(sum_.extents[d], sum_.strides[0][d] * width, stride);
      copy_.finish();
      tiling_.plan(context, 2 * static_cast<int64_t>(y.byte_size), 2.0);
    }
    summed_ = 1;
    for (int d = sum_.output_rank; d < sum_.label_count; ++d)
      if (__builtin_mul_overflow(summed_, sum_.extents[d], &summed_))
        return unsupported("Einsum over more than 2^63 products for each output");
    parts_ = 1;
    const int64_t outputs = context.output(0)->element_count, tiles = context.tiles();
    if (outputs == 0 || tiles <= max_tiles || outputs >= tiles) return {};
    parts_ = std::clamp<int64_t>(summed_, 1, (tiles + outputs - 1) / outputs);
    if (parts_ == 1) return {};
    context.set_tiles(outputs * parts_);
    context.set_scratch(static_cast<uint64_t>(outputs * parts_) * partial_bytes);
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    if (copies_) {
      const Tiling::Range units = tiling_.range(copy_.units(), begin, end);
      copy_.run(context.inputs[0]->data, context.outputs[0]->data, units.first, units.last);
      return {};
    }
    return with_dtype(context.outputs[0]->dtype, [&](auto tag) { return add_up<typename decltype(tag)::type>(context, begin, end); });
  }
  Status finish(const RunContext& context) const {
    if (parts_ == 1) return {};
    with_dtype(context.outputs[0]->dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto* partials = step_scratch<const Arithmetic<T>>(context);
      for (int64_t i = 0; i < context.outputs[0]->element_count; ++i) {
        Arithmetic<T> sum = 0;
        for (int64_t part = 0; part < parts_; ++part) sum = wrapping_add(sum, partials[i * parts_ + part]);
        static_cast<T*>(context.outputs[0]->data)[i] = from_arithmetic<T>(sum);
      }
    });
    return {};
  }

 private:
  static constexpr uint64_t partial_bytes = sizeof(int64_t);  // as large as any Arithmetic

  template <class T>
  Status add_up(const RunContext& context, int64_t begin, int64_t end) const {
    const Tiling::Range range = parts_ > 1 ? Tiling::Range{begin, end} : tiling_.range(context.outputs[0]->element_count, begin, end);
    CancellationPoll poll(context);
    for (int64_t i = range.first; i < range.last; ++i) {
      int64_t rest = i / parts_, offsets[max_einsum_operands] = {};
      for (int d = sum_.output_rank - 1; d >= 0; --d) {
        for (int k = 0; k < sum_.operand_count; ++k) offsets[k] += rest % sum_.extents[d] * sum_.strides[k][d];
        rest /= sum_.extents[d];
      }
      const int64_t part = i % parts_;
      const auto sum = sum_products<T>(context, offsets, summed_begin(part), summed_begin(part + 1), poll);
      if (poll.stopped()) break;
      if (parts_ > 1)
        step_scratch<Arithmetic<T>>(context)[i] = sum;
      else
        static_cast<T*>(context.outputs[0]->data)[i] = from_arithmetic<T>(sum);
    }
    return poll.status();
  }
  int64_t summed_begin(int64_t part) const { return summed_ / parts_ * part + summed_ % parts_ * part / parts_; }

  // Sums products [first, last) over all labels that the output does not have, from `offsets` on.
  template <class T>
  Arithmetic<T> sum_products(const RunContext& context, int64_t* offsets, int64_t first, int64_t last, CancellationPoll& poll) const {
    Arithmetic<T> sum = 0;
    int64_t at[max_einsum_labels] = {}, rest = first;
    for (int d = sum_.label_count - 1; d >= sum_.output_rank && first > 0; --d) {
      at[d] = rest % sum_.extents[d];
      rest /= sum_.extents[d];
      for (int k = 0; k < sum_.operand_count; ++k) offsets[k] += at[d] * sum_.strides[k][d];
    }
    for (int64_t i = first; i < last; ++i) {
      if (i % asked_every == 0 && poll.stops(asked_every * sum_.operand_count)) return sum;
      Arithmetic<T> product = 1;
      for (int k = 0; k < sum_.operand_count; ++k)
        product = wrapping_mul(product, to_arithmetic(static_cast<const T*>(context.inputs[k]->data)[offsets[k]]));
      sum = wrapping_add(sum, product);
      for (int d = sum_.label_count - 1; d >= sum_.output_rank; --d) {
        for (int k = 0; k < sum_.operand_count; ++k) offsets[k] += sum_.strides[k][d];
        if (++at[d] < sum_.extents[d]) break;
        for (int k = 0; k < sum_.operand_count; ++k) offsets[k] -= sum_.extents[d] * sum_.strides[k][d];
        at[d] = 0;
      }
    }
    return sum;
  }

  static constexpr int64_t asked_every = 4096;
  std::string equation_;
  SumOfProducts sum_;
  Tiling tiling_;
  int64_t summed_ = 1;  // products of one output
  int64_t parts_ = 1;
  bool copies_ = false;
  StridedCopy copy_;
};

// ---------------------------------------------------------------- the gradient

// The gradient by one operand: a sum of products of dY and of the other operands, over the dimensions that this one does not have. If the
// operand names a dimension twice it reads the diagonal, which an identity matrix selects.
class OperandGradient {
 public:
  OperandGradient(GradientContext& g, const EquationLabels& labels, int operand) : g_(g), labels_(labels), operand_(operand) {}

  Status give() {
    const int rank = g_.input_type(static_cast<uint32_t>(operand_)).rank;
    add_term(g_.dy(0), identity_labels());
    for (int k = 0; k < labels_.operand_count; ++k)
      if (k != operand_) add_term(g_.x(static_cast<uint32_t>(k)), letters_of(k));
    std::string result;
    std::vector<int64_t> kept, alone;
    for (int d = 0; d < rank; ++d) {
      const int first = first_of_its_label(d);
      const char letter = letter_of(labels_.labels[operand_][d]);
      if (first < d) {
        const char other = static_cast<char>('a' + labels_.label_count + diagonals_++);
        add_term(identity(first, d), {letter, other});
        result += other;
        kept.push_back(d);
      } else if (terms_.find(letter) != std::string::npos || is_repeated(d)) {
        result += letter;
        kept.push_back(d);
      } else {
        alone.push_back(d);
      }
    }
    if (values_.size() > max_einsum_operands || labels_.label_count + diagonals_ > max_einsum_labels)
      return unsupported("the gradient of Einsum by operand " + std::to_string(operand_) + " takes " + std::to_string(values_.size()) +
                         " operands and " + std::to_string(labels_.label_count + diagonals_) + " dimensions, at most " +
                         std::to_string(max_einsum_operands) + " and " + std::to_string(max_einsum_labels) + " are done");
    GradientValue gradient = g_.emit("Einsum", values_, {{"equation", terms_ + "->" + result}});
    // Sums over broadcast dimensions, and repeats along dimensions that no other operand has.
    const GradientValue shape = shape_of(g_, x());
    if (may_be_broadcast(kept))
      gradient = g_.emit("SumTo", {gradient, alone.empty() ? shape : g_.emit("Gather", {shape, g_.ints(kept)})}, {}, "heddle");
    if (!alone.empty()) gradient = g_.emit("Expand", {g_.emit("Unsqueeze", {gradient, g_.ints(alone)}), shape});
    g_.give(static_cast<uint32_t>(operand_), gradient);
    return {};
  }

 private:
  GradientValue x() const { return g_.x(static_cast<uint32_t>(operand_)); }
  static char letter_of(int label) { return static_cast<char>('a' + label); }
  std::string identity_labels() const {
    std::string letters;
    for (int i = 0; i < labels_.output_rank; ++i) letters += letter_of(i);
    return letters;
  }
  std::string letters_of(int k) const {
    std::string letters;
    for (int d = 0; d < g_.input_type(static_cast<uint32_t>(k)).rank; ++d) letters += letter_of(labels_.labels[k][d]);
    return letters;
  }
  void add_term(GradientValue value, const std::string& letters) {
    terms_ += (values_.empty() ? "" : ",") + letters;
    values_.push_back(value);
  }
  int first_of_its_label(int d) const {
    const int8_t* const of = labels_.labels[operand_];
    return static_cast<int>(std::find(of, of + d, of[d]) - of);
  }
  bool is_repeated(int d) const {
    const int8_t* const of = labels_.labels[operand_];
    return std::count(of, of + g_.input_type(static_cast<uint32_t>(operand_)).rank, of[d]) > 1;
  }
  // An identity matrix as large as the larger of both dimensions, of which one may be 1 and broadcast.
  GradientValue identity(int first, int second) const {
    const GradientValue both = g_.emit("Gather", {shape_of(g_, x()), g_.ints({first, second})}), larger = g_.emit("ReduceMax", {both});
    return g_.emit("EyeLike", {zeros_of(g_, g_.emit("Concat", {larger, larger}, {{"axis", 0}}), x())});
  }
  bool may_be_broadcast(const std::vector<int64_t>& kept) const {
    const heddle_type& type = g_.input_type(static_cast<uint32_t>(operand_));
    return std::any_of(kept.begin(), kept.end(), [&](int64_t d) { return type.dims[d] < 0 || type.dims[d] == 1; });
  }

  GradientContext& g_;
  const EquationLabels& labels_;
  const int operand_;
  std::vector<GradientValue> values_;
  std::string terms_;
  int diagonals_ = 0;
};

Status einsum_gradient(GradientContext& g) {
  std::vector<Dims> operands;
  for (uint32_t i = 0; i < g.input_count(); ++i) operands.push_back({g.input_type(i).dims, g.input_type(i).rank});
  EquationLabels labels;
  HEDDLE_PLUGIN_CHECK(parse_equation(g.attributes().s("equation"), operands, &labels));  // which needs only ranks
  for (uint32_t i = 0; i < g.input_count(); ++i)
    if (g.wants(i)) HEDDLE_PLUGIN_CHECK(OperandGradient(g, labels, static_cast<int>(i)).give());
  return {};
}

}  // namespace

void add_einsum(Builder& plugin) {
  plugin.add(
      Op("Einsum", "", 12)
          .doc("Sums products over named axes. The equation names the axes of each input and those of the output: \"bij,bjk->bik\" "
               "multiplies batches of matrices. `...` stands for axes that broadcast.")
          .formula("output[kept axes] = sum over the others of the products of the inputs")
          .shapes("output has an axis for each letter after ->, with the extent that the letter has in the inputs, and the broadcast axes "
                  "for ...; without ->, for each letter that occurs once, in alphabetical order")
          .variadic("inputs", numeric_dtypes)
          .out("output", {}, numeric_dtypes)
          .required("equation", HEDDLE_ATTRIBUTE_STRING)
          .infer(infer_einsum)
          .gradient<einsum_gradient>()
          .cost<einsum_cost>()
          .cpu<Einsum>()
          .example("f32[2,3] = 1 0 2 1 1 3, f32[3,2] = 1 0 0 1 1 1; equation=\"ij,jk->ik\" -> f32[2,2] = 3 2 4 4", "ONNX Runtime")
          .example("i32[2,3] = 1 0 2 1 1 3, i32[3,2] = 1 0 0 1 1 1; equation=\"ij,jk->ik\" -> i32[2,2] = 3 2 4 4", "ONNX Runtime")
          .example("f32[2,2] = 1 2 3 4; equation=\"ii->i\" -> f32[2] = 1 4", "ONNX Runtime")
          .example("f32[2,1,3] = 1 2 3 4 5 6, f32[3] = 1 2 0.5; equation=\"...i,i->...\" -> f32[2,1] = 6.5 17", "ONNX Runtime")
          .example("f32[2] = 1 2, f32[3] = 1 2 3, f32[2] = 1 -1; equation=\"a,b,a->ab\" -> f32[2,3] = 1 2 3 -2 -4 -6", "ONNX Runtime"));
}

}  // namespace heddle::cpu
