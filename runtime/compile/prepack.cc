#include "compile/prepack.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/threads/mutex.h"
#include "net/lasting_blob.h"
#include "weights/mapping.h"

namespace heddle {

struct PackCache::Table {
  struct Entry {
    uint64_t id = 0;
    std::weak_ptr<const Blob> packed;
    int64_t bytes = 0;
    // The bytes that it was packed from; only `owner` tells whether they still exist.
    std::weak_ptr<const void> owner;
    const std::byte* original = nullptr;
    int64_t original_bytes = 0;
    // While it is being packed: the packing thread, and whether its own function has requested it.
    std::optional<std::thread::id> packer{};
    bool in_circle = false;

    // Returns false when the original bytes are available and differ.
    bool may_be(const Blob& content) const;
  };
  // One key may have several entries: contents whose hashes agree and whose bytes do not.
  std::unordered_multimap<std::string, Entry> entries HEDDLE_GUARDED_BY(mutex);
  uint64_t next_id HEDDLE_GUARDED_BY(mutex) = 1;
  mutable Mutex mutex;
  Condition packed;                                                        // signalled when one more is packed, or packing failed
  std::map<std::thread::id, uint64_t> waits_for HEDDLE_GUARDED_BY(mutex);  // the entry that each thread waits for

  Entry* find(uint64_t id) HEDDLE_REQUIRES(mutex);
  // Keeps in `others` what it has looked at: the last owner of an entry takes the lock, so that `others` must outlive it. Releases the
  // lock while it waits, and while it drops what it has looked at.
  std::shared_ptr<const Blob> find(const Blob& content, const std::string& key, bool* in_circle,
                                   std::vector<std::shared_ptr<const Blob>>& others) HEDDLE_REQUIRES(mutex);
  bool waits_for_this_thread(const Entry& entry) HEDDLE_REQUIRES(mutex);
  void erase(const std::string& key, uint64_t id) HEDDLE_EXCLUDES(mutex);
};

// Held by plans: the packed bytes, and the entry in the table, which is erased with them.
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
  // The original was released when it was packed; reading it has brought it back.
  const Blob packed_from{content.dtype, content.shape, original, original_bytes, alive};
  if (const Mapping* mapping = Mapping::of(packed_from)) mapping->release(original, original_bytes);
  return same;
}

void PackCache::Table::erase(const std::string& key, uint64_t id) {
  const MutexLock lock(mutex);
  const auto [first, last] = entries.equal_range(key);
  for (auto at = first; at != last; ++at)
    if (at->second.id == id) {
      entries.erase(at);
      return;
    }
}

PackCache::PackCache(ContentKey content_key) : content_key_(content_key), table_(std::make_shared<Table>()) {}

PackCache::Table::Entry* PackCache::Table::find(uint64_t id) {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const auto& one) { return one.second.id == id; });
  return found == entries.end() ? nullptr : &found->second;
}

// True if an entry that is being packed waits for this thread, directly or through others.
bool PackCache::Table::waits_for_this_thread(const Entry& entry) {
  for (const Entry* at = &entry; at && at->packer;) {
    if (*at->packer == std::this_thread::get_id()) return true;
    const auto next = waits_for.find(*at->packer);
    at = next == waits_for.end() ? nullptr : find(next->second);
  }
  return false;
}

// Returns the packed form that exists, or will; null: there is none.
std::shared_ptr<const Blob> PackCache::Table::find(const Blob& content, const std::string& key, bool* in_circle,
                                                   std::vector<std::shared_ptr<const Blob>>& others) {
  const auto is_packed = [this](uint64_t id) HEDDLE_REQUIRES(mutex) {
    const Entry* const entry = find(id);
    return !entry || !entry->packer;
  };
  for (;;) {
    uint64_t awaited = 0;
    const auto [first, last] = entries.equal_range(key);
    for (auto at = first; at != last && awaited == 0; ++at) {
      Entry& entry = at->second;
      others.push_back(entry.packed.lock());
      if ((!entry.packer && !others.back()) || !entry.may_be(content)) continue;
      if (!entry.packer) return others.back();
      if (waits_for_this_thread(entry)) {
        entry.in_circle = *in_circle = true;
        return nullptr;
      }
      awaited = entry.id;
    }
    if (awaited != 0) {
      waits_for[std::this_thread::get_id()] = awaited;
      while (!is_packed(awaited)) packed.wait(mutex);
      waits_for.erase(std::this_thread::get_id());
    }
    if (!others.empty()) {
      mutex.unlock();
      others.clear();
      mutex.lock();
    }
    if (awaited == 0) return nullptr;
  }
}

std::shared_ptr<const Blob> PackCache::find_or_pack(const Blob& content, const std::string& key, uint64_t bytes,
                                                    const std::function<bool(void*)>& fill, bool* in_circle) {
  bool circle = false;
  bool& is_circle = in_circle ? *in_circle : circle;
  const std::span<const std::byte> read(content.data, content.data ? static_cast<size_t>(content.bytes) : 0);
  const std::string whole = fmt::format("{}{}{}|{}|{}", content_key_(read), to_string(content.dtype), content.shape.text(), bytes, key);
  const auto use = std::make_shared<Use>(table_, whole);
  std::vector<std::shared_ptr<const Blob>> others;  // outlives the lock: the last owner of an entry takes it
  MutexLock lock(table_->mutex);
  if (std::shared_ptr<const Blob> known = table_->find(content, whole, &is_circle, others); known || is_circle) return known;
  const uint64_t id = table_->next_id++;
  table_->entries.emplace(
      whole, Table::Entry{id, {}, static_cast<int64_t>(bytes), content.owner, content.data, content.bytes, std::this_thread::get_id()});
  lock.unlock();
  bool filled = false;
  std::exception_ptr thrown;
  try {
    std::byte* data = nullptr;
    use->packed = lasting_blob(DType::u8, {static_cast<int64_t>(bytes)}, &data);
    filled = fill(data);
  } catch (...) {  // waiting threads are notified in this case too
    thrown = std::current_exception();
  }
  const std::shared_ptr<const Blob> packed(use, use->packed.get());
  lock.lock();
  Table::Entry& made = *table_->find(id);
  made.packer.reset();
  is_circle = made.in_circle;
  filled = filled && !is_circle;
  if (filled) made.packed = packed, use->id = id;
  lock.unlock();
  if (!filled) table_->erase(whole, id);
  table_->packed.notify_all();
  if (thrown) std::rethrow_exception(thrown);
  return filled ? packed : nullptr;
}

size_t PackCache::size() const {
  const MutexLock lock(table_->mutex);
  return table_->entries.size();
}

int64_t PackCache::bytes() const {
  const MutexLock lock(table_->mutex);
  int64_t total = 0;
  for (const auto& [key, entry] : table_->entries) total += entry.bytes;
  return total;
}

}  // namespace heddle
