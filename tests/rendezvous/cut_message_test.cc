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

// Ranks of this process, connected.
struct Connected {
  explicit Connected(int size) : rank(static_cast<size_t>(size)) {
    std::vector<std::string> addresses(rank.size());
    for (size_t r = 0; r < rank.size(); ++r) {
      rank[r] = std::make_unique<GlooConnections>(static_cast<int>(r), size, nullptr);
      EXPECT_TRUE(rank[r]->listen("", &addresses[r]).ok());
    }
    std::vector<std::thread> threads;
    for (const auto& one : rank)
      threads.emplace_back([&] {
        const Status status = one->connect("attempt", addresses, RankClock::now() + std::chrono::seconds(20), nullptr);
        EXPECT_TRUE(status.ok()) << status.text;
      });
    for (std::thread& thread : threads) thread.join();
  }
  ~Connected() {
    for (const auto& one : rank) one->close();
  }
  std::vector<std::unique_ptr<GlooConnections>> rank;
};

// Calls look() all the time, on a thread of its own.
class Looking {
 public:
  explicit Looking(GlooConnections& connections)
      : thread_([this, &connections] {
          sigset_t pipe;  // as in threads of programs
          ::sigemptyset(&pipe);
          ::sigaddset(&pipe, SIGPIPE);
          ::pthread_sigmask(SIG_UNBLOCK, &pipe, nullptr);
          for (; !over_; std::this_thread::sleep_for(std::chrono::milliseconds(1))) connections.look();
        }) {}
  ~Looking() {
    over_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> over_{false};
  std::thread thread_;
};

// Rank 0 ends when the system has all that it sent, and has brought rank 1 no more than fits in its small buffer. Rank 1 sees then that
// rank 2 has ended, and must write nothing to rank 0.
TEST(CutMessage, IsNoneWhereARankHasSentAllBeforeItCloses) {
  constexpr uint64_t bytes = 96 << 10;
  const std::vector<char> out(bytes, 7);
  const std::set<int> before = sockets();
  Connected three(3);
  for (const int socket : sockets()) {
    const int small = 8 << 10, large = 1 << 20;
    if (before.contains(socket)) continue;
    ASSERT_EQ(::setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
    ASSERT_EQ(::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &large, sizeof(large)), 0);
  }
  std::vector<char> in(bytes);
  for (const auto& rank : three.rank) rank->begin();
  operators::RankMemory& into = *three.rank[1]->memory(0, in.data(), bytes);
  operators::RankMemory& from = *three.rank[0]->memory(1, const_cast<char*>(out.data()), bytes);
  ASSERT_TRUE(three.rank[1]->receive(into, 7, 0, bytes).ok());
  ASSERT_TRUE(three.rank[0]->send(from, 7, 0, bytes).ok());
  const RankClock::time_point until = RankClock::now() + std::chrono::seconds(20);
  ASSERT_TRUE(three.rank[0]->wait(from, until).ok());
  three.rank[0]->close();
  three.rank[2]->close();
  const Looking looks(*three.rank[1]);
  const Status status = three.rank[1]->wait(into, until);
  ASSERT_TRUE(status.ok()) << status.text;
  ASSERT_EQ(in, out);
}

// Rank 1 is ready to receive when rank 0 can write no more: the message is queued, and then the connection closes.
TEST(CutMessage, EndsItsWaitWhenTheConnectionHasClosed) {
  const rendezvous::NoBrokenPipe of_this_thread;
  int queued = 0;
  for (int attempt = 0; attempt < 50 && queued < 5; ++attempt) {
    const std::set<int> before = sockets();
    Connected two(2);
    char out = 1, in = 0;
    two.rank[1]->begin();
    ASSERT_TRUE(two.rank[1]->receive(*two.rank[1]->memory(0, &in, 1), 7, 0, 1).ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // rank 0 hears of it
    two.rank[0]->begin();
    operators::RankMemory& place = *two.rank[0]->memory(1, &out, 1);
    for (const int socket : sockets())
      if (!before.contains(socket)) ::shutdown(socket, SHUT_WR);
    if (!two.rank[0]->send(place, 7, 0, 1).ok()) continue;  // it has seen the end already
    const Looking looks(*two.rank[0]);
    const Status status = two.rank[0]->wait(place, RankClock::now() + std::chrono::seconds(20));
    EXPECT_EQ(status.code, HEDDLE_ERROR_DEVICE) << status.text;  // HEDDLE_PENDING: its time was over
    EXPECT_EQ(two.rank[0]->broken(), std::vector<int32_t>{1});
    queued += status.text == "the connection has closed";
  }
  EXPECT_GT(queued, 0) << "no message was queued";
}

}  // namespace
}  // namespace heddle::ranks
