// The rules of rules.inc, and which of them were broken. A broken rule is remembered, printed on stderr when the process ends unless a test
// has taken it, and answered with CUDA's own error if there is one.
#pragma once

#include <string>
#include <vector>

namespace heddle::cuda::standin {

enum class Rule : int {
#define HEDDLE_CUDA_RULE(name, what, source) name,
#include "rules.inc"
#undef HEDDLE_CUDA_RULE
};

struct RuleText {
  const char *name, *what, *source;
};
const std::vector<RuleText>& rule_texts();  // in the order of Rule

// Not thread-safe.
class BrokenRules {
 public:
  // `by` is the call, and details: "cudaMemcpyAsync: 8 bytes at offset 60 of 64".
  void add(Rule rule, const std::string& by);
  // Returns and forgets lines such as "copy_beyond: cudaMemcpyAsync: ...", each once, in the order in which they came.
  std::vector<std::string> take();

 private:
  std::vector<std::string> broken_;
};

}  // namespace heddle::cuda::standin
