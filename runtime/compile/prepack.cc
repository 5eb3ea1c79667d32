#include "compile/prepack.h"

#include <fmt/format.h>

#include <cstring>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "net/lasting_blob.h"
#include "weights/mapping.h"

namespace heddle {

struct PackCache::Table {
  struct Entry {
    uint64_t id = 0;
    std::weak_ptr<const Blob> packed;
    int64_t bytes = 0;
    // What it was packed from; only `owner` says whether that is still there.
    std::weak_ptr<const void> owner;
    const std::byte* original = nullptr;
    int64_t original_bytes = 0;

    // False when the bytes are at hand and others.
    bool may_be(const Blob& content) const;
  };
  // Several entries of one key: contents whose hashes agree and whose bytes do not.
  std::unordered_multimap<std::string, Entry> entries;
  uint64_t next_id = 1;
  mutable std::mutex mutex;

  void erase(const std::string& key, uint64_t id);
};

// What plans hold: the packed bytes, and the place in the table, which goes with them.
struct PackCache::Use {
  Use(const std::shared_ptr<Table>& of, std::string under) : table(of), key(std::move(under)) {}
  ~Use() {
    if (const auto alive = table.lock(); alive && id != 0) alive->erase(key, id);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  std::weak_ptr<Table> table;
  std::string key;
  uint64_t id = 0;  // 0: not in the table
  std::shared_ptr<const Blob> packed;
};

bool PackCache::Table::Entry::may_be(const Blob& content) const {
  const std::shared_ptr<const void> alive = owner.lock();
  if (!alive || !content.data || (original == content.data && original_bytes == content.bytes)) return true;
  const auto count = static_cast<size_t>(content.bytes);
  const bool same = original_bytes == content.bytes && std::memcmp(original, content.data, count) == 0;
  // The original was let go when it was packed; reading it has brought it back.
  const Blob packed_from{content.dtype, content.shape, original, original_bytes, alive};
  if (const Mapping* mapping = Mapping::of(packed_from)) mapping->release(original, original_bytes);
  return same;
}

void PackCache::Table::erase(const std::string& key, uint64_t id) {
  const std::lock_guard lock(mutex);
  const auto [first, last] = entries.equal_range(key);
  for (auto at = first; at != last; ++at)
    if (at->second.id == id) {
      entries.erase(at);
      return;
    }
}

PackCache::PackCache(ContentKey content_key) : content_key_(content_key), table_(std::make_shared<Table>()) {}

std::shared_ptr<const Blob> PackCache::find_or_pack(const Blob& content, const std::string& key, uint64_t bytes,
                                                    const std::function<bool(void*)>& fill) {
  const std::span<const std::byte> read(content.data, content.data ? static_cast<size_t>(content.bytes) : 0);
  const std::string whole = fmt::format("{}{}{}|{}|{}", content_key_(read), to_string(content.dtype), content.shape.text(), bytes, key);
  // Released behind the lock, which the last one to let go of an entry takes.
  const auto use = std::make_shared<Use>(table_, whole);
  std::vector<std::shared_ptr<const Blob>> others;
  // Packing under the lock: the same constant is never packed twice, and packing is rare.
  const std::lock_guard lock(table_->mutex);
  const auto [first, last] = table_->entries.equal_range(whole);
  for (auto at = first; at != last; ++at) {
    others.push_back(at->second.packed.lock());
    if (others.back() && at->second.may_be(content)) return others.back();
  }
  std::byte* data = nullptr;
  use->packed = lasting_blob(DType::u8, {static_cast<int64_t>(bytes)}, &data);
  if (!fill(data)) return nullptr;
  const std::shared_ptr<const Blob> packed(use, use->packed.get());
  const uint64_t id = table_->next_id++;
  table_->entries.emplace(whole, Table::Entry{id, packed, static_cast<int64_t>(bytes), content.owner, content.data, content.bytes});
  use->id = id;
  return packed;
}

size_t PackCache::size() const {
  const std::lock_guard lock(table_->mutex);
  return table_->entries.size();
}

int64_t PackCache::bytes() const {
  const std::lock_guard lock(table_->mutex);
  int64_t total = 0;
  for (const auto& [key, entry] : table_->entries) total += entry.bytes;
  return total;
}

}  // namespace heddle
