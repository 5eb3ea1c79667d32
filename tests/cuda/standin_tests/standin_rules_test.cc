// Each rule of the stand-in (standin/rules.inc), broken by a program of a few calls and reported; the test has the rule's name. Similar
// calls that the rule allows are tested with it.
#include <cstring>
#include <set>
#include <sstream>

#include "standin_program.h"

namespace heddle::cuda {
namespace {

using namespace testing_standin;
using StandinRule = StandinTest;

TEST_F(StandinRule, default_stream) {
  void* const memory = make_memory(cuda, 64, make_stream(cuda));
  EXPECT_EQ(cuda.cudaMemsetAsync(memory, 1, 64, nullptr), cudaSuccess);
  EXPECT_EQ(broken(), "default_stream: cudaMemsetAsync");
  EXPECT_EQ(cuda.cudaStreamSynchronize(cudaStreamLegacy), cudaSuccess);
  EXPECT_EQ(broken(), "default_stream: cudaStreamSynchronize");
}

TEST_F(StandinRule, unknown_stream) {
  const cudaStream_t stream = make_stream(cuda);
  EXPECT_EQ(cuda.cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(cuda.cudaStreamQuery(stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(broken(), "unknown_stream: cudaStreamQuery");
  EXPECT_EQ(cuda.cudaStreamDestroy(stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(broken(), "unknown_stream: cudaStreamDestroy");
}

TEST_F(StandinRule, unknown_event) {
  const cudaEvent_t event = make_event(cuda);
  EXPECT_EQ(cuda.cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cuda.cudaEventRecord(event, make_stream(cuda)), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(broken(), "unknown_event: cudaEventRecord");
  EXPECT_EQ(cuda.cudaStreamWaitEvent(make_stream(cuda), nullptr, 0), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(broken(), "unknown_event: cudaStreamWaitEvent");
}

TEST_F(StandinRule, unknown_pool) {
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, 1};
  cudaMemPool_t pool = nullptr;
  void* memory = nullptr;
  const cudaStream_t stream = make_stream(cuda, 1);
  ASSERT_EQ(cuda.cudaMemPoolCreate(&pool, &properties), cudaSuccess);
  EXPECT_EQ(cuda.cudaMallocFromPoolAsync(&memory, 8, pool, stream), cudaSuccess);
  EXPECT_EQ(cuda.cudaFreeAsync(memory, stream), cudaSuccess);
  EXPECT_EQ(cuda.cudaMemPoolDestroy(pool), cudaSuccess);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(cuda.cudaMallocFromPoolAsync(&memory, 8, pool, stream), cudaErrorInvalidValue);
  EXPECT_EQ(broken(), "unknown_pool: cudaMallocFromPoolAsync");
  EXPECT_EQ(cuda.cudaMemPoolTrimTo(pool, 0), cudaErrorInvalidValue);
  EXPECT_EQ(broken(), "unknown_pool: cudaMemPoolTrimTo");
}

TEST_F(StandinRule, event_of_other_device) {
  const cudaStream_t here = make_stream(cuda, 0), there = make_stream(cuda, 1);
  const cudaEvent_t event = make_event(cuda, 1);
  EXPECT_EQ(cuda.cudaEventRecord(event, there), cudaSuccess);
  EXPECT_EQ(cuda.cudaStreamWaitEvent(here, event, 0), cudaSuccess) << "waiting is allowed";
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(cuda.cudaEventRecord(event, here), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(broken(), "event_of_other_device: cudaEventRecord");
}

TEST_F(StandinRule, not_device_memory) {
  const cudaStream_t stream = make_stream(cuda);
  char here[8] = {}, there[8] = {};
  EXPECT_EQ(cuda.cudaMemcpyAsync(there, here, 8, cudaMemcpyHostToDevice, stream), cudaErrorInvalidValue);
  EXPECT_EQ(broken(), "not_device_memory: cudaMemcpyAsync");
  EXPECT_EQ(cuda.cudaMemsetAsync(there, 0, 8, stream), cudaErrorInvalidValue);
  EXPECT_EQ(broken(), "not_device_memory: cudaMemsetAsync");
  void* const freed = make_memory(cuda, 8, stream);
  EXPECT_EQ(cuda.cudaFreeAsync(freed, stream), cudaSuccess);
  EXPECT_EQ(cuda.cudaMemcpyAsync(here, freed, 8, cudaMemcpyDeviceToHost, stream), cudaErrorInvalidValue);
  EXPECT_EQ(broken(), "not_device_memory: cudaMemcpyAsync");
  void* const memory = make_memory(cuda, 8, stream);
  EXPECT_EQ(cuda.cudaMemcpyPeerAsync(memory, 1, memory, 0, 8, stream), cudaErrorInvalidValue);
  EXPECT_EQ(broken(), "not_device_memory: cudaMemcpyPeerAsync: memory of another device than was said");
}

TEST_F(StandinRule, copy_beyond) {
  const cudaStream_t stream = make_stream(cuda);
  auto* const memory = static_cast<char*>(make_memory(cuda, 64, stream));
  const char here[8] = {};
  EXPECT_EQ(cuda.cudaMemcpyAsync(memory + 56, here, 8, cudaMemcpyHostToDevice, stream), cudaSuccess);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(cuda.cudaMemcpyAsync(memory + 60, here, 8, cudaMemcpyHostToDevice, stream), cudaErrorInvalidValue);
  EXPECT_EQ(broken(), "copy_beyond: cudaMemcpyAsync: 8 bytes at offset 60 of 64");
  EXPECT_EQ(cuda.cudaMemsetAsync(memory, 0, 65, stream), cudaErrorInvalidValue);
  EXPECT_EQ(broken(), "copy_beyond: cudaMemsetAsync: 65 bytes at offset 0 of 64");
}

TEST_F(StandinRule, copy_direction) {
  const cudaStream_t stream = make_stream(cuda);
  void* const memory = make_memory(cuda, 64, stream);
  char here[8] = {};
  EXPECT_EQ(cuda.cudaMemcpyAsync(memory, here, 8, cudaMemcpyDefault, stream), cudaSuccess);
  EXPECT_EQ(cuda.cudaMemcpyAsync(here, memory, 8, cudaMemcpyDefault, stream), cudaSuccess);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(cuda.cudaMemcpyAsync(memory, here, 8, cudaMemcpyDeviceToHost, stream), cudaErrorInvalidValue);
  EXPECT_EQ(broken(), "copy_direction: cudaMemcpyAsync");
  EXPECT_EQ(cuda.cudaMemcpyAsync(make_pinned(cuda, 8), here, 8, cudaMemcpyHostToDevice, stream), cudaErrorInvalidValue);
  EXPECT_EQ(broken(), "copy_direction: cudaMemcpyAsync");
  EXPECT_EQ(cuda.cudaMemcpyAsync(memory, here, 8, static_cast<cudaMemcpyKind>(9), stream), cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(broken(), "copy_direction: cudaMemcpyAsync");
}

TEST_F(StandinRule, copy_device) {
  const cudaStream_t here = make_stream(cuda), there = make_stream(cuda, 1);
  void* const memory = make_memory(cuda, 64, there);
  void* const other = make_memory(cuda, 64, here);
  char host[8] = {};
  EXPECT_EQ(cuda.cudaMemcpyPeerAsync(other, 0, memory, 1, 64, there), cudaSuccess) << "whose devices are said";
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(cuda.cudaMemcpyAsync(memory, host, 8, cudaMemcpyHostToDevice, there), cudaSuccess);
  EXPECT_EQ(broken(), "copy_device: cudaMemcpyAsync");
  EXPECT_EQ(cuda.cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(cuda.cudaMemcpyAsync(memory, host, 8, cudaMemcpyHostToDevice, there), cudaSuccess);
  EXPECT_EQ(broken(), "");
}

TEST_F(StandinRule, copy_overlap) {
  const cudaStream_t stream = make_stream(cuda);
  auto* const memory = static_cast<char*>(make_memory(cuda, 64, stream));
  EXPECT_EQ(cuda.cudaMemcpyAsync(memory + 32, memory, 32, cudaMemcpyDeviceToDevice, stream), cudaSuccess);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(cuda.cudaMemcpyAsync(memory + 31, memory, 32, cudaMemcpyDeviceToDevice, stream), cudaErrorInvalidValue);
  EXPECT_EQ(broken(), "copy_overlap: cudaMemcpyAsync");
}

TEST_F(StandinRule, free_unknown) {
  const cudaStream_t stream = make_stream(cuda);
  auto* const memory = static_cast<char*>(make_memory(cuda, 64, stream));
  EXPECT_EQ(cuda.cudaFreeAsync(memory + 8, stream), cudaErrorInvalidValue);
  EXPECT_EQ(broken(), "free_unknown: cudaFreeAsync");
  EXPECT_EQ(cuda.cudaFreeAsync(memory, stream), cudaSuccess);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(cuda.cudaFreeAsync(memory, stream), cudaErrorInvalidValue);
  EXPECT_EQ(broken(), "free_unknown: cudaFreeAsync");
  char here[8];
  EXPECT_EQ(cuda.cudaFreeHost(here), cudaErrorInvalidValue);
  EXPECT_EQ(broken(), "free_unknown: cudaFreeHost");
}

TEST_F(StandinRule, free_in_use) {
  const cudaStream_t one = make_stream(cuda), other = make_stream(cuda);
  const cudaEvent_t event = make_event(cuda);
  const auto used = [&] {
    void* const memory = make_memory(cuda, 64, one);
    EXPECT_EQ(cuda.cudaMemsetAsync(memory, 0, 64, other), cudaSuccess);
    return memory;
  };
  // Whether the work happens to be done by now does not matter: the host has not waited.
  void* memory = used();
  EXPECT_EQ(cuda.cudaFreeAsync(memory, one), cudaSuccess);
  EXPECT_EQ(broken(), "free_in_use: cudaFreeAsync");
  // The stream waits, or the host has, or it is the stream that used it.
  memory = used();
  EXPECT_EQ(cuda.cudaEventRecord(event, other), cudaSuccess);
  EXPECT_EQ(cuda.cudaStreamWaitEvent(one, event, 0), cudaSuccess);
  EXPECT_EQ(cuda.cudaFreeAsync(memory, one), cudaSuccess);
  memory = used();
  EXPECT_EQ(cuda.cudaStreamSynchronize(other), cudaSuccess);
  EXPECT_EQ(cuda.cudaFreeAsync(memory, one), cudaSuccess);
  memory = used();
  EXPECT_EQ(cuda.cudaEventRecord(event, other), cudaSuccess);
  while (cuda.cudaEventQuery(event) == cudaErrorNotReady) {
  }
  EXPECT_EQ(cuda.cudaFreeAsync(memory, one), cudaSuccess);
  EXPECT_EQ(cuda.cudaFreeAsync(used(), other), cudaSuccess);
  EXPECT_EQ(broken(), "");
  // A kernel's parameters determine what it uses.
  const Kernels kernels(cuda, add_one_source);
  auto* const floats = static_cast<char*>(make_memory(cuda, 256, one));
  EXPECT_EQ(launch(cuda, kernels.get("add_one"), other, AddOne{floats, floats + 128}), cudaSuccess);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(cuda.cudaFreeAsync(floats, one), cudaSuccess);
  EXPECT_EQ(broken(), "free_in_use: cudaFreeAsync");
}

TEST_F(StandinRule, used_before_allocated) {
  const cudaStream_t one = make_stream(cuda), other = make_stream(cuda);
  void* memory = nullptr;
  EXPECT_EQ(cuda.cudaMallocAsync(&memory, 64, one), cudaSuccess);
  EXPECT_EQ(cuda.cudaMemsetAsync(memory, 0, 64, one), cudaSuccess);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(cuda.cudaMemsetAsync(memory, 0, 64, other), cudaSuccess);
  EXPECT_EQ(broken(), "used_before_allocated: cudaMemsetAsync");
  EXPECT_EQ(cuda.cudaStreamSynchronize(one), cudaSuccess);
  EXPECT_EQ(cuda.cudaMemsetAsync(memory, 0, 64, other), cudaSuccess);
  EXPECT_EQ(broken(), "");
}

TEST_F(StandinRule, leak) {
  cuda.look_for_leaks();
  EXPECT_EQ(broken(), "");
  const cudaStream_t stream = make_stream(cuda);
  const Kernels kernels(cuda, add_one_source);
  const cudaEvent_t event = make_event(cuda);
  void* const memory = make_memory(cuda, 64, stream);
  char* const pinned = make_pinned(cuda, 64);
  cuda.look_for_leaks();
  EXPECT_EQ(broken(), "leak: 1 pieces of device memory\nleak: 1 pieces of host memory\nleak: 1 streams\nleak: 1 events\nleak: 1 libraries");
  EXPECT_EQ(cuda.cudaFreeAsync(memory, stream), cudaSuccess);
  EXPECT_EQ(cuda.cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(cuda.cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cuda.cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cuda.cudaLibraryUnload(kernels.library), cudaSuccess);
  cuda.look_for_leaks();
  EXPECT_EQ(broken(), "");
}

// Runs a call between the first and the last launch of a run; before the first and after the last it is allowed.
template <class Call>
std::string broken_in_a_run(const Standin& cuda, const Call& call) {
  const Kernels kernels(cuda, add_one_source);
  const cudaStream_t stream = make_stream(cuda);
  auto* const memory = static_cast<char*>(make_memory(cuda, 256, stream));
  const auto launches = [&] { EXPECT_EQ(launch(cuda, kernels.get("add_one"), stream, AddOne{memory, memory + 128}), cudaSuccess); };
  cuda.run(1);
  call(stream, memory);
  launches();
  call(stream, memory);
  EXPECT_STREQ(cuda.broken(), "") << "there may be no other launch";
  launches();
  call(stream, memory);
  cuda.run(0);
  return cuda.broken();
}

TEST_F(StandinRule, synchronises) {
  std::vector<char> here(100'000);
  void* const large = make_memory(cuda, here.size(), make_stream(cuda));
  const auto waits = [&](cudaStream_t stream, char*) { EXPECT_EQ(cuda.cudaStreamSynchronize(stream), cudaSuccess); };
  EXPECT_EQ(broken_in_a_run(cuda, waits), "synchronises: cudaStreamSynchronize");
  const auto reads = [&](cudaStream_t stream, char* memory) {
    EXPECT_EQ(cuda.cudaMemcpyAsync(here.data(), memory, 8, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  };
  EXPECT_EQ(broken_in_a_run(cuda, reads), "synchronises: cudaMemcpyAsync") << "a copy to pageable memory returns when it is done";
  const auto writes = [&](cudaStream_t stream, char* memory) {
    EXPECT_EQ(cuda.cudaMemcpyAsync(memory, here.data(), 8, cudaMemcpyHostToDevice, stream), cudaSuccess);
  };
  EXPECT_EQ(broken_in_a_run(cuda, writes), "") << "a small copy from pageable memory is staged";
  const auto writes_much = [&](cudaStream_t stream, char*) {
    EXPECT_EQ(cuda.cudaMemcpyAsync(large, here.data(), here.size(), cudaMemcpyHostToDevice, stream), cudaSuccess);
  };
  EXPECT_EQ(broken_in_a_run(cuda, writes_much), "synchronises: cudaMemcpyAsync");
}

TEST_F(StandinRule, allocates) {
  std::vector<void*> pieces;
  const auto allocates = [&](cudaStream_t stream, char*) {
    EXPECT_EQ(cuda.cudaMallocAsync(&pieces.emplace_back(), 8, stream), cudaSuccess);
  };
  EXPECT_EQ(broken_in_a_run(cuda, allocates), "allocates: cudaMallocAsync");
  const auto frees = [&](cudaStream_t stream, char*) {
    EXPECT_EQ(cuda.cudaFreeAsync(pieces.back(), stream), cudaSuccess);
    pieces.pop_back();
  };
  EXPECT_EQ(broken_in_a_run(cuda, frees), "allocates: cudaFreeAsync");
  const auto pins = [&](cudaStream_t, char*) { EXPECT_EQ(cuda.cudaFreeHost(make_pinned(cuda, 8)), cudaSuccess); };
  EXPECT_EQ(broken_in_a_run(cuda, pins), "allocates: cudaHostAlloc\nallocates: cudaFreeHost");
  std::vector<char> here(64);
  const auto registers = [&](cudaStream_t, char*) {
    EXPECT_EQ(cuda.cudaHostRegister(here.data(), here.size(), cudaHostRegisterPortable), cudaSuccess);
    EXPECT_EQ(cuda.cudaHostUnregister(here.data()), cudaSuccess);
  };
  EXPECT_EQ(broken_in_a_run(cuda, registers), "allocates: cudaHostRegister\nallocates: cudaHostUnregister");
}

TEST_F(StandinRule, host_unregistered) {
  std::vector<char> here(64);
  EXPECT_EQ(cuda.cudaHostRegister(here.data(), 64, cudaHostRegisterPortable), cudaSuccess);
  EXPECT_EQ(cuda.cudaHostUnregister(here.data() + 8), cudaErrorInvalidValue);
  EXPECT_EQ(broken(), "host_unregistered: cudaHostUnregister");
  EXPECT_EQ(cuda.cudaHostUnregister(here.data()), cudaSuccess);
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(cuda.cudaHostUnregister(here.data()), cudaErrorHostMemoryNotRegistered);
  EXPECT_EQ(broken(), "host_unregistered: cudaHostUnregister");
  EXPECT_EQ(cuda.cudaHostUnregister(make_pinned(cuda, 64)), cudaErrorInvalidValue) << "which was allocated";
  EXPECT_EQ(broken(), "host_unregistered: cudaHostUnregister");
}

TEST_F(StandinRule, host_freed_in_use) {
  const cudaStream_t stream = make_stream(cuda);
  void* const memory = make_memory(cuda, 64, stream);
  char* pinned = make_pinned(cuda, 64);
  EXPECT_EQ(cuda.cudaMemcpyAsync(pinned, memory, 64, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  EXPECT_EQ(cuda.cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cuda.cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(broken(), "");
  {
    const Hold hold(cuda);
    pinned = make_pinned(cuda, 64);
    EXPECT_EQ(cuda.cudaMemcpyAsync(memory, pinned, 64, cudaMemcpyHostToDevice, stream), cudaSuccess);
    std::vector<char> here(64);
    EXPECT_EQ(cuda.cudaHostRegister(here.data(), 64, cudaHostRegisterPortable), cudaSuccess);
    EXPECT_EQ(cuda.cudaMemcpyAsync(memory, here.data(), 64, cudaMemcpyHostToDevice, stream), cudaSuccess);
    EXPECT_EQ(cuda.cudaHostUnregister(here.data()), cudaSuccess);
    EXPECT_EQ(broken(), "host_freed_in_use: cudaHostUnregister");
    EXPECT_EQ(cuda.cudaFreeHost(pinned), cudaSuccess);
    EXPECT_EQ(broken(), "host_freed_in_use: cudaFreeHost");
    cuda.reset();  // nothing of it is done
  }
}

TEST_F(StandinRule, sticky) {
  const Kernels kernels(cuda, add_one_source);
  const cudaStream_t stream = make_stream(cuda);
  auto* const memory = static_cast<char*>(make_memory(cuda, 256, stream));
  cuda.fail(HEDDLE_STANDIN_LAUNCH, 1, cudaErrorIllegalAddress);
  EXPECT_EQ(launch(cuda, kernels.get("add_one"), stream, AddOne{memory, memory + 128}), cudaSuccess);
  EXPECT_EQ(cuda.cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
  EXPECT_EQ(cuda.cudaFreeAsync(memory, stream), cudaErrorIllegalAddress) << "tidying up is no work";
  EXPECT_EQ(broken(), "");
  EXPECT_EQ(cuda.cudaMemsetAsync(memory, 0, 8, stream), cudaErrorIllegalAddress);
  EXPECT_EQ(broken(), "sticky: cudaMemsetAsync");
}

std::set<std::string> tests_of(const std::string& suite_name) {
  std::set<std::string> names;
  const ::testing::UnitTest& all = *::testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const ::testing::TestSuite& suite = *all.GetTestSuite(s);
    if (suite.name() != suite_name) continue;
    for (int t = 0; t < suite.total_test_count(); ++t) names.insert(suite.GetTestInfo(t)->name());
  }
  return names;
}

TEST(StandinRules, EachHasATest) {
  std::set<std::string> rules;
  std::istringstream names(Standin::get().rules());
  for (std::string name; std::getline(names, name, ',');) rules.insert(name);
  EXPECT_GE(rules.size(), 26u);
  EXPECT_EQ(tests_of("StandinRule"), rules);
}

}  // namespace
}  // namespace heddle::cuda
