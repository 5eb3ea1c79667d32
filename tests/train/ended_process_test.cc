// The process ends at each call of the system that writes, syncs, renames or removes a file of a checkpoint, and at random moments: what
// the next one resumes from is whole, and it learns what an undisturbed training learns, bit for bit.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <map>
#include <random>
#include <thread>

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

TEST(EndedProcess, AtRandomMomentsLosesNothing) {
  const Points points(12);
  constexpr int64_t steps = 400;
  const Learned undisturbed = [&] {
    const TemporaryFolder folder;
    return train(points, checkpoints_in(folder, steps, 7, 2));
  }();
  std::mt19937 random(1);
  int kills = 0;
  std::map<int64_t, int> resumed;
  while (kills < 50) {
    const TemporaryFolder folder;
    const TrainerOptions options = checkpoints_in(folder, steps, 7, 2);
    // It is killed again and again until it gets to its end.
    for (int end = 137; end == 137;) {
      const pid_t child = start(points, options, 0);
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 60000));
      ::kill(child, SIGKILL);
      end = end_of(child);
      if (end == 137) ++kills;
      ASSERT_TRUE(end == 137 || end == 0) << end;
    }
    const Learned learned = train(points, options);
    EXPECT_EQ(learned.variables, undisturbed.variables);
    EXPECT_EQ(learned.loss, undisturbed.loss);
  }
  std::printf("%d kills\n", kills);
}

}  // namespace
}  // namespace heddle::testing_train
