// Files replaced as a whole.
#include "base/file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "load/temporary_folder.h"

namespace heddle {
namespace {

size_t files_in(const std::filesystem::path& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

TEST(FileReplacement, IsThereAsAWholeOrNotAtAll) {
  const testing::TemporaryFolder folder;
  testing::write_text(folder / "net", "before");
  {
    auto abandoned = FileReplacement::create(folder / "net");
    ASSERT_TRUE(abandoned.ok());
    ASSERT_TRUE(abandoned->write("half").ok());
    EXPECT_EQ(testing::read_text(folder / "net"), "before");
  }
  EXPECT_EQ(files_in(folder.path()), 1u);
  auto done = FileReplacement::create(folder / "net");
  ASSERT_TRUE(done.ok());
  ASSERT_TRUE(done->write("after").ok());
  ASSERT_TRUE(done->commit().ok());
  EXPECT_EQ(testing::read_text(folder / "net"), "after");
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(FileReplacement, WhatIsUnfinishedIsRemovedForASignal) {
  const testing::TemporaryFolder folder;
  testing::write_text(folder / "net", "before");
  std::vector<FileReplacement> unfinished;
  for (const char* name : {"net", "weights", "trace"}) {
    auto file = FileReplacement::create(folder / name);
    ASSERT_TRUE(file.ok());
    unfinished.push_back(std::move(*file));
  }
  auto done = FileReplacement::create(folder / "done");
  ASSERT_TRUE(done.ok());
  ASSERT_TRUE(done->commit().ok());
  EXPECT_EQ(files_in(folder.path()), 5u);
  FileReplacement::remove_unfinished();
  EXPECT_EQ(files_in(folder.path()), 2u);
  EXPECT_EQ(testing::read_text(folder / "net"), "before");
  EXPECT_TRUE(std::filesystem::exists(folder / "done"));
}

// A process's number may be that of an earlier one, as in containers: what is locked is being written, what is not was left over.
TEST(FileReplacement, WhatAnEarlierProcessOfTheSameNumberLeftIsRemoved) {
  const testing::TemporaryFolder folder;
  auto other = FileReplacement::create(folder / "net");
  ASSERT_TRUE(other.ok());
  const auto left = [&](const char* name) {
    return folder / ("." + std::string(name) + "." + std::to_string(::getpid()) + ".123456789.tmp");
  };
  testing::write_text(left("net"), "left");
  testing::write_text(left("weights.1"), "left");
  auto next = FileReplacement::create(folder / "net");
  ASSERT_TRUE(next.ok());
  EXPECT_FALSE(std::filesystem::exists(left("net")));
  EXPECT_TRUE(std::filesystem::exists(left("weights.1"))) << "of another name";
  EXPECT_EQ(files_in(folder.path()), 3u) << "two that are being written";
  testing::write_text(left("net"), "left");
  FileReplacement::remove_left_over(folder.path(), [](const std::string& name) { return name == "weights.1"; });
  EXPECT_FALSE(std::filesystem::exists(left("weights.1")));
  EXPECT_EQ(files_in(folder.path()), 3u);
  ASSERT_TRUE(other->commit().ok());
  ASSERT_TRUE(next->commit().ok());
}

// Files are made while others look for what was left over: none of those that are being written is lost.
TEST(FileReplacement, NoneIsLostWhileOthersLookForWhatWasLeft) {
  const testing::TemporaryFolder folder;
  std::atomic<bool> ends{false};
  std::thread looks([&] {
    while (!ends) FileReplacement::remove_left_over(folder.path(), [](const std::string&) { return true; });
  });
  std::atomic<int> failed{0};
  const auto write = [&](const char* name) {
    for (int i = 0; i < 500; ++i) {
      auto made = FileReplacement::create(folder / name);
      failed += made.ok() && made->write("whole").ok() && made->commit().ok() ? 0 : 1;
    }
  };
  std::thread writes([&] { write("a"); });
  write("b");
  writes.join();
  ends = true;
  looks.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(files_in(folder.path()), 2u);
}

}  // namespace
}  // namespace heddle
