// Reads the memory limit of the process from files under a root of the test's own.
#include "base/machine_memory.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/text/limit_names.h"
#include "load/temporary_folder.h"

namespace heddle {
namespace {

constexpr int64_t gib = int64_t{1} << 30;
constexpr const char* second = "35 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";
constexpr const char* first =
    "34 31 0:31 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n";

class Machine {
 public:
  Machine() {
    write("proc/meminfo", "MemFree: 1 kB\nMemTotal:       67108864 kB\nSwapTotal: 0 kB\n");
    write("proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda rw\n");
    write("proc/self/cgroup", "");
  }
  void write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((folder_ / file).parent_path());
    std::ofstream(folder_ / file) << text;
  }
  int64_t bytes() const { return machine_memory_bytes(folder_.path()); }

 private:
  testing::TemporaryFolder folder_;
};

TEST(MachineMemory, IsTheMachinesWithoutGroups) {
  EXPECT_EQ(Machine().bytes(), 64 * gib);
}

TEST(MachineMemory, IsTheLeastOfItsGroupAndThoseAround) {
  Machine m;
  m.write("proc/self/mountinfo", second);
  m.write("proc/self/cgroup", "0::/user.slice/job/step\n");
  m.write("sys/fs/cgroup/user.slice/job/step/memory.max", "max\n");
  EXPECT_EQ(m.bytes(), 64 * gib);
  m.write("sys/fs/cgroup/user.slice/job/memory.max", std::to_string(8 * gib) + "\n");
  EXPECT_EQ(m.bytes(), 8 * gib);
  m.write("sys/fs/cgroup/user.slice/memory.max", std::to_string(4 * gib) + "\n");
  EXPECT_EQ(m.bytes(), 4 * gib);
  m.write("sys/fs/cgroup/user.slice/job/step/memory.max", std::to_string(2 * gib) + "\n");
  EXPECT_EQ(m.bytes(), 2 * gib);
  m.write("sys/fs/cgroup/other/memory.max", std::to_string(gib) + "\n");
  EXPECT_EQ(m.bytes(), 2 * gib) << "not a group around it";
}

TEST(MachineMemory, ReadsVersionOneBesideVersionTwo) {
  Machine m;
  m.write("proc/self/mountinfo", std::string(first) + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  m.write("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/docker/abc\n1:cpu:/\n0::/\n");
  m.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(m.bytes(), 64 * gib) << "no limit in version 1 is a large number";
  m.write("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", std::to_string(3 * gib) + "\n");
  EXPECT_EQ(m.bytes(), 3 * gib);
}

TEST(MachineMemory, FindsTheGroupWhereAPartOfTheHierarchyIsMounted) {
  Machine m;
  m.write("proc/self/mountinfo", "35 23 0:28 /pods/pod7 /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n");
  m.write("proc/self/cgroup", "0::/pods/pod7/box\n");
  m.write("sys/fs/cgroup/box/memory.max", std::to_string(5 * gib));
  EXPECT_EQ(m.bytes(), 5 * gib);
  // In a cgroup namespace the path differs from that of the mount: then the mounted folder is the group itself.
  m.write("proc/self/cgroup", "0::/\n");
  m.write("sys/fs/cgroup/memory.max", std::to_string(6 * gib));
  EXPECT_EQ(m.bytes(), 6 * gib);
}

TEST(MachineMemory, NonsenseIsNoLimit) {
  Machine m;
  m.write("proc/self/mountinfo", std::string(second) + "broken line\n- cgroup2\n");
  m.write("proc/self/cgroup", "0\n::\n0::/a\n");
  for (const char* text : {"", "many\n", "-5\n", "0\n", "99999999999999999999999\n"}) {
    m.write("sys/fs/cgroup/a/memory.max", text);
    EXPECT_EQ(m.bytes(), 64 * gib) << text;
  }
  m.write("proc/meminfo", "MemTotal: lots kB\n");
  EXPECT_EQ(m.bytes(), 0);
}

TEST(MachineMemory, DecidesTheDefaultLimits) {
  EXPECT_GT(machine_memory_bytes(), 0);
  const int64_t told = machine_memory_bytes("/");  // 0: /proc has no information here
  if (told > 0) {
    EXPECT_EQ(machine_memory_bytes(), told);
  }
  EXPECT_EQ(Limits().plan_bytes, machine_memory_bytes());
  EXPECT_EQ(Limits().tensor_bytes, machine_memory_bytes());
}

}  // namespace
}  // namespace heddle
