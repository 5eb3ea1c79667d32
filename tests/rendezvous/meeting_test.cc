// The meeting of ranks that are threads of this process.
#include "rendezvous/meeting.h"

#include <fcntl.h>

#include <atomic>
#include <barrier>
#include <cstdio>
#include <filesystem>
#include <set>
#include <thread>
#include <vector>

#include "load/temporary_folder.h"
#include "rendezvous/redis_server.h"
#include "rendezvous/store_helpers.h"

namespace heddle::testing_rendezvous {
namespace {

using testing::TemporaryFolder;

// One rank on a thread of its own, which calls next() once.
class RankThread {
 public:
  RankThread(const std::string& rendezvous, int32_t rank, int32_t ranks, const std::string& payload,
             std::chrono::milliseconds time = std::chrono::seconds(60))
      : thread_([this, rendezvous, rank, ranks, payload, time] {
          const auto store = store_at(rendezvous, rank, ranks);
          status_ = Meeting(store.get(), rank, ranks).next(payload, {std::chrono::steady_clock::now() + time, cancelled_}, &joined_);
        }) {}
  ~RankThread() {
    cancel();
    if (thread_.joinable()) thread_.join();
  }
  void cancel() { cancel_ = true; }
  const Status& status() {
    if (thread_.joinable()) thread_.join();
    return status_;
  }
  const Joined& joined() {
    EXPECT_OK(status());
    return joined_;
  }

