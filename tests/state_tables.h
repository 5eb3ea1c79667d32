// The checks of every table of states (base/threads/state_machine.h).
#pragma once

#include <gtest/gtest.h>

#include "base/threads/state_machine.h"

// Skips a test of transitions that were taken, where they are not counted.
#ifdef NDEBUG
#define HEDDLE_NEEDS_ASSERTIONS() GTEST_SKIP() << "transitions are counted in builds with assertions alone"
#else
#define HEDDLE_NEEDS_ASSERTIONS() static_cast<void>(0)
#endif

namespace heddle {

// Each row of the table leads where it says. An event that no row names is refused: with assertions the process ends, naming both.
template <class Rules>
void expect_only_its_rows() {
  using Machine = StateMachine<Rules>;
  using State = typename Rules::State;
  using Event = typename Rules::Event;
  for (size_t s = 0; s < static_cast<size_t>(State::count); ++s)
    for (size_t e = 0; e < static_cast<size_t>(Event::count); ++e) {
      const auto state = static_cast<State>(s);
      const auto event = static_cast<Event>(e);
      SCOPED_TRACE(std::string(Rules::event_names[e]) + " in " + Rules::state_names[s]);
      size_t rows = 0;
      State to = State::count;
      for (const auto& row : Rules::table)
        if (row.from == state && row.event == event) ++rows, to = row.to;
      ASSERT_LE(rows, 1u) << "two rows";
      EXPECT_EQ(Machine::next(state, event), to);
      Machine tried(state);
      EXPECT_EQ(tried.try_on(event), rows == 1);
      EXPECT_EQ(tried.state(), rows == 1 ? to : state);
      if (rows == 1) {
        Machine machine(state), alone(state);
        EXPECT_EQ(machine.on(event), to);
        EXPECT_EQ(machine.state(), to);
        EXPECT_EQ(alone.on_alone(event), to);
        continue;
      }
#ifndef NDEBUG
      const std::string message =
          std::string(Rules::name) + ": event \"" + Rules::event_names[e] + "\" may not come in state \"" + Rules::state_names[s] + "\"";
      EXPECT_DEATH(Machine(state).on(event), message);
      EXPECT_DEATH(Machine(state).on_alone(event), message);
#endif
    }
}

// The names of the rows that no machine of these rules has taken since this was made.
template <class Rules>
class RowsTaken {
 public:
  RowsTaken() {
    for (size_t row = 0; row < before_.size(); ++row) before_[row] = StateMachine<Rules>::taken(row);
  }
  std::string missing() const {
    std::string names;
#ifndef NDEBUG
    for (size_t row = 0; row < before_.size(); ++row) {
      if (StateMachine<Rules>::taken(row) != before_[row]) continue;
      names += std::string(names.empty() ? "" : ", ") + Rules::state_names[static_cast<size_t>(Rules::table[row].from)] + " + " +
               Rules::event_names[static_cast<size_t>(Rules::table[row].event)];
    }
#endif
    return names;
  }

 private:
  std::array<uint64_t, StateMachine<Rules>::rows> before_ = {};
};

}  // namespace heddle
