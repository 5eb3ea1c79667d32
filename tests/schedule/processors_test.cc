#include "schedule/helpers/processors.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "schedule/control_groups.h"

namespace heddle {
namespace {

// A folder of files that is removed with the test.
class Folder {
 public:
  Folder() {
    std::string path = std::filesystem::temp_directory_path() / "heddle_cgroup_XXXXXX";
    root = mkdtemp(path.data());
  }
  ~Folder() { std::filesystem::remove_all(root); }
  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((root / name).parent_path());
    std::ofstream(root / name) << text;
  }
  std::filesystem::path root;
};

TEST(Processors, ReadsUnifiedQuotasOfAGroupAndItsParents) {
  Folder folder;
  folder.write("a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(cgroup_quota("0::/a/b\n", folder.root), 0);
  folder.write("a/cpu.max", "350000 100000\n");
  EXPECT_EQ(cgroup_quota("0::/a/b\n", folder.root), 3.5);
  folder.write("a/b/cpu.max", "150000 100000\n");
  EXPECT_EQ(cgroup_quota("0::/a/b\n", folder.root), 1.5);
  // For a path of the host that is not visible here, the nearest visible one counts.
  EXPECT_EQ(cgroup_quota("0::/a/x/y\n", folder.root), 3.5);
}

TEST(Processors, ReadsLegacyQuotas) {
  Folder folder;
  folder.write("cpu/job/cpu.cfs_quota_us", "200000\n");
  folder.write("cpu/job/cpu.cfs_period_us", "100000\n");
  folder.write("cpu/cpu.cfs_quota_us", "-1\n");
  folder.write("cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_quota("9:memory:/job\n4:cpu,cpuacct:/job\n", folder.root), 2);
  EXPECT_EQ(cgroup_quota("4:cpuset:/job\n", folder.root), 0);
}

TEST(Processors, OddTextIsNoQuota) {
  Folder folder;
  folder.write("cpu.max", "lots of it\n");
  for (const char* text : {"", "\n\n", "0:", "0::", "0::/", "::::", "4:cpu:/\n"}) EXPECT_EQ(cgroup_quota(text, folder.root), 0) << text;
  folder.write("cpu.max", "100000 0\n");
  EXPECT_EQ(cgroup_quota("0::/\n", folder.root), 0);
}

TEST(Processors, ThereIsAtLeastOne) {
  EXPECT_GE(default_concurrency(), 1);
  EXPECT_FALSE(allowed_processors().empty());
}

}  // namespace
}  // namespace heddle
