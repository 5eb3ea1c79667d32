// A process that can not start more threads: an error when the runtime is made, not the end of the process in the middle of a run.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>

#include "heddle/status.h"
#include "schedule/tbb_executor.h"

namespace heddle {
namespace {

uint64_t address_space() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

TEST(Threads, ThatCanBeMadeAreNoError) {
  EXPECT_TRUE(check_threads(0).ok());
  EXPECT_TRUE(check_threads(3).ok());
}

TEST(Threads, ThatCannotBeMadeAreAnError) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer can't do without address space";
#endif
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // Leaves room for the stacks of about two threads.
    const rlimit limit = {address_space() + (uint64_t{11} << 20), RLIM_INFINITY};
    if (::setrlimit(RLIMIT_AS, &limit) != 0) ::_exit(100);
    const Status status = check_threads(8);
    if (status.code() != Code::out_of_memory) ::_exit(101);
    if (status.text().find(" of the 8 threads") == std::string::npos) ::_exit(102);
    ::_exit(check_threads(1).ok() ? 0 : 103);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << WEXITSTATUS(status);
}

}  // namespace
}  // namespace heddle
