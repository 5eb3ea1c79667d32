// The collectives of a communicator that are on streams and not known to be done: which one the devices of this process are in, and since
// when. Two events a device mark where each begins and ends on its stream.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "library/nccl_library.h"
#include "shared/collective_parts.h"
#include "shared/ranks/rank_control.h"

namespace heddle::nccl {

// Allocates nothing after it is made. begin() and end() are called by the thread that launches; the others by any thread.
class LaunchedCollectives final : public operators::RankPositions {
 public:
  using Clock = std::chrono::steady_clock;
  LaunchedCollectives() = default;
  ~LaunchedCollectives();
  LaunchedCollectives(const LaunchedCollectives&) = delete;
  LaunchedCollectives& operator=(const LaunchedCollectives&) = delete;

  // Makes the events of devices that have these numbers. Errors: device.
  Status make(const std::vector<int32_t>& devices);
  // A collective, which operator `node` is, begins and ends here on the streams of the parts. Errors: device.
  Status begin(operators::Parts parts, const std::string& node);
  Status end(operators::Parts parts);

  // Where the devices are: in the first collective that is not done, if the stream of any has come to it.
  operators::RankPosition position() const override;
  uint64_t last() const override;
  // Returns since when they are in it; the time of the first call that sees it. Now, if they are in none. Errors: device.
  Status look(Clock::time_point now, Clock::time_point* since);
  // Until this is called, the devices are where they are connected.
  void has_connected() { connects_ = false; }
  // From now on no event is asked for: the device is lost, or the communicator is aborted.
  void stop() { stopped_ = true; }

 private:
  static constexpr size_t max_collectives = 512, max_name = 120;
  struct Entry {
    std::vector<Event*> begun, ended;  // by device
    uint64_t number = 0;
    std::array<char, max_name> name{};
    bool is_launched = false;  // all its calls are enqueued
  };
  // Asks for the events of the first entries, and drops those that are done.
  Status retire();
  Status passed(const std::vector<Event*>& events, bool all, bool* result) const;
  Entry& at(size_t i) const { return entries_[(first_ + i) % entries_.size()]; }

  mutable std::mutex mutex_;
  std::vector<int32_t> devices_;
  mutable std::vector<Entry> entries_;  // a ring: `count_` from `first_` on
  size_t first_ = 0, count_ = 0;
  uint64_t number_ = 0;  // of the last collective
  bool is_in_first_ = false;
  Clock::time_point since_;  // with is_in_first_
  std::atomic<bool> connects_{true};
  std::atomic<bool> stopped_{false};
};

}  // namespace heddle::nccl
