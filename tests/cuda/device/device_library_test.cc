// How the CUDA plugin finds NVIDIA's libraries and compiled kernels, and how it treats the embedding program's own streams and memory.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/threads/clock.h"
#include "cuda/standin_tests/standin_program.h"
#include "device_program.h"
#include "library/program_cache.h"

namespace heddle::cuda {
namespace {

using namespace testing_standin;
using CudaLibrary = StandinTest;
using Json = nlohmann::json;

// The output of `heddle devices --json`, for the kind "cuda", with these settings.
struct Told {
  size_t devices = 0;
  std::vector<std::string> reasons;
};
Told devices_of_the_tool(const std::string& settings) {
  const std::string line = settings + " HEDDLE_CUDA_CACHE=off HEDDLE_PLUGIN_DIR= " HEDDLE_BINARY_DIR
                                      "/bin/heddle devices --json --plugin " HEDDLE_BINARY_DIR "/lib/cpu.so --plugin " HEDDLE_BINARY_DIR
                                      "/lib/cuda.so 2>&1";
  std::FILE* const pipe = ::popen(line.c_str(), "r");
  std::string text;
  std::array<char, 4096> buffer;
  while (const size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) text.append(buffer.data(), n);
  EXPECT_EQ(::pclose(pipe), 0) << text;
  const Json out = Json::parse(text, nullptr, false);
  Told told;
  if (out.is_discarded()) ADD_FAILURE() << text;
  if (out.is_discarded()) return told;
  for (const Json& device : out["devices"]) told.devices += device["backend"] == "cuda" ? 1 : 0;
  for (const Json& missing : out["unavailable"])
    if (missing["backend"] == "cuda") told.reasons.push_back(missing["reason"]);
  return told;
}

TEST(CudaLibraries, ThatAreMissingAreAReasonAndNoError) {
  const heddle::testing::TemporaryFolder empty;
  const Told nowhere = devices_of_the_tool("HEDDLE_CUDA_STANDIN= HEDDLE_CUDA_LIBRARIES=" + empty.path().string());
  EXPECT_EQ(nowhere.devices, 0u);
  ASSERT_EQ(nowhere.reasons.size(), 1u);
  EXPECT_EQ(nowhere.reasons[0].find("the CUDA runtime can not be opened: " + empty.path().string() + "/libcudart.so."), 0u)
      << nowhere.reasons[0];
  const Told another = devices_of_the_tool("HEDDLE_CUDA_STANDIN=" HEDDLE_BINARY_DIR "/lib/cpu.so");
  ASSERT_EQ(another.reasons.size(), 1u);
  EXPECT_EQ(another.reasons[0], "its library has no function cudaGetDeviceCount");
  const Told there = devices_of_the_tool("HEDDLE_CUDA_STANDIN=" + standin_file);
  EXPECT_EQ(there.devices, 2u);
  EXPECT_TRUE(there.reasons.empty());
}

TEST_F(CudaLibrary, LoadingThePluginMakesNoCallAndOpensNothingOfNvidias) {
  const uint64_t before = cuda.calls();
  {
    const Runtime runtime = cuda_runtime();
    auto host = prepare(runtime, mixed_net(), {});
    ASSERT_TRUE(host.ok() && host->context.run().ok());
  }
  EXPECT_EQ(cuda.calls(), before);
  for (const char* library : {"libcudart.so", "libcuda.so.1", "libcublasLt.so", "libcudnn.so"})
    EXPECT_EQ(dlopen(library, RTLD_LAZY | RTLD_NOLOAD), nullptr) << library;
}

// ---------------------------------------------------------------- compiled kernels

class CudaCache : public StandinTest {
 protected:
  CudaCache() { ::setenv("HEDDLE_CUDA_CACHE", (folder_.path() / "kernels").c_str(), 1); }
  ~CudaCache() override { ::setenv("HEDDLE_CUDA_CACHE", "off", 1); }
  // Returns the number of programs that a session compiles; the session is destroyed before it returns.
  int64_t compiled() {
    cuda.log(1);
    {
      auto there = prepare(cuda_runtime(), chain_net(2, Shape{16}), on_cuda());
      EXPECT_TRUE(there.ok() && there->context.run().ok()) << there.status().text();
    }
    const std::string calls = cuda.logged();
    cuda.log(0);
    int64_t count = 0;
    for (size_t at = calls.find("nvrtcCompileProgram"); at != std::string::npos; at = calls.find("nvrtcCompileProgram", at + 1)) ++count;
    return count;
  }
  std::vector<std::filesystem::path> files() const {
    const std::filesystem::directory_iterator all(folder_.path() / "kernels");
    return {begin(all), end(all)};
  }

