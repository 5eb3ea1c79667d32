// The behaviour of the stand-in for NCCL beside its rules: ranks that are missing, the order of sums, and communicators that are left.
#include <chrono>
#include <thread>

#include "standin_nccl_program.h"

namespace heddle::cuda::testing_nccl {
namespace {

using StandinNccl = StandinTest;

TEST_F(StandinNccl, AMemberThatDoesNotComeIsWaitedForUntilAnAbort) {
  const NcclProgram n(cuda);
  const UniqueId id = n.make_id();
  std::vector<Rank> ranks = n.make_ranks(2, 0);
  EXPECT_EQ(n.sum(ranks[0]), Result::in_progress);
  n.settle(ranks[0].comm);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(cuda.cudaStreamQuery(ranks[0].stream), cudaErrorNotReady);
  EXPECT_EQ(n.nccl.ncclCommRevoke(ranks[0].comm, 0), Result::in_progress);
  EXPECT_EQ(cuda.cudaStreamSynchronize(ranks[0].stream), cudaSuccess);
  EXPECT_EQ(n.nccl.ncclCommAbort(ranks[0].comm), Result::success);
  // A rank that waits for others to come at all is aborted, too.
  Comm* const early = n.make_comm(id, 2, 0, 0, Result::in_progress);
  EXPECT_EQ(n.nccl.ncclCommAbort(early), Result::success);
  EXPECT_EQ(broken(), "nccl_group_needed: ncclAllReduce") << "the call outside of a group, by which a member is missing";
}

// For three ranks, chunk c is ((x[c+1] + x[c+2]) + x[c]: where the large numbers meet first, the small one is kept.
TEST_F(StandinNccl, SumsAreMadeInTheOrderOfARing) {
  const StandinSetting devices("DEVICES", "3");
  cudaDeviceProp properties = {};
  EXPECT_EQ(cuda.cudaGetDeviceProperties(&properties, 0), cudaSuccess);  // it reads its settings
  const NcclProgram n(cuda);
  const std::vector<Rank> ranks = n.make_ranks(3);
  const float of_rank[3] = {1e8F, 1, -1e8F};
  for (size_t r = 0; r < 3; ++r) {
    const float values[3] = {of_rank[r], of_rank[r], of_rank[r]};
    EXPECT_EQ(cuda.cudaSetDevice(static_cast<int>(r)), cudaSuccess);
    EXPECT_EQ(cuda.cudaMemcpyAsync(ranks[r].memory, values, sizeof(values), cudaMemcpyHostToDevice, ranks[r].stream), cudaSuccess);
  }
  n.group(ranks, [&](const Rank& rank) { EXPECT_EQ(n.sum(rank, 3), Result::success); });
  for (size_t r = 0; r < 3; ++r) {
    const Rank& rank = ranks[r];
    float values[3] = {};
    EXPECT_EQ(cuda.cudaSetDevice(static_cast<int>(r)), cudaSuccess);
    EXPECT_EQ(cuda.cudaMemcpyAsync(values, rank.memory, sizeof(values), cudaMemcpyDeviceToHost, rank.stream), cudaSuccess);
    EXPECT_EQ(std::vector<float>(values, values + 3), (std::vector<float>{0, 1, 0}));
  }
  EXPECT_EQ(broken(), "");
}

TEST_F(StandinNccl, CommunicatorsThatAreLeftAreLeaks) {
  const NcclProgram n(cuda);
  const std::vector<Rank> ranks = n.make_ranks(1);
  cuda.look_for_leaks();
  EXPECT_NE(broken().find("leak: 1 communicators of NCCL"), std::string::npos);
}

}  // namespace
}  // namespace heddle::cuda::testing_nccl
