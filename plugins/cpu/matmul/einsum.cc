// Einsum: a sum of products over named dimensions, "bij, bjk -> bik". General loops over strides, for what is not worth rewriting as a
// matrix product. Tiles are ranges of the output's elements, or parts of the sums behind them.
#include <algorithm>
#include <cctype>

#include "families.h"
#include "shared/axes.h"
#include "shared/dense_layouts.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/scalar.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

constexpr int most_labels = 16, most_operands = 8;

// Labels are letters; those of an ellipsis get the numbers 0 to 7, counted from its last dimension.
struct Term {
  std::string labels;
};

// The equation against the operands' dims. Labels of the output come first, then the summed ones.
struct Sum {
  int label_count = 0, output_rank = 0, operand_count = 0;
  int64_t extents[most_labels];
  int64_t strides[most_operands][most_labels] = {};  // in elements
  double products() const {
    double n = 1;
    for (int i = 0; i < label_count; ++i) n *= static_cast<double>(extents[i]);
    return n;
  }
};

Status parse_term(const std::string& text, int rank, Term* term) {
  int letters = 0;
  for (char c : text) letters += std::isalpha(static_cast<unsigned char>(c)) ? 1 : 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    if (text.compare(i, 3, "...") == 0) {
      // rank < 0: an output term, whose ellipsis is filled in later.
      for (int d = rank - letters; d > 0; --d) term->labels += static_cast<char>(d - 1);
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(c))) {
      term->labels += c;
    } else {
      return invalid("the equation has '" + std::string(1, c) + "', expected letters, commas, ... and ->");
    }
  }
  if (rank >= 0 && static_cast<int>(term->labels.size()) != rank)
    return invalid("term \"" + text + "\" names " + std::to_string(term->labels.size()) + " dimensions of an operand that has " +
                   std::to_string(rank));
  return {};
}

std::vector<std::string> split_terms(const std::string& text) {
  std::vector<std::string> terms(1);
  for (char c : text)
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  return terms;
}

// Without "->" the output has the ellipsis and then, in alphabetical order, the letters that occur once.
std::string implicit_output(const std::vector<Term>& terms) {
  int counts[256] = {};
  int ellipsis = 0;
  for (const Term& term : terms)
    for (char c : term.labels) {
      ++counts[static_cast<unsigned char>(c)];
      if (c < HEDDLE_MAX_RANK) ellipsis = std::max(ellipsis, c + 1);
    }
  std::string output;
  for (int d = ellipsis; d > 0; --d) output += static_cast<char>(d - 1);
  for (int c = HEDDLE_MAX_RANK; c < 256; ++c)
    if (counts[c] == 1) output += static_cast<char>(c);
  return output;
}

Status explicit_output(const std::string& text, const std::vector<Term>& terms, std::string* output) {
  int ellipsis = 0;
  for (const Term& term : terms)
    for (char c : term.labels)
      if (c < HEDDLE_MAX_RANK) ellipsis = std::max(ellipsis, c + 1);
  const size_t dots = text.find("...");
  const std::string before = text.substr(0, dots), after = dots == std::string::npos ? "" : text.substr(dots + 3);
  Term head, tail;
  HEDDLE_PLUGIN_CHECK(parse_term(before, -1, &head));
  HEDDLE_PLUGIN_CHECK(parse_term(after, -1, &tail));
  *output = head.labels;
  for (int d = ellipsis; dots != std::string::npos && d > 0; --d) *output += static_cast<char>(d - 1);
  *output += tail.labels;
  return {};
}

// Gives every label of the operand its extent and stride.
Status place_operand(const Term& term, Dims dims, int operand, std::string* labels, Sum* sum) {
  int64_t strides[HEDDLE_MAX_RANK];
  dense_strides(dims, strides);
  for (int d = 0; d < dims.rank; ++d) {
    const char label = term.labels[static_cast<size_t>(d)];
    size_t position = labels->find(label);
    if (position == std::string::npos) {
      position = labels->size();
      if (position == most_labels) return unsupported("Einsum with more than " + std::to_string(most_labels) + " different dimensions");
      *labels += label;
      sum->extents[position] = 1;
    }
    int64_t& extent = sum->extents[position];
    if (dims[d] != 1 && extent != 1 && extent != dims[d])
      return invalid("a dimension has " + std::to_string(extent) + " elements in one operand and " + std::to_string(dims[d]) +
                     " in operand " + std::to_string(operand));
    if (dims[d] != 1) {
      extent = dims[d];
      sum->strides[operand][position] += strides[d];
    }
  }
  return {};
}

