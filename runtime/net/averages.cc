#include "net/averages.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/text.h"
#include "net/initializer.h"

namespace heddle {
namespace {

constexpr const char* average_key = "average of ";

std::string key_of(const std::string& variable) {
  return average_key + variable;
}

// The name of the variable's average in that net; null: none is recorded.
const std::string* average_of(const Net& net, const std::string& variable) {
  const auto found =
      std::find_if(net.metadata.begin(), net.metadata.end(), [&](const auto& pair) { return pair.first == key_of(variable); });
  return found == net.metadata.end() ? nullptr : &found->second;
}

}  // namespace

ValueId add_average(Net& net, const Variable& of, const std::string& name) {
  std::erase_if(net.metadata, [&](const auto& pair) { return pair.first == key_of(of.name); });
  net.metadata.emplace_back(key_of(of.name), name);
  Variable average = of;
  average.name = name;
  average.trainable = false;
  if (!of.initializer.empty()) average.initializer = Initializer::drawn_as(of.initializer, of.name);
  return add_variable(net, std::move(average));
}

Result<int64_t> take_averages(Net& net, std::span<const Net> nets) {
  int64_t taken = 0;
  for (Variable& variable : net.variables)
    for (const Net& other : nets) {
      const std::string* const name = average_of(other, variable.name);
      if (!name) continue;
      const auto average = std::find_if(other.variables.begin(), other.variables.end(), [&](const Variable& v) { return v.name == *name; });
      if (average == other.variables.end())
        return Status(Code::unknown_name,
                      fmt::format("{} is said to be the average of {}, and is no variable", quoted(*name), quoted(variable.name)),
                      "make the net anew");
      if (average->type != variable.type)
        return Status(Code::shape_mismatch, fmt::format("{} has another type than its average {}", quoted(variable.name), quoted(*name)),
                      "make the net anew");
      // Without content no training has happened yet, and both begin alike.
      if (average->initial.any()) variable.initial = average->initial;
      ++taken;
      break;
    }
  if (taken > 0) return taken;
  return Status(Code::invalid_argument, fmt::format("net {} has no variable of which an average is kept", quoted(net.name)),
                "keep averages while it is trained, or take the variables as they are");
}

void forget_averages(Net& net) {
  std::erase_if(net.metadata, [](const auto& pair) { return pair.first.starts_with(average_key); });
}

}  // namespace heddle
