#include "base/exceptions.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

#include "base/text/text.h"

namespace heddle {
namespace {

Status out_of_memory() {
  return {Code::out_of_memory, "the system gave no memory for what the call needs",
          "free some, use smaller inputs, fewer contexts or fewer plans, and call again"};
}

// Statuses made when the library is loaded, and again after some were taken, as soon as there is memory. Thread-safe.
class Reserve {
 public:
  Reserve() { refill(); }
  void refill() noexcept {
    try {
      for (Place& place : places_) {
        if (place.state.load(std::memory_order_relaxed) != empty) continue;
        Status made = out_of_memory();
        uint32_t expected = empty;
        if (!place.state.compare_exchange_strong(expected, busy, std::memory_order_acquire)) continue;
        place.status = std::move(made);
        place.state.store(full, std::memory_order_release);
      }
    } catch (const std::bad_alloc&) {
      // The rest are made when there is memory again.
    }
  }
  Status take() noexcept {
    for (Place& place : places_) {
      uint32_t expected = full;
      if (!place.state.compare_exchange_strong(expected, busy, std::memory_order_acquire)) continue;
      Status taken = std::move(place.status);
      place.state.store(empty, std::memory_order_release);
      return taken;
    }
    // The caller keeps every error and frees nothing: there is no value left to return.
    std::fputs("heddle: no memory is left, not even for the error that says so\n", stderr);
    std::abort();
  }

 private:
  enum : uint32_t { empty, busy, full };
  struct Place {
    std::atomic<uint32_t> state{empty};
    Status status;
  };
  std::array<Place, 64> places_;
};

Reserve& reserve() {
  static auto* const kept = new Reserve();  // never destroyed: calls may fail while the process ends
  return *kept;
}

// Made before any call: the reserve itself needs memory.
[[maybe_unused]] const Reserve& made_with_the_library = reserve();

}  // namespace

Status status_of_exception() noexcept {
  try {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      Status made = out_of_memory();
      reserve().refill();
      return made;
    } catch (const std::exception& e) {
      return {Code::internal, fmt::format("an exception was thrown inside of the library: {}", printable_line(e.what())),
              "report it with what was called"};
    } catch (...) {
      return {Code::internal, "an exception of unknown type was thrown inside of the library", "report it with what was called"};
    }
  } catch (...) {
    return reserve().take();
  }
}

}  // namespace heddle
