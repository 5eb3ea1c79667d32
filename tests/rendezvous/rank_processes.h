// Jobs whose ranks are processes, which are killed at random moments and started again, as by a supervisor.
//
// Each process has a socket of an abstract name, its payload: a rank that has joined connects to all others, and an end of such a
// connection is the end of that process. So a rank that joined with a process that is dead finds that out, as connections over a network
// do, and calls next() again.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/meeting.h"
#include "rendezvous/store_helpers.h"

namespace heddle::testing_rendezvous {

// A message of a process about itself, written as one piece.
struct Told {
  pid_t process = 0;
  bool joined = false;  // false: it failed
  char text[300] = {};  // the attempt, or what failed
};

class RankProcess {
 public:
  RankProcess(const std::string& rendezvous, int32_t rank, int32_t ranks, int tell, int done)
      : rendezvous_(rendezvous), rank_(rank), ranks_(ranks), tell_(tell), done_(done), listener_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un any{};
    any.sun_family = AF_UNIX;  // without a name: Linux gives it one
    ::bind(listener_, reinterpret_cast<sockaddr*>(&any), sizeof(any.sun_family));
    socklen_t size = sizeof(any);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&any), &size);
    name_.assign(any.sun_path, size - offsetof(sockaddr_un, sun_path));
    ::listen(listener_, 64);
  }

  [[noreturn]] void run() {
    std::unique_ptr<Store> store;
    Status status = make_store(rendezvous_, "world", rank_, ranks_, &store);
    Meeting meeting(store.get(), rank_, ranks_);
    for (;;) {
      Joined joined;
      if (status.ok()) status = meeting.next(name_, patience(), &joined);
      if (!status.ok()) {
        tell(false, status.text);
        ::_exit(1);
      }
      std::vector<pollfd> watched = {{done_, POLLIN, 0}};
      if (connect(joined.payloads, &watched)) {
        tell(true, joined.attempt);
        ::poll(watched.data(), watched.size(), -1);
        if (watched[0].revents != 0) ::_exit(0);
      }
      for (size_t i = 1; i < watched.size(); ++i) ::close(watched[i].fd);
    }
  }

 private:
  bool connect(const std::vector<std::string>& names, std::vector<pollfd>* connections) const {
    for (const std::string& name : names) {
      const int connection = ::socket(AF_UNIX, SOCK_STREAM, 0);
      connections->push_back({connection, POLLIN, 0});
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      std::memcpy(address.sun_path, name.data(), std::min(name.size(), sizeof(address.sun_path)));
      if (::connect(connection, reinterpret_cast<sockaddr*>(&address),
                    static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())) != 0)
        return false;
    }
    return true;
  }
  void tell(bool joined, const std::string& text) const {
    Told told{::getpid(), joined, {}};
    text.copy(told.text, sizeof(told.text) - 1);
    if (::write(tell_, &told, sizeof(told)) != sizeof(told)) ::_exit(2);
  }

  const std::string rendezvous_;
  const int32_t rank_, ranks_;
  const int tell_, done_, listener_;
  std::string name_;
};

// One start of a job.
class JobOfProcesses {
 public:
  using Clock = std::chrono::steady_clock;
  // Each process is killed with a probability of 1 / `one_of` (0: none is) up to 30 ms after its start.
  JobOfProcesses(const std::string& rendezvous, int32_t ranks, unsigned one_of, std::mt19937* random)
      : rendezvous_(rendezvous), one_of_(one_of), random_(*random), processes_(static_cast<size_t>(ranks)) {
    EXPECT_EQ(::pipe(tell_), 0);
    EXPECT_EQ(::pipe(done_), 0);
    for (size_t rank = 0; rank < processes_.size(); ++rank) start(rank);
  }
  ~JobOfProcesses() {
    for (const Process& one : processes_)
      if (one.id > 0) ::kill(one.id, SIGKILL), ::waitpid(one.id, nullptr, 0);
    for (const int end : {tell_[0], tell_[1], done_[0], done_[1]})
      if (end >= 0) ::close(end);
  }
  JobOfProcesses(const JobOfProcesses&) = delete;
  JobOfProcesses& operator=(const JobOfProcesses&) = delete;

  // Returns the attempt in which all processes are; empty, after a failed expectation: they are not.
  std::string join_all() {
    const Clock::time_point late = Clock::now() + std::chrono::seconds(40);
    while (Clock::now() < late) {
      kill_those_whose_time_has_come();
      if (const std::string attempt = common_attempt(); !attempt.empty()) return attempt;
      pollfd told{tell_[0], POLLIN, 0};
      if (::poll(&told, 1, 1) > 0 && !hear()) return {};
    }
    std::string state;
    for (const Process& one : processes_) state += " '" + one.attempt + "'";
    ADD_FAILURE() << "these attempts have not become one:" << state;
    return {};
  }
  void end() {
    ::close(std::exchange(done_[1], -1));
    for (Process& one : processes_) {
      int status = -1;
      ::waitpid(std::exchange(one.id, -1), &status, 0);
      EXPECT_EQ(status, 0);
    }
  }
  int killed() const { return killed_; }

 private:
  struct Process {
    pid_t id = -1;
    std::string attempt;  // that it has joined
    bool dies = false;
    Clock::time_point death;
  };
  void start(size_t rank) {
    Process& one = processes_[rank];
    one = {};
    one.dies = one_of_ > 0 && random_() % one_of_ == 0;
    one.death = Clock::now() + std::chrono::microseconds(random_() % 30000);
    one.id = ::fork();
    if (one.id != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(done_[1]);
    RankProcess(rendezvous_, static_cast<int32_t>(rank), static_cast<int32_t>(processes_.size()), tell_[1], done_[0]).run();
  }
  void kill_those_whose_time_has_come() {
    for (size_t rank = 0; rank < processes_.size(); ++rank) {
      const Process& one = processes_[rank];
      if (!one.dies || Clock::now() < one.death) continue;
      ::kill(one.id, SIGKILL);
      ::waitpid(one.id, nullptr, 0);
      ++killed_;
      start(rank);
    }
  }
  std::string common_attempt() const {
    for (const Process& one : processes_)
      if (one.dies || one.attempt != processes_[0].attempt) return {};
    return processes_[0].attempt;
  }
  bool hear() {
    Told told;
    EXPECT_EQ(::read(tell_[0], &told, sizeof(told)), static_cast<ssize_t>(sizeof(told)));
    for (size_t rank = 0; rank < processes_.size(); ++rank) {
      if (processes_[rank].id != told.process) continue;  // it has been killed since
      EXPECT_TRUE(told.joined) << "rank " << rank << ": " << told.text;
      if (!told.joined) return false;
      processes_[rank].attempt = told.text;
    }
    return true;
  }

  const std::string rendezvous_;
  const unsigned one_of_;
  std::mt19937& random_;
  std::vector<Process> processes_;
  int tell_[2] = {-1, -1}, done_[2] = {-1, -1};
  int killed_ = 0;
};

}  // namespace heddle::testing_rendezvous
