// The state of one Execution, which runs its plan again and again: what it does now, and whether a run may begin.
#pragma once

#include <array>

#include "base/threads/state_machine.h"

namespace heddle {

struct RunRules {
  enum class State : uint8_t {
    idle,        // no run is under way
    opening,     // a run was requested: it is checked, and waits for its turns with communicators and variables
    computing,   // steps before the update phase may be under way
    updating,    // steps of the update phase may be under way: neither cancellation nor deadline stops them
    unanswered,  // no run is under way, but work of the last one was when it ended: a run may begin only when that has completed
    looking,     // a run was requested in that state: devices are queried whether the work has completed
    count,
  };
  enum class Event : uint8_t {
    request,  // run(), start() or enqueue() was called
    begin,    // the run may begin
    update,   // the update phase begins
    end,      // the run is over, and so is all its work; or it was refused
    give_up,  // the run is over, or was refused, and some work is not
    answer,   // the work of the last run has completed, and its streams are drained
    count,
  };
  static constexpr const char* name = "Execution";
  static constexpr std::array<const char*, 6> state_names = {"idle", "opening", "computing", "updating", "unanswered", "looking"};
  static constexpr std::array<const char*, 6> event_names = {"request", "begin", "update", "end", "give_up", "answer"};
  // A second run that is requested meanwhile finds no row for `request`, and is refused.
  static constexpr std::array<Transition<State, Event>, 12> table = {{
      {State::idle, Event::request, State::opening},
      {State::unanswered, Event::request, State::looking},
      {State::unanswered, Event::answer, State::idle},
      {State::looking, Event::answer, State::opening},
      {State::looking, Event::give_up, State::unanswered},
      {State::opening, Event::begin, State::computing},
      {State::opening, Event::end, State::idle},
      {State::computing, Event::update, State::updating},
      {State::computing, Event::end, State::idle},
      {State::computing, Event::give_up, State::unanswered},
      {State::updating, Event::end, State::idle},
      {State::updating, Event::give_up, State::unanswered},
  }};
};

using RunState = StateMachine<RunRules>;

}  // namespace heddle
