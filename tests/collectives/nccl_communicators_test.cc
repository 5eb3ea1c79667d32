// Communicators of NCCL's, of the stand-in for NVIDIA's libraries: how many there are, what else goes on meanwhile, and what becomes of
// runs when NCCL fails or a device does not come.
#include <algorithm>
#include <atomic>
#include <sstream>

#include "collectives/participants.h"
#include "collectives/summing_ranks.h"

namespace heddle {
namespace {

using namespace testing_collectives;

template <class Function>
Function of_standin(const char* name) {
  return reinterpret_cast<Function>(dlsym(standin(), name));
}

class NcclCommunicators : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_cuda()) GTEST_SKIP() << "the CUDA plugin was not built";
    log = of_standin<void (*)(int)>("heddle_standin_log");
    logged = of_standin<const char* (*)()>("heddle_standin_logged");
    fail_call = of_standin<void (*)(const char*, uint64_t, int, int)>("heddle_standin_fail_call");
    hold_transfers = of_standin<void (*)(int)>("heddle_standin_hold_transfers");
  }
  void TearDown() override {
    if (!IsSkipped()) {
      EXPECT_EQ(broken_rules(), "");
    }
  }
  // How often a function of NVIDIA's was called since the log began.
  int calls(const std::string& name) const {
    int count = 0;
    std::istringstream names(logged());
    for (std::string one; std::getline(names, one, ',');) count += one == name;
    return count;
  }

  void (*log)(int) = nullptr;
  const char* (*logged)() = nullptr;
  void (*fail_call)(const char*, uint64_t, int, int) = nullptr;
  void (*hold_transfers)(int) = nullptr;
};

// `count` sums on each of two devices.
Net sums(int count, const std::vector<Attribute>& more = {}) {
  NetBuilder b("sums");
  std::vector<Attribute> attributes = {{"communicator", world}};
  attributes.insert(attributes.end(), more.begin(), more.end());
  for (int d = 0; d < 2; ++d) {
    const std::string suffix = "_" + std::to_string(d);
    const ValueId x = b.input("x" + suffix, DType::f32, {4});
    for (int i = 0; i < count; ++i) b.output(b.add1("AllReduce", "sum" + std::to_string(i) + suffix, {x}, attributes, "heddle"));
    for (Node& node : b.net().nodes)
      if (node.device.empty()) node.device = "cuda:" + std::to_string(d);
  }
  return b.finish();
}

const bool long_tests = std::getenv("HEDDLE_LONG_TESTS") != nullptr;
const std::vector<float> x = {1, 2, 3, 4};

// A session of two devices, and its runs.
struct Two {
  explicit Two(Net net, int64_t timeout_ms = 30'000) : runtime(runtime_with_devices(2, "nccl")) {
    SessionOptions options = options_of({2, true, "nccl"}, "");
    options.communicators[0].timeout_ns = timeout_ms * 1'000'000;
    auto opened = runtime.open(std::move(net), options);
    EXPECT_TRUE(opened.ok()) << opened.status().text();
    session.emplace(std::move(*opened));
    auto prepared = session->prepare();
    EXPECT_TRUE(prepared.ok()) << prepared.status().text();
    context.emplace(std::move(*prepared));
    for (size_t i = 0; i < session->inputs().size(); ++i) EXPECT_TRUE(context->bind_input(i, x.data()).ok());
  }
  Status run() { return context->run(); }
  void expect_right() {
    const Status status = run();
    ASSERT_TRUE(status.ok()) << status.text();
    for (size_t i = 0; i < context->output_count(); ++i)
      EXPECT_EQ(copy_of(context->output(i)).as<float>(), (std::vector<float>{2, 4, 6, 8})) << i;
  }
  Runtime runtime;
  std::optional<Session> session;
  std::optional<Context> context;
};

