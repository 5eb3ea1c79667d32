// This is what one GPU can say of NCCL: communicators of one rank, two of them on two streams, an abort, and how long an all-reduce takes beside a
// copy. tools/gpu_test.sh runs it on a GPU (part `nccl`); elsewhere it is skipped with the reason.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "library/nccl_library.h"

namespace heddle::nccl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int32_t to_device = 1, to_host = 2, within_device = 3;  // cudaMemcpyKind

// A function of the CUDA runtime that the plugin does not use.
template <class Function>
Function cudart(const char* name) {
  const char* const standin = std::getenv("HEDDLE_CUDA_STANDIN");
  const bool stands_in = standin && *standin;
  for (const char* const file : {stands_in ? standin : "libcudart.so.13", "libcudart.so.12"})
    if (void* const library = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) return reinterpret_cast<Function>(dlsym(library, name));
  return nullptr;
}

class OnOneGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!library.missing().empty()) GTEST_SKIP() << library.missing();
    if (const CudaError error = library.cudaSetDevice(0); error != cuda_success) GTEST_SKIP() << failed("cudaSetDevice", error).text;
    copy_async = cudart<CudaError (*)(void*, const void*, size_t, int32_t, Stream*)>("cudaMemcpyAsync");
    ASSERT_NE(copy_async, nullptr);
  }
  void TearDown() override {
    if (HasFatalFailure() || IsSkipped()) return;
    for (Comm* const comm : comms) EXPECT_EQ(library.ncclCommDestroy(comm), Result::success);
    for (const auto& [memory, stream] : memories) EXPECT_EQ(library.cudaFreeAsync(memory, stream), cuda_success);
    for (Stream* const stream : streams) {
      wait(stream);
      EXPECT_EQ(library.cudaStreamDestroy(stream), cuda_success);
    }
  }

  Stream* make_stream() {
    Stream* stream = nullptr;
    EXPECT_EQ(library.cudaStreamCreateWithPriority(&stream, stream_non_blocking, 0), cuda_success);
    return streams.emplace_back(stream);
  }
  char* make_memory(size_t bytes, Stream* stream) {
    void* memory = nullptr;
    EXPECT_EQ(library.cudaMallocAsync(&memory, bytes, stream), cuda_success);
    memories.emplace_back(memory, stream);
    return static_cast<char*>(memory);
  }
  // A communicator of one rank, made without blocking.
  Comm* make_comm() {
    UniqueId id;
    EXPECT_EQ(library.ncclGetUniqueId(&id), Result::success);
    Config config;
    config.blocking = 0;
    Comm* comm = nullptr;
    const Result made = library.ncclCommInitRankConfig(&comm, 1, id, 0, &config);
    EXPECT_TRUE(made == Result::success || made == Result::in_progress) << failed("ncclCommInitRankConfig", made).text;
    settle(comm);
    return comms.emplace_back(comm);
  }
  void settle(Comm* comm) const {
    Result state = Result::in_progress;
    while (state == Result::in_progress) ASSERT_EQ(library.ncclCommGetAsyncError(comm, &state), Result::success);
    EXPECT_EQ(state, Result::success) << failed("NCCL", state).text;
  }
  void wait(Stream* stream) const {
    CudaError error = cuda_not_ready;
    while (error == cuda_not_ready) error = library.cudaStreamQuery(stream);
    EXPECT_EQ(error, cuda_success);
  }
  void put(void* to, const std::vector<char>& bytes, Stream* stream) const {
    EXPECT_EQ(copy_async(to, bytes.data(), bytes.size(), to_device, stream), cuda_success);
    wait(stream);
  }
  std::vector<char> get(const void* from, size_t bytes, Stream* stream) const {
    std::vector<char> found(bytes);
    EXPECT_EQ(copy_async(found.data(), from, bytes, to_host, stream), cuda_success);
    wait(stream);
    return found;
  }

  const Library& library = Library::get();
  CudaError (*copy_async)(void*, const void*, size_t, int32_t, Stream*) = nullptr;
  std::vector<Comm*> comms;
  std::vector<Stream*> streams;
  std::vector<std::pair<void*, Stream*>> memories;
};

// For one rank each gives what went in, in place and not.
TEST_F(OnOneGpu, EachCollectiveOfEachType) {
  Comm* const comm = make_comm();
  Stream* const stream = make_stream();
  constexpr size_t count = 64;
  char *const x = make_memory(8 * count, stream), *const y = make_memory(8 * count, stream);
  std::vector<char> values(8 * count);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<char>(i % 8 == 7 ? 0x3f : i * 7);  // no NaN in any type
  const std::pair<DataType, size_t> types[] = {{DataType::i8, 1},  {DataType::u8, 1},  {DataType::i32, 4}, {DataType::u32, 4},
                                               {DataType::i64, 8}, {DataType::u64, 8}, {DataType::f32, 4}, {DataType::f64, 8}};
  for (const auto& [type, width] : types)
    for (char* const to : {y, x}) {
      const auto expect_same = [&](const char* what, Result result) {
        EXPECT_TRUE(result == Result::success || result == Result::in_progress) << what << ": " << failed(what, result).text;
        settle(comm);
        EXPECT_EQ(get(to, count * width, stream), std::vector<char>(values.begin(), values.begin() + static_cast<long>(count * width)))
            << what << " of type " << static_cast<int>(type) << (to == x ? " in place" : "");
        put(x, values, stream);
        put(y, std::vector<char>(values.size(), 1), stream);
      };
      put(x, values, stream);
      for (const Operation operation : {Operation::sum, Operation::prod, Operation::max, Operation::min})
        expect_same("ncclAllReduce", library.ncclAllReduce(x, to, count, type, operation, comm, stream));
      expect_same("ncclReduce", library.ncclReduce(x, to, count, type, Operation::sum, 0, comm, stream));
      expect_same("ncclReduceScatter", library.ncclReduceScatter(x, to, count, type, Operation::sum, comm, stream));
      expect_same("ncclBroadcast", library.ncclBroadcast(x, to, count, type, 0, comm, stream));
      expect_same("ncclAllGather", library.ncclAllGather(x, to, count, type, comm, stream));
    }
}

