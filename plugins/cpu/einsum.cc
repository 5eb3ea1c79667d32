// Einsum: a sum of products over named dimensions, "bij, bjk -> bik". General loops over strides, for what is not worth rewriting as a
// matrix product. Tiles are ranges of the output's elements.
#include <cctype>

#include "families.h"
#include "scalar.h"

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

class Einsum {
 public:
  Status create(const CreateContext& context) {
    equation_ = context.attributes.s("equation");
    return {};
  }
  Status prepare(PrepareContext& context) {
    std::vector<Dims> operands;
    for (uint32_t i = 0; i < context.raw()->input_count; ++i) operands.push_back(dims_of(*context.input(i)));
    sum_ = {};
    HEDDLE_PLUGIN_CHECK(make_sum(equation_, operands, &sum_));
    double products = 1;
    for (int i = 0; i < sum_.label_count; ++i) products *= static_cast<double>(sum_.extents[i]);
    tiling_.plan(context, static_cast<int64_t>(std::min(products, 1e15)) * sum_.operand_count, 16.0);
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    with_dtype(context.outputs[0]->dtype, [&](auto tag) { add_up<typename decltype(tag)::type>(context, begin, end); });
    return {};
  }

 private:
  template <class T>
  void add_up(const RunContext& context, int64_t begin, int64_t end) const {
    const Tiling::Range range = tiling_.range(context.outputs[0]->element_count, begin, end);
    for (int64_t i = range.first; i < range.last; ++i) {
      int64_t rest = i, offsets[most_operands] = {};
      for (int d = sum_.output_rank - 1; d >= 0; --d) {
        for (int k = 0; k < sum_.operand_count; ++k) offsets[k] += rest % sum_.extents[d] * sum_.strides[k][d];
        rest /= sum_.extents[d];
      }
      static_cast<T*>(context.outputs[0]->data)[i] = from_arithmetic<T>(sum_products<T>(context, offsets));
    }
  }

  // The sum over all labels that the output does not have, of the products at `offsets` and on.
  template <class T>
  Arithmetic<T> sum_products(const RunContext& context, int64_t* offsets) const {
    Arithmetic<T> sum = 0;
    int64_t at[most_labels] = {};
    for (int d = sum_.output_rank; d < sum_.label_count; ++d)
      if (sum_.extents[d] == 0) return sum;
    for (;;) {
      Arithmetic<T> product = 1;
      for (int k = 0; k < sum_.operand_count; ++k)
        product = wrapping_mul(product, to_arithmetic(static_cast<const T*>(context.inputs[k]->data)[offsets[k]]));
      sum = wrapping_add(sum, product);
      int d = sum_.label_count - 1;
      for (; d >= sum_.output_rank; --d) {
        for (int k = 0; k < sum_.operand_count; ++k) offsets[k] += sum_.strides[k][d];
        if (++at[d] < sum_.extents[d]) break;
        for (int k = 0; k < sum_.operand_count; ++k) offsets[k] -= sum_.extents[d] * sum_.strides[k][d];
        at[d] = 0;
      }
      if (d < sum_.output_rank) return sum;
    }
  }

  std::string equation_;
  Sum sum_;
  Tiling tiling_;
};

}  // namespace

void add_einsum(Builder& plugin) {
  plugin.add(Op("Einsum", "", 12)
                 .doc("a sum of products over named dimensions")
                 .variadic("inputs", numeric_dtypes)
                 .out("output", {}, numeric_dtypes)
                 .required("equation", HEDDLE_ATTRIBUTE_STRING)
                 .infer(infer_einsum)
                 .cpu<Einsum>());
}

}  // namespace heddle::cpu
