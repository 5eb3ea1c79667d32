#include "settings.h"

#include <algorithm>
#include <cstdlib>

namespace sim {

bool Settings::parse_costs(const std::string& text, std::string* error) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    const std::string rule = text.substr(begin, comma - begin);
    const size_t equals = rule.find('=');
    char* end = nullptr;
    const uint64_t ns = equals == std::string::npos ? 0 : std::strtoull(rule.c_str() + equals + 1, &end, 10);
    if (!end || *end != '\0' || equals == 0 || end == rule.c_str() + equals + 1)
      return *error = "\"" + rule + "\" is not NAME=NANOSECONDS", false;
    costs.emplace_back(rule.substr(0, equals), ns);
    begin = comma + 1;
  }
  return true;
}

uint64_t Settings::cost(const char* name) const {
  for (const auto& [known, ns] : costs)
    if (known == name) return ns;
  return 0;
}

}  // namespace sim
