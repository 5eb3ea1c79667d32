// Mapping: names stay in their folder, files that change are noticed, pages can be released.
#include "weights/mapping.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstring>

#include "load/temporary_folder.h"

namespace heddle {
namespace {

using testing::TemporaryFolder;
using testing::write_text;

constexpr int64_t no_limit = INT64_MAX;

class Beneath : public ::testing::Test {
 protected:
  Beneath() {
    std::filesystem::create_directories(folder_ / "net/inner");
    write_text(folder_ / "secret", "s");
    write_text(folder_ / "net/w", "w");
    write_text(folder_ / "net/inner/w", "i");
  }
  Code code(std::string_view name) const { return open_beneath(folder_ / "net", name).status().code(); }
  TemporaryFolder folder_;
};

TEST_F(Beneath, FilesOfTheFolderOpen) {
  EXPECT_EQ(code("w"), Code::ok);
  EXPECT_EQ(code("inner/w"), Code::ok);
  EXPECT_EQ(code("./inner/./w"), Code::ok);
  EXPECT_EQ(code("absent"), Code::weights_missing);
  EXPECT_EQ(code("w/x"), Code::weights_missing);
  EXPECT_EQ(open_beneath(folder_ / "absent", "w").status().code(), Code::file_unreadable);
}

TEST_F(Beneath, NothingElseDoes) {
  for (const char* name : {"../secret", "inner/../w", "..", "/etc/passwd", "", ".", "inner//w", "w/"})
    EXPECT_EQ(code(name), Code::weights_outside) << name;
  EXPECT_EQ(code((folder_ / "net/w").native()), Code::weights_outside);  // absolute, though inside
  EXPECT_EQ(code(std::string_view("w\0x", 3)), Code::weights_outside);
  EXPECT_EQ(code(std::string(5000, 'a')), Code::weights_outside);
  EXPECT_EQ(code("inner"), Code::file_unreadable);  // a folder
}

TEST_F(Beneath, SymbolicLinksDoNotLeadOut) {
  std::filesystem::create_symlink("../secret", folder_ / "net/relative");
  std::filesystem::create_symlink(folder_ / "secret", folder_ / "net/absolute");
  std::filesystem::create_directory_symlink("..", folder_ / "net/up");
  std::filesystem::create_symlink("loop", folder_ / "net/loop");
  std::filesystem::create_symlink("/proc/self/fd/0", folder_ / "net/magic");
  for (const char* name : {"relative", "absolute", "up/secret", "loop", "magic"}) EXPECT_EQ(code(name), Code::weights_outside) << name;
}

TEST_F(Beneath, PipesAndDevicesAreRefusedWithoutWaiting) {
  ASSERT_EQ(::mkfifo((folder_ / "net/pipe").c_str(), 0600), 0);
  EXPECT_EQ(code("pipe"), Code::file_unreadable);
  if (::mknod((folder_ / "net/zero").c_str(), S_IFCHR | 0600, makedev(1, 5)) != 0) GTEST_SKIP() << "may not make devices";
  EXPECT_EQ(code("zero"), Code::file_unreadable);
}

TEST(Mapping, ShowsTheBytesAndSomeZerosBehind) {
  const TemporaryFolder folder;
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  for (const size_t size : {size_t{0}, size_t{1}, page - 1, page, page + 1}) {
    write_text(folder / "w", std::string(size, 'x'));
    const auto mapping = Mapping::open(folder.path(), "w", no_limit);
    ASSERT_TRUE(mapping.ok()) << mapping.status().text();
    ASSERT_EQ((*mapping)->size(), static_cast<int64_t>(size));
    const std::string seen(reinterpret_cast<const char*>((*mapping)->data()), size + 64);
    EXPECT_EQ(seen, std::string(size, 'x') + std::string(64, '\0')) << size;
  }
  EXPECT_EQ(Mapping::open(folder.path(), "w", 1).status().code(), Code::limit_exceeded);
}

TEST(Mapping, NoticesThatTheFileChanged) {
  const TemporaryFolder folder;
  write_text(folder / "w", std::string(10'000, 'x'));
  const auto mapping = *Mapping::open(folder.path(), "w", no_limit);
  EXPECT_TRUE(mapping->still_whole().ok());
  // The file is replaced by rename: the mapping keeps the old one.
  write_text(folder / "new", "y");
  std::filesystem::rename(folder / "new", folder / "w");
  EXPECT_TRUE(mapping->still_whole().ok());
  EXPECT_EQ(std::to_integer<char>(mapping->data()[9'999]), 'x');

  write_text(folder / "v", std::string(10'000, 'x'));
  const auto shrunk = *Mapping::open(folder.path(), "v", no_limit);
  std::filesystem::resize_file(folder / "v", 100);
  EXPECT_EQ(shrunk->still_whole().code(), Code::file_truncated);
  std::byte bytes[200];
  EXPECT_EQ(shrunk->read(0, bytes).code(), Code::file_truncated);

  write_text(folder / "u", std::string(10'000, 'x'));
  const auto rewritten = *Mapping::open(folder.path(), "u", no_limit);
  std::filesystem::last_write_time(folder / "u", std::filesystem::last_write_time(folder / "u") + std::chrono::seconds(1));
  EXPECT_EQ(rewritten->still_whole().code(), Code::weights_mismatch);
}

TEST(Mapping, BlobsKeepItAliveAndCanBeRecognised) {
  const TemporaryFolder folder;
  write_text(folder / "w", std::string(64, '\0') + std::string(4096, 'x'));
  std::shared_ptr<const Blob> blob;
  {
    const auto mapping = *Mapping::open(folder.path(), "w", no_limit);
    blob = mapping->blob(DType::u8, Shape{4096}, 64, 4096);
    EXPECT_EQ(Mapping::of(*blob), mapping.get());
  }
  EXPECT_EQ(std::to_integer<char>(blob->data[4095]), 'x');
  const Blob copy = *blob;
  blob.reset();
  EXPECT_EQ(std::to_integer<char>(copy.data[0]), 'x');
  EXPECT_EQ(Mapping::of(*Blob::copy_of(DType::u8, Shape{1}, "a")), nullptr);
}

TEST(Mapping, ReleasedPagesLeaveMemoryAndComeBack) {
  const TemporaryFolder folder;
  const int64_t page = ::sysconf(_SC_PAGESIZE);
  const int64_t size = 16 * page;
  write_text(folder / "w", std::string(static_cast<size_t>(size), 'x'));
  const auto mapping = *Mapping::open(folder.path(), "w", no_limit);
  // Resident pages of this process, not of the page cache (which mincore would show).
  const auto present = [&](int64_t index) {
    const FileDescriptor pagemap(::open("/proc/self/pagemap", O_RDONLY));
    uint64_t entry = 0;
    const auto at = static_cast<off_t>(
        (reinterpret_cast<uintptr_t>(mapping->data()) / static_cast<uintptr_t>(page) + static_cast<uintptr_t>(index)) * 8);
    return ::pread(pagemap.get(), &entry, 8, at) == 8 && (entry >> 63) != 0;
  };
  int64_t sum = 0;
  for (int64_t i = 0; i < size; ++i) sum += std::to_integer<int>(mapping->data()[i]);
  ASSERT_TRUE(present(0) && present(8) && present(15));
  mapping->release(mapping->data() + 1, size - 2);  // neither the first nor the last page is wholly inside
  EXPECT_TRUE(present(0));
  EXPECT_FALSE(present(8));
  EXPECT_TRUE(present(15));
  mapping->release(mapping->data() - 1, size);  // not of this mapping: nothing happens
  mapping->release(mapping->data(), size + 1);
  EXPECT_TRUE(present(0));
  for (int64_t i = 0; i < size; ++i) sum -= std::to_integer<int>(mapping->data()[i]);
  EXPECT_EQ(sum, 0);
}

}  // namespace
}  // namespace heddle
