// StateMachine: a state that changes only as a table of transitions says, by events that any thread may bring.
//
// The table is the one place that lists which events may come in which state. An event that may not come changes nothing, and try_on()
// says so. Where that is a mistake of the caller, on() and on_alone() end the process in builds with assertions, with a message that names
// both; these builds also count which transitions were taken, so that tests can tell which of them they have reached.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace heddle {

template <class State, class Event>
struct Transition {
  State from;
  Event event;
  State to;
};

// `Rules` has: enums State and Event, whose last enumerators are `count`; state_names and event_names, arrays of strings; `table`, an array
// of Transition<State, Event>; and `name`, for messages.
template <class Rules>
class StateMachine {
 public:
  using State = typename Rules::State;
  using Event = typename Rules::Event;

  explicit StateMachine(State initial = State{}) : state_(initial) {}
  StateMachine(const StateMachine&) = delete;
  StateMachine& operator=(const StateMachine&) = delete;

  State state() const noexcept { return state_.load(); }
  // Returns the state that `event` leads to from `state`; State::count: it may not come there.
  static constexpr State next(State state, Event event) noexcept { return by_state_[index(state)][index(event)].to; }
  // Applies an event and returns the state that it led to. Sequentially consistent.
  State on(Event event) noexcept {
    State before = state_.load(), after = before;
    do {
      after = next(before, event);
      if (after == State::count) [[unlikely]]
        return refuse(before, event);
    } while (!state_.compare_exchange_weak(before, after));
    note(before, event);
    return after;
  }
  // Like on(), but costs no more than a store. REQUIRES: no event of another thread may come in this state, or all threads that bring one
  // hold the same mutex.
  State on_alone(Event event) noexcept {
    const State before = state_.load(std::memory_order_relaxed), after = next(before, event);
    if (after == State::count) [[unlikely]]
      return refuse(before, event);
    state_.store(after, std::memory_order_release);
    note(before, event);
    return after;
  }
  // Like on(), for an event that several threads race for. False: it may not come now, and nothing has changed.
  bool try_on(Event event) noexcept {
    State before = state_.load(), after = before;
    do {
      after = next(before, event);
      if (after == State::count) return false;
    } while (!state_.compare_exchange_weak(before, after));
    note(before, event);
    return true;
  }

  static constexpr size_t rows = std::size(Rules::table);
  // How often row `row` of the table was taken by all machines of these rules; always 0 without assertions.
  static uint64_t taken([[maybe_unused]] size_t row) noexcept {
#ifndef NDEBUG
    return taken_[row].load(std::memory_order_relaxed);
#else
    return 0;
#endif
  }

 private:
  struct Target {
    State to;
    uint8_t row;
  };
  using ByEvent = std::array<Target, static_cast<size_t>(Event::count)>;
  static constexpr size_t index(State state) noexcept {
    return static_cast<size_t>(state);
  }
  static constexpr size_t index(Event event) noexcept {
    return static_cast<size_t>(event);
  }
  static constexpr auto targets() noexcept {
    std::array<ByEvent, static_cast<size_t>(State::count)> made = {};
    for (ByEvent& of_state : made) of_state.fill({State::count, 0});
    for (size_t row = 0; row < std::size(Rules::table); ++row) {
      const auto& transition = Rules::table[row];
      made[index(transition.from)][index(transition.event)] = {transition.to, static_cast<uint8_t>(row)};
    }
    return made;
  }
  static constexpr auto by_state_ = targets();

  static State refuse(State state, [[maybe_unused]] Event event) noexcept {
#ifndef NDEBUG
    std::fprintf(stderr, "%s: event \"%s\" may not come in state \"%s\"\n", Rules::name, Rules::event_names[index(event)],
                 Rules::state_names[index(state)]);
    std::abort();
#else
    return state;
#endif
  }
  static void note([[maybe_unused]] State before, [[maybe_unused]] Event event) noexcept {
#ifndef NDEBUG
    // Two threads at once may count one transition, which costs less than a locked addition in each run.
    std::atomic<uint64_t>& count = taken_[by_state_[index(before)][index(event)].row];
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
#endif
  }

  std::atomic<State> state_;
#ifndef NDEBUG
  static inline std::array<std::atomic<uint64_t>, rows> taken_ = {};
#endif
};

}  // namespace heddle
