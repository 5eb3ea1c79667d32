// The state of one stream: what a run knows of whether the stream has completed the work that it was given.
#pragma once

#include <array>

#include "base/threads/state_machine.h"

namespace heddle {

struct StreamRules {
  enum class State : uint8_t {
    idle,      // nothing was enqueued since the stream was last synchronised, or since the run began
    worked,    // work was enqueued, and no callback after it
    asked,     // a callback is enqueued that reports when the work is done: the stream and its run must stay
    answered,  // the callback was called or refused, or a query found the work done or failed
    count,
  };
  enum class Event : uint8_t {
    work,         // work is enqueued
    begin,        // a run begins after one that was not drained
    ask,          // a callback is enqueued
    answer,       // the stream has answered
    wait,         // a step that waited for its own work has the answer; drain() asks again
    synchronise,  // the stream is synchronised
    count,
  };
  static constexpr const char* name = "stream";
  static constexpr std::array<const char*, 4> state_names = {"idle", "worked", "asked", "answered"};
  static constexpr std::array<const char*, 6> event_names = {"work", "begin", "ask", "answer", "wait", "synchronise"};
  static constexpr std::array<Transition<State, Event>, 6> table = {{
      {State::idle, Event::work, State::worked},
      {State::worked, Event::begin, State::idle},
      {State::worked, Event::ask, State::asked},
      {State::asked, Event::answer, State::answered},  // asked is left by nothing else, even if another run begins
      {State::answered, Event::wait, State::worked},
      {State::answered, Event::synchronise, State::idle},
  }};
};

// Events are brought by the thread that enqueues or drains. Answers come from any thread, under a mutex of the user.
class StreamState final : public StateMachine<StreamRules> {
 public:
  // True if a callback was enqueued, or refused, since the stream was last idle.
  bool was_asked() const noexcept { return state() >= State::asked; }
};

}  // namespace heddle
