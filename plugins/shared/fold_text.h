// Sum, Mean, Max and Min as expressions: any number of inputs folded with one function, from the left.
#pragma once

#include <string>
#include <vector>

namespace heddle::operators {

// The fold of `names` as a pointwise text: statements, then the value and the ending. `function` is "+" or one of two arguments; `ending`
// is appended to the folded value: " / 3".
inline std::string fold_text(const std::vector<std::string>& names, const std::string& function, const std::string& ending) {
  std::string text, value = names[0];
  for (size_t i = 1; i < names.size(); ++i) {
    const std::string next = "t" + std::to_string(i);
    text += next + " = " + (function == "+" ? value + " + " + names[i] : function + "(" + value + ", " + names[i] + ")") + "; ";
    value = next;
  }
  return text + value + ending;
}

}  // namespace heddle::operators
