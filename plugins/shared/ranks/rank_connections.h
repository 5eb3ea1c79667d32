// The connections between the ranks of a communicator, which are processes: what collectives on the host (plugins/cpu/collective) ask of a
// plugin that knows a way between processes (plugins/gloo). The plugins are built together.
//
// A plugin publishes a RankTransport as the resource "rank.transport", of runtime scope. Functions throw std::bad_alloc alone, and those
// that end things nothing: abort(), wake() and close().
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shared/operator_api.h"
#include "shared/ranks/rank_report.h"

namespace heddle::operators {

using RankClock = std::chrono::steady_clock;

// A place in the memory of this process whose bytes are sent to one peer, or received from it. Made by RankConnections::memory().
class RankMemory;

// The connections of one rank with all others. One thread uses them; abort() and wake() may be called by any. Destroying them
// lets what was sent arrive.
class RankConnections {
 public:
  virtual ~RankConnections() = default;
  // Returns [data, data + bytes) as a place whose bytes go to and come from `peer`. Allocates nothing for a place that is known already;
  // valid until the next begin(). Null without memory.
  virtual RankMemory* memory(int32_t peer, void* data, uint64_t bytes) = 0;
  // Begins an operation, once all that was begun in the one before was waited for. missing() is about its messages.
  virtual void begin() = 0;
  // Begin to send or receive `bytes` bytes at `offset` of the place. A message is received by the call that gives the same tag and the same
  // number of bytes; one of another number is never received. Until wait() has returned, the bytes must not be changed or looked at.
  // Errors: HEDDLE_ERROR_DEVICE.
  virtual Status send(RankMemory& from, uint64_t tag, uint64_t offset, uint64_t bytes) = 0;
  virtual Status receive(RankMemory& into, uint64_t tag, uint64_t offset, uint64_t bytes) = 0;
  // Waits for all that was begun in the place. If it fails, nothing is read or written any more in any place, and all that is left is
  // missing(), broken(), report(), close() and reports(). Errors: HEDDLE_ERROR_DEVICE (a connection has broken), HEDDLE_ERROR_CANCELLED
  // (abort() was called); with HEDDLE_PENDING `until` has passed.
  virtual Status wait(RankMemory& memory, RankClock::time_point until) = 0;
  // Waits until wake() is called, or has been since the last call. Errors: HEDDLE_ERROR_DEVICE (connections have broken, those with
  // broken(): each is told once, and the others can be used as before), HEDDLE_ERROR_CANCELLED.
  virtual Status idle() = 0;
  // [any thread] Ends a wait in idle(), or the next one.
  virtual void wake() = 0;
  // [any thread] Ends wait() if its connection has broken and it was not told so. Call it now and then while wait() waits; it returns at
  // once.
  virtual void look() = 0;
  // [any thread] Makes waits fail, now and from now on. Returns at once; other ranks are not told before close().
  virtual void abort() = 0;
  // Returns, after wait() has failed, the ranks for whose messages it waited, and from which none has come in this operation.
  virtual std::vector<int32_t> missing() = 0;
  // Returns, after wait() or idle() has failed, the ranks that have ended, or whose connections have broken: not those that were late.
  virtual std::vector<int32_t> broken() = 0;
  // Writes the report where others read it, before close(); a second one is ignored. A rank that can not write its own is silent for the
  // others. Errors: HEDDLE_ERROR_DEVICE.
  virtual Status report(const RankReport& mine) = 0;
  // Closes all connections, whatever is under way: other ranks that wait for this one fail. What was sent arrives, unless wait() has failed
  // or abort() was called.
  virtual void close() = 0;
  // Sets `all`, by rank, to what each has reported so far. Null: nothing. Errors: HEDDLE_ERROR_DEVICE (not all could be read: why).
  virtual Status reports(std::vector<std::optional<RankReport>>* all) = 0;
};

// Which connections are wanted.
struct RankPlace {
  int32_t rank = 0, size = 1;
  std::string communicator;
  std::string rendezvous;  // in a form that the transport documents
  RankClock::time_point until;
  std::function<bool()> cancelled;  // whether to give up
};

class RankTransport {
 public:
  virtual ~RankTransport() = default;
  // Meets the other ranks, and connects with them. Errors: HEDDLE_ERROR_INVALID (a rendezvous of another form), HEDDLE_ERROR_DEVICE (a
  // rank did not come in time), HEDDLE_ERROR_CANCELLED.
  virtual Status connect(const RankPlace& place, std::unique_ptr<RankConnections>* connections) = 0;
};

}  // namespace heddle::operators