  const heddle::testing::TemporaryFolder folder_;
};

TEST_F(CudaCache, WhatWasCompiledOnceIsReadFromDisk) {
  const int64_t programs = compiled();
  EXPECT_GE(programs, 2) << "the value's and the chain's";
  EXPECT_EQ(files().size(), static_cast<size_t>(programs));
  EXPECT_EQ(compiled(), 0);
  EXPECT_EQ(broken(), "");
}

TEST_F(CudaCache, WhatIsNotWholeOrNotToBeTrustedIsCompiledAnew) {
  const int64_t programs = compiled();
  const std::filesystem::path file = files()[0];
  const std::string whole = heddle::testing::read_text(file);
  for (const std::string& wrong : {whole.substr(0, whole.size() - 1), std::string("short"), whole.substr(0, 40) + "x" + whole.substr(41)}) {
    heddle::testing::write_text(file, wrong);
    EXPECT_EQ(compiled(), 1);
    EXPECT_EQ(heddle::testing::read_text(file), whole) << "and kept again";
  }
  // A matching checksum for a file that the driver does not accept.
  const std::string stranger = "a cubin of another driver's";
  heddle::testing::write_text(file, hash_text(stranger) + stranger);
  EXPECT_EQ(compiled(), 1);
  EXPECT_EQ(heddle::testing::read_text(file), whole);
  EXPECT_EQ(cuda.cudaGetLastError(), cudaSuccess);
  // Other users may write the file, or the folder.
  using std::filesystem::perms;
  std::filesystem::permissions(file, perms::others_write, std::filesystem::perm_options::add);
  EXPECT_EQ(compiled(), 1);
  std::filesystem::permissions(file.parent_path(), perms::group_write, std::filesystem::perm_options::add);
  EXPECT_EQ(compiled(), programs);
}

// The setting gives the architectures that NVRTC compiles for. The device's own architecture is 90.
TEST_F(CudaCache, ForADeviceThatNvrtcDoesNotKnowItIsThePtxOfTheHighestBelow) {
  const int64_t programs = compiled();
  {
    const StandinSetting older("ARCHITECTURES", "75,80,100");
    EXPECT_EQ(compiled(), programs) << "another's code is not taken for it";
    EXPECT_EQ(compiled(), 0) << "PTX is kept too";
  }
  EXPECT_EQ(compiled(), 0);
  int64_t own = 0, ptx = 0;
  for (const std::filesystem::path& file : files()) {
    own += file.filename().string().rfind("sm_90-", 0) == 0 ? 1 : 0;
    ptx += file.filename().string().rfind("compute_80-", 0) == 0 ? 1 : 0;
  }
  EXPECT_EQ(own, programs);
  EXPECT_EQ(ptx, programs);
  EXPECT_EQ(broken(), "");
}

TEST_F(CudaLibrary, ADeviceBelowAllThatNvrtcCompilesForIsNotOpened) {
  const StandinSetting newer("ARCHITECTURES", "100,120");
  const Status status = prepare(cuda_runtime(), chain_net(2, Shape{16}), on_cuda()).status();
  EXPECT_NE(status.text().find("NVRTC compiles for compute capability 10.0 and above, and the device has 9.0"), std::string::npos)
      << status.text();
}

// ---------------------------------------------------------------- copies without a run

std::shared_ptr<Device> opened(const Runtime& runtime, const std::string& name = "cuda:0") {
  auto device = Internals::of(runtime).devices.open(*Internals::of(runtime).registry.snapshot(), name);
  EXPECT_TRUE(device.ok()) << device.status().text();
  return *device;
}

// Copies in pieces, through the pinned buffer of the stream; sizes below CUDA's own limit, at the piece size, and of several pieces and a
// rest.
TEST_F(CudaLibrary, PageableMemoryIsCopiedThroughAPinnedBuffer) {
  const Runtime runtime = cuda_runtime();
  const std::shared_ptr<Device> device = opened(runtime);
  for (const int64_t bytes : {int64_t{1}, int64_t{1000}, int64_t{65536}, int64_t{65537}, int64_t{1} << 20, (int64_t{9} << 20) + 77}) {
    auto memory = device->allocate(bytes);
    ASSERT_TRUE(memory.ok()) << memory.status().text();
    std::vector<char> from(static_cast<size_t>(bytes)), to(static_cast<size_t>(bytes));
    for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<char>(i * 31 + i / 251);
    const Status written = device->write(memory->get(), from.data(), bytes);
    const Status read = device->read(to.data(), memory->get(), bytes);
    EXPECT_TRUE(written.ok() && read.ok()) << written.text() << read.text();
    EXPECT_TRUE(from == to) << bytes;
  }
  EXPECT_EQ(broken(), "");
}

// Copies from a thread whose current device is another.
TEST_F(CudaLibrary, CopiesAreMadeWithTheirDeviceCurrent) {
  const std::shared_ptr<Device> device = opened(cuda_runtime());
  auto memory = device->allocate(64);
  ASSERT_TRUE(memory.ok()) << memory.status().text();
  char bytes[64] = {};
  EXPECT_EQ(cuda.cudaSetDevice(1), cudaSuccess);
  EXPECT_TRUE(device->write(memory->get(), bytes, 64).ok());
  EXPECT_EQ(cuda.cudaSetDevice(1), cudaSuccess);
  EXPECT_TRUE(device->read(bytes, memory->get(), 64).ok());
  EXPECT_EQ(broken(), "");
}

// Memory allocated on one device is accessible to kernels of the other, and so to copies without the host.
TEST_F(CudaLibrary, ADeviceThatReachesAnotherHasAccessToItsMemory) {
  const Runtime runtime = cuda_runtime();
  const std::shared_ptr<Device> here = opened(runtime), there = opened(runtime, "cuda:1");
  auto from = there->allocate(128), to = here->allocate(128);
  ASSERT_TRUE(from.ok() && to.ok());
  EXPECT_TRUE(here->reaches(*there));
  const Kernels kernels(cuda, add_one_source);
  const cudaStream_t stream = make_stream(cuda);
  EXPECT_EQ(launch(cuda, kernels.get("add_one"), stream, AddOne{from->get(), to->get()}), cudaSuccess);
  EXPECT_EQ(cuda.cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(broken(), "");
}

// While the device does not begin any work, the call that enqueues still returns.
TEST_F(CudaLibrary, ACopyToPageableMemoryMeetsItsDeadline) {
  const Runtime runtime = cuda_runtime();
  const std::shared_ptr<Device> device = opened(runtime);
  const int64_t bytes = int64_t{5} << 20;
  auto memory = device->allocate(bytes);
  ASSERT_TRUE(memory.ok()) << memory.status().text();
  const auto keep = std::make_shared<std::vector<char>>(static_cast<size_t>(bytes), 'x');
  ASSERT_TRUE(device->write(memory->get(), keep->data(), bytes).ok());
  const auto kept_memory = std::make_shared<const heddle::DeviceMemory>(std::move(*memory));
  for (const bool reads : {true, false}) {
    const Hold hold(cuda);
    CopyWait wait;
    wait.until = Interruption(ticks() + ns_to_ticks(1e6));
    wait.keep = kept_memory;
    wait.keep_host = keep;
    const Status status =
        reads ? device->read(keep->data(), kept_memory->get(), bytes, wait) : device->write(kept_memory->get(), keep->data(), bytes, wait);
    EXPECT_EQ(status.code(), Code::deadline_exceeded) << status.text();
    hold.open();
    std::vector<char> all(static_cast<size_t>(bytes));
    Status after = device->read(all.data(), kept_memory->get(), bytes);
    while (after.code() == Code::busy) {
      std::this_thread::yield();
      after = device->read(all.data(), kept_memory->get(), bytes);
    }
    ASSERT_TRUE(after.ok()) << after.text();
    EXPECT_EQ(all, *keep);
  }
}

// Two pieces are in the buffer at a time: while the device does not copy yet, the host has filled both halves, and no more.
TEST_F(CudaLibrary, TheHostFillsOneHalfOfTheBufferWhileTheDeviceCopiesTheOther) {
  const Runtime runtime = cuda_runtime();
  const std::shared_ptr<Device> device = opened(runtime);
  const int64_t bytes = (int64_t{9} << 20) + 77;  // 5 pieces of 2 MiB
  auto memory = device->allocate(bytes);
  ASSERT_TRUE(memory.ok()) << memory.status().text();
  std::vector<char> from(static_cast<size_t>(bytes)), to(static_cast<size_t>(bytes));
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<char>(i * 31 + i / 251);
  const uint64_t before = cuda.host_functions();
  const auto called = [&] { return cuda.host_functions() - before; };
  cuda.hold_transfers(1);
  std::thread writes([&] {
    const Status written = device->write(memory->get(), from.data(), bytes);
    EXPECT_TRUE(written.ok()) << written.text();
  });
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (called() < 2 && std::chrono::steady_clock::now() < patience) std::this_thread::yield();
  EXPECT_EQ(called(), 2u);
  cuda.hold_transfers(0);
  writes.join();
  EXPECT_EQ(called(), 5u);
  EXPECT_TRUE(device->read(to.data(), memory->get(), bytes).ok());
  EXPECT_EQ(called(), 10u);
  EXPECT_TRUE(from == to);
  EXPECT_EQ(broken(), "");
}

// Each seed gives another order of the two streams.
TEST_F(CudaLibrary, CopiesInPiecesAreRightInEveryOrder) {
  const int64_t bytes = (int64_t{7} << 20) + 3;
  std::vector<char> from(static_cast<size_t>(bytes)), to(static_cast<size_t>(bytes));
  for (int seed = 1; seed <= 12; ++seed) {
    const StandinSetting drawn("SEED", std::to_string(seed));
    const std::shared_ptr<Device> device = opened(cuda_runtime());
    auto memory = device->allocate(bytes), other = device->allocate(bytes);
    ASSERT_TRUE(memory.ok() && other.ok());
    for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<char>(i * 31 + i / 251 + static_cast<size_t>(seed));
    EXPECT_TRUE(device->write(memory->get(), from.data(), bytes).ok());
    EXPECT_TRUE(device->read(to.data(), memory->get(), bytes).ok());
    EXPECT_TRUE(from == to) << seed;
  }
  EXPECT_EQ(broken(), "");
}

// ---------------------------------------------------------------- the embedding program's own

// CUDA fails in a child of a process that has used it, and reports "initialization error" at most.
TEST_F(CudaLibrary, AForkedChildIsToldWhyItHasNoDevice) {
  { EXPECT_NE(opened(cuda_runtime()), nullptr); }
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(60);
    const Status status = cuda_runtime().device_info("cuda:0").status();
    const bool is_told = status.text().find("this process was forked from one that had opened CUDA") != std::string::npos;
    if (!is_told) std::fprintf(stderr, "%s\n", status.text().c_str());
    ::_exit(is_told ? 0 : 1);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// PyTorch, for example, allocates on the device that is current.
TEST_F(CudaLibrary, TheDeviceThatIsCurrentIsTheProgramsOwn) {
  const auto expect_current = [&](int device, const char* after) {
    int current = -1;
    EXPECT_EQ(cuda.cudaGetDevice(&current), cudaSuccess);
    EXPECT_EQ(current, device) << "after " << after;
  };
  for (const int own : {0, 1}) {
    const int other = 1 - own;
    EXPECT_EQ(cuda.cudaSetDevice(own), cudaSuccess);
    {
      const Runtime runtime = cuda_runtime();
      const std::shared_ptr<Device> device = opened(runtime, "cuda:" + std::to_string(other)),
                                    here = opened(runtime, "cuda:" + std::to_string(own));
      expect_current(own, "opening");
      EXPECT_TRUE(device->reaches(*here) && here->reaches(*device));
      expect_current(own, "reaches");
      {
        auto memory = device->allocate(1 << 20);
        expect_current(own, "allocate");
        std::vector<char> bytes(1 << 20);
        EXPECT_TRUE(memory.ok() && device->write(memory->get(), bytes.data(), 1 << 20).ok());
        expect_current(own, "a copy");
      }
      expect_current(own, "release");
      SessionOptions options = on_cuda(2);
      options.device = "cuda:" + std::to_string(other);
      for (Net net : {chain_net(3, Shape{16}), mixed_net()}) {
        auto prepared = prepare(runtime, std::move(net), options);
        ASSERT_TRUE(prepared.ok()) << prepared.status().text();
        expect_current(own, "prepare");
        for (int run = 0; run < 2; ++run) EXPECT_TRUE(prepared->context.run().ok());
        expect_current(own, "run");
      }
      expect_current(own, "closing the context");
    }
    expect_current(own, "closing the device");
  }
  EXPECT_EQ(broken(), "");
}

// Linux adds 50 µs to a sleep by default.
TEST_F(CudaLibrary, TheThreadThatWaitsForStreamsSleepsNoLongerThanItAsks) {
  auto there = prepare(cuda_runtime(), chain_net(2, Shape{16}), on_cuda());
  ASSERT_TRUE(there.ok() && there->context.run().ok()) << there.status().text();
  std::string slack;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
    if (heddle::testing::read_text(task.path() / "comm") == "heddle-cuda\n")
      slack = heddle::testing::read_text("/proc/" + task.path().filename().string() + "/timerslack_ns");
  EXPECT_EQ(slack, "1\n");
}

// The memory is registered already, and remains so.
TEST_F(CudaLibrary, MemoryThatTheProgramHasPinnedIsTakenAsItIs) {
  auto session = cuda_runtime().open(chain_net(3, Shape{64}), on_cuda());
  ASSERT_TRUE(session.ok()) << session.status().text();
  const auto bytes = session->transient_bytes();
  ASSERT_TRUE(bytes.ok()) << bytes.status().text();
  char* const pinned = make_pinned(cuda, static_cast<size_t>(*bytes));
  const auto x = small_numbers(DType::f32, Shape{64}, 3);
  {
    auto context = session->prepare_in(pinned, *bytes);
    ASSERT_TRUE(context.ok()) << context.status().text();
    ASSERT_TRUE(context->bind_input(0, x->data).ok());
    const Status status = context->run();
    ASSERT_TRUE(status.ok()) << status.text();
    EXPECT_EQ(static_cast<const float*>(context->output(2).data)[5], reinterpret_cast<const float*>(x->data)[5] + 3);
  }
  cudaPointerAttributes attributes = {};
  EXPECT_EQ(cuda.cudaPointerGetAttributes(&attributes, pinned), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  EXPECT_EQ(cuda.cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(cuda.cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(broken(), "");
}

cudaMemoryType type_of(const Standin& cuda, const void* memory) {
  cudaPointerAttributes attributes = {};
  EXPECT_EQ(cuda.cudaPointerGetAttributes(&attributes, memory), cudaSuccess);
  return attributes.type;
}

// Two contexts that work in one buffer: it stays pinned for one when the other is gone, whichever goes first.
TEST_F(CudaLibrary, MemoryThatIsPinnedTwiceIsLetGoWithTheLast) {
  const std::shared_ptr<Device> device = opened(cuda_runtime());
  std::vector<char> buffer(8192);
  for (const size_t first : {0, 1})
    for (const size_t second_begins : {0, 4096}) {
      std::array<HostRegistration, 2> pins;
      auto whole = device->pin(buffer.data(), 8192), again = device->pin(buffer.data() + second_begins, 4096);
      ASSERT_TRUE(whole.ok() && again.ok()) << whole.status().text() << again.status().text();
      pins[0] = std::move(*whole);
      pins[1] = std::move(*again);
      pins[first] = HostRegistration();
      EXPECT_EQ(type_of(cuda, buffer.data() + 4096), cudaMemoryTypeHost);
      pins[1 - first] = HostRegistration();
      EXPECT_EQ(type_of(cuda, buffer.data() + 4096), cudaMemoryTypeUnregistered);
    }
  EXPECT_EQ(broken(), "");
}

// A copy across the edge of pinned memory goes through the stream's buffer, although both of its ends are pinned.
TEST_F(CudaLibrary, MemoryThatIsPinnedInPartsIsCopiedAsPageable) {
  const std::shared_ptr<Device> device = opened(cuda_runtime());
  constexpr size_t part = 128 * 1024;
  std::vector<char> buffer(3 * part);
  for (size_t i = 0; i < buffer.size(); ++i) buffer[i] = static_cast<char>(i * 31 + i / 251);
  auto memory = device->allocate(static_cast<int64_t>(buffer.size()));
  ASSERT_TRUE(memory.ok()) << memory.status().text();
  const auto copies_through_a_buffer = [&](size_t begin, size_t bytes) {
    std::vector<char> back(bytes);
    cuda.log(1);
    EXPECT_TRUE(device->write(memory->get(), buffer.data() + begin, static_cast<int64_t>(bytes)).ok());
    const bool staged = std::string(cuda.logged()).find("cudaLaunchHostFunc") != std::string::npos;
    cuda.log(0);
    EXPECT_TRUE(device->read(back.data(), memory->get(), static_cast<int64_t>(bytes)).ok());
    EXPECT_TRUE(std::equal(back.begin(), back.end(), buffer.begin() + static_cast<std::ptrdiff_t>(begin)));
    return staged;
  };
  {
    auto low = device->pin(buffer.data(), part), high = device->pin(buffer.data() + 2 * part, part);
    ASSERT_TRUE(low.ok() && high.ok());
    EXPECT_FALSE(copies_through_a_buffer(0, part));
    EXPECT_TRUE(copies_through_a_buffer(0, 3 * part));
    auto across = device->pin(buffer.data() + part / 2, part);
    ASSERT_TRUE(across.ok()) << across.status().text();
    EXPECT_TRUE(copies_through_a_buffer(part / 2, part));
    *across = HostRegistration();
    EXPECT_FALSE(copies_through_a_buffer(0, part)) << "it is the first one's all the same";
  }
  // The embedding program pins the parts.
  for (const size_t begin : {size_t{0}, 2 * part})
    EXPECT_EQ(cuda.cudaHostRegister(buffer.data() + begin, part, cudaHostRegisterPortable), cudaSuccess);
  EXPECT_FALSE(copies_through_a_buffer(0, part));
  EXPECT_TRUE(copies_through_a_buffer(0, 3 * part));
  EXPECT_EQ(cuda.cudaHostRegister(buffer.data() + part, part, cudaHostRegisterPortable), cudaSuccess);
  for (int time = 0; time < 2; ++time) EXPECT_FALSE(copies_through_a_buffer(0, part));
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(cuda.cudaHostUnregister(buffer.data() + i * part), cudaSuccess);
  EXPECT_TRUE(copies_through_a_buffer(0, part)) << "pinned no more";
  EXPECT_EQ(broken(), "");
}

// The run reads what the program computes on its own stream, whichever is enqueued first.
TEST_F(CudaLibrary, ARunWaitsForTheProgramsStream) {
  const Kernels kernels(cuda, add_one_source);
  const cudaKernel_t add_one = kernels.get("add_one");
  const cudaStream_t own = make_stream(cuda);
  auto* const x = static_cast<float*>(make_memory(cuda, 128, own));
  const std::vector<float> zeros(32);
  std::vector<float> y(32);
  for (int seed = 1; seed <= 12; ++seed) {
    const StandinSetting drawn("SEED", std::to_string(seed));
    SessionOptions options = on_cuda();
    options.placed_ports = {{"x", "cuda:0"}};
    auto session = cuda_runtime().open(chain_net(1, Shape{32}), options);
    ASSERT_TRUE(session.ok()) << session.status().text();
    auto context = session->prepare();
    ASSERT_TRUE(context.ok()) << context.status().text();
    ASSERT_TRUE(context->bind_input(0, x).ok());
    ASSERT_TRUE(context->bind_output(0, y.data()).ok());
    EXPECT_EQ(cuda.cudaMemcpyAsync(x, zeros.data(), 128, cudaMemcpyHostToDevice, own), cudaSuccess);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(launch(cuda, add_one, own, AddOne{x, x}), cudaSuccess);
    RunOptions run;
    const CallerStream stream{"cuda:0", own};
    run.streams = &stream;
    run.stream_count = 1;
    const Status status = context->run(run);
    ASSERT_TRUE(status.ok()) << status.text();
    EXPECT_EQ(y, std::vector<float>(32, 5)) << "seed " << seed;
  }
  EXPECT_EQ(cuda.cudaStreamSynchronize(own), cudaSuccess);
  EXPECT_EQ(cuda.cudaStreamDestroy(own), cudaSuccess) << "it is still the program's";
  EXPECT_EQ(broken(), "");
}

// Two contexts follow one stream at once: neither destroys it.
TEST_F(CudaLibrary, AStreamIsFollowedByTwoContexts) {
  cudaStream_t own = nullptr;
  ASSERT_EQ(cuda.cudaStreamCreateWithPriority(&own, cudaStreamNonBlocking, 0), cudaSuccess);
  {
    const Runtime runtime = cuda_runtime();
    auto first = prepare(runtime, chain_net(1, Shape{32}), on_cuda()), second = prepare(runtime, chain_net(1, Shape{32}), on_cuda());
    ASSERT_TRUE(first.ok() && second.ok());
    RunOptions run;
    const CallerStream stream{"cuda:0", own};
    run.streams = &stream;
    run.stream_count = 1;
    for (Prepared* one : {&*first, &*second}) {
      const Status status = one->context.run(run);
      ASSERT_TRUE(status.ok()) << status.text();
    }
  }
  EXPECT_EQ(cuda.cudaStreamSynchronize(own), cudaSuccess);
  EXPECT_EQ(cuda.cudaStreamDestroy(own), cudaSuccess) << "it is still the program's";
  EXPECT_EQ(broken(), "");
}

}  // namespace
}  // namespace heddle::cuda
