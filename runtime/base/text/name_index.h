// NameIndex: position by name, for lists of untrusted names. Sorted by (hash, name), so that names crafted to collide cost
// O(n log n) like all others, and two runs agree. Refers to the names, which must outlive it. Immutable, shareable.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle {

class NameIndex {
 public:
  NameIndex() = default;
  explicit NameIndex(std::vector<std::string_view> names);
  // Returns the first position of `name`.
  std::optional<uint32_t> find(std::string_view name) const;
  // Returns the (first, later) position of every name that occurs again, by later position.
  const std::vector<std::pair<uint32_t, uint32_t>>& duplicates() const { return duplicates_; }

 private:
  struct Slot {
    uint64_t hash;
    uint32_t position;
  };
  std::vector<std::string_view> names_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> starts_;  // by leading bits of the hash: the first slot; one more for the end
  int shift_ = 63;                // right shift of a hash that leaves its leading bits
  std::vector<std::pair<uint32_t, uint32_t>> duplicates_;
};

}  // namespace heddle
