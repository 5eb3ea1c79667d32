// The kinds of devices that the suite of this folder runs over. A device joins by one line of device_kinds that says where its plugin is
// and what it can; tests of what it cannot are skipped with that reason.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace heddle::testing_devices {

struct DeviceKind {
  std::string name;          // of devices, of the plugin and of its operators' domain
  std::string library;       // built beside the tests
  int devices = 1;           // how many there are
  int64_t memory_bytes = 0;  // of each, as `heddle devices` prints it
  // It reads HEDDLE_<KIND>_DEVICES and others (plugins/sim/backend.cc).
  bool has_settings = false;
  // While the file exists that HEDDLE_<KIND>_HOLD names, its streams begin nothing.
  bool can_be_held = false;
  // It launches the CPU's kernels where it has none.
  bool runs_host_kernels = false;
  // It takes faults by rule, HEDDLE_<KIND>_FAULTS (plugins/sim/faults.h).
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
};

inline const std::vector<DeviceKind>& device_kinds() {
  static const std::vector<DeviceKind> kinds = {
      {.name = "bare",
       .library = HEDDLE_BINARY_DIR "/lib/test/bare.so",
       .devices = 2,
       .memory_bytes = int64_t{4} << 30,
       .has_settings = true,
       .can_be_held = true,
       .has_own_operators = true,
       .has_gates = true,
       .has_few_kernels = true,
       .counts_memory = true},
      {.name = "sim",
       .library = HEDDLE_BINARY_DIR "/lib/sim.so",
       .devices = 2,
       .memory_bytes = int64_t{4} << 30,
       .has_settings = true,
       .can_be_held = true,
       .runs_host_kernels = true,
       .has_fault_rules = true,
       .has_clock = true,
       .counts_memory = true},
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
  DeviceTest() { kind_under_test() = &GetParam(); }
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
