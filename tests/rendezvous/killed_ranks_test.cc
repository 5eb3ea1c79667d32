// Ranks that are processes come together, whenever some of them are killed and started again.
#include <cstdio>
#include <set>

#include "load/temporary_folder.h"
#include "rendezvous/rank_processes.h"
#include "rendezvous/redis_server.h"

namespace heddle::testing_rendezvous {
namespace {

// Starts jobs one after the other in one place, each with what the others left there.
void expect_all_join(const std::string& rendezvous, int starts, int32_t ranks, unsigned one_of, unsigned seed) {
  std::mt19937 random(seed);
  std::set<std::string> attempts;
  int killed = 0;
  for (int i = 0; i < starts; ++i) {
    JobOfProcesses job(rendezvous, ranks, one_of, &random);
    const std::string attempt = job.join_all();
    ASSERT_FALSE(attempt.empty()) << "start " << i << " of seed " << seed;
    EXPECT_TRUE(attempts.insert(attempt).second) << "start " << i << " joined an earlier attempt";
    job.end();
    killed += job.killed();
  }
  std::printf("%d starts of %d processes, %d of which were killed\n", starts, ranks, killed);
  std::fflush(stdout);  // or a child that is forked prints it again
  EXPECT_EQ(killed > 0, one_of > 0);
}

TEST(KilledRanks, NoneOfOneToFour) {
  const testing::TemporaryFolder folder;
  for (int32_t ranks = 1; ranks <= 4; ++ranks) expect_all_join("file:" + (folder / std::to_string(ranks)).string(), 5, ranks, 0, 1);
}

TEST(KilledRanks, OfAHundredStartsInOneFolder) {
  const testing::TemporaryFolder folder;
  expect_all_join("file:" + folder.path().string(), 100, 3, 3, 2);
}

TEST(KilledRanks, OfThirtyStartsWithOneRedisServer) {
  HEDDLE_NEEDS_PROGRAM("redis-server");
  const RedisServer server;
  expect_all_join(server.rendezvous(), 30, 3, 3, 3);
}

}  // namespace
}  // namespace heddle::testing_rendezvous
