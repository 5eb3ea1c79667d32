// The store in a folder.
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "load/temporary_folder.h"
#include "rendezvous/store_helpers.h"

namespace heddle::testing_rendezvous {
namespace {

using testing::TemporaryFolder;
namespace fs = std::filesystem;

class FolderStoreTest : public ::testing::Test {
 protected:
  std::string text() const { return "file:" + (folder_ / "some/job").string(); }
  MakeStore maker() const {
    return [this](int32_t rank, const std::string& communicator) { return store_at(text(), rank, 2, communicator); };
  }
  const TemporaryFolder folder_;
};

TEST_F(FolderStoreTest, KeysAreWrittenOnce) {
  expect_keys_are_written_once(maker());
}

TEST_F(FolderStoreTest, OneOfManyThreadsWrites) {
  expect_one_of_many_threads_writes(maker());
}

TEST_F(FolderStoreTest, WaitsEnd) {
  expect_waits_end(maker());
}

TEST_F(FolderStoreTest, StaysWithinItsFolderAndLeavesNoOtherFiles) {
  const auto store = store_at(text(), 0, 2, "../../up");
  EXPECT_TRUE(set(*store, {0, "../../../key"}, "x"));
  EXPECT_FALSE(set(*store, {0, "../../../key"}, "y"));
  EXPECT_EQ(store->where(), text());
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
    const std::string name = entry.path().lexically_relative(folder_.path());
    EXPECT_TRUE(entry.is_directory() ? fs::path("some/job").string().starts_with(name) || name.starts_with("some/job/")
                                     : name.starts_with("some/job/"))
        << name;
    files += entry.is_regular_file() ? 1 : 0;
  }
  EXPECT_EQ(files, 1u);
}

TEST_F(FolderStoreTest, AFileIsNoFolder) {
  testing::write_text(folder_ / "some", "a file");
  std::unique_ptr<Store> store;
  expect_error(make_store(text(), "world", 0, 2, &store), HEDDLE_ERROR_DEVICE, {text().substr(5), "Not a directory", "name a folder"});
}

TEST_F(FolderStoreTest, OneThatVanishesIsAnError) {
  const auto store = store_at(text());
  EXPECT_TRUE(set(*store, {0, "a"}, "x"));
  fs::remove_all(folder_ / "some");
  std::string value;
  bool found = false, written = false;
  expect_error(store->get({0, "a"}, &value, &found), HEDDLE_ERROR_DEVICE,
               {text().substr(5), "No such file or directory", "must stay while it runs"});
  expect_error(store->set({0, "b"}, "x", &written), HEDDLE_ERROR_DEVICE, {text().substr(5), "No such file or directory"});
  expect_error(store->wait({0, "b"}, &value, patience()), HEDDLE_ERROR_DEVICE, {"must stay while it runs"});
}

TEST_F(FolderStoreTest, WhatIsNoFileOfAValueIsAnErrorAndNotWaitedFor) {
  const auto store = store_at(text());
  const fs::path keys = folder_ / "some/job/world";
  ASSERT_EQ(::mkfifo((keys / "1.pipe").c_str(), 0666), 0);
  fs::create_symlink("/dev/zero", keys / "1.zero");
  testing::write_text(keys / "1.huge", "");
  fs::resize_file(keys / "1.huge", uint64_t{1} << 40);
  fs::create_directory(keys / "1.folder");
  for (const char* const name : {"pipe", "zero", "huge", "folder"}) {
    std::string value;
    bool found = false;
    expect_error(store->get({1, name}, &value, &found), HEDDLE_ERROR_DEVICE,
                 {(keys / "1.").string() + name, "is no file that this program writes", "remove it"});
    EXPECT_FALSE(found);
  }
}

TEST_F(FolderStoreTest, NamesThatAreTooLongAreAnError) {
  std::unique_ptr<Store> none;
  expect_error(make_store(text(), std::string(300, 'c'), 0, 2, &none), HEDDLE_ERROR_DEVICE, {"File name too long"});
  const auto store = store_at(text());
  bool written = true;
  expect_error(store->set({0, std::string(300, 'k')}, "x", &written), HEDDLE_ERROR_DEVICE, {"File name too long"});
  EXPECT_FALSE(written);
}

// Runs `work` in a child that has a small file system of its own at `folder`. Returns false if none can be made on this machine; what
// fails is printed by the child.
bool on_a_small_disk(const fs::path& folder, const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("small", folder.c_str(), "tmpfs", 0, "size=64k") != 0)
      ::_exit(2);
    work();
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) != 1) << "see what the child printed; status " << status;
  return !WIFEXITED(status) || WEXITSTATUS(status) != 2;
}

TEST_F(FolderStoreTest, AFullDiskIsAnErrorAndLeavesNoKey) {
  const bool made = on_a_small_disk(folder_.path(), [&] {
    const auto store = store_at(text());
    bool written = true;
    expect_error(store->set({0, "large"}, std::string(200000, 'x'), &written), HEDDLE_ERROR_DEVICE,
                 {text().substr(5), "No space left on device", "make room"});
    EXPECT_FALSE(written);
    EXPECT_EQ(get(*store, {0, "large"}), "-");
    EXPECT_TRUE(set(*store, {0, "small"}, "x")) << "the file that was begun is still there";
  });
  if (!made) GTEST_SKIP() << "no file system can be mounted here";
}

TEST_F(FolderStoreTest, AFolderThatCanOnlyBeReadIsAnError) {
  const bool made = on_a_small_disk(folder_.path(), [&] {
    const auto store = store_at(text());
    EXPECT_TRUE(set(*store, {0, "a"}, "x"));
    ASSERT_EQ(::mount("small", folder_.path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr), 0);
    bool written = true;
    expect_error(store->set({0, "b"}, "x", &written), HEDDLE_ERROR_DEVICE,
                 {text().substr(5), "Read-only file system", "must be able to write there"});
    EXPECT_EQ(get(*store, {0, "a"}), "x");
    std::unique_ptr<Store> none;
    expect_error(make_store(text(), "another", 0, 2, &none), HEDDLE_ERROR_DEVICE, {text().substr(5), "Read-only file system"});
  });
  if (!made) GTEST_SKIP() << "no file system can be mounted here";
}

}  // namespace
}  // namespace heddle::testing_rendezvous
