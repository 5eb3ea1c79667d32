// How the ranks of a communicator hear of each other where another library does their collectives: what plugins/nccl asks of the host's
// communicator (plugins/cpu/collective), which is the object of the resource "cpu.communicator". The plugins are built together.
#pragma once

#include <cstdint>
#include <string>

#include "shared/operator_api.h"

namespace heddle::operators {

// Where the collectives of a rank are.
struct RankPosition {
  uint64_t number = 0;     // of the last that it has come to: 1 is the first
  std::string collective;  // its name, quoted; "": it is done
};
class RankPositions {
 public:
  // [any thread] Must not call RankControl, which may hold its lock.
  virtual RankPosition position() const = 0;
  // Returns the number of the last collective that was launched; 0: none was.
  virtual uint64_t last() const = 0;

 protected:
  ~RankPositions() = default;
};

// Thread-safe, but a rank is in one call of exchange() at a time.
class RankControl {
 public:
  virtual ~RankControl() = default;
  virtual int32_t size() const = 0;
  // Makes this rank leave: it and the other ranks get no further, and steps that wait fail. `why` is what the others say of it.
  virtual void abort(const char* why) = 0;
  // Fails if a rank has left, or did not come in time. One exception: ranks that closed their sessions after they had done all collectives
  // that were launched here disturb none of these, and a run that has launched no further one goes on.
  virtual Status poll_error() = 0;
  // Fails if a rank has left, for whatever reason: no further collective can be done.
  virtual Status check_all_there() = 0;
  // Gives `bytes` bytes of each rank to all, in the order of ranks. Waits for the other ranks until the communicator's time-out or
  // `deadline_ns` of CLOCK_MONOTONIC (0: none), whichever is first: then the rank leaves. Errors: those of poll_error().
  virtual Status exchange(const void* mine, uint64_t bytes, void* all, int64_t deadline_ns) = 0;
  // From now on this rank says of its collectives what `positions` says, which must be valid until the next call. Null: nothing.
  virtual void follow(const RankPositions* positions) = 0;
  // Makes this rank leave because the collectives that it follows do not go on. `late`: they were not done in time, and `why` is not used;
  // else `why` is the reason that others are told. Soon after that poll_error() fails, with the rank that is lost.
  // Returns false, and does nothing, if this rank has left already, or is about to.
  virtual bool give_up(bool late, const std::string& why) = 0;
};

}  // namespace heddle::operators
