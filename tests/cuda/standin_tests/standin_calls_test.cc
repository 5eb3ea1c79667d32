// Behaviour that the stand-in shares with NVIDIA's libraries: order, events, memory, copies, errors.
#include <cstring>
#include <set>
#include <thread>

#include "standin_program.h"

namespace heddle::cuda {
namespace {

using namespace testing_standin;
using StandinCalls = StandinTest;

std::vector<float> floats(const Standin& cuda, const void* memory, size_t count, cudaStream_t stream) {
  std::vector<float> here(count);
  EXPECT_EQ(cuda.cudaMemcpyAsync(here.data(), memory, count * sizeof(float), cudaMemcpyDeviceToHost, stream), cudaSuccess);
  return here;
}

TEST_F(StandinCalls, WorkOfAStreamIsDoneInOrder) {
  const Kernels kernels(cuda, add_one_source);
  const cudaKernel_t add_one = kernels.get("add_one");
  const cudaStream_t stream = make_stream(cuda);
  auto* const memory = static_cast<float*>(make_memory(cuda, 128, stream));
  const std::vector<float> zeros(32);
  EXPECT_EQ(cuda.cudaMemcpyAsync(memory, zeros.data(), 128, cudaMemcpyHostToDevice, stream), cudaSuccess);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(launch(cuda, add_one, stream, AddOne{memory, memory}), cudaSuccess);
  EXPECT_EQ(floats(cuda, memory, 32, stream), std::vector<float>(32, 5));
  EXPECT_EQ(broken(), "");
}

TEST_F(StandinCalls, NewMemoryHoldsNothing) {
  const cudaStream_t stream = make_stream(cuda);
  unsigned char here[16] = {};
  EXPECT_EQ(cuda.cudaMemcpyAsync(here, make_memory(cuda, 16, stream), 16, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  for (const unsigned char byte : here) EXPECT_EQ(byte, 0xff);
}

TEST_F(StandinCalls, MemoryThatIsNoStreamsIsThereForAll) {
  cudaStream_t stream = nullptr;
  void* memory = nullptr;
  EXPECT_EQ(cuda.cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cuda.cudaMalloc(&memory, 16), cudaSuccess);
  EXPECT_EQ(cuda.cudaMemsetAsync(memory, 0, 16, stream), cudaSuccess);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(cuda.cudaFree(memory), cudaSuccess);
  EXPECT_EQ(broken(), "free_in_use: cudaFree") << "whether it happens to be done by now does not matter";
  ASSERT_EQ(cuda.cudaMalloc(&memory, 16), cudaSuccess);
  EXPECT_EQ(cuda.cudaMemsetAsync(memory, 0, 16, stream), cudaSuccess);
  EXPECT_EQ(cuda.cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cuda.cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cuda.cudaFree(nullptr), cudaSuccess);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(cuda.cudaFree(memory), cudaErrorInvalidValue);
  EXPECT_EQ(broken(), "free_unknown: cudaFree");
}

TEST_F(StandinCalls, AnEventIsWhatItWasWhenItWasWaitedFor) {
  const cudaStream_t first = make_stream(cuda), second = make_stream(cuda);
  const cudaEvent_t event = make_event(cuda);
  void* const memory = make_memory(cuda, 8, first);
  EXPECT_EQ(cuda.cudaEventQuery(event), cudaSuccess) << "never recorded";
  const Hold hold(cuda);
  EXPECT_EQ(cuda.cudaStreamWaitEvent(second, event, 0), cudaSuccess);
  EXPECT_EQ(cuda.cudaStreamSynchronize(second), cudaSuccess) << "a wait for an event that was never recorded passes";
  EXPECT_EQ(cuda.cudaEventRecord(event, first), cudaSuccess);
  EXPECT_EQ(cuda.cudaStreamWaitEvent(second, event, 0), cudaSuccess) << "of the record with nothing before it";
  EXPECT_EQ(cuda.cudaMemsetAsync(memory, 0, 8, first), cudaSuccess);
  EXPECT_EQ(cuda.cudaEventRecord(event, first), cudaSuccess);
  EXPECT_EQ(cuda.cudaStreamSynchronize(second), cudaSuccess) << "the later record is none of its business";
  EXPECT_EQ(cuda.cudaEventQuery(event), cudaErrorNotReady);
  EXPECT_EQ(cuda.cudaStreamQuery(first), cudaErrorNotReady);
  EXPECT_EQ(cuda.cudaStreamWaitEvent(second, event, 0), cudaSuccess);
  EXPECT_EQ(cuda.cudaStreamQuery(second), cudaErrorNotReady);
  EXPECT_EQ(cuda.cudaEventDestroy(event), cudaSuccess) << "what waits for it waits on";
  EXPECT_EQ(cuda.cudaStreamQuery(second), cudaErrorNotReady);
  EXPECT_EQ(cuda.cudaStreamDestroy(first), cudaSuccess) << "its work is done all the same";
  hold.open();
  EXPECT_EQ(cuda.cudaStreamSynchronize(second), cudaSuccess);
  EXPECT_EQ(broken(), "");
}

TEST_F(StandinCalls, TheDefaultStreamWaitsForBlockingStreamsAndTheyForIt) {
  const cudaStream_t blocking = make_stream(cuda, 0, cudaStreamDefault), other = make_stream(cuda);
  void* const memory = make_memory(cuda, 8, blocking);
  const Hold hold(cuda);
  EXPECT_EQ(cuda.cudaMemsetAsync(memory, 0, 8, nullptr), cudaSuccess);
  EXPECT_EQ(cuda.cudaStreamQuery(blocking), cudaErrorNotReady);
  EXPECT_EQ(cuda.cudaStreamQuery(other), cudaSuccess);
  hold.open();
  EXPECT_EQ(cuda.cudaStreamSynchronize(blocking), cudaSuccess);
  EXPECT_EQ(cuda.cudaStreamQuery(nullptr), cudaSuccess);
}

TEST_F(StandinCalls, PageableMemoryIsReadDuringTheCallAndPinnedMemoryLater) {
  const cudaStream_t stream = make_stream(cuda);
  auto* const memory = static_cast<char*>(make_memory(cuda, 16, stream));
  std::vector<char> pageable(8, 1);
  char* const pinned = make_pinned(cuda, 8);
  std::memset(pinned, 2, 8);
  {
    const Hold hold(cuda);
    EXPECT_EQ(cuda.cudaMemcpyAsync(memory, pageable.data(), 8, cudaMemcpyHostToDevice, stream), cudaSuccess);
    EXPECT_EQ(cuda.cudaMemcpyAsync(memory + 8, pinned, 8, cudaMemcpyHostToDevice, stream), cudaSuccess);
    std::memset(pageable.data(), 3, 8);
    std::memset(pinned, 4, 8);
  }
  char here[16];
  EXPECT_EQ(cuda.cudaMemcpyAsync(here, memory, 16, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  EXPECT_EQ(std::string(here, 16), std::string(8, 1) + std::string(8, 4));
}

// Registration is by bytes, not by pages.
TEST_F(StandinCalls, HostMemoryIsRegisteredOnce) {
  std::vector<char> here(192);
  EXPECT_EQ(cuda.cudaHostRegister(here.data() + 64, 64, cudaHostRegisterPortable), cudaSuccess);
  EXPECT_EQ(cuda.cudaHostRegister(here.data(), 64, cudaHostRegisterPortable), cudaSuccess);
  EXPECT_EQ(cuda.cudaHostRegister(here.data() + 128, 64, cudaHostRegisterPortable), cudaSuccess);
  EXPECT_EQ(cuda.cudaHostUnregister(here.data() + 128), cudaSuccess);
  EXPECT_EQ(cuda.cudaHostRegister(here.data() + 127, 8, cudaHostRegisterPortable), cudaErrorHostMemoryAlreadyRegistered);
  EXPECT_EQ(cuda.cudaHostRegister(make_pinned(cuda, 64), 64, cudaHostRegisterPortable), cudaErrorHostMemoryAlreadyRegistered);
  const auto type_of = [&](const void* memory) {
    cudaPointerAttributes attributes = {};
    EXPECT_EQ(cuda.cudaPointerGetAttributes(&attributes, memory), cudaSuccess);
    return attributes.type;
  };
  EXPECT_EQ(type_of(here.data() + 127), cudaMemoryTypeHost);
  EXPECT_EQ(type_of(here.data() + 128), cudaMemoryTypeUnregistered);
  EXPECT_EQ(type_of(make_memory(cuda, 8, make_stream(cuda))), cudaMemoryTypeDevice);
  EXPECT_EQ(broken(), "");
}

TEST_F(StandinCalls, AFunctionOfTheHostsIsCalledInTheOrderOfItsStream) {
  const cudaStream_t stream = make_stream(cuda);
  auto* const memory = static_cast<char*>(make_memory(cuda, 8, stream));
  char* const pinned = make_pinned(cuda, 8);
  struct Seen {
    const char* from;
    char value;
  } seen{pinned, 0};
  {
    const Hold hold(cuda);
    EXPECT_EQ(cuda.cudaMemsetAsync(memory, 5, 8, stream), cudaSuccess);
    EXPECT_EQ(cuda.cudaMemcpyAsync(pinned, memory, 8, cudaMemcpyDeviceToHost, stream), cudaSuccess);
    const auto look = [](void* user) {
      auto* const seen = static_cast<Seen*>(user);
      seen->value = *seen->from;
    };
    EXPECT_EQ(cuda.cudaLaunchHostFunc(stream, look, &seen), cudaSuccess);
    EXPECT_EQ(cuda.cudaMemsetAsync(memory, 6, 8, stream), cudaSuccess);
    EXPECT_EQ(cuda.cudaMemcpyAsync(pinned, memory, 8, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  }
  EXPECT_EQ(cuda.cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(seen.value, 5);
  EXPECT_EQ(*pinned, 6);
}

// Two kernels on two streams, whose results in one place show their order: drawn by the seed, and equal for equal seeds.
TEST_F(StandinCalls, TheSeedDrawsTheOrderOfStreams) {
  const Kernels kernels(cuda, add_one_source);
  const cudaKernel_t add_one = kernels.get("add_one");
  const cudaStream_t streams[] = {make_stream(cuda), make_stream(cuda)};
  auto* const memory = static_cast<float*>(make_memory(cuda, 384, streams[0]));
  std::vector<float> numbers(64);
  std::fill(numbers.begin() + 32, numbers.end(), 10.0f);
  EXPECT_EQ(cuda.cudaMemcpyAsync(memory, numbers.data(), 256, cudaMemcpyHostToDevice, streams[0]), cudaSuccess);
  EXPECT_EQ(cuda.cudaStreamSynchronize(streams[0]), cudaSuccess);
  std::set<float> seen;
  for (int seed = 1; seed <= 24; ++seed) {
    const StandinSetting drawn("SEED", std::to_string(seed));
    {
      const Hold hold(cuda);
      for (const int s : {0, 1}) EXPECT_EQ(launch(cuda, add_one, streams[s], AddOne{memory + 32 * s, memory + 64}), cudaSuccess);
    }
    for (const cudaStream_t stream : streams) EXPECT_EQ(cuda.cudaStreamSynchronize(stream), cudaSuccess);
    seen.insert(floats(cuda, memory + 64, 1, streams[0])[0]);
  }
  EXPECT_EQ(seen, (std::set<float>{1, 11}));
}

TEST_F(StandinCalls, MemoryIsCountedAndEnds) {
  const StandinSetting little("MEMORY", "1000");
  cudaDeviceProp properties = {};
  ASSERT_EQ(cuda.cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  const cudaStream_t stream = make_stream(cuda);
  void *one = nullptr, *other = nullptr;
  EXPECT_EQ(cuda.cudaMallocAsync(&one, 600, stream), cudaSuccess);
  EXPECT_EQ(cuda.cudaMallocAsync(&other, 401, stream), cudaErrorMemoryAllocation);
  size_t available = 0, total = 0;
  EXPECT_EQ(cuda.cudaMemGetInfo(&available, &total), cudaSuccess);
  EXPECT_EQ(available, 400u);
  EXPECT_EQ(total, 1000u);
  EXPECT_EQ(cuda.cudaFreeAsync(one, stream), cudaSuccess);
  EXPECT_EQ(cuda.cudaMallocAsync(&other, 1000, stream), cudaSuccess) << "in the order of the stream it is free";
  cuda.fail(HEDDLE_STANDIN_ALLOCATION, 2, 0);
  EXPECT_EQ(cuda.cudaMallocAsync(&one, 0, stream), cudaSuccess);
  EXPECT_EQ(cuda.cudaMallocAsync(&one, 0, stream), cudaErrorMemoryAllocation);
  EXPECT_EQ(cuda.cudaMallocAsync(&one, 0, stream), cudaSuccess);
}

TEST_F(StandinCalls, TheLastErrorIsTheThreadsAndGoesWhenAsked) {
  EXPECT_EQ(cuda.cudaSetDevice(7), cudaErrorInvalidDevice);
  std::thread([&] { EXPECT_EQ(cuda.cudaGetLastError(), cudaSuccess); }).join();
  EXPECT_EQ(cuda.cudaSetDevice(1), cudaSuccess) << "leaves it as it is";
  EXPECT_EQ(cuda.cudaGetLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cuda.cudaGetLastError(), cudaSuccess);
  int device = -1;
  EXPECT_EQ(cuda.cudaGetDevice(&device), cudaSuccess);
  EXPECT_EQ(device, 1);
  EXPECT_STREQ(cuda.cudaGetErrorName(cudaErrorInvalidDevice), "cudaErrorInvalidDevice");
  EXPECT_STREQ(cuda.cudaGetErrorString(cudaErrorInvalidDevice), "invalid device ordinal");
}

TEST_F(StandinCalls, NoDevicesIsAnError) {
  const StandinSetting none("DEVICES", "0");
  int count = -1;
  EXPECT_EQ(cuda.cudaGetDeviceCount(&count), cudaErrorNoDevice);
}

// Every call fails from then on, on all devices, and work that was enqueued is not done.
TEST_F(StandinCalls, BehindAnErrorOfAKernelThereIsNoGoingOn) {
  const Kernels kernels(cuda, add_one_source);
  const cudaStream_t stream = make_stream(cuda), other = make_stream(cuda, 1);
  const cudaEvent_t event = make_event(cuda);
  auto* const memory = static_cast<char*>(make_memory(cuda, 256, stream));
  const cudaKernel_t add_one = kernels.get("add_one");
  cuda.fail(HEDDLE_STANDIN_LAUNCH, 2, cudaErrorIllegalAddress);
  for (int i = 0; i < 3; ++i) {
    const cudaError_t launched = launch(cuda, add_one, stream, AddOne{memory, memory + 128});
    EXPECT_TRUE(launched == cudaSuccess || (i == 2 && launched == cudaErrorIllegalAddress)) << "a launch does not know how it ends";
  }
  EXPECT_EQ(cuda.cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
  EXPECT_EQ(cuda.cudaEventQuery(event), cudaErrorIllegalAddress);
  EXPECT_EQ(cuda.cudaStreamQuery(other), cudaErrorIllegalAddress);
  EXPECT_EQ(cuda.cudaSetDevice(1), cudaErrorIllegalAddress);
  EXPECT_EQ(cuda.cudaStreamDestroy(stream), cudaErrorIllegalAddress);
  EXPECT_EQ(cuda.cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cuda.cudaGetLastError(), cudaErrorIllegalAddress) << "it does not go when asked";
  EXPECT_STREQ(cuda.cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress");
}

TEST_F(StandinCalls, CallsAreCountedAndLogged) {
  const uint64_t before = cuda.calls();
  cuda.log(1);
  const cudaStream_t stream = make_stream(cuda);
  EXPECT_EQ(cuda.cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_STREQ(cuda.logged(), "cudaSetDevice,cudaStreamCreateWithPriority,cudaSetDevice,cudaStreamDestroy");
  EXPECT_EQ(cuda.calls(), before + 4);
  cuda.log(0);
  EXPECT_EQ(cuda.cudaSetDevice(0), cudaSuccess);
  EXPECT_STREQ(cuda.logged(), "");
}

TEST_F(StandinCalls, NvrtcSaysWhatIsWrongWithASource) {
  nvrtcProgram program = nullptr;
  ASSERT_EQ(cuda.nvrtcCreateProgram(&program, "this is no source;", "a.cu", 0, nullptr, nullptr), NVRTC_SUCCESS);
  const char* option = "--gpu-architecture=sm_90";
  EXPECT_EQ(cuda.nvrtcCompileProgram(program, 1, &option), NVRTC_ERROR_COMPILATION);
  size_t bytes = 0;
  EXPECT_EQ(cuda.nvrtcGetProgramLogSize(program, &bytes), NVRTC_SUCCESS);
  std::string log(bytes, '\0');
  EXPECT_EQ(cuda.nvrtcGetProgramLog(program, log.data()), NVRTC_SUCCESS);
  EXPECT_NE(log.find("error"), std::string::npos) << log;
  EXPECT_EQ(log.back(), '\0') << "the size counts the last zero";
  EXPECT_EQ(cuda.nvrtcGetCUBINSize(program, &bytes), NVRTC_ERROR_INVALID_PROGRAM);
  option = "--no-such-option";
  EXPECT_EQ(cuda.nvrtcCompileProgram(program, 1, &option), NVRTC_ERROR_INVALID_OPTION);
  EXPECT_EQ(cuda.nvrtcDestroyProgram(&program), NVRTC_SUCCESS);
  cudaLibrary_t library = nullptr;
  EXPECT_EQ(cuda.cudaLibraryLoadData(&library, "no cubin", nullptr, nullptr, 0, nullptr, nullptr, 0), cudaErrorInvalidKernelImage);
  const std::string elsewhere = "heddle stand-in\nsm_75\n/dev/null\n";
  EXPECT_EQ(cuda.cudaLibraryLoadData(&library, elsewhere.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0),
            cudaErrorNoKernelImageForDevice);
}

// Each broken rule is printed once, when the process ends.
TEST(StandinExit, SaysWhatWasBroken) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto breaks = [] {
    const Standin& cuda = Standin::get();
    const cudaStream_t stream = make_stream(cuda);
    char here[8] = {};
    for (int i = 0; i < 2; ++i) static_cast<void>(cuda.cudaMemcpyAsync(here, here, 8, cudaMemcpyHostToDevice, stream));
    std::exit(0);
  };
  EXPECT_EXIT(breaks(), ::testing::ExitedWithCode(0),
              "^cuda stand-in: not_device_memory: cudaMemcpyAsync \\(an address .*Runtime API, cudaMemcpyAsync, cudaFreeAsync\\)\n"
              "cuda stand-in: leak: 1 streams \\(.*\\)\n$");
}

}  // namespace
}  // namespace heddle::cuda
