// Files replaced as a whole.
#include "base/file.h"

#include <gtest/gtest.h>

#include <filesystem>

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

}  // namespace
}  // namespace heddle
