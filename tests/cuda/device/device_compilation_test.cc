// Which programs are compiled and loaded when several threads and devices request them at once, and which of them are kept on disk.
#include <thread>

#include "cuda/standin_tests/standin_program.h"
#include "device_program.h"
#include "library/program_cache.h"

namespace heddle::cuda {
namespace {

using namespace testing_standin;
using CudaCompilation = StandinTest;

Net sum_net(DType dtype) {
  NetBuilder b("sum");
  b.output(b.add1("Add", "y", {b.input("a", dtype, Shape{16}), b.input("b", dtype, Shape{16})}));
  return b.finish();
}

int64_t times(const std::string& calls, const std::string& name) {
  int64_t count = 0;
  for (size_t at = calls.find(name); at != std::string::npos; at = calls.find(name, at + 1)) ++count;
  return count;
}

// The device is open, so that its own program exists already.
TEST_F(CudaCompilation, DifferentSourcesAreCompiledAtTheSameTime) {
  const Runtime runtime = cuda_runtime();
  auto before = prepare(runtime, chain_net(1, Shape{16}), on_cuda());
  ASSERT_TRUE(before.ok()) << before.status().text();
  const DType dtypes[] = {DType::f64, DType::f16, DType::i32, DType::i64};
  cuda.meet(4);
  std::vector<Status> results(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 4; ++i) threads.emplace_back([&, i] { results[i] = prepare(runtime, sum_net(dtypes[i]), on_cuda()).status(); });
  for (std::thread& thread : threads) thread.join();
  for (const Status& result : results) EXPECT_TRUE(result.ok()) << result.text();
  EXPECT_EQ(cuda.met(), 4);
  EXPECT_EQ(broken(), "");
}

TEST_F(CudaCompilation, OneSourceIsCompiledOnceForAllThreadsAndLoadedOnceForAllDevices) {
  const Runtime runtime = cuda_runtime();
  SessionOptions other = on_cuda();
  other.device = "cuda:1";
  cuda.log(1);
  std::vector<Result<Prepared>> prepared;
  for (int i = 0; i < 4; ++i) prepared.push_back(Status(Code::internal, "not prepared"));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 4; ++i)
    threads.emplace_back([&, i] { prepared[i] = prepare(runtime, sum_net(DType::f32), i % 2 == 0 ? on_cuda() : other); });
  for (std::thread& thread : threads) thread.join();
  const std::string calls = cuda.logged();
  cuda.log(0);
  for (Result<Prepared>& one : prepared) ASSERT_TRUE(one.ok() && one->context.run().ok()) << one.status().text();
  EXPECT_EQ(times(calls, "nvrtcCompileProgram"), 2) << "the sum's, and the one that stores values";
  EXPECT_EQ(times(calls, "cudaLibraryLoadData"), 2);
  EXPECT_EQ(broken(), "");
}

// A compilation that fails is tried again by the next request, and a thread that waited for it is not left waiting.
TEST_F(CudaCompilation, ACompilationThatFailsIsNobodyElses) {
  const Runtime runtime = cuda_runtime();
  auto before = prepare(runtime, chain_net(1, Shape{16}), on_cuda());
  ASSERT_TRUE(before.ok()) << before.status().text();
  cuda.fail_call("cudaLibraryLoadData", 1, cudaErrorInvalidKernelImage, cudaSuccess);
  std::vector<Status> results(3);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < results.size(); ++i)
    threads.emplace_back([&, i] { results[i] = prepare(runtime, sum_net(DType::f64), on_cuda()).status(); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::count_if(results.begin(), results.end(), [](const Status& status) { return !status.ok(); }), 1);
}

TEST_F(CudaCompilation, PtxThatTheDriverRefusesIsToldWithBothVersions) {
  const StandinSetting older("ARCHITECTURES", "75,80,100");
  cuda.fail_call("cudaLibraryLoadData", 1, cudaErrorUnsupportedPtxVersion, cudaSuccess);
  const Status status = prepare(cuda_runtime(), chain_net(2, Shape{16}), on_cuda()).status();
  EXPECT_NE(status.text().find("; it is PTX of NVRTC 0.1, and the driver is one for CUDA 13.0"), std::string::npos) << status.text();
}

// ---------------------------------------------------------------- the folder

class CudaFolder : public ::testing::Test {
 protected:
  CudaFolder() { ::setenv("HEDDLE_CUDA_CACHE", (folder_.path() / "kernels").c_str(), 1); }
  ~CudaFolder() override { ::setenv("HEDDLE_CUDA_CACHE", "off", 1); }
  bool is_kept(const std::string& key) {
    std::string code;
    return read_cached(key, &code);
  }
  // Makes the file that many hours older.
  void age(const std::string& file, int hours) const {
    const std::filesystem::path path = folder_.path() / "kernels" / file;
    std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) - std::chrono::hours(hours));
  }

  const heddle::testing::TemporaryFolder folder_;
};

TEST_F(CudaFolder, IsBoundedAndWhatWasNotReadForLongestGoesFirst) {
  const std::string code(968, 'x');  // with its checksum 1000 bytes
  const auto write = [&](const std::string& key) { write_cached(key, code, 3000); };
  for (const char* key : {"a", "b", "c"}) write(key);
  for (const auto& [file, hours] : {std::pair("a.cubin", 3), std::pair("b.cubin", 2), std::pair("c.cubin", 1)}) age(file, hours);
  EXPECT_TRUE(is_kept("a")) << "read now";
  write("d");
  EXPECT_FALSE(is_kept("b"));
  for (const char* key : {"a", "c", "d"}) EXPECT_TRUE(is_kept(key)) << key;
  // Files that a killed process had begun count and are removed as well; files that are not the plugin's are kept.
  heddle::testing::write_text(folder_.path() / "kernels" / "e.cubin.Xy12Zz", std::string(2500, 'x'));
  heddle::testing::write_text(folder_.path() / "kernels" / "README", std::string(5000, 'x'));
  age("e.cubin.Xy12Zz", 9);
  write("f");
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "kernels" / "e.cubin.Xy12Zz"));
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "kernels" / "README"));
  EXPECT_TRUE(is_kept("f"));
}

}  // namespace
}  // namespace heddle::cuda
