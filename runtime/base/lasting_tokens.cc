#include "base/lasting_tokens.h"

#include <array>
#include <deque>
#include <memory>
#include <new>

#include "base/threads/mutex.h"

namespace heddle {
namespace {

constexpr uint32_t chunk_slots = 1024;

}  // namespace

struct TokenSlot::Slots {
  Mutex mutex;
  std::array<std::atomic<TokenSlot*>, (1u << index_bits) / chunk_slots> chunks{};
  uint32_t made HEDDLE_GUARDED_BY(mutex) = 0;
  std::deque<TokenSlot*> idle HEDDLE_GUARDED_BY(mutex);  // the one that was given back first is taken first

  // Never destroyed: plugins' threads may outlive everything else.
  static Slots& instance() {
    static Slots& slots = *new Slots;
    return slots;
  }
  TokenSlot& next() HEDDLE_REQUIRES(mutex) {
    if (idle.empty()) {
      const uint32_t chunk = made / chunk_slots;
      if (chunk == chunks.size()) throw std::bad_alloc();
      TokenSlot* const slots = std::make_unique<TokenSlot[]>(chunk_slots).release();
      for (uint32_t i = 0; i < chunk_slots; ++i) slots[i].index_ = made + i;
      chunks[chunk].store(slots, std::memory_order_release);
      made += chunk_slots;
      for (uint32_t i = 0; i < chunk_slots; ++i) idle.push_back(&slots[i]);  // if there is no memory for more, the rest is not used
    }
    TokenSlot& slot = *idle.front();
    idle.pop_front();
    return slot;
  }
};

TokenSlot& TokenSlot::take(void* object, std::string_view name) {
  Slots& slots = Slots::instance();
  std::string copy(name);
  const MutexLock lock(slots.mutex);
  TokenSlot& slot = slots.next();
  slot.before_ = std::move(slot.owner_);
  slot.owner_ = {std::move(copy), (slot.state.load() >> 8) + 1};
  slot.refusals_ = 0;
  slot.object_ = object;
  return slot;
}

// If there is no memory to note that the slot is idle, it is not used again.
void TokenSlot::give_back() noexcept {
  renew(0);
  object_ = nullptr;
  Slots& slots = Slots::instance();
  const MutexLock lock(slots.mutex);
  try {
    slots.idle.push_back(this);
  } catch (const std::bad_alloc&) {
  }
}

TokenSlot* TokenSlot::of(const void* token) noexcept {
  const auto index = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(token) & ((1u << index_bits) - 1));
  TokenSlot* const chunk = Slots::instance().chunks[index / chunk_slots].load(std::memory_order_acquire);
  return chunk ? &chunk[index % chunk_slots] : nullptr;
}

void* TokenSlot::object_of(const void* token) noexcept {
  TokenSlot* const slot = of(token);
  return slot && (slot->state.load() >> 8 & generation_mask) == generation_of(token) ? slot->object() : nullptr;
}

bool TokenSlot::claim(const void* token) noexcept {
  uint64_t now = state.load();
  do {
    if ((now >> 8 & generation_mask) != generation_of(token) || (now & under_way) == 0 || (now & claimed) != 0) return false;
  } while (!state.compare_exchange_weak(now, now | claimed));
  return true;
}

std::string TokenSlot::owner_name(const void* token) {
  const MutexLock lock(Slots::instance().mutex);
  const uint64_t generation = generation_of(token);
  if (generation >= owner_.first) return owner_.name;
  return generation >= before_.first ? before_.name : std::string();
}

}  // namespace heddle