TEST_F(OnOneGpu, TwoCommunicatorsOnTwoStreams) {
  Comm* const made[] = {make_comm(), make_comm()};
  Stream* const on[] = {make_stream(), make_stream()};
  constexpr size_t bytes = 1 << 20;
  char* memory[2];
  for (int i = 0; i < 2; ++i) {
    memory[i] = make_memory(bytes, on[i]);
    put(memory[i], std::vector<char>(bytes, static_cast<char>(i + 1)), on[i]);
  }
  for (int round = 0; round < 50; ++round)
    for (int i = 0; i < 2; ++i) {
      const Result result = library.ncclAllReduce(memory[i], memory[i], bytes, DataType::u8, Operation::sum, made[i], on[i]);
      EXPECT_TRUE(result == Result::success || result == Result::in_progress);
      settle(made[i]);
    }
  for (int i = 0; i < 2; ++i) EXPECT_EQ(get(memory[i], 16, on[i]), std::vector<char>(16, static_cast<char>(i + 1)));
}

// After a revoke and an abort the stream goes on, and a new communicator works.
TEST_F(OnOneGpu, AnAbortFreesTheStream) {
  Stream* const stream = make_stream();
  constexpr size_t bytes = 64 << 20;
  char *const x = make_memory(bytes, stream), *const y = make_memory(bytes, stream);
  for (int round = 0; round < 3; ++round) {
    Comm* const comm = make_comm();
    comms.clear();
    for (int i = 0; i < 20; ++i) {
      library.ncclAllReduce(x, y, bytes / 4, DataType::f32, Operation::sum, comm, stream);
      settle(comm);
    }
    const Result revoked = library.ncclCommRevoke(comm, 0);
    EXPECT_TRUE(revoked == Result::success || revoked == Result::in_progress) << failed("ncclCommRevoke", revoked).text;
    std::thread([&] { EXPECT_EQ(library.ncclCommAbort(comm), Result::success); }).join();
    wait(stream);
  }
}

// A rank that is alone copies: its roofline is the copy. Printed, not judged.
TEST_F(OnOneGpu, AllReduceBesideACopy) {
  Comm* const comm = make_comm();
  Stream* const stream = make_stream();
  const char* const standin = std::getenv("HEDDLE_CUDA_STANDIN");
  const size_t largest = standin && *standin ? 1 << 20 : size_t{256} << 20;
  char *const x = make_memory(largest, stream), *const y = make_memory(largest, stream);
  const auto microseconds = [&](const auto& enqueue) {
    enqueue();
    wait(stream);
    constexpr int times = 20;
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < times; ++i) enqueue();
    wait(stream);
    return std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / times;
  };
  for (size_t bytes = 4096; bytes <= largest; bytes *= 16) {
    const double reduced = microseconds([&] {
      library.ncclAllReduce(x, y, bytes / 4, DataType::f32, Operation::sum, comm, stream);
      settle(comm);
    });
    const double copied = microseconds([&] { copy_async(y, x, bytes, within_device, stream); });
    std::printf("all-reduce of %zu bytes by one rank: %.1f us, %.1f GB/s; a copy: %.1f us, %.1f GB/s\n", bytes, reduced,
                static_cast<double>(bytes) / reduced / 1e3, copied, static_cast<double>(bytes) / copied / 1e3);
  }
}

// Where the library is and a device is not, NCCL says so, and the process goes on.
TEST(NcclLibrary, SaysSomethingWithoutADevice) {
  const Library& library = Library::get();
  if (!library.missing().empty()) GTEST_SKIP() << library.missing();
  if (library.cudaSetDevice(0) == cuda_success) GTEST_SKIP() << "there is a device";
  EXPECT_GE(library.version(), 21800) << version_text(library.version());
  UniqueId id;
  EXPECT_EQ(library.ncclGetUniqueId(&id), Result::success);
  std::thread([&] {
    Comm* comm = nullptr;
    Config config;
    const Result result = library.ncclCommInitRankConfig(&comm, 1, id, 0, &config);
    EXPECT_EQ(result, Result::unhandled_cuda_error);
    EXPECT_NE(failed("ncclCommInitRankConfig", result).text.find("ncclCommInitRankConfig: unhandled cuda error"), std::string::npos);
  }).join();
}

}  // namespace
}  // namespace heddle::nccl
