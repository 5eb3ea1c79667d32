// Ranks that are processes: each is this test program again, which runs one disabled test and finds in its environment which rank it is.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "collectives/participants.h"

namespace heddle::testing_collectives {

// All that a process is told.
struct ThisRank {
  int rank = 0, size = 1;
  std::string folder;  // where the ranks meet, and for files
  static ThisRank find() {
    const char* const rank = std::getenv("HEDDLE_TEST_RANK");
    const char* const size = std::getenv("HEDDLE_TEST_RANKS");
    const char* const folder = std::getenv("HEDDLE_TEST_RANKS_FOLDER");
    return rank && size && folder ? ThisRank{std::atoi(rank), std::atoi(size), folder} : ThisRank{};
  }
};

// The options of a session of that process; `devices` are members.
inline SessionOptions options_of(const ThisRank& here, const std::vector<std::string>& devices = {}) {
  SessionOptions options;
  options.copies = Copies::automatic;
  CommunicatorOptions& communicator = options.communicators.emplace_back();
  communicator.name = world;
  communicator.rank = here.rank;
  communicator.size = here.size;
  communicator.rendezvous = "file:" + here.folder + "/meet";
  communicator.devices = devices;
  return options;
}

class RankProcess {
 public:
  // Starts the test "DISABLED_..." of this program. `environment` comes in addition.
  RankProcess(const std::string& test, const ThisRank& what, const std::map<std::string, std::string>& environment = {})
      : said_(what.folder + "/said." + std::to_string(what.rank)) {
    std::filesystem::create_directories(what.folder);
    std::vector<std::string> variables = {"HEDDLE_TEST_RANK=" + std::to_string(what.rank), "HEDDLE_TEST_RANKS=" + std::to_string(what.size),
                                          "HEDDLE_TEST_RANKS_FOLDER=" + what.folder};
    for (const auto& [name, value] : environment) variables.push_back(name + '=' + value);
    std::vector<std::string> arguments = {"/proc/self/exe", "--gtest_filter=" + test, "--gtest_also_run_disabled_tests",
                                          "--gtest_color=no"};
    std::vector<char*> argv, envp;
    for (std::string& one : arguments) argv.push_back(one.data());
    argv.push_back(nullptr);
    for (std::string& one : variables) envp.push_back(one.data());
    for (char** one = environ; *one; ++one) envp.push_back(*one);
    envp.push_back(nullptr);
    const int output = ::open(said_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(output, STDOUT_FILENO);
      ::dup2(output, STDERR_FILENO);
      ::execve(argv[0], argv.data(), envp.data());
      ::_exit(127);
    }
    ::close(output);
  }
  ~RankProcess() {
    if (pid_ > 0) signal(SIGKILL), wait();
  }
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;
  pid_t pid() const { return pid_; }
  void signal(int number) const { ::kill(pid_, number); }
  // Returns how it ended: its exit status, 1000 + the signal that ended it, or -1 if it has not after `limit`.
  int wait(std::chrono::seconds limit = std::chrono::seconds(120)) {
    const auto until = std::chrono::steady_clock::now() + limit;
    int status = 0;
    while (::waitpid(pid_, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > until) return -1;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  std::string said() const {
    std::ifstream file(said_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  const std::string said_;
  pid_t pid_ = -1;
};

}  // namespace heddle::testing_collectives
