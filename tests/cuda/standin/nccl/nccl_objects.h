// Communicators of NCCL as the stand-in has them, and the group of a thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nccl/nccl_board.h"

namespace heddle::cuda::standin {

struct Stream;

// Guarded by the lock of the process, but for `ended`, which work of streams looks at.
struct NcclComm {
  std::shared_ptr<NcclBoard> board;
  int rank = 0, ranks = 0, device = 0;
  bool blocking = true;
  bool initialised = false;  // all ranks have come
  bool revoked = false;
  nccl::Result failure = nccl::Result::success;
  int busy_polls = 0;                                 // how many more times it says that a call is in progress
  std::vector<std::shared_ptr<Stream>> busy_streams;  // on which those calls are
  std::atomic<bool> ended{false};                     // aborted or revoked: what is on the streams does nothing more
  std::atomic<int> jobs{0};                           // on streams, not done
  uint64_t collectives = 0;                           // of all ranks, enqueued
};

// A call of a collective, or of one side of a transfer between two ranks, in a group that is open.
struct NcclPending {
  std::shared_ptr<NcclComm> comm;
  std::shared_ptr<Stream> stream;
  NcclCall call;
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  uint64_t from_bytes = 0, to_bytes = 0;
  int peer = -1;  // of send and receive
};

struct NcclGroup {
  int depth = 0;
  nccl::Result failure = nccl::Result::success;
  std::vector<NcclPending> calls;
  std::vector<std::shared_ptr<NcclComm>> inits;
};
NcclGroup& this_nccl_group();
// The groups of all threads that have one open.
std::vector<NcclGroup*>& open_nccl_groups();

// The bytes of an element of one of NCCL's types.
inline uint64_t width_of(int32_t type) {
  constexpr uint64_t widths[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return widths[type];
}

enum NcclKind : int32_t { nccl_all_reduce, nccl_reduce, nccl_broadcast, nccl_all_gather, nccl_reduce_scatter, nccl_send, nccl_receive };

// Enqueues the calls of a group. The caller holds the lock of the process.
void enqueue_nccl_calls(std::vector<NcclPending>& calls);

}  // namespace heddle::cuda::standin
