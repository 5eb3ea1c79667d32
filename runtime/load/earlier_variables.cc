#include "load/earlier_variables.h"

#include <cstring>

namespace heddle {
namespace {

bool same_content(const Content& a, const Content& b) {
  if (a.blob && b.blob)
    return a.blob == b.blob ||
           (a.blob->bytes == b.blob->bytes && std::memcmp(a.blob->data, b.blob->data, static_cast<size_t>(a.blob->bytes)) == 0);
  return !a.blob && !b.blob && a.reference->file == b.reference->file && a.reference->tensor == b.reference->tensor;
}

}  // namespace

void EarlierVariables::add(const Net& net) {
  for (const Variable& variable : net.variables) by_name_.emplace(variable.name, &variable);
}

bool EarlierVariables::have(const Variable& variable) const {
  const auto found = by_name_.find(variable.name);
  return found != by_name_.end() && found->second->type == variable.type && found->second->initializer == variable.initializer &&
         found->second->replica_of == variable.replica_of && same_content(found->second->initial, variable.initial);
}

void EarlierVariables::complete(Net& net) const {
  for (Variable& variable : net.variables) {
    if (variable.initial.any() || !variable.initializer.empty() || !variable.replica_of.empty()) continue;
    const auto found = by_name_.find(variable.name);
    if (found == by_name_.end() || found->second->type != variable.type) continue;
    variable.initial = found->second->initial;
    variable.initializer = found->second->initializer;
  }
}

}  // namespace heddle
