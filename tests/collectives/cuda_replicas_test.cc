// Replicas on devices of kind "cuda", of the stand-in for NVIDIA's libraries, which copy from each other or are connected by NCCL.
#include "collectives/training_jobs.h"

namespace heddle {
namespace {

using namespace testing_collectives;

// The parameter: "cuda" or "nccl".
class CudaReplicas : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!has_cuda()) GTEST_SKIP() << "the CUDA plugin was not built";
  }
};
INSTANTIATE_TEST_SUITE_P(By, CudaReplicas, ::testing::Values("cuda", "nccl"), [](const auto& info) { return info.param; });

// Trains on two and three devices, and compares what was learned with the host. `left`: how many steps of each type the host does for
// each replica, since the devices have no kernels for them or for their neighbours.
void expect_the_hosts_numbers(const std::string& kind, const Job& job, double tolerance, const std::map<std::string, int>& left,
                              const std::map<std::string, int>& left_for_all) {
  const std::vector<Trained> host = train({1, false}, job);
  ASSERT_TRUE(host[0].status.ok()) << host[0].status.text();
  for (const int size : {2, 3}) {
    SCOPED_TRACE(size);
    const std::vector<Trained> found = train({size, true, kind}, job);
    EXPECT_EQ(broken_rules(), "");
    expect_alike(found);
    for (const std::string& kernel : found[0].kernels_of_groups) EXPECT_EQ(kernel.find(kind + ':'), 0u) << kernel;
    EXPECT_TRUE(found[0].kernels_of_groups.contains(kind + ":AllReduce"));
    std::map<std::string, int> on_host = left_for_all;
    for (const auto& [type, count] : left) on_host[type] += size * count;
    EXPECT_EQ(found[0].on_host, on_host);
    EXPECT_EQ(found[0].classes_of_groups, std::set<int32_t>{HEDDLE_STREAM_COMMUNICATION});
    ASSERT_EQ(found[0].variables.size(), host[0].variables.size());
    for (const auto& [name, value] : host[0].variables) expect_near(found[0].variables.at(name), value, tolerance, name);
  }
}

// The part of the batch that a replica has, and the number of elements that a mean has.
const std::map<std::string, int> weights = {{"Shard", 2}, {"Shape", 2}, {"Gather", 2}, {"CastLike", 2}, {"Pointwise", 1}, {"Size", 2}};

TEST_P(CudaReplicas, LearnTheNumbersOfTheHost) {
  const std::map<std::string, int> outputs = {{"Concat", 1}, {"Sum", 1}};
  expect_the_hosts_numbers(GetParam(), sigmoid_job(DType::f64, 18), 1e-12, weights, outputs);
  expect_the_hosts_numbers(GetParam(), sigmoid_job(DType::f32, 13), 1e-6, weights, outputs);
}

TEST_P(CudaReplicas, GatherRowsOfTables) {
  std::map<std::string, int> left = weights;
  left["SgdUpdateRows"] = 2;
  left["Concat"] = 3;  // of the indices that both tables share, and of their rows
  left["Expand"] = 1;
  expect_the_hosts_numbers(GetParam(), lookup_job(12, 3), 1e-12, left, {{"Sum", 1}});
}

TEST_P(CudaReplicas, CombineStatistics) {
  Job job = normalised_job(12);
  job.how.parallel.combine_statistics = true;
  std::map<std::string, int> left = weights;
  left["MomentumUpdate"] = 2;
  for (const auto& [type, more] : {std::pair("Size", 2), std::pair("CastLike", 1), std::pair("Pointwise", 1)}) left[type] += more;
  expect_the_hosts_numbers(GetParam(), job, 1e-5, left, {{"Sum", 1}});
}

TEST_P(CudaReplicas, AreNotLaunchedTogetherWithDevicesOfOtherKinds) {
  NetBuilder b("mixed");
  const std::vector<std::string> devices = {"cuda:0", sim(0)};
  for (const std::string& device : devices) {
    const ValueId x = b.input("x of " + device, DType::f32, {2});
    const ValueId sum = b.add1("AllReduce", "sum on " + device, {x}, {{"communicator", world}}, "heddle");
    b.net()[b.net()[sum].producer].device = device;
    b.output(sum);
  }
  SessionOptions options = options_of({2, true}, "");
  options.communicators[0].devices = devices;
  auto session = runtime_with_devices(1, GetParam()).open(b.finish(), options);
  ASSERT_TRUE(session.ok()) << session.status().text();
  const std::string text = session->prepare().status().text();
  EXPECT_NE(text.find("is a collective of communicator \"world\" on sim:0, and \"sum on cuda:0\" is one on cuda:0"), std::string::npos)
      << text;
}

}  // namespace
}  // namespace heddle
