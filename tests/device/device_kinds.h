// The kinds of devices that the suite of this folder runs over. A device is added with one line of device_kinds that gives its plugin and
// its abilities; tests of an ability that it lacks are skipped with that reason.
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
  std::string name;          // name of the devices, the plugin and its operators' domain
  std::string library;       // a library built beside the tests
  int devices = 1;           // number of devices
  int64_t memory_bytes = 0;  // memory of each, as `heddle devices` prints it
  // Variables of the environment during its tests, for example the place of a library that its plugin loads.
  std::vector<std::pair<std::string, std::string>> environment = {};
  // The plugin reads <settings>_DEVICES, _MEMORY and _SEED (docs/sim.md).
  bool has_settings = false;
  std::string settings = "";  // empty: HEDDLE_<KIND>
  // The reason that it gives if its setting allows no devices; empty: that the setting is 0.
  std::string said_of_none = "";
  // The plugin reads <settings>_BROKEN, _FORGETFUL and _WRONG too: tests can make it misbehave.
  bool misbehaves = false;
  // While the file named by <settings>_HOLD exists, its streams begin no work.
  bool can_be_held = false;
  // It launches the CPU's kernels where it has none of its own.
  bool runs_host_kernels = false;
  // It accepts fault rules in <settings>_FAULTS (plugins/sim/faults.h).
  bool has_fault_rules = false;
  // Its clock can be held, and reports when each work was done (plugins/sim/native.h).
  bool has_clock = false;
  // <kind>::Fault fails at its launch or later, <kind>::Gate waits on the device for <kind>::Open on the host: these kernels exist for the
  // device alone.
  bool has_own_operators = false, has_gates = false;
  bool has_faults() const { return has_fault_rules || has_own_operators; }
  // It has kernels for Relu, Add, MatMul, SgdUpdate and AccumulateAdd alone, so that other operators run on the host.
  bool has_few_kernels = false;
  // No other process uses its memory, and memory_info is exact.
  bool counts_memory = false;
  // Returns the forbidden uses of it since the last test, one a line; null: it does not check.
  std::string (*complaints)() = nullptr;

  // Returns for example "HEDDLE_SIM_SEED".
  std::string setting(const std::string& name) const {
    std::string text = settings.empty() ? "HEDDLE_" + this->name : settings;
    for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return text + "_" + name;
  }
};

#ifdef HEDDLE_WITH_CUDA
// With HEDDLE_TEST_GPU=1, cuda is the machine's own device 0 (tools/gpu_test.sh), as the environment has it, which has no settings and is
// shared with others. Otherwise it uses the library that replaces NVIDIA's (tests/cuda/standin), which does not know operators: it accepts
// no faults by operator or step, and has no clock.
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

// Names tests; without it GoogleTest would print the bytes.
inline void PrintTo(const DeviceKind& kind, std::ostream* out) {
  *out << kind.name;
}

// The kind under test, set by DeviceTest, because nets and runtimes are made by functions that are not members of it.
inline const DeviceKind*& kind_under_test() {
  static const DeviceKind* kind = nullptr;
  return kind;
}
inline const DeviceKind& kind() {
  return *kind_under_test();
}
// Returns for example "bare:1".
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

// Declares a suite of TEST_P over all kinds.
#define HEDDLE_DEVICE_SUITE(suite)                               \
  class suite : public ::heddle::testing_devices::DeviceTest {}; \
  HEDDLE_DEVICE_KINDS(suite)
#define HEDDLE_DEVICE_KINDS(suite) \
  INSTANTIATE_TEST_SUITE_P(Kinds, suite, ::testing::ValuesIn(device_kinds()), [](const auto& info) { return info.param.name; })

// Must come first in a test: skips it for kinds without `ability`, a bool of DeviceKind or a function that returns one, or with fewer
// devices.
#define HEDDLE_DEVICE_NEEDS(ability) \
  if (!kind().ability) GTEST_SKIP() << "not for devices of kind " << kind().name << ": " #ability " is false"
#define HEDDLE_DEVICES_NEEDED(count) \
  if (kind().devices < (count)) GTEST_SKIP() << "there are only " << kind().devices << " devices of kind " << kind().name

}  // namespace heddle::testing_devices
