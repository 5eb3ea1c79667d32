// A net and its weights are replaced together: whenever the writer is killed, the file holds the old result or the new one, and the next
// writer removes the temporary files.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <set>

#include "base/file.h"
#include "load/load.h"
#include "load/save.h"
#include "net/net.h"
#include "temporary_folder.h"

namespace heddle {
namespace {

using testing::TemporaryFolder;

// A net with 8 kB of weights that are all `value`.
Net net_of(float value) {
  NetBuilder b("net");
  const std::vector<float> w(2000, value);
  b.output(b.add1("Add", "y", {b.input("x", DType::f32, Shape{2000}), b.constant("w", Blob::copy_of(DType::f32, Shape{2000}, w.data()))}));
  return b.finish();
}

// Returns the weights' value of the net in that file; -1 if it does not load.
float value_in(const std::filesystem::path& file) {
  LoadOptions options;
  options.verify_checksums = true;
  const auto net = load_net(file, options);
  EXPECT_TRUE(net.ok()) << net.status().text();
  if (!net.ok()) return -1;
  for (const Value& value : net->values)
    if (value.kind == Value::Kind::constant) return reinterpret_cast<const float*>(value.content.blob->data)[7];
  return -1;
}

enum class End { killed, done, refused };

// Saves in a process of its own, which is killed before its `call`-th system call.
End save_killed_at(int call, const Net& net, const std::filesystem::path& file) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(2);
    ::raise(SIGSTOP);
    ::_exit(save_net(net, file).ok() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status)) return End::refused;
  EXPECT_EQ(::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL), 0);
  // The child stops before each call and after it.
  for (int stop = 0; stop < 2 * call + 1; ++stop) {
    ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    ::waitpid(child, &status, 0);
    if (WIFEXITED(status)) {
      EXPECT_EQ(WEXITSTATUS(status), 0);
      return End::done;
    }
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  return End::killed;
}

std::set<std::string> names_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

class KilledWriter : public ::testing::TestWithParam<const char*> {};

TEST_P(KilledWriter, LeavesTheOldResultOrTheNewOne) {
  const Net before = net_of(1), after = net_of(2);
  int olds = 0, news = 0;
  for (int call = 0;; ++call) {
    SCOPED_TRACE("killed before system call " + std::to_string(call));
    const TemporaryFolder folder;
    const std::filesystem::path file = folder / GetParam();
    ASSERT_TRUE(save_net(before, file).ok());
    const End end = save_killed_at(call, after, file);
    if (end == End::refused) GTEST_SKIP() << "this machine lets no process be traced";
    const float value = value_in(file);
    ASSERT_TRUE(value == 1 || value == 2) << value;
    ++(value == 1 ? olds : news);
    // The next writer of that name, killed or not, leaves the old result whole until its own is complete, and no temporary file.
    ASSERT_TRUE(save_net(net_of(3), file).ok());
    EXPECT_EQ(value_in(file), 3);
    EXPECT_EQ(names_in(folder.path()), (std::set<std::string>{GetParam(), "n.safetensors"}));
    if (end == End::done) break;
  }
  std::printf("%s: the old result after %d kills, the new one after %d\n", GetParam(), olds, news);
  EXPECT_GT(olds, 10);
  EXPECT_GE(news, 4) << "of them those between the two names";
}

// Killed writers follow one another, without a complete one between them.
TEST_P(KilledWriter, MayBeFollowedByAnother) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / GetParam();
  ASSERT_TRUE(save_net(net_of(1), file).ok());
  float last = 1;
  for (int call = 0;; ++call) {
    const auto next = static_cast<float>(call + 2);
    const End end = save_killed_at(call, net_of(next), file);
    if (end == End::refused) GTEST_SKIP() << "this machine lets no process be traced";
    const float value = value_in(file);
    ASSERT_TRUE(value == last || value == next) << "call " << call << ": " << value;
    last = value;
    if (end == End::done) break;
  }
  EXPECT_EQ(names_in(folder.path()), (std::set<std::string>{GetParam(), "n.safetensors"}));
}

INSTANTIATE_TEST_SUITE_P(Forms, KilledWriter, ::testing::Values("n.heddle", "n.json"),
                         [](const auto& info) { return std::string(info.param).substr(2); });

// A temporary file of a living process is not taken for one that was left over.
TEST(Replacement, LeavesTheTemporaryFilesOfLivingProcessesAlone) {
  const TemporaryFolder folder;
  auto own = FileReplacement::create(folder / "n.heddle");
  ASSERT_TRUE(own.ok());
  testing::write_text(folder / ".n.heddle.1.0.tmp", "of the first process of the machine");
  testing::write_text(folder / ".m.heddle.4194304.0.tmp", "of another name");  // no such process exists: process numbers end before
  testing::write_text(folder / ".n.heddle.4194304.x.tmp", "not ours");
  testing::write_text(folder / ".n.heddle.4194304.0.tmp", "left behind");
  auto next = FileReplacement::create(folder / "n.heddle");
  ASSERT_TRUE(next.ok());
  const std::set<std::string> names = names_in(folder.path());
  EXPECT_EQ(names.size(), 5u);
  EXPECT_EQ(names.count(".n.heddle.4194304.0.tmp"), 0u);
}

}  // namespace
}  // namespace heddle
