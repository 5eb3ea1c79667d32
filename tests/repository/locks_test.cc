// Locks say what they protect: the runtime uses the annotated Mutex of base/threads/mutex.h alone, and clang checks the annotations.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>

#include "sources.h"

namespace heddle::testing_repository {
namespace {

struct Checked {
  int status = 0;
  std::string output;
};

// Runs tools/check_locks.sh.
Checked check_locks(const std::string& sources = {}) {
  Checked checked;
  std::FILE* const pipe = ::popen(("'" + (checkout / "tools/check_locks.sh").string() + "' " + sources + " 2>&1").c_str(), "r");
  if (!pipe) return {-1, "no process"};
  std::array<char, 4096> part;
  while (const size_t count = std::fread(part.data(), 1, part.size(), pipe)) checked.output.append(part.data(), count);
  const int ended = ::pclose(pipe);
  checked.status = WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
  return checked;
}

constexpr int no_clang = 77;

TEST(Locks, AreHeldWhereGuardedMembersAreUsed) {
  const Checked checked = check_locks();
  if (checked.status == no_clang) GTEST_SKIP() << checked.output;
  EXPECT_EQ(checked.status, 0) << checked.output;
}

// Checks the check: a lock that is forgotten, and a wait and a call without the lock they need, are found.
TEST(Locks, AreMissedWhereTheyAreForgotten) {
  const std::filesystem::path file = std::filesystem::temp_directory_path() / ("heddle_locks_" + std::to_string(::getpid()) + ".cc");
  std::ofstream(file) << R"(#include "base/threads/mutex.h"
namespace heddle {
struct Counter {
  Mutex mutex;
  Condition changed;
  int count HEDDLE_GUARDED_BY(mutex) = 0;
  void add() HEDDLE_REQUIRES(mutex) { ++count; }
  void right() {
    MutexLock lock(mutex);
    while (count == 0) changed.wait(mutex);
    lock.unlock();
    lock.lock();
    add();
  }
  int forgotten() { return count; }
  void unlocked() {
    MutexLock lock(mutex);
    lock.unlock();
    add();
  }
  void waits() { changed.wait(mutex); }
};
}  // namespace heddle
)";
  const Checked checked = check_locks("'" + file.string() + "'");
  std::filesystem::remove(file);
  if (checked.status == no_clang) GTEST_SKIP() << checked.output;
  EXPECT_EQ(checked.status, 1) << checked.output;
  for (const char* what :
       {"reading variable 'count' requires holding mutex 'mutex'", "calling function 'add' requires holding mutex 'mutex'",
        "calling function 'wait' requires holding mutex 'mutex'", "3 errors"})
    EXPECT_NE(checked.output.find(what), std::string::npos) << what << "\n" << checked.output;
}

TEST(Locks, OfTheRuntimeAreAnnotated) {
  // The files that may name the standard library's locks.
  const std::map<std::string, std::string> exceptions = {
      {"runtime/base/threads/mutex.h", "wraps them"},
  };
  static const std::regex plain(
      R"(\bstd::((recursive_|timed_|shared_|recursive_timed_|shared_timed_)?mutex|lock_guard|unique_lock|scoped_lock|shared_lock|condition_variable(_any)?)\b)");
  size_t mutexes = 0;
  std::map<std::string, size_t> used;
  for (const std::string& name : sources_of({"runtime"}))
    for (const std::string& line : lines_of(name)) {
      if (line.find("HEDDLE_GUARDED_BY(") != std::string::npos) ++mutexes;
      if (line.find("std::") == std::string::npos || !std::regex_search(line.substr(0, line.find("//")), plain)) continue;
      const auto entry = std::find_if(exceptions.begin(), exceptions.end(), [&](const auto& one) { return name.starts_with(one.first); });
      if (entry == exceptions.end())
        ADD_FAILURE() << name << ": " << line << "\nuse Mutex, MutexLock and Condition of base/threads/mutex.h";
      else
        ++used[entry->first];
    }
  EXPECT_GE(mutexes, 20u) << "this test no longer sees the annotations";
  for (const auto& [name, why] : exceptions) EXPECT_GT(used[name], 0u) << name << " needs no exception any more";
}

}  // namespace
}  // namespace heddle::testing_repository
