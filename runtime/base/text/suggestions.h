// Nearest names for the mistakes of one file.
#pragma once

#include <string>
#include <string_view>

#include "base/text/text.h"

namespace heddle {

// Makes suggestions for the first mistakes alone: each suggestion is a comparison with every existing name, and a file may hold any number
// of mistakes.
class Suggestions {
 public:
  static constexpr int most = 100;
  // Returns suggestion() of base/text/text.h; empty after the first `most`. `candidates()` returns the names and is only called when they
  // are needed.
  template <class Candidates>
  std::string of(std::string_view name, const Candidates& candidates) {
    if (made_ == most) return {};
    ++made_;
    return suggestion(name, candidates());
  }

 private:
  int made_ = 0;
};

}  // namespace heddle
