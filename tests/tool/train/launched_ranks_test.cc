// heddle train by several processes that other programs start, start again or bring together: mpirun, a script, Redis.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "rank_tools.h"
#include "rendezvous/redis_server.h"

namespace heddle::tool_tests {
namespace {

using testing_rendezvous::is_installed;
using testing_rendezvous::RedisServer;

// A command of the system, and its output.
Outcome run_command(const std::string& command) {
  Outcome outcome;
  std::FILE* const pipe = ::popen(("exec 2>&1; " + command).c_str(), "r");
  char buffer[4096];
  for (size_t n; (n = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0;) outcome.out.append(buffer, n);
  const int status = ::pclose(pipe);
  outcome.status = WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
  return outcome;
}
std::string line_of(const Words& words) {
  std::string line = tool_path;
  for (const std::string& word : words) line += " '" + word + "'";
  return line;
}
const std::string mpirun = "mpirun --allow-run-as-root --oversubscribe ";

TEST(ToolRanks, AreStartedByMpirun) {
  HEDDLE_NEEDS_PROGRAM("mpirun");
  const LenetJob job(2);
  expect_all_well(job.train("whole"));
  Words words = job.words(job.files_of("pmix"));
  for (const Words& rendezvous : {Words{"--rendezvous", "pmix"}, Words{"--rendezvous", "file:" + job.file("other"), "--timeout", "20"}}) {
    std::filesystem::remove_all(job.file("pmix"));
    Words all = words;
    all.insert(all.end(), rendezvous.begin(), rendezvous.end());
    const Outcome outcome = run_command(mpirun + "-n 2 " + line_of(all));
    EXPECT_EQ(outcome.status, 0) << outcome.out;
    EXPECT_TRUE(has(outcome.out, "2 ranks train together, by " + rendezvous[1])) << outcome.out;
    EXPECT_EQ(job.learned("pmix"), job.learned("whole"));
  }
  Words wrong = job.words({"--no-output", "--rendezvous", "pmix", "--ranks", "3"});
  const Outcome disagree = run_command(mpirun + "-n 2 " + line_of(wrong));
  EXPECT_NE(disagree.status, 0);
  EXPECT_TRUE(has(disagree.out, "of 2, and the options say any of 3")) << disagree.out;
  const Outcome lonely = run_command(mpirun + "-n 2 " + line_of(job.words({"--no-output"})));
  EXPECT_EQ(lonely.status, 0) << lonely.out;
  EXPECT_TRUE(has(lonely.out, "a launcher has started 2 processes, and each of them trains alone")) << lonely.out;
}

// Returns a script that runs a command, which the last of two ranks kills once, as soon as there is a checkpoint.
std::string dies_once(const LenetJob& job, const std::string& run) {
  std::string file = job.file(run + ".sh");
  write_text(file, "#!/bin/bash\n\"$@\" &\nchild=$!\nif [ \"${PMIX_RANK:-1}\" = 1 ] && [ ! -e '" + job.file(run + ".killed") +
                       "' ]; then\n  until ls '" + job.file(run) + "'/step-* >/dev/null 2>&1; do sleep 0.01; done\n  touch '" +
                       job.file(run + ".killed") + "'\n  kill -KILL $child\nfi\nwait $child\n");
  return file;
}

TEST(ToolRanks, AreStartedAgainByAScript) {
  const LenetJob job(2, 400);
  expect_all_well(job.train("whole"));
  const std::string script = HEDDLE_SOURCE_DIR "/tools/restart_training.sh 3 ";
  const Outcome plain = run_command(script + line_of(job.rank(0, "plain")) + " & " + script + "bash '" + dies_once(job, "plain") + "' " +
                                    line_of(job.rank(1, "plain")) + "; other=$?; wait $! && exit $other");
  EXPECT_EQ(plain.status, 0) << plain.out;
  EXPECT_TRUE(has(plain.out, "ended with status 137, runs again")) << plain.out;
  EXPECT_TRUE(has(plain.out, "ended with status 1, runs again")) << plain.out;
  EXPECT_EQ(job.learned("plain"), job.learned("whole"));
  const Outcome wrong = run_command(script + line_of({"train", "/no/such/net", "--steps", "1", "--data", "synthetic"}));
  EXPECT_EQ(wrong.status, 3) << "no restart helps: " << wrong.out;
  EXPECT_FALSE(has(wrong.out, "runs again")) << wrong.out;
  const std::string runs = job.file("runs"), said = job.file("said");
  const Outcome stopped = run_command(script + "bash -c 'echo x >> \"" + runs + "\"; exit 1' 2> '" + said +
                                      "' & until grep -q 'runs again' '" + said + "'; do sleep 0.01; done; kill -TERM $!; wait $!");
  EXPECT_EQ(stopped.status, 1) << stopped.out;
  EXPECT_EQ(lines_in(runs), 1u) << "it was told to stop while it waited to run it again";
  const Outcome none = run_command(script + "/no/such/heddle train");
  EXPECT_EQ(none.status, 127) << none.out;
  EXPECT_FALSE(has(none.out, "runs again")) << none.out;
  const Outcome decimal = run_command(HEDDLE_SOURCE_DIR "/tools/restart_training.sh 08 true");
  EXPECT_EQ(decimal.status, 0) << decimal.out;
}

// The script around mpirun, which ends all ranks with the one that dies. With --enable-recovery mpirun's status says nothing: there each
// rank has a script of its own, below mpirun, and meets the others by a folder, since PMIx takes no second process for a rank.
TEST(ToolRanks, AreStartedAgainWithMpirun) {
  HEDDLE_NEEDS_PROGRAM("mpirun");
  const LenetJob job(2, 400);
  expect_all_well(job.train("whole"));
  const std::string script = HEDDLE_SOURCE_DIR "/tools/restart_training.sh 3 ", recovery = mpirun + "--enable-recovery -n 2 ";
  for (const std::string run : {"around", "below"}) {
    Words words = job.words(job.files_of(run));
    words.insert(words.end(), {"--rendezvous", run == "below" ? "file:" + job.file("other") : "pmix", "--timeout", "20"});
    const std::string rank = "bash '" + dies_once(job, run) + "' " + line_of(words);
    const Outcome outcome = run_command(run == "around" ? script + mpirun + "-n 2 " + rank : recovery + script + rank);
    EXPECT_EQ(outcome.status, 0) << run << outcome.out;
    EXPECT_TRUE(has(outcome.out, "runs again")) << run << outcome.out;
    EXPECT_EQ(job.learned(run), job.learned("whole")) << run << outcome.out;
  }
}

TEST(ToolRanks, NeedThePluginThatConnectsThem) {
  const LenetJob job(2);
  std::filesystem::create_directory(job.file("plugins"));
  std::filesystem::create_symlink(HEDDLE_BINARY_DIR "/lib/cpu.so", job.file("plugins/cpu.so"));
  const Outcome outcome = run_command("HEDDLE_PLUGIN_DIR='" + job.file("plugins") + "' " + line_of(job.rank(0, "run")));
  EXPECT_NE(outcome.status, 0);
  EXPECT_TRUE(has(outcome.out, "error[missing-resource]")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "which takes a plugin that connects processes (gloo.so): ")) << outcome.out;
}

// The ranks of a training that meet at a server.
std::vector<Tool> tools_at(const RedisServer& server, const LenetJob& job, const std::string& run) {
  std::vector<Tool> all;
  for (int r = 0; r < job.ranks; ++r) {
    Words words = job.rank(r, run);
    *(std::find(words.begin(), words.end(), "--rendezvous") + 1) = server.rendezvous() + "/" + run;
    all.emplace_back(words);
  }
  return all;
}

// The server is asked when ranks meet, and when one is lost.
TEST(ToolRanks, MeetByRedisAndTrainOnWithoutIt) {
  HEDDLE_NEEDS_PROGRAM("redis-server");
  const LenetJob job(2);
  expect_all_well(job.train("whole"));
  RedisServer server;
  expect_all_well(run_together(tools_at(server, job, "one")));
  EXPECT_EQ(job.learned("one"), job.learned("whole"));
  std::vector<Tool> tools = tools_at(server, job, "two");
  tools[1].interrupt(0, [&](const std::string&, pid_t) {
    const bool some = lines_in(job.file("two.jsonl")) >= 5;
    if (some) server.kill();
    return some;
  });
  expect_all_well(run_together(std::move(tools)));
  EXPECT_EQ(job.learned("two"), job.learned("whole"));
}

TEST(ToolRanks, SayWhenTheServerIsGoneWithARank) {
  HEDDLE_NEEDS_PROGRAM("redis-server");
  const LenetJob job(2, 1'000'000);
  RedisServer server;
  std::vector<Tool> tools = tools_at(server, job, "run");
  tools[1].interrupt(SIGKILL, [&](const std::string&, pid_t) {
    const bool some = lines_in(job.file("run.jsonl")) >= 20;
    if (some) server.kill();
    return some;
  });
  const std::vector<Outcome> outcomes = run_together(std::move(tools));
  EXPECT_EQ(outcomes[0].status, 1);
  for (const char* const part : {"rank 1 cannot be reached any more, missing in ", "reports of ranks can not be read: ", "redis:127.0.0.1"})
    EXPECT_TRUE(has(outcomes[0].err, part)) << part << ": " << outcomes[0].err;
}

}  // namespace
}  // namespace heddle::tool_tests
