#include "base/text/name_index.h"

#include <algorithm>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace heddle {
namespace {

uint64_t hash_of(std::string_view name) {
  return XXH3_64bits(name.data(), name.size());
}

}  // namespace

NameIndex::NameIndex(std::vector<std::string_view> names) : names_(std::move(names)) {
  slots_.reserve(names_.size());
  for (size_t i = 0; i < names_.size(); ++i) slots_.push_back({hash_of(names_[i]), static_cast<uint32_t>(i)});
  std::sort(slots_.begin(), slots_.end(), [&](const Slot& a, const Slot& b) {
    if (a.hash != b.hash) return a.hash < b.hash;
    const int order = names_[a.position].compare(names_[b.position]);
    return order != 0 ? order < 0 : a.position < b.position;
  });
  while (shift_ > 0 && (size_t{1} << (63 - shift_)) < slots_.size()) --shift_;
  starts_.assign((size_t{1} << (64 - shift_)) + 1, static_cast<uint32_t>(slots_.size()));
  for (size_t i = slots_.size(); i-- > 0;) starts_[slots_[i].hash >> shift_] = static_cast<uint32_t>(i);
  for (size_t i = starts_.size() - 1; i-- > 0;) starts_[i] = std::min(starts_[i], starts_[i + 1]);
  size_t first = 0;
  for (size_t i = 1; i < slots_.size(); ++i) {
    const bool again = slots_[i].hash == slots_[first].hash && names_[slots_[i].position] == names_[slots_[first].position];
    if (again)
      duplicates_.emplace_back(slots_[first].position, slots_[i].position);
    else
      first = i;
  }
  std::sort(duplicates_.begin(), duplicates_.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
}

std::optional<uint32_t> NameIndex::find(std::string_view name) const {
  if (slots_.empty()) return std::nullopt;
  const uint64_t hash = hash_of(name);
  const auto begin = slots_.begin() + starts_[hash >> shift_];
  const auto end = slots_.begin() + starts_[(hash >> shift_) + 1];
  const auto at = std::lower_bound(begin, end, hash, [&](const Slot& slot, uint64_t wanted) {
    return slot.hash != wanted ? slot.hash < wanted : names_[slot.position] < name;
  });
  if (at == end || at->hash != hash || names_[at->position] != name) return std::nullopt;
  return at->position;
}

}  // namespace heddle
