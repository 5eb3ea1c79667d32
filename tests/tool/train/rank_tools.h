// Trainings by several processes of `heddle train`.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/checksum.h"
#include "learning_samples.h"

namespace heddle::tool_tests {

// Runs all tools at once, and returns how they ended.
inline std::vector<Outcome> run_together(std::vector<Tool> tools) {
  std::vector<Outcome> outcomes(tools.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < tools.size(); ++i) threads.emplace_back([&, i] { outcomes[i] = tools[i].run(); });
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline void expect_all_well(const std::vector<Outcome>& outcomes) {
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.status, 0) << outcome.err;
}

inline size_t lines_in(const std::string& file) {
  const std::string text = read_text(file);
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

// lenet, which learns noise, and what the ranks of a training of it are called with. Where they write, and meet, is up to `run`.
struct LenetJob {
  explicit LenetJob(int of_ranks, int64_t steps = 60) : ranks(of_ranks), all_steps(steps) {
    EXPECT_EQ(heddle({"model", "lenet", "--loss", "--seed", "2", "-o", net}).status, 0);
  }
  std::string file(const std::string& name) const { return (folder / name).string(); }
  Words words(const Words& more) const {
    Words all = {
        "train", net,      "--steps", std::to_string(all_steps), "--batch", "24", "--data", "synthetic", "--samples", "120", "--threads",
        "1",     "--seed", "3",       "--learning-rate",         "0.001"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  // With files that are called after `run`.
  Words rank(int rank, const std::string& run, const Words& more = {}) const {
    Words all = words(
        {"--rendezvous", "file:" + file("meeting"), "--rank", std::to_string(rank), "--ranks", std::to_string(ranks), "--timeout", "20"});
    const Words files = files_of(run);
    all.insert(all.end(), files.begin(), files.end());
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Words files_of(const std::string& run) const {
    return {"--log",   file(run + ".jsonl"), "-o", file(run + ".heddle"), "--checkpoint-dir", file(run), "--checkpoint-every", "7",
            "--resume"};
  }
  std::vector<Tool> tools(const std::string& run, const Words& more = {}) const {
    std::vector<Tool> all;
    for (int r = 0; r < ranks; ++r) all.emplace_back(rank(r, run, more));
    return all;
  }
  // Trains and returns how the ranks ended.
  std::vector<Outcome> train(const std::string& run, const Words& more = {}) const { return run_together(tools(run, more)); }
  // Sends the signal to a rank once rank 0 has made some steps.
  std::vector<Outcome> train_and_signal(const std::string& run, int of, int signal, const Words& more = {}) const {
    std::vector<Tool> all = tools(run, more);
    all[static_cast<size_t>(of)].interrupt(signal,
                                           [&, log = file(run + ".jsonl")](const std::string&, pid_t) { return lines_in(log) >= 20; });
    return run_together(std::move(all));
  }
  std::vector<double> losses(const std::string& run) const {
    std::vector<double> all;
    int64_t last = 0;
    for (const Json& line : lines_of(file(run + ".jsonl"))) {
      if (!line.contains("loss")) continue;  // a test
      EXPECT_EQ(line["step"], ++last) << "each step is there once";
      all.push_back(line["loss"]);
    }
    return all;
  }
  // A checksum of all variables; 0: there is no file of them.
  uint64_t learned(const std::string& run) const {
    const std::string bytes = read_text(file(run + ".safetensors"));
    return bytes.empty() ? 0 : checksum(testing::bytes_of(bytes));
  }

  const TemporaryFolder folder;
  const std::string net = (folder / "lenet.heddle").string();
  int ranks;
  int64_t all_steps;
};

}  // namespace heddle::tool_tests
