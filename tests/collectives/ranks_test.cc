// Ranks of one process that do not come, leave, or are not what the others expect.
#include <arpa/inet.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <set>

#include "collectives/summing_ranks.h"

namespace heddle {
namespace {

using namespace testing_collectives;

HEDDLE_CREW_SUITE_OF(Ranks, kinds_of_ranks);

bool says(const Status& status, const std::string& text) {
  return status.text().find(text) != std::string::npos;
}

TEST_P(Ranks, ThatDoNotComeAreNamedAtTheTimeOut) {
  // Connecting GPUs takes its time, too.
  const int timeout_ms = GetParam().kind == "nccl" ? 500 : 50;
  AllRanks ranks = ranks_of(GetParam(), "missing", 3, timeout_ms);
  std::thread other([&] { ranks[2]->run(); });
  ranks[0]->run();
  other.join();
  for (const int there : {0, 2}) {
    const Status& status = ranks[static_cast<size_t>(there)]->status;
    EXPECT_EQ(status.code(), Code::device_failed);
    EXPECT_TRUE(
        GetParam().kind == "gloo"
            ? says(status, "of 3 ranks only ranks 0 and 2 came to file:") && says(status, "missing: rank 1; start them")
            : says(status, "rank 1 has left communicator \"world\" of \"local:missing\": it did not compare its collectives within " +
                               std::to_string(timeout_ms) + " ms"))
        << status.text();
  }
  expect_right(ranks);
}

TEST_P(Ranks, ThatDoNotComeToALaterCollectiveAreNamed) {
  AllRanks ranks = ranks_of(GetParam(), "late", 2, short_timeout_ms);
  expect_right(ranks);
  ranks[1]->run();
  const std::string left = "rank 0 has left communicator \"world\" of \"local:late\": ";
  const std::string within = "within " + std::to_string(short_timeout_ms) + " ms";
  EXPECT_TRUE(GetParam().kind == "gloo"
                  ? says(ranks[1]->status, "rank 0 did not come to \"sum0\" (operation 3) of communicator \"world\" of \"file:") &&
                        says(ranks[1]->status, (within + "; rank 1 had come, rank 0 was in no collective, after operation 2").c_str())
              : GetParam().kind == "nccl" ? says(ranks[1]->status, (left + "it did not come to \"sum0\" (operation 2) " + within).c_str())
                                          : says(ranks[1]->status, (left + "it did not come to a collective " + within).c_str()))
      << ranks[1]->status.text();
  expect_right(ranks);
}

// A run that ends early ends those of the other ranks, and all are right afterwards.
TEST_P(Ranks, ThatFailEndTheRunsOfAll) {
  AllRanks ranks = ranks_of(GetParam(), "failing", 3);
  expect_right(ranks);
  ranks[1]->index = 7;  // out of range: fails after the collective
  run_all(ranks);
  EXPECT_TRUE(says(ranks[1]->status, "row_of_sum")) << ranks[1]->status.text();
  ranks[1]->index = 0;
  // One that has not heard of it yet learns of it in its next run, while the others wait for it.
  std::vector<std::thread> threads;
  for (const auto& rank : ranks)
    threads.emplace_back([&rank] {
      for (int again = 0; again < 5; ++again) {
        rank->run();
        if (rank->status.ok()) return;
        EXPECT_TRUE(says(rank->status, "rank 1 has left communicator \"world\" of ")) << rank->status.text();
      }
    });
  for (std::thread& thread : threads) thread.join();
  expect_right(ranks);
}

TEST_P(Ranks, ThatAreCancelledWhileTheyWaitGoOn) {
  AllRanks ranks = ranks_of(GetParam(), "cancelled", 2, 2000);
  expect_right(ranks);
  std::atomic<bool> over{false};
  std::thread waiting([&] {
    ranks[0]->run();
    over = true;
  });
  while (!over) ranks[0]->context->cancel();
  waiting.join();
  EXPECT_EQ(ranks[0]->status.code(), Code::cancelled) << ranks[0]->status.text();
  // The other may have all that this one had sent before it was cancelled: then its next run is done, and this one's waits for one more.
  run_all(ranks);
  if (!ranks[0]->status.ok() && ranks[1]->status.ok()) {
    EXPECT_TRUE(says(ranks[0]->status, "missing: rank 1")) << ranks[0]->status.text();
    run_all(ranks);
  }
  expect_right(ranks);
}

// Whether the other rank waits already when the session closes can not be seen: it is tried until it does.
TEST_P(Ranks, ThatCloseTheirSessionsEndTheRunsOfOthers) {
  const int timeout_ms = GetParam().kind == "nccl" ? 10 * short_timeout_ms : short_timeout_ms;  // connecting GPUs takes its time, too
  AllRanks ranks = ranks_of(GetParam(), "closing", 2, timeout_ms);
  bool seen = false;
  for (int attempt = 0; attempt < 100 && !seen; ++attempt) {
    expect_right(ranks);
    std::thread waiting([&] { ranks[0]->run(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(attempt));
    ranks[1].reset();
    waiting.join();
    EXPECT_EQ(ranks[0]->status.code(), Code::device_failed);
    seen = says(ranks[0]->status, "rank 1 has left communicator \"world\" of ") && says(ranks[0]->status, ": its session has closed");
    ranks[1] = std::make_unique<Rank>(GetParam(), "closing", 1, 2, timeout_ms);
  }
  EXPECT_TRUE(seen) << ranks[0]->status.text();
  expect_right(ranks);
}

// Rank 3 gives to ranks 0 and 1, and rank 1 to rank 2, which comes when ranks 0 and 3 are done and `closed` of them have closed their
// sessions: the other one leaves without.
void expect_right_where_one_is_late(const std::string& job, const std::set<int>& closed) {
  const Runtime runtime = runtime_with_devices(4, "gloo");
  std::atomic<int> done{0}, ended{0};
  Status statuses[4];
  std::vector<std::thread> ranks;
  for (int r = 0; r < 4; ++r)
    ranks.emplace_back([&, r] {
      NetBuilder b("late");
      b.output(b.add1("Broadcast", "given", {b.input("x", DType::f32, {2})}, {{"communicator", world}, {"root", int64_t{3}}}, "heddle"));
      const float given[2] = {static_cast<float>(r), 5};
      const auto run_twice = [&]() -> Status {
        HEDDLE_TRY(Session session, runtime.open(b.finish(), options_of({4, false, "gloo"}, job, r)));
        HEDDLE_TRY(Context context, session.prepare());
        HEDDLE_CHECK(context.bind_input(0, given));
        HEDDLE_CHECK(context.run());
        while (r == 2 && (done < 2 || ended < static_cast<int>(closed.size()))) ::usleep(1000);
        if (r == 2) ::usleep(100'000);  // it sees that their connections have closed
        HEDDLE_CHECK(context.run());
        ++done;
        EXPECT_EQ(copy_of(context.output(0)).as<float>(), (std::vector<float>{3, 5})) << "rank " << r;
        while (!closed.contains(r) && done < 4) ::usleep(1000);
        return {};
      };
      statuses[r] = run_twice();
      if (!statuses[r].ok()) done = 4;  // the others end without it
      ++ended;
    });
  for (std::thread& rank : ranks) rank.join();
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.text();
}

TEST(RanksOfProcesses, MayCloseTheirSessionsWhileOthersAreLate) {
  expect_right_where_one_is_late("late, two closed", {0, 3});
  expect_right_where_one_is_late("late, one closed", {3});
  expect_right_where_one_is_late("late, another closed", {0});
}

TEST_P(Ranks, WithOtherCollectivesAreNamedBeforeTheFirstStep) {
  AllRanks ranks;
  ranks.push_back(std::make_unique<Rank>(GetParam(), "other", 0, 2));
  ranks.push_back(std::make_unique<Rank>(GetParam(), "other", 1, 2, 30'000, 2));
  run_all(ranks);
  const std::string first = ranks[0]->status.text(), second = ranks[1]->status.text();
  EXPECT_FALSE(first.empty() || second.empty());
  EXPECT_TRUE(says(ranks[0]->status,
                   "rank 1 runs other collectives than this one, which is rank 0: its collective 1 is \"sum1\", "
                   "heddle::AllReduce(f32[2])") ||
              says(ranks[1]->status,
                   "rank 0 runs other collectives than this one, which is rank 1: it has no collective 1, which is here "
                   "\"sum1\", heddle::AllReduce(f32[2])"))
      << first << "\n"
      << second;
  for (const auto& rank : ranks) EXPECT_FALSE(rank->status.ok());
}

TEST_P(Ranks, OfAnotherNumberAreRefused) {
  AllRanks ranks = ranks_of(GetParam(), "numbers", 2);
  expect_right(ranks);
  Rank other(GetParam(), "numbers", 2, 3, 300);
  other.run();
  EXPECT_TRUE(GetParam().kind == "gloo"
                  ? says(other.status, "rank 0 has begun no other attempt")
                  : says(other.status, "rank 2 of 3 comes to communicator \"world\" of \"local:numbers\", which has 2 ranks"))
      << other.status.text();
  expect_right(ranks);
}

TEST_P(Ranks, ThatThereAreTwiceAreRefused) {
  AllRanks ranks = ranks_of(GetParam(), "twice", 2);
  expect_right(ranks);
  Rank again(GetParam(), "twice", 0, 2, 300);
  again.run();
  EXPECT_TRUE(GetParam().kind == "gloo"
                  ? says(again.status, "of 2 ranks only rank 0 came to file:")
                  : says(again.status, "rank 0 of communicator \"world\" of \"local:twice\" is another session of this process"))
      << again.status.text();
  expect_right(ranks);
}

// Returns the addresses of this process's connections, without ports.
std::set<std::string> addresses_of_sockets() {
  std::set<std::string> addresses;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    sockaddr_in address = {};
    socklen_t length = sizeof(address);
    const int descriptor = std::atoi(entry.path().filename().c_str());
    if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &length) != 0 || address.sin_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN] = {};
    ::inet_ntop(AF_INET, &address.sin_addr, text, sizeof(text));
    addresses.insert(text);
  }
  return addresses;
}

TEST(RanksOfProcesses, ListenOnTheLoopbackAddressUnlessTold) {
  AllRanks ranks = ranks_of({2, false, "gloo"}, "addresses", 2);
  expect_right(ranks);
  EXPECT_EQ(addresses_of_sockets(), std::set<std::string>{"127.0.0.1"});
}

TEST(RanksOfProcesses, UseTheInterfaceThatIsNamed) {
  AllRanks ranks = ranks_of({2, false, "gloo"}, "interface,interface=lo", 2);
  expect_right(ranks);
  AllRanks others = ranks_of({2, false, "gloo"}, "interface,interface=nosuch0", 2);
  run_all(others);
  for (const auto& rank : others) EXPECT_TRUE(says(rank->status, "there is no network interface \"nosuch0\"")) << rank->status.text();
}

TEST(RanksOfOneProcess, WithoutARendezvousAreRefused) {
  for (const std::string rendezvous : {"", "local:", "folder"}) {
    NetBuilder b("rank");
    b.output(b.add1("AllReduce", "sum", {b.input("x", DType::f32, {1})}, {{"communicator", world}}, "heddle"));
    SessionOptions options;
    options.communicators.emplace_back().size = 2;
    options.communicators[0].rendezvous = rendezvous;
    auto session = runtime_with_devices().open(b.finish(), options);
    ASSERT_TRUE(session.ok());
    auto context = session->prepare();
    ASSERT_TRUE(context.ok());
    const float x = 1;
    ASSERT_TRUE(context->bind_input(0, &x).ok());
    const Status status = context->run();
    EXPECT_TRUE(says(status, rendezvous.empty() ? "has no rendezvous" : "has the rendezvous \"" + rendezvous + "\"")) << status.text();
  }
}

TEST(RanksOfOneProcess, OnDevicesAreRefused) {
  NetBuilder b("rank");
  const ValueId sum = b.add1("AllReduce", "sum", {b.input("x", DType::f32, {1})}, {{"communicator", world}}, "heddle");
  b.net()[b.net()[sum].producer].device = sim(0);
  b.output(sum);
  const Net net = b.finish();
  std::vector<Status> statuses(2);
  std::vector<std::thread> ranks;
  for (int r = 0; r < 2; ++r)
    ranks.emplace_back([&, r] {
      SessionOptions options = options_of({2, false}, "on_devices", r);
      options.communicators[0].devices = {sim(0)};
      auto session = runtime_with_devices().open(Net(net), options);
      if (!session.ok()) return void(statuses[static_cast<size_t>(r)] = session.status());
      auto context = session->prepare();
      if (!context.ok()) return void(statuses[static_cast<size_t>(r)] = context.status());
      const float x = 1;
      const Status bound = context->bind_input(0, &x);
      statuses[static_cast<size_t>(r)] = bound.ok() ? context->run() : bound;
    });
  for (std::thread& rank : ranks) rank.join();
  EXPECT_TRUE(says(statuses[0], "a collective of 2 ranks of one process runs on the host") ||
              says(statuses[1], "a collective of 2 ranks of one process runs on the host"))
      << statuses[0].text() << "\n"
      << statuses[1].text();
}

// Returns the ports at which this process waits for connections.
std::vector<sockaddr_in> open_ports() {
  std::vector<sockaddr_in> ports;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    sockaddr_in address = {};
    int listens = 0;
    socklen_t length = sizeof(address), size = sizeof(listens);
    const int descriptor = std::atoi(entry.path().filename().c_str());
    if (::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) continue;
    if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &length) == 0 && address.sin_family == AF_INET)
      ports.push_back(address);
  }
  return ports;
}

// Something that looks for open ports, and stays, is taken for no rank: the ranks meet again. Which of two ranks waits for the other
// depends on their ports.
TEST(RanksOfProcesses, MeetAgainWhereAStrangerHasConnected) {
  for (const std::string job : {"stranger0", "stranger1", "stranger2"}) {
    AllRanks ranks = ranks_of({2, false, "gloo"}, job, 2);
    std::thread first([&] { ranks[0]->run(); });
    std::vector<int> strangers;
    for (int attempt = 0; attempt < 5000 && strangers.empty(); ++attempt) {
      ::usleep(1000);
      for (const sockaddr_in& port : open_ports()) {
        strangers.push_back(::socket(AF_INET, SOCK_STREAM, 0));
        EXPECT_EQ(::connect(strangers.back(), reinterpret_cast<const sockaddr*>(&port), sizeof(port)), 0);
      }
    }
    EXPECT_FALSE(strangers.empty());
    ranks[1]->run();
    first.join();
    for (const int stranger : strangers) ::close(stranger);
    for (const auto& rank : ranks) {
      EXPECT_TRUE(rank->status.ok()) << rank->status.text();
      EXPECT_EQ(rank->sum(), (std::vector<float>{2, 4}));
    }
  }
}

}  // namespace
}  // namespace heddle
