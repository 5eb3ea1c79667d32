#include "base/text/limit_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/text/option_names.h"
#include "base/text/text.h"

namespace heddle {
namespace {

// Each level of subnets takes stack in every stage: this many fit in the 8 MiB that threads have.
constexpr int64_t deepest_subnet = 128;
// Sums of a few of them still fit in 64 bits.
constexpr int64_t most = int64_t{1} << 60;

constexpr LimitEntry table[] = {
    {"file_bytes", &Limits::file_bytes, most, "bytes of a .heddle or .json file"},
    {"weight_file_bytes", &Limits::weight_file_bytes, most, "bytes of a weights file"},
    {"nodes", &Limits::nodes, most, "operators, over all subnets"},
    {"subnet_depth", &Limits::subnet_depth, deepest_subnet, "subnets within subnets"},
    {"name_bytes", &Limits::name_bytes, most, "bytes of a name"},
    {"attribute_elements", &Limits::attribute_elements, most, "elements of a list attribute"},
    {"tensor_bytes", &Limits::tensor_bytes, most, "bytes of one value"},
    {"plan_bytes", &Limits::plan_bytes, most, "planned peak bytes per device"},
    {"evaluated_elements", &Limits::evaluated_elements, most, "elements of a value whose content decides shapes"},
    {"folded_bytes", &Limits::folded_bytes, most, "bytes of a constant that folding may create"},
    {"loop_trips", &Limits::loop_trips, most, "runs of subnets in one run"},
    {"operations", &Limits::operations, most, "declared operations of one run"},
};
static_assert(sizeof(table) / sizeof(table[0]) * sizeof(int64_t) == sizeof(Limits), "every limit has a name");

// The command line reads such a limit as a size, so it is printed as one.
std::string value_text(std::string_view name, int64_t value) {
  return name.ends_with("_bytes") ? human_bytes(value) : fmt::to_string(value);
}

}  // namespace

std::span<const LimitEntry> limit_table() {
  return table;
}

Hint raise_limit(const char* name) {
  return hint_with("if you trust it, raise the limit with ", option_names::limits.text(name));
}

Status over_limit(const char* name, int64_t value, std::string what) {
  what += fmt::format(", the limit {} is {}", name, value_text(name, value));
  return {Code::limit_exceeded, std::move(what), raise_limit(name)};
}

Status over_limit(const Limits& limits, int64_t Limits::*limit, std::string what) {
  const auto* entry = std::find_if(std::begin(table), std::end(table), [&](const LimitEntry& e) { return e.value == limit; });
  return over_limit(entry->name, limits.*limit, std::move(what));
}

Status set_limit(Limits& limits, std::string_view name, int64_t value) {
  std::vector<std::string> names;
  for (const LimitEntry& entry : table) {
    names.emplace_back(entry.name);
    if (name != entry.name) continue;
    if (value < 0 || value > entry.most)
      return {Code::invalid_argument, fmt::format("the limit {} can't be {}", names.back(), value),
              fmt::format("give a number from 0 to {}", entry.most)};
    limits.*entry.value = value;
    return {};
  }
  const std::string close = suggestion(name, names), all = join(names, ", ");
  return {Code::unknown_name, fmt::format("there is no limit {}", quoted(name)),
          close.empty() ? fmt::format("the limits are {}", all) : fmt::format("{} the limits are {}", close, all)};
}

}  // namespace heddle
