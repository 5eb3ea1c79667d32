// A link of a network that this machine does not have, for tests and measurements: messages arrive after a delay, and only so many bytes a
// second come from all peers together. It delays what has arrived: each message brings the time at which it was sent, by the clock that all
// processes of a machine share.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "shared/ranks/rank_connections.h"

namespace heddle::ranks {

using plugin::Status;

struct LinkSettings {
  std::chrono::nanoseconds delay{0};
  double bytes_per_ns = 0;  // 0: as many as there are
};

// Reads "DELAY_US,MB_PER_S", the value of HEDDLE_GLOO_LINK. Errors: invalid.
Status parse_link(const std::string& text, LinkSettings* settings);

// Connections that are like those that it delays.
class EmulatedLink final : public operators::RankConnections {
 public:
  EmulatedLink(std::unique_ptr<operators::RankConnections> inner, const LinkSettings& settings);
  ~EmulatedLink() override;
  operators::RankMemory* memory(int32_t peer, void* data, uint64_t bytes) override;
  void begin() override;
  Status send(operators::RankMemory& from, uint64_t tag, uint64_t offset, uint64_t bytes) override;
  Status receive(operators::RankMemory& into, uint64_t tag, uint64_t offset, uint64_t bytes) override;
  Status wait(operators::RankMemory& memory, operators::RankClock::time_point until) override;
  Status idle() override { return inner_->idle(); }
  void wake() override { inner_->wake(); }
  void look() override { inner_->look(); }
  void abort() override;
  std::vector<int32_t> missing() override { return inner_->missing(); }
  std::vector<int32_t> broken() override { return inner_->broken(); }
  Status report(const operators::RankReport& mine) override { return inner_->report(mine); }
  void close() override { inner_->close(); }
  Status reports(std::vector<std::optional<operators::RankReport>>* all) override { return inner_->reports(all); }

 private:
  // When a message was sent, which goes before it.
  struct Stamp {
    int64_t sent_ns = 0;
    operators::RankMemory* place = nullptr;
    uint64_t bytes = 0;
  };
  struct Place {
    int32_t peer = 0;
    std::vector<std::unique_ptr<Stamp>> sent, received;  // under way
  };
  Status wait_for(std::vector<std::unique_ptr<Stamp>>& stamps, operators::RankClock::time_point until);
  Status sleep_until(operators::RankClock::time_point arrival, operators::RankClock::time_point until);
  operators::RankMemory* stamp_for(int32_t peer, std::vector<std::unique_ptr<Stamp>>& stamps, uint64_t bytes);

  const std::unique_ptr<operators::RankConnections> inner_;
  const LinkSettings settings_;
  std::map<const operators::RankMemory*, Place> places_;
  std::vector<std::unique_ptr<Stamp>> free_;
  operators::RankClock::time_point busy_until_;  // the link of this rank
  std::mutex mutex_;
  std::condition_variable changed_;
  bool aborted_ = false;
};

}  // namespace heddle::ranks