Status make_sum(const std::string& equation, const std::vector<Dims>& operands, Sum* sum) {
  if (operands.size() > most_operands) return unsupported("Einsum of more than " + std::to_string(most_operands) + " operands");
  const size_t arrow = equation.find("->");
  const std::vector<std::string> texts = split_terms(equation.substr(0, arrow));
  if (texts.size() != operands.size())
    return invalid("the equation has " + std::to_string(texts.size()) + " terms for " + std::to_string(operands.size()) + " operands");
  std::vector<Term> terms(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) HEDDLE_PLUGIN_CHECK(parse_term(texts[i], operands[i].rank, &terms[i]));
  std::string labels;
  if (arrow == std::string::npos)
    labels = implicit_output(terms);
  else
    HEDDLE_PLUGIN_CHECK(explicit_output(equation.substr(arrow + 2), terms, &labels));
  HEDDLE_PLUGIN_CHECK(check_rank(labels.size()));
  for (size_t i = 0; i < labels.size(); ++i) {
    const bool known =
        std::any_of(terms.begin(), terms.end(), [&](const Term& t) { return t.labels.find(labels[i]) != std::string::npos; });
    if (!known || labels.find(labels[i], i + 1) != std::string::npos)
      return invalid("the output names a dimension twice or one that no operand has");
    sum->extents[i] = 1;
  }
  sum->output_rank = static_cast<int>(labels.size());
  sum->operand_count = static_cast<int>(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) HEDDLE_PLUGIN_CHECK(place_operand(terms[i], operands[i], static_cast<int>(i), &labels, sum));
  sum->label_count = static_cast<int>(labels.size());
  return {};
}

Status infer_einsum(InferContext& context) {
  std::vector<Dims> operands;
  for (uint32_t i = 0; i < context.input_count(); ++i) operands.push_back(context.dims(i));
  Sum sum;
  HEDDLE_PLUGIN_CHECK(make_sum(context.attributes.s("equation"), operands, &sum));
  context.set_dims(0, sum.extents, sum.output_rank);
  return {};
}

// A multiplication for each operand but the first and an addition, for each element of all dimensions.
void einsum_cost(CostContext& context) {
  std::vector<Dims> operands;
  for (uint32_t i = 0; context.has_input(i); ++i) operands.push_back(context.dims(i));
  Sum sum;
  if (make_sum(context.attributes.s("equation"), operands, &sum).ok())
    context.set_flops(std::min(sum.products() * sum.operand_count, 8e18));
}

// Where few outputs are sums of very much, the sums are divided too: tile t is part t % parts_ of output t / parts_, and finish adds the
// parts up in order.
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
    HEDDLE_PLUGIN_CHECK(make_sum(equation_, operands, &sum_));
    tiling_.plan(context, sum_.products() * sum_.operand_count, 16.0);
    summed_ = 1;
    for (int d = sum_.output_rank; d < sum_.label_count; ++d)
      if (__builtin_mul_overflow(summed_, sum_.extents[d], &summed_))
        return unsupported("Einsum over more than 2^63 products for each output");
    parts_ = 1;
    const int64_t outputs = context.output(0)->element_count, tiles = context.tiles();
    if (outputs == 0 || tiles <= most_tiles || outputs >= tiles) return {};
    parts_ = std::clamp<int64_t>(summed_, 1, (tiles + outputs - 1) / outputs);
    if (parts_ == 1) return {};
    context.set_tiles(outputs * parts_);
    context.set_scratch(static_cast<uint64_t>(outputs * parts_) * partial_bytes);
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
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
      int64_t rest = i / parts_, offsets[most_operands] = {};
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

  // Of the sum over all labels that the output does not have, products [first, last): those at `offsets` and on.
  template <class T>
  Arithmetic<T> sum_products(const RunContext& context, int64_t* offsets, int64_t first, int64_t last, CancellationPoll& poll) const {
    Arithmetic<T> sum = 0;
    int64_t at[most_labels] = {}, rest = first;
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
  Sum sum_;
  Tiling tiling_;
  int64_t summed_ = 1;  // products of one output
  int64_t parts_ = 1;
};

}  // namespace

void add_einsum(Builder& plugin) {
  plugin.add(
      Op("Einsum", "", 12)
          .doc("a sum of products over named dimensions")
          .variadic("inputs", numeric_dtypes)
          .out("output", {}, numeric_dtypes)
          .required("equation", HEDDLE_ATTRIBUTE_STRING)
          .infer(infer_einsum)
          .cost<einsum_cost>()
          .cpu<Einsum>()
          .example("f32[2,3] = 1 0 2 1 1 3, f32[3,2] = 1 0 0 1 1 1; equation=\"ij,jk->ik\" -> f32[2,2] = 3 2 4 4", "ONNX Runtime")
          .example("i32[2,3] = 1 0 2 1 1 3, i32[3,2] = 1 0 0 1 1 1; equation=\"ij,jk->ik\" -> i32[2,2] = 3 2 4 4", "ONNX Runtime")
          .example("f32[2,2] = 1 2 3 4; equation=\"ii->i\" -> f32[2] = 1 4", "ONNX Runtime")
          .example("f32[2,1,3] = 1 2 3 4 5 6, f32[3] = 1 2 0.5; equation=\"...i,i->...\" -> f32[2,1] = 6.5 17", "ONNX Runtime")
          .example("f32[2] = 1 2, f32[3] = 1 2 3, f32[2] = 1 -1; equation=\"a,b,a->ab\" -> f32[2,3] = 1 2 3 -2 -4 -6", "ONNX Runtime"));
}

}  // namespace heddle::cpu
