#include "memory/variables.h"

#include <cstring>
#include <mutex>

#include "base/text.h"

namespace heddle {

Result<std::unique_ptr<VariableStore>> VariableStore::create(const Net& net) {
  auto store = std::make_unique<VariableStore>();
  for (const Variable& variable : net.variables) {
    const std::shared_ptr<const Blob>& initial = variable.initial.blob;
    if (!initial)
      return Status(Code::weights_missing, "variable " + quoted(variable.name) + " has no initial content",
                    "load the net with its weights");
    Entry entry;
    entry.name = variable.name;
    auto blob = Blob::allocate(initial->dtype, initial->shape, &entry.data);
    if (blob->bytes > 0) std::memcpy(entry.data, initial->data, static_cast<size_t>(blob->bytes));
    entry.blob = std::move(blob);
    store->entries_.push_back(std::move(entry));
  }
  return store;
}

int64_t VariableStore::bytes() const {
  int64_t total = 0;
  for (const Entry& e : entries_) total += e.blob->bytes;
  return total;
}

Status VariableStore::read(size_t i, void* destination, int64_t bytes) const {
  const Entry& e = entries_[i];
  if (bytes != e.blob->bytes)
    return {Code::shape_mismatch,
            "variable " + quoted(e.name) + " has " + std::to_string(e.blob->bytes) + " bytes, the buffer has " + std::to_string(bytes)};
  const std::shared_lock lock(mutex_);
  if (bytes > 0) std::memcpy(destination, e.data, static_cast<size_t>(bytes));
  return {};
}

Status VariableStore::write(size_t i, const void* source, int64_t bytes) {
  Entry& e = entries_[i];
  if (bytes != e.blob->bytes)
    return {Code::shape_mismatch,
            "variable " + quoted(e.name) + " has " + std::to_string(e.blob->bytes) + " bytes, the source has " + std::to_string(bytes)};
  const std::unique_lock lock(mutex_);
  if (bytes > 0) std::memcpy(e.data, source, static_cast<size_t>(bytes));
  e.torn = false;
  return {};
}

Status VariableStore::whole() const {
  for (const Entry& e : entries_)
    if (e.torn)
      return {Code::hazard, "variable " + quoted(e.name) + " was left half-updated by a run that failed",
              "write it, or open the net again"};
  return {};
}

}  // namespace heddle
