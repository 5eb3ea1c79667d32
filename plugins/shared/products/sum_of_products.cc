#include "shared/products/sum_of_products.h"

#include <algorithm>
#include <cctype>

#include "shared/axes.h"
#include "shared/dense_layouts.h"

namespace heddle::operators {
namespace {

// Labels are letters; those of an ellipsis get the numbers 0 to 7, counted from its last dimension.
struct Term {
  std::string labels;
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

// Numbers the labels of an operand; new ones are appended to `labels`.
Status number_labels(const Term& term, int operand, std::string* labels, EquationLabels* equation) {
  for (size_t d = 0; d < term.labels.size(); ++d) {
    size_t position = labels->find(term.labels[d]);
    if (position == std::string::npos) {
      position = labels->size();
      if (position == max_einsum_labels)
        return unsupported("Einsum with more than " + std::to_string(max_einsum_labels) + " different dimensions");
      *labels += term.labels[d];
    }
    equation->labels[operand][d] = static_cast<int8_t>(position);
  }
  return {};
}

// A label as a dimension of a matrix product, grouped by the operands that have it. Strides of 0 where an operand does not have it.
struct ProductDim {
  int64_t extent, left, right, y;
};
using ProductDims = std::vector<ProductDim>;

// Merges neighbours with a common step everywhere.
void join(ProductDims* dims) {
  for (size_t i = dims->size(); i-- > 1;) {
    ProductDim &outer = (*dims)[i - 1], &inner = (*dims)[i];
    if (outer.left != inner.left * inner.extent || outer.right != inner.right * inner.extent || outer.y != inner.y * inner.extent) continue;
    outer = {outer.extent * inner.extent, inner.left, inner.right, inner.y};
    dims->erase(dims->begin() + static_cast<std::ptrdiff_t>(i));
  }
}

// True if a matrix of such strides has contiguous columns or rows that do not overlap.
bool is_matrix(int64_t rows, int64_t row, int64_t columns, int64_t column) {
  return column == 1 ? row >= columns : row == 1 && column >= rows;
}

}  // namespace

Status parse_equation(const std::string& equation, const std::vector<Dims>& operands, EquationLabels* parsed) {
  if (operands.size() > max_einsum_operands) return unsupported("Einsum of more than " + std::to_string(max_einsum_operands) + " operands");
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
  }
  parsed->output_rank = static_cast<int>(labels.size());
  parsed->operand_count = static_cast<int>(operands.size());
  for (size_t i = 0; i < terms.size(); ++i) HEDDLE_PLUGIN_CHECK(number_labels(terms[i], static_cast<int>(i), &labels, parsed));
  parsed->label_count = static_cast<int>(labels.size());
  return {};
}

Status make_sum_of_products(const EquationLabels& equation, const Dims* operands, SumOfProducts* sum) {
  *sum = {};
  sum->label_count = equation.label_count;
  sum->output_rank = equation.output_rank;
  sum->operand_count = equation.operand_count;
  std::fill(sum->extents, sum->extents + max_einsum_labels, 1);
  for (int k = 0; k < equation.operand_count; ++k) {
    const Dims dims = operands[k];
    int64_t strides[HEDDLE_MAX_RANK];
    dense_strides(dims, strides);
    for (int d = 0; d < dims.rank; ++d) {
      const int label = equation.labels[k][d];
      int64_t& extent = sum->extents[label];
      if (dims[d] != 1 && extent != 1 && extent != dims[d])
        return invalid("a dimension has " + std::to_string(extent) + " elements in one operand and " + std::to_string(dims[d]) +
                       " in operand " + std::to_string(k));
      if (dims[d] != 1) {
        extent = dims[d];
        sum->strides[k][label] += strides[d];
      }
    }
  }
  return {};
}

Status make_sum_of_products(const std::string& equation, const std::vector<Dims>& operands, SumOfProducts* sum) {
  EquationLabels parsed;
  HEDDLE_PLUGIN_CHECK(parse_equation(equation, operands, &parsed));
  return make_sum_of_products(parsed, operands.data(), sum);
}

bool is_matrix_product(const SumOfProducts& sum, MatMulProblem* problem, bool* swapped) {
  if (sum.operand_count != 2) return false;
  int64_t y[max_einsum_labels] = {};
  dense_strides({sum.extents, sum.output_rank}, y);
  // The innermost dimension of the output has to be a column.
  int last = sum.output_rank - 1;
  while (last >= 0 && sum.extents[last] == 1) --last;
  if (last < 0) return false;
  *swapped = sum.strides[1][last] == 0;
  const int64_t *const left = sum.strides[*swapped ? 1 : 0], *const right = sum.strides[*swapped ? 0 : 1];
  ProductDims batch, rows, columns, depth;
  for (int d = 0; d < sum.label_count; ++d) {
    if (sum.extents[d] == 0) return false;
    if (sum.extents[d] == 1) continue;
    const bool both = left[d] != 0 && right[d] != 0, is_summed = d >= sum.output_rank;
    if (is_summed && !both) return false;
    ProductDims& group = is_summed ? depth : both ? batch : left[d] != 0 ? rows : columns;
    group.push_back({sum.extents[d], left[d], right[d], y[d]});
  }
  std::sort(depth.begin(), depth.end(), [](const ProductDim& a, const ProductDim& b) { return a.left > b.left; });
  for (ProductDims* dims : {&rows, &columns, &depth}) join(dims);
  // Rows or columns without a common step become a batch: the same matrix is multiplied with several ones.
  for (ProductDims* dims : {&rows, &columns})
    for (; dims->size() > 1; dims->erase(dims->begin())) batch.push_back(dims->front());
  join(&batch);
  if (rows.size() != 1 || columns.size() != 1 || depth.size() != 1 || columns[0].y != 1) return false;
  const ProductDim &row = rows[0], &column = columns[0], &sums = depth[0];
  if (!is_matrix(row.extent, row.left, sums.extent, sums.left) || !is_matrix(sums.extent, sums.right, column.extent, column.right))
    return false;
  *problem = {};
  problem->rows = row.extent;
  problem->columns = column.extent;
  problem->depth = sums.extent;
  problem->a = {row.left, sums.left, {}};
  problem->b = {sums.right, column.right, {}};
  problem->y = {row.y, 1, {}};
  for (const ProductDim& dim : batch) {
    problem->batch.push_back(dim.extent);
    problem->a.batch.push_back(dim.left);
    problem->b.batch.push_back(dim.right);
    problem->y.batch.push_back(dim.y);
  }
  return true;
}

}  // namespace heddle::operators
