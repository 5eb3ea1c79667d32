// A run on a GPU allocates nothing in the CUDA plugin, on the calling thread or on the one that waits for streams, however long the device
// takes. On the stand-in for NVIDIA's libraries, whose own allocations are not the plugin's.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "allocations.h"
#include "load/temporary_folder.h"
#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_nets;

constexpr const char* standin = HEDDLE_BINARY_DIR "/lib/test/cuda_standin.so";

TEST(SteadyState, TheCudaPluginAllocatesNothingInARun) {
  if (!std::filesystem::exists(standin)) GTEST_SKIP() << "the CUDA plugin is not built: there are no headers of the CUDA toolkit";
  const testing::TemporaryFolder folder;
  const std::filesystem::path hold = folder.path() / "hold";
  ::setenv("HEDDLE_CUDA_STANDIN", standin, 1);
  ::setenv("HEDDLE_CUDA_STANDIN_HOLD", hold.c_str(), 1);
  ::setenv("HEDDLE_CUDA_CACHE", "off", 1);
  RuntimeOptions plugins;
  plugins.plugins = {HEDDLE_BINARY_DIR "/lib/cpu.so", HEDDLE_BINARY_DIR "/lib/cuda.so"};
  plugins.default_plugins = false;
  plugins.threads = 1;
  auto runtime = Runtime::create(plugins);
  ASSERT_TRUE(runtime.ok()) << runtime.status().text();
  NetBuilder b("steps");
  ValueId x = b.input("x", DType::f32, Shape{64, 64});
  for (int i = 0; i < 4; ++i) x = b.add1("Relu", "relu" + std::to_string(i), {b.add1("MatMul", "product" + std::to_string(i), {x, x})});
  b.output(x);
  SessionOptions options;
  options.device = "cuda:0";
  options.copies = Copies::automatic;
  auto session = runtime->open(b.finish(), options);
  ASSERT_TRUE(session.ok()) << session.status().text();
  auto context = session->prepare();
  ASSERT_TRUE(context.ok()) << context.status().text();
  const auto input = blob(Shape{64, 64}, -1.0F, 0.001F);
  ASSERT_TRUE(context->bind_input(0, input->data).ok());
  for (int run = 0; run < 5; ++run) ASSERT_TRUE(context->run().ok());
  AllocationCount::start();
  // The device begins no work for a while: the thread that waits polls it hundreds of times.
  for (int run = 0; run < 5; ++run) {
    std::ofstream(hold) << "held";
    std::thread opens([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      std::filesystem::remove(hold);
    });
    EXPECT_TRUE(context->run().ok());
    opens.join();
  }
  const auto counts = AllocationCount::stop();
  for (const char* ours : {"cuda.so", "cpu.so"}) EXPECT_EQ(counts.count(ours), 0u) << ours << ": " << counts.at(ours);
}

}  // namespace
}  // namespace heddle
