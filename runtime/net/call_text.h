// "name(word, word)": the notation of rules in files and on the command line.
#pragma once

#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

struct CallText {
  std::string name;
  std::vector<std::string> words;  // between the commas, without spaces around them

  // None: the text has another form. Without brackets, or with nothing in them, there are no words.
  static std::optional<CallText> parse(std::string_view text) {
    CallText made;
    const size_t open = text.find('(');
    made.name = std::string(text.substr(0, open));
    if (open == std::string_view::npos) return made;
    if (text.back() != ')') return std::nullopt;
    std::string_view inside = text.substr(open + 1, text.size() - open - 2);
    if (trimmed(inside).empty()) return made;
    for (size_t end = 0; end != std::string_view::npos; inside.remove_prefix(end == std::string_view::npos ? 0 : end + 1)) {
      end = inside.find(',');
      made.words.emplace_back(trimmed(inside.substr(0, end)));
    }
    return made;
  }

  // A finite number; none: the word is something else.
  static std::optional<double> number(std::string_view word) {
    double value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(value)) return std::nullopt;
    return value;
  }

 private:
  static std::string_view trimmed(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
  }
};

}  // namespace heddle
