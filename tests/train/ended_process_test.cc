// The process ends at each call of the system that writes, syncs, renames or removes a file of a checkpoint, and at random moments: what
// the next one resumes from is whole, and it learns what an undisturbed training learns, bit for bit.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "base/file.h"
#include "load/temporary_folder.h"
#include "points.h"

namespace {

// Number of the call at which the process ends; 0: it does not.
std::atomic<int> ends_at{0};
std::atomic<int> calls{0};

void count_call() {
  if (ends_at.load() != 0 && calls.fetch_add(1) + 1 == ends_at.load()) ::_exit(9);
}

}  // namespace

// These take the place of the C library's. Output on the terminal is not counted.
extern "C" ssize_t write(int fd, const void* data, size_t size) {
  if (fd > STDERR_FILENO) count_call();
  return ::syscall(SYS_write, fd, data, size);
}
extern "C" int fsync(int fd) {
  count_call();
  return static_cast<int>(::syscall(SYS_fsync, fd));
}
extern "C" int rename(const char* from, const char* to) noexcept {
  count_call();
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
extern "C" int unlink(const char* path) noexcept {
  count_call();
  return static_cast<int>(::syscall(SYS_unlinkat, AT_FDCWD, path, 0));
}

namespace heddle::testing_train {
namespace {

using testing::TemporaryFolder;
using testing_line::contents;

struct Learned {
  int64_t resumed_from = 0;
  std::map<std::string, std::string> variables;
  double loss = 0;
};

// Trains to the end, from the newest checkpoint if there is one.
Learned train(const Points& points, TrainerOptions options) {
  Learned learned;
  options.on_step = [&](const TrainingStep& step) { return learned.loss = step.loss, Status(); };
  const LineSession session;
  Trainer trainer = session.trainer(points.dataset(), options);
  const auto list = list_checkpoints(options.checkpoints.folder);
  EXPECT_TRUE(list.ok() && list->damaged.empty()) << "a file with the name of a checkpoint is whole";
  if (!list->complete.empty()) {
    const auto from = trainer.resume(list->complete[0].path);
    EXPECT_TRUE(from.ok()) << from.status().text();
    learned.resumed_from = trainer.steps();
    learned.loss = list->complete[0].loss;
  }
  const Status status = trainer.run();
  EXPECT_TRUE(status.ok()) << status.text();
  learned.variables = contents(session.all);
  return learned;
}

// Trains in a process of its own, which ends at that call; 0: at none. Returns it.
pid_t start(const Points& points, const TrainerOptions& options, int call) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ends_at = call;
  calls = 0;
  train(points, options);
  ::_exit(::testing::Test::HasFailure() ? 1 : 0);
}

int end_of(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void expect_only_checkpoints(const TemporaryFolder& folder, size_t max_count) {
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    ++files;
    EXPECT_EQ(entry.path().filename().string().rfind("step-", 0), 0u) << entry.path() << " is left";
  }
  EXPECT_LE(files, max_count);
  EXPECT_GE(files, 2u);
}

TEST(EndedProcess, AtEachCallOfFiveCheckpointsLosesNothing) {
  const Points points(12);
  const Learned undisturbed = [&] {
    const TemporaryFolder folder;
    return train(points, checkpoints_in(folder, 10, 2, 2));
  }();
  int call = 1;
  std::map<int64_t, int> resumed;
  for (;; ++call) {
    SCOPED_TRACE("ended at call " + std::to_string(call));
    const TemporaryFolder folder;
    const TrainerOptions options = checkpoints_in(folder, 10, 2, 2);
    const int end = end_of(start(points, options, call));
    if (end == 0) break;
    ASSERT_EQ(end, 9);
    const Learned learned = train(points, options);
    EXPECT_EQ(learned.variables, undisturbed.variables);
    EXPECT_EQ(learned.loss, undisturbed.loss);
    ++resumed[learned.resumed_from];
    // Where the last one was complete, nothing was written since.
    expect_only_checkpoints(folder, learned.resumed_from == 10 ? 3 : 2);
  }
  std::printf("%d calls, resumed from", call - 1);
  for (const auto& [step, times] : resumed) std::printf(" step %d (%d)", static_cast<int>(step), times);
  std::printf("\n");
  EXPECT_GE(call, 50);
  EXPECT_GE(resumed.size(), 5u);
}

std::set<std::string> names_in_folder(const TemporaryFolder& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) names.insert(entry.path().filename().string());
  return names;
}

// A training that continues with checkpoints of other steps replaces none of the files that were begun, and yet none is left.
TEST(EndedProcess, LeavesNoTemporaryFileToTheTrainingThatContinues) {
  const Points points(12);
  int left = 0;
  for (int call = 1;; ++call) {
    SCOPED_TRACE("ended at call " + std::to_string(call));
    const TemporaryFolder folder;
    const int end = end_of(start(points, checkpoints_in(folder, 10, 2, 2), call));
    if (end == 0) break;
    ASSERT_EQ(end, 9);
    left += names_in_folder(folder).begin()->starts_with('.') ? 1 : 0;
    train(points, checkpoints_in(folder, 11, 11, 2));
    for (const std::string& name : names_in_folder(folder)) EXPECT_TRUE(name.starts_with("step-")) << name << " is left";
  }
  EXPECT_GE(left, 15) << "calls after which there was one";
}

TEST(EndedProcess, ATrainingThatIsOverRemovesWhatIsLeftAndNothingElse) {
  const Points points(12);
  const TemporaryFolder folder;
  const TrainerOptions options = checkpoints_in(folder, 4, 2);
  train(points, options);
  // A process that writes a checkpoint until it is told to end.
  int ends[2];
  int begun[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::pipe(begun), 0);
  char byte = 0;
  const pid_t living = ::fork();
  if (living == 0) {
    ::close(ends[1]);
    const auto file = FileReplacement::create(folder / "step-000000006.safetensors");
    if (!file.ok() || ::write(begun[1], "x", 1) != 1 || ::read(ends[0], &byte, 1) < 0) ::_exit(1);
    ::_exit(0);  // its file stays
  }
  ASSERT_EQ(::read(begun[0], &byte, 1), 1);
  const auto own = FileReplacement::create(folder / "step-000000008.safetensors");
  ASSERT_TRUE(own.ok());
  const std::set<std::string> whole = names_in_folder(folder);
  EXPECT_EQ(whole.size(), 4u);
  const pid_t ended = ::fork();
  if (ended == 0) ::_exit(0);
  ASSERT_EQ(end_of(ended), 0);
  const auto write = [&](const char* name, pid_t process) {
    const std::string made = "." + std::string(name) + "." + std::to_string(process) + ".99999.tmp";
    testing::write_text(folder / made, "left");
    return made;
  };
  write("step-000000003.safetensors", ended);
  write("step-000000003.safetensors", ::getpid());  // of an earlier process of this number
  std::set<std::string> expected = whole;
  expected.insert(write("net.heddle", ended));
  expected.insert(write("step-000000003.safetensors", 1));  // a process that runs
  train(points, options);
  EXPECT_EQ(names_in_folder(folder), expected);
  ::close(ends[1]);
  EXPECT_EQ(end_of(living), 0);
  for (const int fd : {ends[0], begun[0], begun[1]}) ::close(fd);
  // Now it runs no longer. A training may also begin anew, or be made step by step.
  const LineSession session;
  Trainer trainer = session.trainer(points.dataset(), options);
  ASSERT_TRUE(trainer.step().ok());
  ASSERT_TRUE(trainer.save_checkpoint().ok());
  expected.insert("step-000000001.safetensors");
  std::erase_if(expected, [](const std::string& name) { return name.starts_with(".step-000000006"); });
  EXPECT_EQ(names_in_folder(folder), expected);
}

TEST(EndedProcess, AtRandomMomentsLosesNothing) {
  const Points points(12);
  constexpr int64_t steps = 400;
  constexpr int max_kills = 50;
  const auto begun = std::chrono::steady_clock::now();
  const Learned undisturbed = [&] {
    const TemporaryFolder folder;
    return train(points, checkpoints_in(folder, steps, 7, 2));
  }();
  // Moments within half of a whole training, however long this build takes for it.
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begun);
  const auto longest = static_cast<uint64_t>(std::max<int64_t>(took.count() / 2, 1));
  std::mt19937 random(1);
  int kills = 0, ended = 0;
  while (kills < max_kills) {
    const TemporaryFolder folder;
    const TrainerOptions options = checkpoints_in(folder, steps, 7, 2);
    // It is killed again and again until it gets to its end.
    for (int end = 137; end == 137 && kills < max_kills;) {
      const pid_t child = start(points, options, 0);
      std::this_thread::sleep_for(std::chrono::microseconds(random() % longest));
      ::kill(child, SIGKILL);
      end = end_of(child);
      ++(end == 137 ? kills : ended);
      ASSERT_TRUE(end == 137 || end == 0) << end;
    }
    const Learned learned = train(points, options);
    EXPECT_EQ(learned.variables, undisturbed.variables);
    EXPECT_EQ(learned.loss, undisturbed.loss);
  }
  std::printf("%d kills, %d came to their end\n", kills, ended);
  EXPECT_GT(ended, 0) << "none did in half of the time that one takes: what they did before was lost";
}

}  // namespace
}  // namespace heddle::testing_train
