// The sentences that a rank says when it goes no further, for each thing that it may know of the others.
#include "collective/lost_ranks.h"

#include <gtest/gtest.h>

#include "shared/ranks/rank_list.h"

namespace heddle {
namespace {

using cpu::LostRanks;
using cpu::text_of;
using cpu::waited_too_long;
using operators::RankReport;

RankReport report(uint64_t number, const std::string& collective, const std::string& reason, const std::vector<int32_t>& missing) {
  return {number, collective, reason, missing, 0, ""};
}

LostRanks known(const RankReport& mine, const std::vector<std::optional<RankReport>>& reports, const std::vector<int32_t>& broken = {}) {
  LostRanks lost;
  lost.communicator = "communicator \"world\"";
  lost.timeout = std::chrono::seconds(2);
  lost.mine = mine;
  lost.broken = broken;
  lost.reports = reports;
  return lost;
}

const RankReport late_in_sum = report(3, "\"sum\"", waited_too_long, {1});

TEST(LostRanks, ThatDoNotAnswerAreNamed) {
  const RankReport of_2 = report(3, "\"sum\"", waited_too_long, {1});
  EXPECT_EQ(text_of(known(late_in_sum, {std::nullopt, std::nullopt, of_2})),
            "rank 1 does not answer, missing in \"sum\" (operation 3) of communicator \"world\" after 2000 ms; ranks 0 and 2 had come");
  EXPECT_EQ(
      text_of(known(report(3, "\"sum\"", "closed", {1}), {std::nullopt, std::nullopt, of_2}, {1})),
      "rank 1 has ended, or cannot be reached any more, missing in \"sum\" (operation 3) of communicator \"world\"; ranks 0 and 2 had "
      "come");
  EXPECT_EQ(text_of(known(report(0, "the connection of its GPUs", waited_too_long, {1}), {std::nullopt, std::nullopt})),
            "rank 1 does not answer, missing in the connection of its GPUs of communicator \"world\" after 2000 ms; rank 0 had come");
  EXPECT_EQ(text_of(known(report(3, "", "closed", {1}), {std::nullopt, std::nullopt, std::nullopt}, {1})),
            "rank 1 has ended, or cannot be reached any more, and rank 2 does not answer, missing in communicator \"world\"");
}

// A rank may see that another survivor has left before it sees that a connection with the dead one has broken.
TEST(LostRanks, WhoseConnectionsBrokeForOthersHaveEnded) {
  EXPECT_EQ(
      text_of(known(report(3, "\"sum\"", "closed", {2}), {std::nullopt, std::nullopt, report(3, "\"sum\"", "closed", {1})}, {2})),
      "rank 1 has ended, or cannot be reached any more, missing in \"sum\" (operation 3) of communicator \"world\"; ranks 0 and 2 had "
      "come");
}

TEST(LostRanks, AreNotAccusedWhenReportsCanNotBeRead) {
  const std::string rest =
      ", missing in \"sum\" (operation 3) of communicator \"world\"; whether another rank is the cause is not known, because reports of "
      "ranks can not be read: no answer from redis:host:1/job";
  LostRanks lost = known(report(3, "\"sum\"", "closed", {1, 2}), {}, {1, 2});
  lost.unread = "no answer from redis:host:1/job";
  EXPECT_EQ(text_of(lost), "ranks 1 and 2 cannot be reached any more" + rest);
  lost = known(late_in_sum, {});
  lost.unread = "no answer from redis:host:1/job";
  EXPECT_EQ(text_of(lost), "rank 1 did not come within 2000 ms" + rest);
  lost.mine.missing.clear();
  EXPECT_EQ(text_of(lost), "other ranks did not come within 2000 ms" + rest);
}

TEST(LostRanks, ThatHaveLeftSayWhy) {
  EXPECT_EQ(
      text_of(known(report(3, "\"sum\"", "closed", {1}), {std::nullopt, report(2, "", "its session has closed", {})})),
      "rank 1 has left communicator \"world\": its session has closed; it was in no collective, after operation 2, this rank in \"sum\" "
      "(operation 3)");
}

TEST(LostRanks, ThatHaveClosedTheirSessionsAreNamedWhereTheyAreMissed) {
  const RankReport closed = report(3, "", cpu::session_closed, {});
  // This rank has done what rank 1 had; rank 2 goes on.
  EXPECT_EQ(text_of(known(report(3, "", "others have closed", {1}), {std::nullopt, closed, std::nullopt})),
            "rank 1 has left communicator \"world\": its session has closed; it was in no collective, after operation 3");
  // Rank 1 had done the collective in which rank 2 failed, or is lost.
  EXPECT_EQ(text_of(known(report(3, "\"sum\"", "closed", {2}), {std::nullopt, closed, report(3, "\"sum\"", "no memory", {})})),
            "rank 2 has left communicator \"world\": no memory; it was in \"sum\" (operation 3), this rank in \"sum\" (operation 3)");
  EXPECT_EQ(
      text_of(known(report(3, "\"sum\"", "closed", {2}), {std::nullopt, closed, std::nullopt}, {2})),
      "rank 2 has ended, or cannot be reached any more, missing in \"sum\" (operation 3) of communicator \"world\"; ranks 0 and 1 had "
      "come");
}

TEST(LostRanks, ThatAreSlowAreNamedByAll) {
  const RankReport slow = report(2, "", "Connection closed by peer", {0});
  EXPECT_EQ(text_of(known(late_in_sum, {std::nullopt, slow})),
            "rank 1 did not come to \"sum\" (operation 3) of communicator \"world\" within 2000 ms; rank 0 had come, rank 1 was in no "
            "collective, after operation 2");
  LostRanks of_slow = known(slow, {late_in_sum, std::nullopt});
  of_slow.rank = 1;
  EXPECT_EQ(text_of(of_slow), text_of(known(late_in_sum, {std::nullopt, slow})));
}

TEST(LostRanks, ThatWaitForEachOtherAreAllNamed) {
  EXPECT_EQ(
      text_of(known(late_in_sum, {std::nullopt, report(3, "\"other\"", waited_too_long, {0})})),
      "the ranks of communicator \"world\" wait for each other, since 2000 ms: rank 0 in \"sum\" (operation 3) for rank 1, rank 1 in "
      "\"other\" (operation 3) for rank 0: the network between them was cut, one was stopped for a while, or they do not run the same net");
}

// A rank that is done with the collective has come to it, and one that waited too long for its messages to be taken has not left of its
// own.
TEST(LostRanks, ThatAreDoneOrWaitToBeHeardAreNotAccused) {
  const std::string all =
      "the ranks of communicator \"world\" wait for each other, since 2000 ms: rank 0 in \"sum\" (operation 3) for rank 1, ";
  const std::string causes = ": the network between them was cut, one was stopped for a while, or they do not run the same net";
  EXPECT_EQ(text_of(known(late_in_sum, {std::nullopt, report(3, "", "Connection closed by peer", {0})})),
            all + "rank 1 in no collective, after operation 3 for rank 0" + causes);
  EXPECT_EQ(text_of(known(late_in_sum, {std::nullopt, report(3, "\"sum\"", waited_too_long, {})})),
            all + "rank 1 in \"sum\" (operation 3)" + causes);
}

TEST(LostRanks, WhoseConnectionsAreCutAreNamed) {
  EXPECT_EQ(
      text_of(known(report(3, "\"sum\"", "closed", {1}), {std::nullopt, report(3, "\"sum\"", "closed", {0})}, {1})),
      "connections of communicator \"world\" have broken: rank 0 with rank 1, in \"sum\" (operation 3), rank 1 with rank 0, in \"sum\" "
      "(operation 3)");
}

TEST(LostRanks, AreListed) {
  EXPECT_EQ(operators::rank_list({}), "no rank");
  EXPECT_EQ(operators::rank_list({4}), "rank 4");
  EXPECT_EQ(operators::rank_list({1, 2, 5}), "ranks 1, 2 and 5");
  EXPECT_EQ(operators::rank_list({1, 2}), "ranks 1 and 2");
  EXPECT_EQ(operators::rank_list({0, 1, 2}), "ranks 0-2");
  EXPECT_EQ(operators::rank_list({0, 2, 3, 4, 5, 7, 8, 11}), "ranks 0, 2-5, 7, 8 and 11");
}

}  // namespace
}  // namespace heddle
