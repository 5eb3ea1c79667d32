// The rules of the stand-in for NCCL, each broken by a program of a few calls; standin_rules_test.cc has the others.
#include <thread>

#include "standin_nccl_program.h"

namespace heddle::cuda::testing_nccl {
namespace {

using StandinRule = StandinTest;

TEST_F(StandinRule, nccl_unknown) {
  const NcclProgram n(cuda);
  const std::vector<Rank> ranks = n.make_ranks(1);
  EXPECT_EQ(n.sum(ranks[0]), Result::success);
  EXPECT_EQ(n.nccl.ncclCommDestroy(ranks[0].comm), Result::success);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(n.sum(ranks[0]), Result::invalid_argument);
  EXPECT_EQ(broken(), "nccl_unknown: ncclAllReduce");
  EXPECT_EQ(n.nccl.ncclCommAbort(ranks[0].comm), Result::invalid_argument);
  EXPECT_EQ(broken(), "nccl_unknown: ncclCommAbort");
}

TEST_F(StandinRule, nccl_init_arguments) {
  const NcclProgram n(cuda);
  Comm* comm = nullptr;
  Config how = n.config(1);
  EXPECT_EQ(n.nccl.ncclCommInitRankConfig(&comm, 2, n.make_id(), 2, &how), Result::invalid_argument);
  EXPECT_EQ(broken(), "nccl_init_arguments: ncclCommInitRankConfig");
  n.make_comm(UniqueId{}, 2, 1, 1, Result::remote_error);
  EXPECT_EQ(broken(), "nccl_init_arguments: ncclCommInitRankConfig: an id that is none");
}

TEST_F(StandinRule, nccl_config) {
  const NcclProgram n(cuda);
  Comm* comm = nullptr;
  Config how = n.config(1);
  how.magic = 0;
  EXPECT_EQ(n.nccl.ncclCommInitRankConfig(&comm, 1, n.make_id(), 0, &how), Result::invalid_argument);
  EXPECT_EQ(broken(), "nccl_config: ncclCommInitRankConfig");
  how = n.config(1);
  how.min_ctas = 4;
  EXPECT_EQ(n.nccl.ncclCommInitRankConfig(&comm, 1, n.make_id(), 0, &how), Result::invalid_argument) << "without max_ctas";
  EXPECT_EQ(broken(), "nccl_config: ncclCommInitRankConfig");
  how.max_ctas = 8;
  EXPECT_EQ(n.nccl.ncclCommInitRankConfig(&comm, 1, n.make_id(), 0, &how), Result::success);
  EXPECT_EQ(broken(), "");
}

TEST_F(StandinRule, nccl_ranks) {
  const NcclProgram n(cuda);
  const UniqueId id = n.make_id();
  Comm* const first = n.make_comm(id, 2, 0, 0, Result::in_progress);
  Comm* const again = n.make_comm(id, 2, 0, 0, Result::in_progress);
  EXPECT_EQ(broken(), "nccl_ranks: ncclCommInitRankConfig: rank 0 twice");
  Comm* const other = n.make_comm(id, 3, 1, 0, Result::in_progress);
  EXPECT_EQ(broken(), "nccl_ranks: ncclCommInitRankConfig: 3 ranks, where another says 2");
  Result state = Result::success;
  for (int i = 0; i < 8; ++i) EXPECT_EQ(n.nccl.ncclCommGetAsyncError(first, &state), Result::success);
  EXPECT_EQ(state, Result::in_progress) << "the rank that is missing is waited for";
  for (Comm* const comm : {first, again, other}) EXPECT_EQ(n.nccl.ncclCommAbort(comm), Result::success);
  EXPECT_EQ(broken(), "");
}

TEST_F(StandinRule, nccl_id_reused) {
  const NcclProgram n(cuda);
  const UniqueId id = n.make_id();
  n.make_comm(id, 1, 0);
  EXPECT_EQ(broken(), "");
  n.make_comm(id, 1, 0, 1, Result::remote_error);
  EXPECT_EQ(broken(), "nccl_id_reused: ncclCommInitRankConfig");
}

TEST_F(StandinRule, nccl_duplicate_device) {
  const NcclProgram n(cuda);
  const UniqueId id = n.make_id();
  Config how = n.config(0);
  Comm* comms[2] = {};
  EXPECT_EQ(cuda.cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(n.nccl.ncclCommInitRankConfig(&comms[0], 2, id, 0, &how), Result::in_progress);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(n.nccl.ncclCommInitRankConfig(&comms[1], 2, id, 1, &how), Result::invalid_usage);
  EXPECT_EQ(broken(), "nccl_duplicate_device: ncclCommInitRankConfig");
  for (Comm* const comm : comms) EXPECT_EQ(n.nccl.ncclCommAbort(comm), Result::success);
}

TEST_F(StandinRule, nccl_group_end) {
  const NcclProgram n(cuda);
  EXPECT_EQ(n.nccl.ncclGroupStart(), Result::success);
  EXPECT_EQ(n.nccl.ncclGroupEnd(), Result::success);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(n.nccl.ncclGroupEnd(), Result::invalid_usage);
  EXPECT_EQ(broken(), "nccl_group_end: ncclGroupEnd");
}

TEST_F(StandinRule, nccl_group_open) {
  const NcclProgram n(cuda);
  const std::vector<Rank> ranks = n.make_ranks(2);
  EXPECT_EQ(n.nccl.ncclGroupStart(), Result::success);
  EXPECT_EQ(n.sum(ranks[0]), Result::success);
  EXPECT_EQ(cuda.cudaStreamQuery(ranks[1].stream), cudaSuccess) << "it has no call yet";
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(cuda.cudaStreamSynchronize(ranks[0].stream), cudaSuccess);
  EXPECT_EQ(broken(), "nccl_group_open: cudaStreamSynchronize");
  EXPECT_EQ(n.sum(ranks[1]), Result::success);
  EXPECT_EQ(n.nccl.ncclGroupEnd(), Result::success);
  n.wait(ranks);
  EXPECT_EQ(broken(), "");
}

TEST_F(StandinRule, nccl_group_needed) {
  const NcclProgram n(cuda);
  const std::vector<Rank> alone = n.make_ranks(1), ranks = n.make_ranks(2);
  EXPECT_EQ(n.sum(alone[0]), Result::success);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(n.sum(ranks[0]), Result::success);
  EXPECT_EQ(n.sum(ranks[1]), Result::success);
  EXPECT_EQ(broken(), "nccl_group_needed: ncclAllReduce");
  n.wait(ranks);
}

TEST_F(StandinRule, nccl_allocation) {
  const NcclProgram n(cuda);
  const std::vector<Rank> ranks = n.make_ranks(2);
  const auto allocate_beside = [&] {
    std::thread([&] {
      void* memory = nullptr;
      EXPECT_EQ(cuda.cudaMalloc(&memory, 64), cudaSuccess);
      EXPECT_EQ(cuda.cudaFree(memory), cudaSuccess);
    }).join();
  };
  EXPECT_EQ(n.nccl.ncclGroupStart(), Result::success);
  EXPECT_EQ(n.sum(ranks[0]), Result::success);
  allocate_beside();
  EXPECT_EQ(broken(), "") << "one device has calls";
  EXPECT_EQ(n.sum(ranks[1]), Result::success);
  allocate_beside();
  EXPECT_EQ(broken(), "nccl_allocation: cudaMalloc\nnccl_allocation: cudaFree");
  EXPECT_EQ(n.nccl.ncclGroupEnd(), Result::success);
  allocate_beside();
  n.wait(ranks);
  EXPECT_EQ(broken(), "");
}

TEST_F(StandinRule, nccl_init_with_calls) {
  const NcclProgram n(cuda);
  const std::vector<Rank> ranks = n.make_ranks(1);
  EXPECT_EQ(n.nccl.ncclGroupStart(), Result::success);
  EXPECT_EQ(n.sum(ranks[0]), Result::success);
  n.make_comm(n.make_id(), 1, 0);
  EXPECT_EQ(n.nccl.ncclGroupEnd(), Result::success);
  EXPECT_EQ(broken(), "nccl_init_with_calls: ncclCommInitRankConfig");
  EXPECT_EQ(n.nccl.ncclGroupStart(), Result::success);
  Rank fresh = ranks[0];
  fresh.comm = n.make_comm(n.make_id(), 1, 0);
  EXPECT_EQ(n.sum(fresh), Result::invalid_argument);
  EXPECT_EQ(n.nccl.ncclGroupEnd(), Result::invalid_argument) << "an error of a call is the group's";
  EXPECT_EQ(broken(), "nccl_init_with_calls: ncclAllReduce");
}

TEST_F(StandinRule, nccl_blocking_mixed) {
  const NcclProgram n(cuda);
  const std::vector<Rank> blocking = n.make_ranks(1, 1), other = n.make_ranks(1, 0);
  n.group(
      {blocking[0], other[0]}, [&](const Rank& rank) { EXPECT_EQ(n.sum(rank), Result::success); }, Result::in_progress);
  EXPECT_EQ(broken(), "nccl_blocking_mixed: ncclGroupEnd");
}

TEST_F(StandinRule, nccl_busy) {
  const NcclProgram n(cuda);
  const std::vector<Rank> ranks = n.make_ranks(1, 0);
  EXPECT_EQ(n.sum(ranks[0]), Result::in_progress);
  EXPECT_EQ(n.sum(ranks[0]), Result::invalid_argument);
  EXPECT_EQ(broken(), "nccl_busy: ncclAllReduce");
  n.settle(ranks[0].comm);
  EXPECT_EQ(n.sum(ranks[0]), Result::in_progress);
  n.settle(ranks[0].comm);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(n.nccl.ncclCommDestroy(ranks[0].comm), Result::success);
}

TEST_F(StandinRule, nccl_stream_busy) {
  const NcclProgram n(cuda);
  const std::vector<Rank> ranks = n.make_ranks(1, 0);
  EXPECT_EQ(n.sum(ranks[0]), Result::in_progress);
  EXPECT_EQ(cuda.cudaMemsetAsync(ranks[0].memory, 0, 8, ranks[0].stream), cudaSuccess);
  EXPECT_EQ(broken(), "nccl_stream_busy: cudaMemsetAsync");
  n.settle(ranks[0].comm);
  EXPECT_EQ(cuda.cudaMemsetAsync(ranks[0].memory, 0, 8, ranks[0].stream), cudaSuccess);
  EXPECT_EQ(broken(), "");
}

TEST_F(StandinRule, nccl_failed) {
  const NcclProgram n(cuda);
  const UniqueId id = n.make_id();
  n.make_comm(id, 1, 0);
  Rank rank = n.make_ranks(1)[0];
  rank.comm = n.make_comm(id, 1, 0, 1, Result::remote_error);
  EXPECT_EQ(broken(), "nccl_id_reused: ncclCommInitRankConfig");
  EXPECT_EQ(n.sum(rank), Result::remote_error);
  EXPECT_EQ(broken(), "nccl_failed: ncclAllReduce");
  EXPECT_EQ(n.nccl.ncclCommDestroy(rank.comm), Result::remote_error);
  EXPECT_EQ(broken(), "nccl_failed: ncclCommDestroy");
  EXPECT_EQ(n.nccl.ncclCommAbort(rank.comm), Result::success);
  EXPECT_EQ(broken(), "");
}

TEST_F(StandinRule, nccl_revoke) {
  const NcclProgram n(cuda);
  const std::vector<Rank> ranks = n.make_ranks(1);
  EXPECT_EQ(n.nccl.ncclCommRevoke(ranks[0].comm, 1), Result::invalid_argument);
  EXPECT_EQ(broken(), "nccl_revoke: ncclCommRevoke");
  EXPECT_EQ(n.nccl.ncclCommRevoke(ranks[0].comm, 0), Result::success);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(n.nccl.ncclCommRevoke(ranks[0].comm, 0), Result::invalid_argument);
  EXPECT_EQ(broken(), "nccl_revoke: ncclCommRevoke");
}

TEST_F(StandinRule, nccl_revoked) {
  const NcclProgram n(cuda);
  const std::vector<Rank> ranks = n.make_ranks(1);
  EXPECT_EQ(n.nccl.ncclCommRevoke(ranks[0].comm, 0), Result::success);
  EXPECT_EQ(n.sum(ranks[0]), Result::invalid_usage);
  EXPECT_EQ(broken(), "nccl_revoked: ncclAllReduce");
  EXPECT_EQ(n.nccl.ncclCommDestroy(ranks[0].comm), Result::success);
  EXPECT_EQ(broken(), "");
}

TEST_F(StandinRule, nccl_abort_during_call) {
  const NcclProgram n(cuda);
  const std::vector<Rank> ranks = n.make_ranks(2);
  EXPECT_EQ(n.nccl.ncclGroupStart(), Result::success);
  EXPECT_EQ(n.sum(ranks[0]), Result::success);
  std::thread([&] { EXPECT_EQ(n.nccl.ncclCommAbort(ranks[0].comm), Result::success); }).join();
  EXPECT_EQ(broken(), "nccl_abort_during_call: a group with calls of the communicator is open");
  EXPECT_EQ(n.nccl.ncclGroupEnd(), Result::success);
}

TEST_F(StandinRule, nccl_root) {
  const NcclProgram n(cuda);
  const std::vector<Rank> ranks = n.make_ranks(1);
  EXPECT_EQ(n.nccl.ncclBroadcast(ranks[0].memory, ranks[0].memory, 4, DataType::f32, 1, ranks[0].comm, n.of(ranks[0].stream)),
            Result::invalid_argument);
  EXPECT_EQ(broken(), "nccl_root: ncclBroadcast");
  EXPECT_EQ(n.nccl.ncclSend(ranks[0].memory, 4, DataType::f32, -1, ranks[0].comm, n.of(ranks[0].stream)), Result::invalid_argument);
  EXPECT_EQ(broken(), "nccl_root: ncclSend");
}

TEST_F(StandinRule, nccl_type) {
  const NcclProgram n(cuda);
  const std::vector<Rank> ranks = n.make_ranks(1);
  EXPECT_EQ(n.sum(ranks[0], 4, static_cast<DataType>(12)), Result::invalid_argument);
  EXPECT_EQ(broken(), "nccl_type: ncclAllReduce");
  EXPECT_EQ(n.nccl.ncclAllReduce(ranks[0].memory, ranks[0].memory, 4, DataType::f32, static_cast<Operation>(-1), ranks[0].comm,
                                 n.of(ranks[0].stream)),
            Result::invalid_argument);
  EXPECT_EQ(broken(), "nccl_type: ncclAllReduce");
}

TEST_F(StandinRule, nccl_memory) {
  const NcclProgram n(cuda);
  const std::vector<Rank> ranks = n.make_ranks(2);
  char here[16] = {};
  Rank wrong = ranks[0];
  wrong.memory = here;
  EXPECT_EQ(n.sum(wrong), Result::unhandled_cuda_error);
  EXPECT_EQ(broken(), "nccl_memory: ncclAllReduce");
  wrong.memory = ranks[1].memory;
  EXPECT_EQ(n.sum(wrong), Result::unhandled_cuda_error) << "of another device";
  EXPECT_EQ(broken(), "nccl_memory: ncclAllReduce");
  EXPECT_EQ(n.sum(ranks[0], 17), Result::unhandled_cuda_error) << "68 bytes";
  EXPECT_EQ(broken(), "nccl_memory: ncclAllReduce");
}

TEST_F(StandinRule, nccl_alignment) {
  const NcclProgram n(cuda);
  const std::vector<Rank> ranks = n.make_ranks(1);
  Rank odd = ranks[0];
  odd.memory += 2;
  EXPECT_EQ(n.sum(odd), Result::unhandled_cuda_error);
  EXPECT_EQ(broken(), "nccl_alignment: ncclAllReduce");
  EXPECT_EQ(n.sum(odd, 4, DataType::u8), Result::success);
  EXPECT_EQ(broken(), "");
}

TEST_F(StandinRule, nccl_in_place) {
  const NcclProgram n(cuda);
  const std::vector<Rank> ranks = n.make_ranks(1);
  const Rank& r = ranks[0];
  EXPECT_EQ(n.nccl.ncclAllGather(r.memory, r.memory, 16, DataType::u8, r.comm, n.of(r.stream)), Result::success);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(n.nccl.ncclAllReduce(r.memory, r.memory + 4, 4, DataType::f32, Operation::sum, r.comm, n.of(r.stream)), Result::success);
  EXPECT_EQ(broken(), "nccl_in_place: ncclAllReduce");
  const std::vector<Rank> two = n.make_ranks(2);
  n.group(two, [&](const Rank& rank) {
    char* const own = rank.memory + (&rank == &two[1] ? 8 : 0);
    EXPECT_EQ(n.nccl.ncclAllGather(own, rank.memory, 8, DataType::u8, rank.comm, n.of(rank.stream)), Result::success);
  });
  n.wait(two);
  EXPECT_EQ(broken(), "");
  n.group(two, [&](const Rank& rank) {
    EXPECT_EQ(n.nccl.ncclAllGather(rank.memory, rank.memory, 8, DataType::u8, rank.comm, n.of(rank.stream)), Result::success);
  });
  EXPECT_EQ(broken(), "nccl_in_place: ncclAllGather") << "of rank 1, whose place is the second";
}

TEST_F(StandinRule, nccl_stream) {
  const NcclProgram n(cuda);
  const std::vector<Rank> ranks = n.make_ranks(2);
  Rank wrong = ranks[0];
  wrong.stream = ranks[1].stream;
  EXPECT_EQ(n.sum(wrong), Result::invalid_usage);
  EXPECT_EQ(broken(), "nccl_stream: ncclAllReduce");
}

TEST_F(StandinRule, nccl_alike) {
  const NcclProgram n(cuda);
  const std::vector<Rank> ranks = n.make_ranks(2);
  n.group(ranks, [&](const Rank& rank) { EXPECT_EQ(n.sum(rank), Result::success); });
  n.wait(ranks);
  EXPECT_EQ(broken(), "");
  n.group(ranks, [&](const Rank& rank) { EXPECT_EQ(n.sum(rank, &rank == &ranks[0] ? 4 : 3), Result::success); });
  n.wait(ranks);
  EXPECT_EQ(broken(), "nccl_alike: another collective than that of rank 1\nnccl_alike: another collective than that of rank 0");
}

TEST_F(StandinRule, nccl_order) {
  const NcclProgram n(cuda);
  const std::vector<Rank> one = n.make_ranks(2), other = n.make_ranks(2);
  const auto enqueue = [&](size_t first, size_t second) {
    for (const auto* const ranks : {&one, &other}) n.group(*ranks, [&](const Rank& rank) { EXPECT_EQ(n.sum(rank), Result::success); });
    EXPECT_EQ(n.nccl.ncclGroupStart(), Result::success);
    EXPECT_EQ(n.sum((first == 0 ? one : other)[0]), Result::success);
    EXPECT_EQ(n.sum((second == 0 ? one : other)[1]), Result::success);
    EXPECT_EQ(n.sum((first == 0 ? other : one)[0]), Result::success);
    EXPECT_EQ(n.sum((second == 0 ? other : one)[1]), Result::success);
    EXPECT_EQ(n.nccl.ncclGroupEnd(), Result::success);
    n.wait(one);
    n.wait(other);
  };
  enqueue(0, 0);
  EXPECT_EQ(broken(), "");
  enqueue(0, 1);
  EXPECT_NE(broken().find("nccl_order: after another collective of another communicator than that of rank 1"), std::string::npos);
}

TEST_F(StandinRule, nccl_pairs) {
  const NcclProgram n(cuda);
  const std::vector<Rank> ranks = n.make_ranks(2);
  const auto exchange = [&](size_t sent, size_t received) {
    EXPECT_EQ(n.nccl.ncclGroupStart(), Result::success);
    EXPECT_EQ(n.nccl.ncclSend(ranks[0].memory, sent, DataType::u8, 1, ranks[0].comm, n.of(ranks[0].stream)), Result::success);
    EXPECT_EQ(n.nccl.ncclRecv(ranks[1].memory, received, DataType::u8, 0, ranks[1].comm, n.of(ranks[1].stream)), Result::success);
    EXPECT_EQ(n.nccl.ncclGroupEnd(), Result::success);
    n.wait(ranks);
  };
  exchange(8, 8);
  EXPECT_EQ(broken(), "");
  exchange(8, 4);
  EXPECT_EQ(broken(), "nccl_pairs: 4 bytes are received of 8 from rank 0");
}

}  // namespace
}  // namespace heddle::cuda::testing_nccl
