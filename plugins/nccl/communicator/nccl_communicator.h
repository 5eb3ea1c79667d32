// A communicator of GPUs, of this process and of others: the object of the resource "nccl.communicator".
//
// NCCL reports neither a rank that is gone, on the same machine, nor one that is late (docs/cuda.md): ranks know of each other by the
// host's communicator of the same name, whose connections break, and which collectives are not done in time is asked of events on the
// streams. All calls are non-blocking: a call that NCCL has not finished is asked for until it is, the run ends, or the communicator is
// aborted. What is aborted stops on the devices; then nothing works any more, and the next runs have a new object.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "communicator/introductions.h"
#include "communicator/launched_collectives.h"
#include "library/nccl_library.h"
#include "shared/ranks/device_collectives.h"

namespace heddle::nccl {

class NcclCommunicator final : public operators::DeviceCollectives {
 public:
  // Connects with the other ranks; status() says whether it has.
  explicit NcclCommunicator(const plugin::ResourceRequest& request);
  ~NcclCommunicator() override;
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;
  const Status& status() const { return status_; }

  // For the resource. [any thread]
  void abort(const char* why);
  Status poll_error();

  uint32_t participants() const override { return whole_.participants; }
  uint32_t first() const override { return whole_.first; }
  int32_t device(uint32_t member) const override { return member < own_.devices.size() ? own_.devices[member] : -1; }
  Status enter(operators::Parts parts, const std::string& node) override;
  void begin() override;
  void all_reduce(uint32_t member, const void* x, void* y, int64_t count, heddle_dtype dtype, operators::Reduction reduction) override;
  void reduce(uint32_t member, const void* x, void* y, int64_t count, heddle_dtype dtype, operators::Reduction reduction,
              uint32_t root) override;
  void reduce_scatter(uint32_t member, const void* x, void* y, int64_t count, heddle_dtype dtype, operators::Reduction reduction) override;
  void broadcast(uint32_t member, const void* x, void* y, uint64_t bytes, uint32_t root) override;
  void all_gather(uint32_t member, const void* x, void* y, uint64_t bytes) override;
  void send(uint32_t member, const void* from, uint64_t bytes, uint32_t to) override;
  void receive(uint32_t member, void* to, uint64_t bytes, uint32_t from) override;
  Status end() override;
  Status leave() override;

 private:
  using Clock = std::chrono::steady_clock;
  // Whether to give up what is waited for.
  struct Waiting {
    const plugin::ResourceRequest* request = nullptr;  // while it connects
    const plugin::RunContext* run = nullptr;           // while a run launches
    Clock::time_point until = Clock::time_point::max();
  };
  Status connect(const plugin::ResourceRequest& request);
  Status warm_up(const Waiting& waiting);
  Status warm_up_on(const std::vector<Stream*>& streams, const std::vector<void*>& memory, const Waiting& waiting);
  Status wait_for_streams(const std::vector<Stream*>& streams, const Waiting& waiting) const;
  Status settle(const Waiting& waiting);
  Status given_up(const Waiting& waiting) const;
  Status look_for_ranks(const Waiting& waiting) const;
  void call(const char* name, Result result);
  Stream* stream_of(uint32_t member) const;
  Comm* comm_of(uint32_t member) const { return comms_[member]; }
  Status refused() const;
  void fail(const Status& failure);
  Status check_members();
  void end_comms();

  OwnPart own_;
  WholeCommunicator whole_;
  operators::RankControl* control_ = nullptr;  // null with one rank
  std::string name_;                           // for messages
  std::chrono::nanoseconds timeout_{};
  Status status_;
  std::vector<Comm*> comms_;  // by device
  LaunchedCollectives launched_;

  // NCCL is called by one thread at a time; the one that launches holds this from begin() to end().
  std::mutex calls_;
  std::unique_lock<std::mutex> launching_{calls_, std::defer_lock};
  operators::Parts parts_;  // between enter() and leave(), or the streams of warm_up()
  const std::vector<Stream*>* streams_ = nullptr;
  Status failed_call_;  // since begin()

  std::atomic<bool> aborted_{false};
  mutable std::mutex mutex_;
  Status failure_;    // why nothing works any more
  std::thread ends_;  // aborts or destroys the communicators
};

}  // namespace heddle::nccl
