// Tokens of asynchronous steps, which plugins may still hold when the step is over: numbers that look like addresses where none can be, no
// two of which are ever equal. A token may be looked up at any time, also after its step is destroyed.
//
// A slot belongs to one step of one context and gives out one token after the other; it is never freed, so that a late completion reads
// memory that still exists. Taking a slot allocates and locks; all else is atomic.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace heddle {

class TokenSlot {
 public:
  // State of the step of the current token. `under_way`: from before its run() until it ends; `returned`: run() has returned, abort() may
  // be called; `claimed`: a complete() was accepted; `published`: its status is stored; `told`: it was requested to stop; `telling`:
  // abort() is being called.
  enum : uint64_t { under_way = 1, returned = 2, told = 4, telling = 8, claimed = 16, published = 32 };

  // Takes an idle slot. `object`: the object that its tokens represent; `name`: the object's name, for the log. Throws std::bad_alloc.
  static TokenSlot& take(void* object, std::string_view name);
  // Gives the slot back and invalidates all tokens that it gave out.
  void give_back() noexcept;
  // Returns a new token, of a step in state `flags`, and invalidates earlier ones. Must not be called while a step is in progress.
  const void* renew(uint64_t flags) noexcept {
    const uint64_t generation = (state.load(std::memory_order_relaxed) >> 8) + 1;
    state.store(generation << 8 | flags);
    return std::bit_cast<const void*>(token_bit | (generation & generation_mask) << index_bits | index_);
  }

  static bool is_token(const void* pointer) { return (reinterpret_cast<uintptr_t>(pointer) & token_bit) != 0; }
  // Returns the slot of a token that was given out; null: there was no such token.
  static TokenSlot* of(const void* token) noexcept;
  // Returns the object of a token; null: the token is no longer valid.
  static void* object_of(const void* token) noexcept;
  // Marks the token's step as completed. Returns true if it was in progress and not yet completed; false from then on.
  bool claim(const void* token) noexcept;
  // True if it is the current token, whatever its state.
  bool is_current(const void* token) const { return (state.load() >> 8 & generation_mask) == generation_of(token); }
  // Returns the name of the step that the token was given to; empty: it was an owner before the last two. Allocates and locks.
  std::string owner_name(const void* token);
  // Counts completions that were refused since the slot was taken.
  void count_refusal() noexcept { refusals_.fetch_add(1); }
  uint32_t refusals() const { return refusals_.load(); }
  void* object() const { return object_.load(std::memory_order_relaxed); }

  std::atomic<uint64_t> state{0};  // generation << 8 | flags

 private:
  static constexpr int index_bits = 20;
  static constexpr uint64_t token_bit = uint64_t{1} << 63, generation_mask = (uint64_t{1} << (63 - index_bits)) - 1;
  static uint64_t generation_of(const void* token) { return reinterpret_cast<uintptr_t>(token) >> index_bits & generation_mask; }
  struct Slots;

  uint32_t index_ = 0;
  std::atomic<void*> object_{nullptr};
  std::atomic<uint32_t> refusals_{0};
  // Under the lock: the current owner and the previous one, each with its first generation.
  struct Owner {
    std::string name;
    uint64_t first = 0;
  } owner_, before_;
};

static_assert(sizeof(void*) == 8, "tokens are numbers of 64 bits");

}  // namespace heddle
