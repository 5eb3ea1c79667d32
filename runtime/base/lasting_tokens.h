// Tokens of asynchronous steps, which plugins may still hold when the step is over: numbers that look like addresses where none can be, of
// which no two are ever equal. What one stands for may be asked at any time, also when that is gone.
//
// A slot belongs to one step of one context and gives out one token after the other; it is never freed, so that a completion that comes
// too late reads memory that is there. Taking a slot allocates and locks; all else is atomic.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace heddle {

class TokenSlot {
 public:
  // State of the step that the current token stands for. `under_way`: from before its run() until it ends; `returned`: run() has returned,
  // abort() may be called; `claimed`: a complete() was accepted; `published`: its status is stored; `told`: it was asked to end; `telling`:
  // abort() is being called.
  enum : uint64_t { under_way = 1, returned = 2, told = 4, telling = 8, claimed = 16, published = 32 };

  // `object`: what its tokens stand for; `name` of it, for the log. Throws std::bad_alloc.
  static TokenSlot& take(void* object, std::string_view name);
  // The tokens it gave out stand for nothing from here on.
  void give_back() noexcept;
  // A new token, of a step in state `flags`; those before stand for nothing. Not while a step is under way.
  const void* renew(uint64_t flags) noexcept {
    const uint64_t generation = (state.load(std::memory_order_relaxed) >> 8) + 1;
    state.store(generation << 8 | flags);
    return reinterpret_cast<const void*>(token_bit | (generation & generation_mask) << index_bits | index_);
  }

  static bool is_token(const void* pointer) { return (reinterpret_cast<uintptr_t>(pointer) & token_bit) != 0; }
  // Of a token that was given out; null: no such was.
  static TokenSlot* of(const void* token) noexcept;
  // What it stands for; null: nothing any more.
  static void* object_of(const void* token) noexcept;
  // Whether the step that the token stands for was under way, and nobody had completed it; from here on somebody has.
  bool claim(const void* token) noexcept;
  // Whether it is the current one, of whatever state.
  bool is_current(const void* token) const { return (state.load() >> 8 & generation_mask) == generation_of(token); }
  // Of whom it was given; empty: of somebody long gone. Allocates and locks.
  std::string owner_name(const void* token);
  // Completions that were refused since it was taken.
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
  // Under the lock: who has it, and who had it before, each from a generation on.
  struct Owner {
    std::string name;
    uint64_t first = 0;
  } owner_, before_;
};

static_assert(sizeof(void*) == 8, "tokens are numbers of 64 bits");

}  // namespace heddle
