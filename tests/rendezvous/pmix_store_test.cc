// The store of a launcher: mpirun starts three processes of heddle_pmix_rank, which say what is wrong.
#include <array>
#include <cstdio>

#include "rendezvous/pmix_place.h"
#include "rendezvous/redis_server.h"
#include "rendezvous/store_helpers.h"

namespace heddle::testing_rendezvous {
namespace {

struct Ended {
  int status = -1;
  std::string text;
};

Ended run_three(const std::string& options, const std::string& name) {
  const std::string command = "timeout 60 mpirun --oversubscribe --allow-run-as-root " + options +
                              " -n 3 " HEDDLE_BINARY_DIR "/bin/heddle_pmix_rank " + name + " 2>&1 < /dev/null";
  Ended ended;
  FILE* const pipe = ::popen(command.c_str(), "r");
  std::array<char, 4096> buffer;
  for (size_t got; (got = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) ended.text.append(buffer.data(), got);
  ended.status = ::pclose(pipe);
  return ended;
}

void expect_done(const Ended& ended, std::initializer_list<int> ranks) {
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_EQ(ended.text.find("wrong:"), std::string::npos) << ended.text;
  for (const int rank : ranks) EXPECT_NE(ended.text.find("rank " + std::to_string(rank) + ": done"), std::string::npos) << ended.text;
}

TEST(PmixStore, KeysAreWrittenOnce) {
  HEDDLE_NEEDS_PROGRAM("mpirun");
  expect_done(run_three("", "keys"), {0, 1, 2});
}

TEST(PmixStore, OneOfManyThreadsWrites) {
  HEDDLE_NEEDS_PROGRAM("mpirun");
  expect_done(run_three("", "threads"), {0, 1, 2});
}

TEST(PmixStore, RanksMeetAndReport) {
  HEDDLE_NEEDS_PROGRAM("mpirun");
  expect_done(run_three("", "meeting"), {0, 1, 2});
}

TEST(PmixStore, AKilledRankHoldsNoOther) {
  HEDDLE_NEEDS_PROGRAM("mpirun");
  expect_done(run_three("--enable-recovery", "killed"), {0, 2});
}

TEST(PmixPlace, NeedsALauncher) {
  if (started_by_pmix()) GTEST_SKIP() << "a launcher has started this test";
  int32_t rank = -1, ranks = -1;
  expect_error(pmix_place(&rank, &ranks), HEDDLE_ERROR_DEVICE, {"mpirun -n N", "srun --mpi=pmix"});
  // A launcher that has ended may leave its variables.
  const EnvironmentVariable own_rank("PMIX_RANK", "0"), name("PMIX_NAMESPACE", "none.1");
  EXPECT_TRUE(started_by_pmix());
  expect_error(pmix_place(&rank, &ranks), HEDDLE_ERROR_DEVICE, {"PMIx server does not answer", "mpirun -n N"});
}

// A rank that is started again below mpirun need not connect to its server, which may answer no more.
TEST(PmixPlace, IsReadFromTheEnvironment) {
  if (started_by_pmix()) GTEST_SKIP() << "a launcher has started this test";
  const EnvironmentVariable own_rank("PMIX_RANK", "2"), name("PMIX_NAMESPACE", "none.1");
  for (const char* const variable : {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const EnvironmentVariable size(variable, "5");
    int32_t rank = -1, ranks = -1;
    EXPECT_OK(pmix_place(&rank, &ranks));
    EXPECT_EQ(rank, 2);
    EXPECT_EQ(ranks, 5);
  }
  for (const char* const wrong : {"", "2", "x", "-5", "5 "}) {
    const EnvironmentVariable size("OMPI_COMM_WORLD_SIZE", wrong);
    int32_t rank = -1, ranks = -1;
    expect_error(pmix_place(&rank, &ranks), HEDDLE_ERROR_DEVICE, {"PMIx server does not answer"});
  }
}

}  // namespace
}  // namespace heddle::testing_rendezvous
