// Gloo's connections that break while a message is half-way: Gloo does not tell its sender (GlooConnections::look).
#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "connections/gloo_connections.h"
#include "rendezvous/no_broken_pipe.h"

namespace heddle::ranks {
namespace {

// The connected sockets of this process.
std::set<int> sockets() {
  std::set<int> all;
  DIR* const folder = ::opendir("/proc/self/fd");
  while (const dirent* const entry = ::readdir(folder)) {
    sockaddr_storage peer = {};
    socklen_t length = sizeof(peer);
    const int descriptor = std::atoi(entry->d_name);
    if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &length) == 0 && peer.ss_family == AF_INET) all.insert(descriptor);
  }
  ::closedir(folder);
  return all;
}

// Two ranks of this process, connected.
struct Two {
  Two() {
    std::vector<std::string> addresses(2);
    for (int r = 0; r < 2; ++r) {
      rank[r] = std::make_unique<GlooConnections>(r, 2, nullptr);
      EXPECT_TRUE(rank[r]->listen("", &addresses[static_cast<size_t>(r)]).ok());
    }
    const auto connect = [&](int r) {
      const Status status = rank[r]->connect("attempt", addresses, RankClock::now() + std::chrono::seconds(20), nullptr);
      EXPECT_TRUE(status.ok()) << status.text;
    };
    std::thread other([&] { connect(1); });
    connect(0);
    other.join();
  }
  ~Two() {
    for (const auto& one : rank) one->close();
  }
  std::unique_ptr<GlooConnections> rank[2];
};

// Rank 0 ends when the system has all that it sent, and has brought rank 1 no more than fits in its small buffer.
TEST(CutMessage, IsNoneWhereARankHasSentAllBeforeItCloses) {
  constexpr uint64_t bytes = 96 << 10;
  const std::vector<char> out(bytes, 7);
  const std::set<int> before = sockets();
  Two two;
  for (const int socket : sockets()) {
    const int small = 8 << 10, large = 1 << 20;
    if (before.contains(socket)) continue;
    ASSERT_EQ(::setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
    ASSERT_EQ(::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &large, sizeof(large)), 0);
  }
  std::vector<char> in(bytes);
  for (const auto& rank : two.rank) rank->begin();
  operators::RankMemory& into = *two.rank[1]->memory(0, in.data(), bytes);
  operators::RankMemory& from = *two.rank[0]->memory(1, const_cast<char*>(out.data()), bytes);
  ASSERT_TRUE(two.rank[1]->receive(into, 7, 0, bytes).ok());
  ASSERT_TRUE(two.rank[0]->send(from, 7, 0, bytes).ok());
  const RankClock::time_point until = RankClock::now() + std::chrono::seconds(20);
  ASSERT_TRUE(two.rank[0]->wait(from, until).ok());
  two.rank[0]->close();
  const Status status = two.rank[1]->wait(into, until);
  ASSERT_TRUE(status.ok()) << status.text;
  ASSERT_EQ(in, out);
}

// Rank 1 is ready to receive when rank 0 can write no more: the message is queued, and then the connection closes.
TEST(CutMessage, EndsItsWaitWhenTheConnectionHasClosed) {
  const rendezvous::NoBrokenPipe of_this_thread;
  int queued = 0;
  for (int attempt = 0; attempt < 50 && queued < 5; ++attempt) {
    const std::set<int> before = sockets();
    Two two;
    char out = 1, in = 0;
    two.rank[1]->begin();
    ASSERT_TRUE(two.rank[1]->receive(*two.rank[1]->memory(0, &in, 1), 7, 0, 1).ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // rank 0 hears of it
    two.rank[0]->begin();
    operators::RankMemory& place = *two.rank[0]->memory(1, &out, 1);
    for (const int socket : sockets())
      if (!before.contains(socket)) ::shutdown(socket, SHUT_WR);
    if (!two.rank[0]->send(place, 7, 0, 1).ok()) continue;  // it has seen the end already
    std::atomic<bool> over{false};
    std::thread looks([&] {
      sigset_t pipe;  // as in threads of programs
      ::sigemptyset(&pipe);
      ::sigaddset(&pipe, SIGPIPE);
      ::pthread_sigmask(SIG_UNBLOCK, &pipe, nullptr);
      for (; !over; std::this_thread::sleep_for(std::chrono::milliseconds(1))) two.rank[0]->look();
    });
    const Status status = two.rank[0]->wait(place, RankClock::now() + std::chrono::seconds(20));
    over = true;
    looks.join();
    EXPECT_EQ(status.code, HEDDLE_ERROR_DEVICE) << status.text;  // HEDDLE_PENDING: its time was over
    EXPECT_EQ(two.rank[0]->broken(), std::vector<int32_t>{1});
    queued += status.text == "the connection has closed";
  }
  EXPECT_GT(queued, 0) << "no message was queued";
}

}  // namespace
}  // namespace heddle::ranks
