// StreamState: what a run knows of whether a stream has completed the work that it was given.
#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>

namespace heddle {

enum class StreamState : uint8_t {
  idle,    // nothing was enqueued since the stream was last synchronised, or since the run began
  worked,  // work was enqueued, and no callback after it
  asked,   // a callback is enqueued that reports when the work is done: the stream and its run must stay
  given,   // the stream has answered: the callback was called or refused, or a query found the work done or failed
};

// Whether a stream's state may change: stream_state_may_change[from][to].
constexpr bool stream_state_may_change[4][4] = {
    // to idle, worked, asked, given
    {false, true, false, false},  // from idle: work is enqueued
    {true, false, true, false},   // from worked: a run begins after one that was not drained; a callback is enqueued
    {false, false, false, true},  // from asked: nothing but an answer, even if another run begins
    {true, true, false, false},   // from given: the stream is synchronised; a step that waited for its own work has the answer
};

// The state of one stream. Thread-safe: in each state only one thread may change it, which is the one that enqueues or drains; `asked` is
// left under a mutex of the user. The others only read it.
class AtomicStreamState {
 public:
  StreamState now() const { return state_.load(std::memory_order_acquire); }
  // Builds with assertions abort at a change that the table does not permit.
  void change_to(StreamState next) {
    assert(stream_state_may_change[static_cast<size_t>(now())][static_cast<size_t>(next)]);
    state_.store(next, std::memory_order_release);
  }
  // True if a callback is enqueued, whether it was called or not.
  bool has_callback() const { return now() >= StreamState::asked; }

 private:
  std::atomic<StreamState> state_{StreamState::idle};
};

}  // namespace heddle
