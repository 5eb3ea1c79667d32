// Words, braces and texts of an example (example.h), from left to right.
#pragma once

#include <fmt/format.h>

#include <cctype>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "base/text/text.h"
#include "heddle/status.h"

namespace heddle::tool {

// Reads an example from left to right; errors name the position.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool at_end() {
    skip();
    return at_ == text_.size();
  }
  char next() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(std::string_view word) {
    skip();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  // Up to a blank or one of `,;]` or "->".
  std::string_view word() {
    skip();
    const size_t begin = at_;
    while (at_ < text_.size() && !std::isspace(static_cast<unsigned char>(text_[at_])) && !std::strchr(",;[]={}\"", text_[at_]) &&
           text_.substr(at_, 2) != "->")
      ++at_;
    return text_.substr(begin, at_ - begin);
  }
  // {...}, with the braces inside it.
  std::string_view braces() {
    skip();
    const size_t begin = at_;
    int depth = 0;
    bool in_string = false;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (in_string) {
        if (c == '\\') ++at_;
        in_string = c != '"';
        continue;
      }
      in_string = c == '"';
      depth += c == '{' ? 1 : c == '}' ? -1 : 0;
      if (depth == 0) return text_.substr(begin, ++at_ - begin);
    }
    return {};
  }
  // "...", without escapes.
  std::optional<std::string> string() {
    if (!take("\"")) return {};
    const size_t end = text_.find('"', at_);
    if (end == std::string_view::npos) return {};
    std::string content(text_.substr(at_, end - at_));
    at_ = end + 1;
    return content;
  }
  Status wrong(const std::string& what) const {
    return {Code::syntax, fmt::format("example {}: at character {}: {}", quoted(text_), at_ + 1, what),
            "docs/writing_an_operator.md says how examples are written"};
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace heddle::tool
