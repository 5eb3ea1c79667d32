// Processes with a GPU each, which NCCL connects, of the stand-in for NVIDIA's libraries: one that stops meanwhile, and one with another
// version.
#include <chrono>
#include <memory>

#include "collectives/own_devices.h"
#include "cuda/standin/native.h"

namespace heddle {
namespace {

using namespace testing_collectives;

class NcclProcesses : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_cuda()) GTEST_SKIP() << "the CUDA plugin was not built";
  }
};

// The call of NVIDIA's at which rank 1 stops; none: it does not.
const char* stops_at() {
  return std::getenv("HEDDLE_TEST_STOPS_AT");
}

// A process: it expects the sentence that it is told; when it is continued, its own run has failed, too, in whatever words.
TEST(NcclProcess, DISABLED_OneRank) {
  const ThisRank here = ThisRank::find();
  const OwnDevices own = OwnDevices::find();
  const char* const says = std::getenv("HEDDLE_TEST_SAYS");
  ASSERT_NE(says, nullptr);
  if (stops_at() && here.rank == 1) {
    const auto fail_call = reinterpret_cast<void (*)(const char*, uint64_t, int, int)>(dlsym(standin(), "heddle_standin_fail_call"));
    fail_call(stops_at(), 1, HEDDLE_STANDIN_STOP, 0);
  }
  NetBuilder b("rank");
  b.output(b.add1("AllReduce", "sum", {b.input("x", DType::f32, {2})}, {{"communicator", world}}, "heddle"));
  b.net().nodes.back().device = own.device(0);
  SessionOptions options = options_of(here, own.all_devices());
  if (stops_at()) options.communicators[0].timeout_ns = 1'000'000'000;
  auto session = runtime_with_devices(1, own.plugins()).open(b.finish(), options);
  ASSERT_TRUE(session.ok()) << session.status().text();
  const std::vector<float> x = {1, 2};
  const Status status = session->run({{DType::f32, {2}, const_cast<float*>(x.data())}}).status();
  if (stops_at() && here.rank == 1)
    EXPECT_FALSE(status.ok());
  else
    EXPECT_NE(status.text().find(says), std::string::npos) << status.text();
}

std::vector<std::unique_ptr<RankProcess>> start(const std::string& folder, const std::map<std::string, std::string>& more,
                                                const std::map<std::string, std::string>& of_rank_1 = {}) {
  std::vector<std::unique_ptr<RankProcess>> processes;
  const OwnDevices own = {"nccl", 1};
  for (int rank = 0; rank < 2; ++rank) {
    std::map<std::string, std::string> environment = own.environment(rank);
    environment.insert(more.begin(), more.end());
    if (rank == 1) environment.insert(of_rank_1.begin(), of_rank_1.end());
    processes.push_back(std::make_unique<RankProcess>("NcclProcess.DISABLED_OneRank", ThisRank{rank, 2, folder_of(folder)}, environment));
  }
  return processes;
}

// NCCL says nothing of a rank that does not go on: the others ask, and name it.
TEST_F(NcclProcesses, NameTheOneThatStopsWhileItConnects) {
  for (const char* const call : {"ncclCommInitRankConfig", "ncclAllGather"}) {
    SCOPED_TRACE(call);
    const auto processes = start(std::string("stops at ") + call, {{"HEDDLE_TEST_STOPS_AT", call},
                                                                   {"HEDDLE_TEST_SAYS",
                                                                    "rank 1 does not answer, missing in the connection of its GPUs of "
                                                                    "communicator \"world\""}});
    EXPECT_EQ(processes[0]->wait(), 0) << processes[0]->said();
    processes[1]->signal(SIGCONT);
    EXPECT_EQ(processes[1]->wait(), 0) << processes[1]->said();
  }
}

TEST_F(NcclProcesses, OfTwoVersionsRefuseToConnect) {
  const auto processes =
      start("versions", {{"HEDDLE_TEST_SAYS", "rank 1 has NCCL 2.29.3, and rank 0 has 2.28.9: give all ranks the same library"}},
            {{"HEDDLE_CUDA_STANDIN_NCCL_VERSION", "22903"}});
  for (const auto& process : processes) EXPECT_EQ(process->wait(), 0) << process->said();
}

}  // namespace
}  // namespace heddle
