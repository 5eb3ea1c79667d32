// Programs of a few calls of NCCL's on the stand-in: its functions, and ranks on devices of this process.
#pragma once

#include <vector>

#include "nccl/library/declarations.h"
#include "standin_program.h"

namespace heddle::cuda::testing_nccl {

using namespace testing_standin;
using nccl::Comm;
using nccl::Config;
using nccl::DataType;
using nccl::Operation;
using nccl::Result;
using nccl::UniqueId;

// NCCL's functions of the stand-in, by name.
class Nccl {
 public:
#define HEDDLE_NCCL_OF_nccl(result, name, parameters) result(*name) parameters = load<result(*) parameters>(#name);
#define HEDDLE_NCCL_OF_cudart(result, name, parameters)
#define HEDDLE_NCCL_FUNCTION(library, result, name, parameters) HEDDLE_NCCL_OF_##library(result, name, parameters)
  using Stream = nccl::Stream;
#include "nccl/library/functions.inc"
#undef HEDDLE_NCCL_FUNCTION
#undef HEDDLE_NCCL_OF_cudart
#undef HEDDLE_NCCL_OF_nccl

 private:
  template <class Function>
  static Function load(const char* name) {
    void* const library = dlopen(standin_file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    return reinterpret_cast<Function>(dlsym(library, name));
  }
};

struct Rank {
  Comm* comm = nullptr;
  cudaStream_t stream = nullptr;
  char* memory = nullptr;
};

// Ranks on devices 0, 1, ... of this process, with a stream and 64 bytes each; calls that must succeed are checked.
class NcclProgram {
 public:
  explicit NcclProgram(const Standin& standin) : cuda(standin) {}
  static nccl::Stream* of(cudaStream_t stream) { return reinterpret_cast<nccl::Stream*>(stream); }
  static Config config(int blocking) {
    Config made;
    made.blocking = blocking;
    return made;
  }
  UniqueId make_id() const {
    UniqueId id;
    EXPECT_EQ(nccl.ncclGetUniqueId(&id), Result::success);
    return id;
  }
  Comm* make_comm(const UniqueId& id, int ranks, int rank, int blocking = 1, Result expected = Result::success) const {
    Comm* comm = nullptr;
    Config how = config(blocking);
    EXPECT_EQ(cuda.cudaSetDevice(rank), cudaSuccess);
    EXPECT_EQ(nccl.ncclCommInitRankConfig(&comm, ranks, id, rank, &how), expected);
    return comm;
  }
  std::vector<Rank> make_ranks(int count, int blocking = 1) const {
    std::vector<Rank> ranks(static_cast<size_t>(count));
    const UniqueId id = make_id();
    EXPECT_EQ(nccl.ncclGroupStart(), Result::success);
    for (int r = 0; r < count; ++r) ranks[static_cast<size_t>(r)].comm = make_comm(id, count, r, blocking);
    EXPECT_EQ(nccl.ncclGroupEnd(), blocking == 0 ? Result::in_progress : Result::success);
    for (int r = 0; r < count; ++r) {
      Rank& rank = ranks[static_cast<size_t>(r)];
      settle(rank.comm);
      rank.stream = make_stream(cuda, r);
      rank.memory = static_cast<char*>(make_memory(cuda, 64, rank.stream));
    }
    EXPECT_STREQ(cuda.broken(), "");
    return ranks;
  }
  void settle(Comm* comm) const {
    Result state = Result::in_progress;
    while (state == Result::in_progress) ASSERT_EQ(nccl.ncclCommGetAsyncError(comm, &state), Result::success);
    EXPECT_EQ(state, Result::success);
  }
  Result sum(const Rank& rank, size_t count = 4, DataType type = DataType::f32) const {
    return nccl.ncclAllReduce(rank.memory, rank.memory, count, type, Operation::sum, rank.comm, of(rank.stream));
  }
  // A group of calls, one of each rank.
  template <class Call>
  void group(const std::vector<Rank>& ranks, const Call& call, Result ended = Result::success) const {
    EXPECT_EQ(nccl.ncclGroupStart(), Result::success);
    for (const Rank& rank : ranks) call(rank);
    EXPECT_EQ(nccl.ncclGroupEnd(), ended);
  }
  void wait(const std::vector<Rank>& ranks) const {
    for (const Rank& rank : ranks) EXPECT_EQ(cuda.cudaStreamSynchronize(rank.stream), cudaSuccess);
  }

  const Nccl nccl;
  const Standin& cuda;
};

}  // namespace heddle::cuda::testing_nccl
