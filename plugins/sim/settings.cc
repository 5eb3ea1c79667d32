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
    Cost cost;
    if (equals != std::string::npos) cost.ns = std::strtoull(rule.c_str() + equals + 1, &end, 10);
    bool is_number = end && equals != 0 && end != rule.c_str() + equals + 1;
    if (is_number && *end == '+') {
      const char* const more = end + 1;
      cost.ns_per_byte = std::strtod(more, &end);
      is_number = end != more && cost.ns_per_byte >= 0;
    }
    if (!is_number || *end != '\0') return *error = "\"" + rule + "\" is not NAME=NANOSECONDS or NAME=NANOSECONDS+PER_BYTE", false;
    cost.name = rule.substr(0, equals);
    costs.push_back(std::move(cost));
    begin = comma + 1;
  }
  return true;
}

uint64_t Settings::cost(const char* name, uint64_t bytes) const {
  for (const Cost& known : costs)
    if (known.name == name) return known.ns + static_cast<uint64_t>(known.ns_per_byte * static_cast<double>(bytes));
  return 0;
}

}  // namespace sim
