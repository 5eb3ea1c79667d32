// The kinds of devices that the suite of this folder runs over. A device joins by one line of device_kinds that says where its plugin is
// and what it can; tests of what it cannot are skipped with that reason.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "build_folder.h"
#ifdef HEDDLE_WITH_CUDA
#include "cuda/standin_tests/standin_complaints.h"
#endif

namespace heddle::testing_devices {

struct DeviceKind {
  std::string name;          // of devices, of the plugin and of its operators' domain
  std::string library;       // built beside the tests
  int devices = 1;           // how many there are
  int64_t memory_bytes = 0;  // of each, as `heddle devices` prints it
  // Of the environment while tests of it run: where a library that its plugin loads is, say.
  std::vector<std::pair<std::string, std::string>> environment = {};
  // It reads <settings>_DEVICES, _MEMORY and _SEED (docs/sim.md).
  bool has_settings = false;
  std::string settings = "";  // empty: HEDDLE_<KIND>
  // What it says when it is told that there are none; empty: that the setting is 0.
  std::string said_of_none = "";
  // It reads <settings>_BROKEN, _FORGETFUL and _WRONG too: it can be told to do what no device should.
  bool misbehaves = false;
  // While the file exists that <settings>_HOLD names, its streams begin nothing.
  bool can_be_held = false;
  // It launches the CPU's kernels where it has none.
  bool runs_host_kernels = false;
  // It takes faults by rule, <settings>_FAULTS (plugins/sim/faults.h).
  bool has_fault_rules = false;
  // Its clock can be held, and says what was done when (plugins/sim/native.h).
  bool has_clock = false;
  // <kind>::Fault fails at its launch or later, <kind>::Gate waits on the device for <kind>::Open on the host: kernels for the device
  // alone.
  bool has_own_operators = false, has_gates = false;
  bool has_faults() const { return has_fault_rules || has_own_operators; }
  // It has kernels for Relu, Add, MatMul, SgdUpdate and AccumulateAdd alone, so that other operators run on the host.
  bool has_few_kernels = false;
  // No one else takes memory of it, and what memory_info says is exact.
  bool counts_memory = false;
  // What was done with it since the last test that must not be, one a line; null: it does not look.
  std::string (*complaints)() = nullptr;

  // "HEDDLE_SIM_SEED"
  std::string setting(const std::string& name) const {
    std::string text = settings.empty() ? "HEDDLE_" + this->name : settings;
    for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return text + "_" + name;
  }
};

#ifdef HEDDLE_WITH_CUDA
// HEDDLE_TEST_GPU=1: cuda is the machine's own device 0 (tools/gpu_test.sh), as the environment has it, which knows no settings and is
// shared with others. Else it is on the library that stands in for NVIDIA's (tests/cuda/standin), which knows no operators: it takes no
// faults by operator or step, and has no clock.
inline DeviceKind cuda_kind() {
  const std::string& built = testing::build_folder();
  DeviceKind kind = {.name = "cuda", .library = built + "/lib/cuda.so"};
  const char* const gpu = std::getenv("HEDDLE_TEST_GPU");
  if (gpu && gpu == std::string_view("1")) return kind;
  kind.devices = 2;
  kind.memory_bytes = int64_t{4} << 30;
  kind.environment = {{"HEDDLE_CUDA_STANDIN", built + "/lib/test/cuda_standin.so"}, {"HEDDLE_CUDA_CACHE", "off"}};
  kind.has_settings = kind.can_be_held = kind.counts_memory = true;
  kind.settings = "HEDDLE_CUDA_STANDIN";
  kind.said_of_none = "cudaGetDeviceCount: no CUDA-capable device is detected (cudaErrorNoDevice)";
  kind.complaints = testing_standin::complaints;
  return kind;
}
#endif

inline const std::vector<DeviceKind>& device_kinds() {
  static const std::vector<DeviceKind> kinds = {
      {.name = "bare",
       .library = testing::build_folder() + "/lib/test/bare.so",
       .devices = 2,
       .memory_bytes = int64_t{4} << 30,
       .has_settings = true,
       .misbehaves = true,
       .can_be_held = true,
       .has_own_operators = true,
       .has_gates = true,
       .has_few_kernels = true,
       .counts_memory = true},
      {.name = "sim",
       .library = testing::build_folder() + "/lib/sim.so",
       .devices = 2,
       .memory_bytes = int64_t{4} << 30,
       .has_settings = true,
       .misbehaves = true,
       .can_be_held = true,
       .runs_host_kernels = true,
       .has_fault_rules = true,
       .has_clock = true,
       .counts_memory = true},
#ifdef HEDDLE_WITH_CUDA
      cuda_kind(),
#endif
  };
  return kinds;
}

// How tests are called: GoogleTest would print the bytes.
inline void PrintTo(const DeviceKind& kind, std::ostream* out) {
  *out << kind.name;
}

// The kind under test, set by DeviceTest: nets and runtimes are made by functions that are no members of it.
inline const DeviceKind*& kind_under_test() {
  static const DeviceKind* kind = nullptr;
  return kind;
}
inline const DeviceKind& kind() {
  return *kind_under_test();
}
// "bare:1"
inline std::string device_name(int index) {
  return kind().name + ":" + std::to_string(index);
}

class DeviceTest : public ::testing::TestWithParam<DeviceKind> {
 protected:
  DeviceTest() {
    kind_under_test() = &GetParam();
    for (const auto& [name, value] : kind().environment) ::setenv(name.c_str(), value.c_str(), 1);
  }
  ~DeviceTest() override {
    if (kind().complaints) {
      EXPECT_EQ(kind().complaints(), "");
    }
    for (const auto& [name, value] : kind().environment) ::unsetenv(name.c_str());
  }
};

// A suite of TEST_P over all kinds.
#define HEDDLE_DEVICE_SUITE(suite)                               \
  class suite : public ::heddle::testing_devices::DeviceTest {}; \
  HEDDLE_DEVICE_KINDS(suite)
#define HEDDLE_DEVICE_KINDS(suite) \
  INSTANTIATE_TEST_SUITE_P(Kinds, suite, ::testing::ValuesIn(device_kinds()), [](const auto& info) { return info.param.name; })

// First in a test: skips it for kinds without `ability`, a bool of DeviceKind or a function that gives one, or with fewer devices.
#define HEDDLE_DEVICE_NEEDS(ability) \
  if (!kind().ability) GTEST_SKIP() << "not for devices of kind " << kind().name << ": " #ability " is false"
#define HEDDLE_DEVICES_NEEDED(count) \
  if (kind().devices < (count)) GTEST_SKIP() << "there are only " << kind().devices << " devices of kind " << kind().name

}  // namespace heddle::testing_devices
