#include "rules.h"

#include <algorithm>
#include <utility>

namespace heddle::cuda::standin {

const std::vector<RuleText>& rule_texts() {
  static const std::vector<RuleText>& texts = *new std::vector<RuleText>{
#define HEDDLE_CUDA_RULE(name, what, source) {#name, what, source},
#include "rules.inc"
#undef HEDDLE_CUDA_RULE
  };
  return texts;
}

void BrokenRules::add(Rule rule, const std::string& by) {
  std::string line = std::string(rule_texts()[static_cast<size_t>(rule)].name) + ": " + by;
  if (std::find(broken_.begin(), broken_.end(), line) == broken_.end()) broken_.push_back(std::move(line));
}

std::vector<std::string> BrokenRules::take() {
  return std::exchange(broken_, {});
}

}  // namespace heddle::cuda::standin