TEST_F(NcclCommunicators, OneIsEnoughForAllCollectivesAndRuns) {
  log(1);
  Two two(sums(100));
  EXPECT_EQ(calls("ncclCommInitRankConfig"), 0) << "a plan makes none";
  for (int run = 0; run < 3; ++run) two.expect_right();
  EXPECT_EQ(calls("ncclCommInitRankConfig"), 2) << "one for each device";
  // Streams, events and memory are made with the communicator, and none by a run.
  const int events = calls("cudaEventCreateWithFlags"), allocations = calls("cudaMallocAsync"), groups = calls("ncclGroupEnd");
  two.expect_right();
  EXPECT_EQ(calls("cudaEventCreateWithFlags"), events);
  EXPECT_EQ(calls("cudaMallocAsync"), allocations);
  EXPECT_EQ(calls("ncclGroupEnd"), groups + 100) << "one for each sum: they are small";
  log(0);
}

// For a large tensor shares are exchanged and combined by kernels; NCCL's own sums are made where they are asked for.
TEST_F(NcclCommunicators, LeaveSumsToTheLibraryWhereItIsAskedTo) {
  constexpr int64_t elements = 100'000;
  const std::vector<float> ones(elements, 1);
  for (const bool of_library : {false, true}) {
    ::setenv("HEDDLE_NCCL_SUMS", of_library ? "library" : "fixed", 1);
    NetBuilder b("large");
    for (int d = 0; d < 2; ++d) {
      const std::string suffix = std::to_string(d);
      b.output(b.add1("AllReduce", "sum" + suffix, {b.input("x" + suffix, DType::f32, {elements})}, {{"communicator", world}}, "heddle"));
      b.net().nodes.back().device = "cuda:" + suffix;
    }
    auto session = runtime_with_devices(1, "nccl").open(b.finish(), options_of({2, true, "nccl"}, ""));
    ASSERT_TRUE(session.ok()) << session.status().text();
    const TensorView view = {DType::f32, {elements}, const_cast<float*>(ones.data())};
    for (int run = 0; run < 2; ++run) {  // the first one makes the communicator
      log(1);
      const auto sums = session->run({view, view});
      ASSERT_TRUE(sums.ok()) << sums.status().text();
      EXPECT_EQ(copy_of((*sums)[1]).as<float>(), std::vector<float>(elements, 2));
    }
    EXPECT_EQ(calls("ncclAllReduce"), of_library ? 2 : 0);
    EXPECT_EQ(calls("ncclSend"), of_library ? 0 : 4);
    log(0);
  }
  ::unsetenv("HEDDLE_NCCL_SUMS");
}

