// This is what the ranks of a communicator tell each other before NCCL connects them: it would wait without end for a rank that can not
// come, or that differs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "library/nccl_library.h"
#include "shared/ranks/rank_control.h"

namespace heddle::nccl {

// This process's part of a communicator.
struct OwnPart {
  std::vector<int32_t> devices;  // their numbers for CUDA
  bool sums_of_library = false;
  Status status;  // whether it can come
};

// This is what all together are.
struct WholeCommunicator {
  UniqueId id;
  uint32_t participants = 0, first = 0;  // all devices; the number of this process's first
};

// Reads the members of a request, as "cuda:0", and the setting HEDDLE_NCCL_SUMS. Errors are in the result.
OwnPart own_part(const plugin::ResourceRequest& request);

// Exchanges what the ranks are, and checks that these go together. `control`: the ranks; with one rank it is not asked. Errors: invalid,
// unsupported (a rank can not come: all are told which and why), and those of the exchange.
Status introduce(const plugin::ResourceRequest& request, const OwnPart& mine, operators::RankControl& control, WholeCommunicator* whole);

}  // namespace heddle::nccl
