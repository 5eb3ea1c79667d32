#include "trainable/weight_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "base/text/text.h"
#include "trainable/training_mode.h"

namespace heddle::trainable {
namespace {

bool is_floating(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32 || dtype == DType::f64;
}

// Whether `pattern` matches all of `text`; * stands for any text.
bool matches(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::vector<std::string> split(const std::vector<std::string>& lists) {
  std::vector<std::string> patterns;
  for (const std::string& list : lists)
    for (size_t begin = 0; begin <= list.size();) {
      const size_t end = std::min(list.find(',', begin), list.size());
      if (end > begin) patterns.push_back(list.substr(begin, end - begin));
      begin = end + 1;
    }
  return patterns;
}

class Choice {
 public:
  Choice(const Net& net, const std::vector<std::string>& initializers)
      : net_(net), read_(net.values.size(), 0), excluded_(net.values.size(), 0), weights_(net.values.size(), 0) {
    for (const Node& node : net.nodes)
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (!node.inputs[i].valid()) continue;
        read_[node.inputs[i].index] = 1;
        if (holds_no_parameter(node, i)) excluded_[node.inputs[i].index] = 1;
      }
    const std::set<std::string> given(initializers.begin(), initializers.end());
    for (size_t i = 0; i < weights_.size(); ++i) weights_[i] = has_axes(i) && given.contains(net.values[i].name) ? 1 : 0;
    if (std::any_of(weights_.begin(), weights_.end(), [](char weight) { return weight != 0; })) return;
    for (size_t i = 0; i < weights_.size(); ++i) weights_[i] = has_axes(i) ? 1 : 0;
  }

  // Marks, by value, the weights.
  const std::vector<char>& weights() const { return weights_; }

  // Marks what the pattern takes.
  Status take(const std::string& pattern, std::vector<char>& marked) const {
    const bool is_name = pattern.find('*') == std::string::npos;
    bool matched = false, taken = false;
    for (size_t i = 0; i < net_.values.size(); ++i) {
      const Value& value = net_.values[i];
      if (value.kind != Value::Kind::constant || !matches(pattern, value.name)) continue;
      matched = true;
      const DType dtype = value.type.dtype;
      if (dtype == DType::i8 || dtype == DType::u8 || (is_name && !is_floating(dtype)))
        return {Code::unsupported,
                fmt::format("--trainable {}: {} is {}, and only floats are trained", quoted(pattern), quoted(value.name), to_string(dtype)),
                "export the model before it is quantised, or name other weights"};
      if (!weights_[i] && !(is_name && can_learn(i))) continue;
      marked[i] = 1;
      taken = true;
    }
    if (!matched) return nothing_matches(pattern);
    if (!taken)
      return {Code::invalid_argument,
              fmt::format("--trainable {}: it matches constants that no operator takes as a weight", quoted(pattern)),
              "running statistics, bounds and factors are not trained; a number is, if its whole name is given"};
    return {};
  }

 private:
  // Whether the value is a constant that can be trained: of floats, read as a parameter.
  bool can_learn(size_t i) const {
    const Value& value = net_.values[i];
    return value.kind == Value::Kind::constant && is_floating(value.type.dtype) && read_[i] && !excluded_[i] && count(value) > 0;
  }
  bool has_axes(size_t i) const { return can_learn(i) && !net_.values[i].type.dims.empty(); }

  static int64_t count(const Value& value) {
    const std::optional<Shape> shape = value.type.fixed_shape();
    return shape ? shape->element_count() : 0;
  }

  Status nothing_matches(const std::string& pattern) const {
    constexpr size_t shown = 8;
    std::vector<std::string> names;
    for (size_t i = 0; i < net_.values.size(); ++i)
      if (weights_[i]) names.push_back(net_.values[i].name);
    std::string bare = pattern;
    std::erase(bare, '*');
    const std::string near = suggestion(bare, names);
    const size_t all = names.size();
    names.resize(std::min(all, shown));
    const std::string listed =
        fmt::format("the weights are {}{}", all_quoted(names), all > shown ? fmt::format(" and {} more", all - shown) : "");
    return {Code::unknown_name, fmt::format("--trainable {}: no constant of the model has such a name", quoted(pattern)),
            near.empty() ? (all == 0 ? std::string("the model has no weights") : listed) : near};
  }

  const Net& net_;
  std::vector<char> read_, excluded_, weights_;  // by value
};

}  // namespace

bool holds_no_parameter(const Node& node, size_t input) {
  struct Row {
    std::string_view type;
    size_t first, last;  // inputs
  };
  static constexpr auto rows = std::to_array<Row>(
      {{"BatchNormalization", 3, 4}, {"Clip", 1, 2}, {"Dropout", 1, 2}, {"OneHot", 1, 2}, {"Pad", 1, 2}, {"Resize", 1, 3}});
  return node.domain.empty() && std::any_of(rows.begin(), rows.end(), [&](const Row& row) {
           return row.type == node.type && input >= row.first && input <= row.last;
         });
}

Result<std::vector<char>> choose_weights(const Net& net, const WeightRequest& request) {
  const Choice choice(net, request.initializers);
  const std::vector<std::string> patterns = split(request.patterns);
  std::vector<char> marked = patterns.empty() ? choice.weights() : std::vector<char>(net.values.size(), 0);
  for (const std::string& pattern : patterns) HEDDLE_CHECK(choice.take(pattern, marked));
  if (std::none_of(marked.begin(), marked.end(), [](char mark) { return mark != 0; }))
    return Status(Code::invalid_argument, "--trainable: the model has no weights: no operator takes a constant of floats with axes",
                  "name a number that is to learn, or check the export");
  return marked;
}

}  // namespace heddle::trainable
