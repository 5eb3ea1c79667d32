// What an examination of `heddle plugin check` finds.
#pragma once

#include <string>
#include <utility>

namespace heddle::tool {

struct Verdict {
  enum class Kind : char { pass, fail, not_run };
  Kind kind = Kind::pass;
  std::string reason;  // of what did not pass

  // Empty: nothing is wrong.
  static Verdict of(std::string wrong) { return {wrong.empty() ? Kind::pass : Kind::fail, std::move(wrong)}; }
};

}  // namespace heddle::tool