 private:
  std::atomic<bool> cancel_{false};
  const std::function<bool()> cancelled_ = [this] { return cancel_.load(); };
  Status status_;
  Joined joined_;
  std::thread thread_;
};

class MeetingTest : public ::testing::Test {
 protected:
  std::string text() const { return "file:" + folder_.path().string(); }
  // Waits until rank `rank` has written `name`, without which nothing of the test may go on.
  void await(int32_t rank, const std::string& name) {
    std::string ignored;
    EXPECT_OK(store_at(text())->wait({rank, name}, &ignored, patience()));
  }
  // Writes what a killed rank 0 leaves; returns the attempt's number.
  std::string leave_a_leader(int64_t k, int32_t ranks, bool gone) {
    std::string attempt(32, static_cast<char>('a' + k));
    const auto store = store_at(text());
    EXPECT_TRUE(set(*store, {0, "leader/" + std::to_string(k)}, attempt + " " + std::to_string(ranks)));
    if (gone) {
      EXPECT_TRUE(set(*store, {0, "go/" + attempt}, "go 0 0"));
    }
    return attempt;
  }
  void leave_a_record(const std::string& attempt, int32_t rank, int64_t j, int32_t ranks = 2) {
    EXPECT_TRUE(set(*store_at(text(), rank, 9), {rank, "here/" + attempt + "/" + std::to_string(j)},
                    std::to_string(ranks) + " 0123456789abcdef\nold"));
  }
  const TemporaryFolder folder_;
};

TEST_F(MeetingTest, OneRankNeedsNoStore) {
  Joined one, two;
  Meeting meeting(nullptr, 0, 1);
  EXPECT_OK(meeting.next("me", patience(std::chrono::seconds(-1)), &one));
  EXPECT_OK(meeting.next("again", patience(), &two));
  EXPECT_EQ(one.payloads, std::vector<std::string>{"me"});
  EXPECT_EQ(two.payloads, std::vector<std::string>{"again"});
  EXPECT_EQ(one.attempt.size(), 32u);
  EXPECT_NE(one.attempt, two.attempt);
}

TEST_F(MeetingTest, GivesAllThePayloadsOfAll) {
  for (int32_t ranks = 2; ranks <= 4; ++ranks) {
    std::vector<std::string> payloads;
    for (int32_t rank = 0; rank < ranks; ++rank)
      payloads.push_back(std::string("\0\n ", 3) + std::to_string(rank) + std::string(5000, 'x'));
    payloads.back().clear();
    std::vector<std::unique_ptr<RankThread>> all;
    for (int32_t rank = ranks - 1; rank >= 0; --rank)
      all.push_back(std::make_unique<RankThread>(text(), rank, ranks, payloads[static_cast<size_t>(rank)]));
    for (const auto& one : all) {
      EXPECT_EQ(one->joined().payloads, payloads);
      EXPECT_EQ(one->joined().attempt, all[0]->joined().attempt);
    }
  }
}

// A rank calls again when a connection could not be made: each call finds a newer attempt. Rank 0 tries to connect before it calls again,
// and so do others; one that is slower than that leaves an attempt out.
TEST_F(MeetingTest, CanBeHeldAgain) {
  std::vector<std::vector<std::string>> attempts(3);
  std::vector<std::thread> threads;
  std::barrier all_joined(3);
  for (int32_t rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      const auto store = store_at(text(), rank, 3);
      Meeting meeting(store.get(), rank, 3);
      for (int i = 0; i < 20; ++i) {
        Joined joined;
        const std::string call = " of call " + std::to_string(i);
        EXPECT_OK(meeting.next(std::to_string(rank) + call, patience(), &joined));
        all_joined.arrive_and_wait();
        EXPECT_EQ(joined.payloads, (std::vector<std::string>{"0" + call, "1" + call, "2" + call}));
        attempts[static_cast<size_t>(rank)].push_back(joined.attempt);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(attempts[0], attempts[1]);
  EXPECT_EQ(attempts[0], attempts[2]);
  EXPECT_EQ(std::set<std::string>(attempts[0].begin(), attempts[0].end()).size(), 20u);
}

TEST_F(MeetingTest, OverRedisIsTheSame) {
  HEDDLE_NEEDS_PROGRAM("redis-server");
  const RedisServer server;
  // Two jobs at once, of two names.
  RankThread a0(server.rendezvous() + "/a", 0, 2, "a0"), b0(server.rendezvous() + "/b", 0, 2, "b0"),
      b1(server.rendezvous() + "/b", 1, 2, "b1"), a1(server.rendezvous() + "/a", 1, 2, "a1");
  EXPECT_EQ(a0.joined().payloads, (std::vector<std::string>{"a0", "a1"}));
  EXPECT_EQ(b0.joined().payloads, (std::vector<std::string>{"b0", "b1"}));
  EXPECT_EQ(a1.joined().attempt, a0.joined().attempt);
  EXPECT_EQ(b1.joined().attempt, b0.joined().attempt);
  EXPECT_NE(a0.joined().attempt, b0.joined().attempt);
}

TEST_F(MeetingTest, JobsOfTwoCommunicatorsAreApart) {
  std::vector<std::thread> threads;
  for (const std::string name : {"a", "b"})
    for (int32_t rank = 0; rank < 2; ++rank)
      threads.emplace_back([this, name, rank] {
        const auto store = store_at(text(), rank, 2, name);
        Joined joined;
        ASSERT_OK(Meeting(store.get(), rank, 2).next(name + std::to_string(rank), patience(), &joined));
        EXPECT_EQ(joined.payloads, (std::vector<std::string>{name + "0", name + "1"}));
      });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(MeetingTest, LeftoversOfKilledRunsAreNotJoined) {
  // Twenty runs: some went, of others rank 0 was killed while it waited, and the last of those had another size.
  for (int64_t k = 0; k < 20; ++k) leave_a_leader(k, 2, k % 2 == 0);
  const std::string last = leave_a_leader(20, 7, false);
  leave_a_record(last, 1, 0, 7);
  leave_a_record(last, 0, 0, 7);
  RankThread one(text(), 1, 2, "new 1");
  await(1, "here/" + last + "/1");  // it came to that attempt, which may be a living one
  RankThread zero(text(), 0, 2, "new 0");
  EXPECT_EQ(one.joined().payloads, (std::vector<std::string>{"new 0", "new 1"}));
  EXPECT_EQ(zero.joined().payloads, one.joined().payloads);
  EXPECT_NE(zero.joined().attempt, last);
  await(0, "leader/21");
}

TEST_F(MeetingTest, TheNewestProcessOfARankCounts) {
  RankThread zero(text(), 0, 3, "0");
  await(0, "leader/0");
  std::string leader;
  bool found = false;
  EXPECT_OK(store_at(text())->get({0, "leader/0"}, &leader, &found));
  for (int64_t j = 0; j < 5; ++j) leave_a_record(leader.substr(0, 32), 1, j, 3);  // five processes that were killed
  RankThread one(text(), 1, 3, "1");
  await(1, "here/" + leader.substr(0, 32) + "/5");
  RankThread two(text(), 2, 3, "2");
  for (RankThread* rank : {&zero, &one, &two}) EXPECT_EQ(rank->joined().payloads, (std::vector<std::string>{"0", "1", "2"}));
}

TEST_F(MeetingTest, ARankThatComesTwiceFails) {
  RankThread earlier(text(), 1, 3, "1");
  RankThread zero(text(), 0, 3, "0");
  await(0, "leader/0");
  std::string leader;
  bool found = false;
  EXPECT_OK(store_at(text())->get({0, "leader/0"}, &leader, &found));
  await(1, "here/" + leader.substr(0, 32) + "/0");
  RankThread later(text(), 1, 3, "1 again");
  await(1, "here/" + leader.substr(0, 32) + "/1");
  RankThread two(text(), 2, 3, "2");
  EXPECT_EQ(later.joined().payloads, (std::vector<std::string>{"0", "1 again", "2"}));
  EXPECT_EQ(zero.joined().payloads, later.joined().payloads);
  expect_error(earlier.status(), HEDDLE_ERROR_DEVICE, {"another process says in " + text(), "rank 1", "give each process its own rank"});
}

// The one that counts may be dead: it is the deadline that says that it is not.
TEST_F(MeetingTest, ARankThatComesWhenAllAreThereWaitsForAnotherAttempt) {
  const auto store = store_at(text(), 0);
  Meeting zero(store.get(), 0, 2);
  Joined joined;
  {
    RankThread one(text(), 1, 2, "dead");
    EXPECT_OK(zero.next("0", patience(), &joined));
    EXPECT_EQ(one.joined().attempt, joined.attempt);
  }
  RankThread in_vain(text(), 1, 2, "in vain", std::chrono::milliseconds(50));
  expect_error(in_vain.status(), HEDDLE_ERROR_DEVICE, {joined.attempt, "went without this process", "another process is rank 1", text()});
  RankThread again(text(), 1, 2, "again");
  Joined newer;
  EXPECT_OK(zero.next("0", patience(), &newer));
  EXPECT_EQ(again.joined().attempt, newer.attempt);
  EXPECT_NE(newer.attempt, joined.attempt);
  EXPECT_EQ(newer.payloads, (std::vector<std::string>{"0", "again"}));
}

TEST_F(MeetingTest, TwoProcessesOfRankZeroAreTold) {
  RankThread earlier(text(), 0, 2, "0");
  await(0, "leader/0");
  RankThread later(text(), 0, 2, "0");
  expect_error(earlier.status(), HEDDLE_ERROR_DEVICE, {"another process says in " + text(), "rank 0", "each job its own place or name"});
  RankThread one(text(), 1, 2, "1");
  EXPECT_EQ(later.joined().attempt, one.joined().attempt);
}

TEST_F(MeetingTest, RanksThatNeverComeAreNamed) {
  RankThread zero(text(), 0, 6, "0", std::chrono::seconds(2)), two(text(), 2, 6, "2", std::chrono::seconds(2));
  for (RankThread* rank : {&zero, &two})
    expect_error(rank->status(), HEDDLE_ERROR_DEVICE, {"of 6 ranks only ranks 0 and 2 came to " + text(), "missing: ranks 1 and 3-5"});
}

TEST_F(MeetingTest, ARankZeroThatNeverComesIsNamed) {
  RankThread one(text(), 1, 3, "1", std::chrono::milliseconds(50));
  expect_error(one.status(), HEDDLE_ERROR_DEVICE, {"rank 0 has not come to " + text(), "rank 1 has"});
  leave_a_leader(0, 3, true);
  RankThread again(text(), 1, 3, "1", std::chrono::milliseconds(50));
  expect_error(again.status(), HEDDLE_ERROR_DEVICE, {"rank 0 has begun no other attempt in " + text()});
}

TEST_F(MeetingTest, RanksOfOtherSizesAreTold) {
  for (const auto& [size_of_zero, size_of_one] : {std::pair(2, 3), std::pair(3, 2)}) {
    RankThread zero(text(), 0, size_of_zero, "0"), one(text(), 1, size_of_one, "1");
    const std::string other = "rank 1 says in " + text() + " that there are " + std::to_string(size_of_one) +
                              " ranks, and rank 0 that there are " + std::to_string(size_of_zero);
    expect_error(zero.status(), HEDDLE_ERROR_INVALID, {other});
    expect_error(one.status(), HEDDLE_ERROR_INVALID, {other, "start all processes with the same number"});
  }
}

// Rank 0 does not look for a rank that it does not have.
TEST_F(MeetingTest, ARankThatIsOneTooManyIsTold) {
  RankThread zero(text(), 0, 2, "0"), two(text(), 2, 3, "2");
  await(0, "leader/0");
  std::string leader;
  bool found = false;
  EXPECT_OK(store_at(text())->get({0, "leader/0"}, &leader, &found));
  await(2, "here/" + leader.substr(0, 32) + "/0");
  RankThread one(text(), 1, 2, "1");
  EXPECT_EQ(zero.joined().attempt, one.joined().attempt);
  expect_error(two.status(), HEDDLE_ERROR_INVALID, {"rank 0 says", "2 ranks, and rank 2 that there are 3"});
}

TEST_F(MeetingTest, CanBeCancelled) {
  RankThread zero(text(), 0, 3, "0", std::chrono::hours(1)), one(text(), 1, 3, "1", std::chrono::hours(1));
  await(0, "leader/0");
  zero.cancel();
  EXPECT_EQ(zero.status().code, HEDDLE_ERROR_CANCELLED);
  one.cancel();
  EXPECT_EQ(one.status().code, HEDDLE_ERROR_CANCELLED);
}

// A Redis server that has restarted does so.
TEST_F(MeetingTest, AStoreThatForgetsAllBeginsAgain) {
  leave_a_leader(0, 3, true);
  leave_a_leader(1, 3, true);
  RankThread zero(text(), 0, 3, "0"), one(text(), 1, 3, "1");
  std::string leader;
  EXPECT_OK(store_at(text())->wait({0, "leader/2"}, &leader, patience()));
  for (const int32_t rank : {0, 1}) await(rank, "here/" + leader.substr(0, 32) + "/0");  // now they only read
  std::filesystem::create_directory(folder_ / "empty");
  ASSERT_EQ(::renameat2(AT_FDCWD, (folder_ / "world").c_str(), AT_FDCWD, (folder_ / "empty").c_str(), RENAME_EXCHANGE), 0);
  RankThread two(text(), 2, 3, "2");
  for (RankThread* rank : {&zero, &one, &two}) EXPECT_EQ(rank->joined().payloads, (std::vector<std::string>{"0", "1", "2"}));
}

TEST_F(MeetingTest, WhatAnotherProgramWroteIsAnError) {
  EXPECT_TRUE(set(*store_at(text()), {0, "leader/0"}, "me"));
  RankThread one(text(), 1, 2, "1");
  expect_error(one.status(), HEDDLE_ERROR_DEVICE, {"'leader/0' of rank 0 in " + text(), "is not what this program writes"});
}

TEST_F(MeetingTest, AStoreThatFailsEndsIt) {
  RankThread zero(text(), 0, 2, "0", std::chrono::hours(1));
  await(0, "leader/0");
  std::filesystem::rename(folder_ / "world", folder_ / "gone");
  expect_error(zero.status(), HEDDLE_ERROR_DEVICE, {"No such file or directory"});
}

}  // namespace
}  // namespace heddle::testing_rendezvous
