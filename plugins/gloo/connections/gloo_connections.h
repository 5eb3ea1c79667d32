// The connections of one rank with all others, each a pair of Gloo's over TCP. Gloo has a thread that reads and writes; what it is told to
// receive arrives where it is wanted, and is copied nowhere else.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "rendezvous/job_store.h"
#include "shared/ranks/rank_connections.h"

namespace gloo::transport {
class Context;
class Device;
class UnboundBuffer;
}  // namespace gloo::transport

namespace heddle::ranks {

using operators::RankClock;
using operators::RankMemory;
using operators::RankReport;
using plugin::Status;

class GlooConnections final : public operators::RankConnections {
 public:
  // `store`: where reports are written.
  GlooConnections(int32_t rank, int32_t size, std::shared_ptr<rendezvous::Store> store);
  ~GlooConnections() override;
  GlooConnections(const GlooConnections&) = delete;
  GlooConnections& operator=(const GlooConnections&) = delete;

  // Listens on a network interface, or on the loopback address, for each other rank. `addresses` is for the others. Throws what Gloo
  // throws. Errors: invalid (there is no such interface).
  Status listen(const std::string& interface, std::string* addresses);
  // Connects with all others, at once. Errors: device (a rank can not be reached, or `until` is over), cancelled.
  Status connect(const std::string& attempt, const std::vector<std::string>& addresses, RankClock::time_point until,
                 const std::function<bool()>& cancelled);

  RankMemory* memory(int32_t peer, void* data, uint64_t bytes) override;
  void begin() override;
  Status send(RankMemory& from, uint64_t tag, uint64_t offset, uint64_t bytes) override;
  Status receive(RankMemory& into, uint64_t tag, uint64_t offset, uint64_t bytes) override;
  Status wait(RankMemory& memory, RankClock::time_point until) override;
  Status idle() override;
  void wake() override;
  void look() override;
  void abort() override;
  std::vector<int32_t> missing() override { return missing_; }
  std::vector<int32_t> broken() override { return broken_; }
  Status report(const RankReport& mine) override;
  void close() override;
  Status reports(std::vector<std::optional<RankReport>>* all) override;

 private:
  template <class Act>
  Status guarded(gloo::transport::UnboundBuffer& waits, int32_t peer, RankClock::time_point until, const Act& act);
  template <class Wait>
  bool has_come(const Wait& wait, RankClock::time_point until) const;
  bool begin_wait(gloo::transport::UnboundBuffer& buffer, int32_t peer);
  void end_wait();
  void note_failure(bool late);
  void find_missing();
  std::vector<int32_t> closed_pairs();
  std::vector<int32_t> known_closed() const;
  void watch_pairs();
  void watch_for_control();
  void close_pairs(bool lets_arrive);

  const int32_t rank_, size_;
  const std::shared_ptr<rendezvous::Store> store_;
  std::string attempt_;
  std::shared_ptr<gloo::transport::Device> device_;
  std::shared_ptr<gloo::transport::Context> context_;
  // One byte of each rank that never comes: its wait ends when a connection breaks.
  std::vector<char> control_bytes_, probe_bytes_, watch_bytes_;
  std::unique_ptr<gloo::transport::UnboundBuffer> probe_;
  std::map<std::tuple<int32_t, void*, uint64_t>, std::unique_ptr<RankMemory>> places_;
  std::vector<char> came_;  // by rank: whether a message has come in this operation
  std::vector<int32_t> missing_, broken_;
  std::vector<std::optional<RankReport>> read_;  // reports, by rank
  bool failed_ = false;
  std::atomic<bool> aborted_{false};
  std::mutex mutex_;
  std::unique_ptr<gloo::transport::UnboundBuffer> control_;  // of idle(), which alone replaces it
  gloo::transport::UnboundBuffer* waits_ = nullptr;          // what the thread waits for
  int32_t waits_for_ = -1;                                   // a message of this rank, or to it; -1: of none
  bool ended_by_look_ = false;
  std::mutex look_mutex_;                                                 // guards what follows; taken before mutex_
  std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> watches_;  // by rank; each waits for its pair alone, as control_ for all
  std::vector<char> closed_;                                              // by rank
};

}  // namespace heddle::ranks
