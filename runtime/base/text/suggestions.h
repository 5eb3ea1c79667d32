// Nearest names for the mistakes of one file.
#pragma once

#include <string>
#include <string_view>

#include "base/text/text.h"

namespace heddle {

// Suggests for the first mistakes alone: each suggestion is a comparison with every name there is, and a file may hold any number of
// mistakes.
class Suggestions {
 public:
  static constexpr int most = 100;
  // suggestion() of base/text/text.h; empty behind the first `most`. `candidates()` gives the names and is only called when they are
  // needed.
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