// The stand-in tells of an allocation between the launches of a group.
TEST_F(NcclCommunicators, WorkWhileOthersAllocate) {
  Two two(sums(4));
  two.expect_right();
  std::atomic<bool> over{false};
  std::thread storm([&] {
    while (!over) {
      NetBuilder b("other");
      b.output(b.add1("Neg", "y", {b.input("x", DType::f32, {100'000})}));
      SessionOptions options;
      options.device = "cuda:1";
      auto session = two.runtime.open(b.finish(), options);
      EXPECT_TRUE(session.ok());
      const std::vector<float> values(100'000, 1);
      EXPECT_TRUE(session->run({{DType::f32, {100'000}, const_cast<float*>(values.data())}}).ok());
    }
  });
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(long_tests ? 60 : 0);
  for (int run = 0; run < 100 || std::chrono::steady_clock::now() < until; ++run) two.expect_right();
  over = true;
  storm.join();
}

// Means are combined by kernels, between calls that gather: both ways fail as one.
TEST_F(NcclCommunicators, ThatFailEndTheRunAndAreMadeAnew) {
  struct Case {
    const char* call;
    const char* says;
  };
  for (const auto& [call, says] :
       {Case{"ncclCommInitRankConfig", "ncclCommInitRankConfig: unhandled system error"},
        Case{"ncclGroupEnd", "ncclGroupEnd: unhandled system error"}, Case{"ncclAllGather", "ncclAllGather: unhandled system error"},
        Case{"ncclCommGetAsyncError", "ncclCommGetAsyncError: unhandled system error"}}) {
    SCOPED_TRACE(call);
    Two two(sums(2));
    constexpr int system_error = 2;
    fail_call(call, 1, system_error, 0);
    const Status status = two.run();
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.text().find(says), std::string::npos) << status.text();
    two.expect_right();
    // After the communicator has been made. What has failed when a run begins is made anew for that run.
    const bool is_in_run = call == std::string("ncclGroupEnd") || call == std::string("ncclAllGather");
    fail_call(call, 1, system_error, 0);
    const Status later = two.run();
    EXPECT_NE(later.ok(), is_in_run) << later.text();
    fail_call(call, 0, 0, 0);
    two.expect_right();
    two.expect_right();
  }
}

// One device comes to the sum, and the other has to wait for its input, which does not come: the run ends at the time-out.
TEST_F(NcclCommunicators, ThatWaitForADeviceEndTheRunAtTheTimeOut) {
  NetBuilder b("late");
  const ValueId here = b.add1("RandomUniform", "here", {}, {{"shape", std::vector<int64_t>{4}}, {"dtype", int64_t{1}}});
  const ValueId there = b.add1("Neg", "there", {b.input("x", DType::f32, {4})});
  int device = 0;
  for (const ValueId value : {here, there}) {
    b.output(b.add1("AllReduce", "sum_" + std::to_string(device), {value}, {{"communicator", world}}, "heddle"));
    for (Node& node : b.net().nodes)
      if (node.device.empty()) node.device = "cuda:" + std::to_string(device);
    ++device;
  }
  constexpr int64_t timeout_ms = 3 * short_timeout_ms / 2;
  Two two(b.finish(), timeout_ms);
  ASSERT_TRUE(two.run().ok());
  hold_transfers(1);
  std::thread releases([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(4 * timeout_ms));
    hold_transfers(0);
  });
  const Status status = two.run();
  releases.join();
  EXPECT_EQ(status.code(), Code::device_failed) << status.text();
  EXPECT_NE(status.text().find("\"sum_0\" (operation 2) of communicator \"world\" was not done on the GPUs within " +
                               std::to_string(timeout_ms) + " ms"),
            std::string::npos)
      << status.text();
  const Status again = two.run();
  EXPECT_TRUE(again.ok()) << again.text();
}

// A few schedules of the devices; HEDDLE_LONG_TESTS=1 takes 200.
TEST_F(NcclCommunicators, OfSeveralNamesGoInOneOrder) {
  constexpr int64_t rows = 20'000, large_dims[] = {rows, 4};
  NetBuilder b("two");
  for (int d = 0; d < 2; ++d) {
    const std::string suffix = "_" + std::to_string(d);
    const ValueId small = b.input("x" + suffix, DType::f32, {4});
    // In the other communicator a tensor of which shares are exchanged.
    const ValueId large =
        b.add1("Expand", "large" + suffix, {small, b.constant("shape" + suffix, Blob::copy_of(DType::i64, Shape{2}, large_dims))});
    for (int i = 0; i < 6; ++i)
      b.output(b.add1("AllReduce", "sum" + std::to_string(i) + suffix, {i % 2 == 0 ? small : large},
                      {{"communicator", std::string(i % 2 == 0 ? "world" : "other")}}, "heddle"));
    for (Node& node : b.net().nodes)
      if (node.device.empty()) node.device = "cuda:" + std::to_string(d);
  }
  for (int seed = 0, seeds = long_tests ? 200 : 4; seed < seeds; ++seed) {
    ::setenv("HEDDLE_CUDA_STANDIN_SEED", std::to_string(seed).c_str(), 1);
    const Runtime runtime = runtime_with_devices(2, "nccl");
    SessionOptions options = options_of({2, true, "nccl"}, "");
    options.communicators.push_back(options.communicators[0]);
    options.communicators[1].name = "other";
    Net copy = b.net();
    auto session = runtime.open(std::move(copy), options);
    ASSERT_TRUE(session.ok()) << session.status().text();
    for (int run = 0; run < 10; ++run) {
      const auto outputs = session->run({{DType::f32, {4}, const_cast<float*>(x.data())}, {DType::f32, {4}, const_cast<float*>(x.data())}});
      ASSERT_TRUE(outputs.ok()) << outputs.status().text();
      for (const Tensor& output : *outputs) {
        const std::vector<float> sum = copy_of(output).as<float>();
        EXPECT_EQ(std::vector<float>(sum.end() - 4, sum.end()), (std::vector<float>{2, 4, 6, 8}));
      }
    }
  }
  ::unsetenv("HEDDLE_CUDA_STANDIN_SEED");
}

}  // namespace
}  // namespace heddle
