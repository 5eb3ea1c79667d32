#include "transform/einsum_equation.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace heddle {
namespace {

bool is_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0;
}

// Returns the labels of the `count` dimensions of an ellipsis.
std::string ellipsis_labels(int count) {
  std::string labels;
  for (int d = count; d > 0; --d) labels += static_cast<char>(d - 1);
  return labels;
}

// Returns the labels of a term whose ellipsis represents `ellipsis` dimensions.
std::string term_labels(const std::string& term, int ellipsis) {
  std::string labels;
  for (size_t i = 0; i < term.size(); ++i) {
    if (is_letter(term[i])) labels += term[i];
    if (term.compare(i, 3, "...") != 0) continue;
    labels += ellipsis_labels(ellipsis);
    i += 2;
  }
  return labels;
}

// Without "->" the output has the ellipsis and then, in alphabetical order, the letters that occur once.
std::string implicit_output(const std::vector<std::string>& operands, int ellipsis) {
  std::array<int, 128> counts = {};
  for (const std::string& labels : operands)
    for (const char label : labels) ++counts[static_cast<size_t>(label)];
  std::string output = ellipsis_labels(ellipsis);
  for (size_t c = 'A'; c < counts.size(); ++c)
    if (counts[c] == 1) output += static_cast<char>(c);
  return output;
}

}  // namespace

EinsumEquation einsum_equation(const std::string& text, const std::vector<int>& ranks) {
  EinsumEquation equation;
  const size_t arrow = text.find("->");
  int ellipsis = 0;
  size_t begin = 0;
  for (const int rank : ranks) {
    const size_t end = std::min(text.find(',', begin), std::min(arrow, text.size()));
    const std::string term = text.substr(begin, end - begin);
    const int dots =
        term.find("...") == std::string::npos ? 0 : rank - static_cast<int>(std::count_if(term.begin(), term.end(), is_letter));
    ellipsis = std::max(ellipsis, dots);
    equation.operands.push_back(term_labels(term, dots));
    begin = end + 1;
  }
  equation.output =
      arrow == std::string::npos ? implicit_output(equation.operands, ellipsis) : term_labels(text.substr(arrow + 2), ellipsis);
  return equation;
}

}  // namespace heddle
