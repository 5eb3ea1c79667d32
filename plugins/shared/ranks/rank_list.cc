#include "shared/ranks/rank_list.h"

namespace heddle::operators {

std::string rank_list(const std::vector<int32_t>& ranks) {
  if (ranks.empty()) return "no rank";
  std::vector<std::string> parts;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (end - i < 3) end = i + 1;
    parts.push_back(std::to_string(ranks[i]));
    if (end - i > 1) parts.back() += "-" + std::to_string(ranks[end - 1]);
    i = end;
  }
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += i + 1 == parts.size() ? " and " : ", ";
    text += parts[i];
  }
  return text;
}

}  // namespace heddle::operators
