// Ranks that meet: a world for the plugin "peers" whose ranks are threads of one process, each with a session of its own. The k-th
// operation of a rank with a communicator is matched with the k-th of all others; one rank that leaves ends the operations of all.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../plugins/peers.h"
#include "heddle/session.h"

namespace heddle {

// Thread-safe. Must outlive the sessions whose communicators have it as their rendezvous.
class RanksWorld final : public PeersWorld {
 public:
  explicit RanksWorld(int size) : size_(size) {}
  // Makes one communicator of all names: sessions that use different names share its operations without a turn.
  void confuse_names() { confused_ = std::make_shared<Operations>(size_); }
  // Aborts by this rank are lost.
  void lose_aborts(int rank) { deaf_to_ = rank; }
  // Operations begin up to 2 ms late from now on, by a random number of this seed.
  void delay(uint64_t seed) { delays_.emplace(seed); }
  CommunicatorOptions communicator(int rank, const std::string& name = "") const {
    CommunicatorOptions made;
    made.name = name;
    made.rank = rank;
    made.size = size_;
    made.rendezvous = world_at(*this);
    return made;
  }
  // The rank's process is gone: all others learn of it.
  void kill(int rank) {
    std::unique_lock lock(mutex_);
    for (const std::shared_ptr<Group>& group : newest()) end_group(lock, *group, "rank " + std::to_string(rank) + " is gone", rank);
  }
  // Waits until all ranks but this one wait in an operation for it, or all others have said that they are over.
  bool wait_until_missed(int rank, const std::function<bool()>& others_are_over) {
    std::unique_lock lock(mutex_);
    for (;;) {
      for (const auto& [name, group] : newest_)
        if (misses(*group, rank)) return true;
      if (others_are_over()) return false;
      changed_.wait_for(lock, std::chrono::milliseconds(1));
    }
  }
  // The time of the operations that are waiting is over: they miss the ranks that have not come.
  void expire() {
    std::unique_lock lock(mutex_);
    ++expired_;
    for (const std::shared_ptr<Group>& group : newest()) {
      std::string missing;
      for (int r = 0; r < size_; ++r)
        if (misses(*group, r)) missing += (missing.empty() ? "rank " : ", ") + std::to_string(r);
      end_group(lock, *group, missing + " did not come in time");
    }
  }
  // How often expire() was called.
  int expired() const { return copy(expired_); }

  std::unique_ptr<PeersMember> join(const Joining& joining) override;

 private:
  using Done = std::function<void(const std::string&)>;
  struct Operation {
    std::map<int, std::vector<float>> given;  // by rank
    struct Waiting {
      int rank = 0;
      float* sum = nullptr;
      Done done;
    };
    std::vector<Waiting> waiting;
  };
  struct Operations {
    explicit Operations(int size) : next(static_cast<size_t>(size)) {}
    std::map<size_t, Operation> by_number;
    std::vector<size_t> next;  // by rank
  };
  // The ranks that joined together.
  struct Group {
    int joined = 0;
    std::string over;  // why it has ended; empty: it has not
    std::shared_ptr<Operations> operations;
    std::map<size_t, std::map<int, std::string>> exchanged;
  };
  class Member;
  template <class T>
  T copy(const T& value) const {
    const std::lock_guard lock(mutex_);
    return value;
  }
  // Whether every other rank waits for this one in an operation.
  bool misses(const Group& group, int rank) const {
    const std::map<size_t, Operation>& all = group.operations->by_number;
    return std::any_of(all.begin(), all.end(), [&](const auto& item) {
      return !item.second.waiting.empty() && item.second.given.size() == static_cast<size_t>(size_) - 1 && !item.second.given.count(rank);
    });
  }
  std::vector<std::shared_ptr<Group>> newest() const {
    std::vector<std::shared_ptr<Group>> all;
    for (const auto& [name, group] : newest_) all.push_back(group);
    return all;
  }
  // Calls those that wait without the lock: the host may ask for the state of its communicator meanwhile.
  // `left`: the rank that ends it, which knows why.
  void end_group(std::unique_lock<std::mutex>& lock, Group& group, const std::string& why, int left = -1) {
    if (!group.over.empty()) return;
    group.over = why;
    std::vector<Operation::Waiting> ended;
    for (auto& [number, operation] : group.operations->by_number) {
      std::move(operation.waiting.begin(), operation.waiting.end(), std::back_inserter(ended));
      operation.waiting.clear();
    }
    changed_.notify_all();
    lock.unlock();
    for (const Operation::Waiting& one : ended) one.done(one.rank == left ? "aborted: " + why : why);
    lock.lock();
  }

  const int size_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::shared_ptr<Group>> newest_;  // by communicator
  std::shared_ptr<Operations> confused_;
  int deaf_to_ = -1;
  std::optional<std::mt19937_64> delays_;
  int expired_ = 0;
};

class RanksWorld::Member final : public PeersMember {
 public:
  Member(RanksWorld& world, std::shared_ptr<Group> group, int rank) : world_(world), group_(std::move(group)), rank_(rank) {}
  void start(const float* mine, float* sum, int64_t count, Done done) override {
    std::vector<Done> ready;
    {
      std::unique_lock lock(world_.mutex_);
      if (world_.delays_) {
        const std::chrono::microseconds delay((*world_.delays_)() % 2000);
        lock.unlock();
        std::this_thread::sleep_for(delay);
        lock.lock();
      }
      if (!group_->over.empty()) {
        const std::string over = group_->over;
        lock.unlock();
        return done(over);
      }
      Operation& operation = group_->operations->by_number[group_->operations->next[static_cast<size_t>(rank_)]++];
      operation.given[rank_].assign(mine, mine + count);
      operation.waiting.push_back({rank_, sum, std::move(done)});
      if (operation.given.size() == static_cast<size_t>(world_.size_)) {
        for (Operation::Waiting& one : operation.waiting) {
          std::fill_n(one.sum, count, 0.0F);
          for (const auto& [rank, numbers] : operation.given)  // in the order of the ranks
            for (size_t i = 0; i < numbers.size(); ++i) one.sum[i] += numbers[i];
          ready.push_back(std::move(one.done));
        }
        operation.waiting.clear();
      }
      world_.changed_.notify_all();
    }
    for (const Done& told : ready) told("");
  }
  void abort(const std::string& why) override {
    std::unique_lock lock(world_.mutex_);
    if (world_.deaf_to_ == rank_) return;
    aborted_ = true;
    world_.end_group(lock, *group_, "rank " + std::to_string(rank_) + " left: " + why, rank_);
  }
  std::vector<std::string> exchange(const std::string& mine) override {
    std::unique_lock lock(world_.mutex_);
    auto& all = group_->exchanged[exchanges_++];
    all[rank_] = mine;
    world_.changed_.notify_all();
    world_.changed_.wait(lock, [&] { return !group_->over.empty() || all.size() == static_cast<size_t>(world_.size_); });
    if (all.size() != static_cast<size_t>(world_.size_)) throw std::runtime_error(group_->over);
    std::vector<std::string> given;
    for (const auto& [rank, bytes] : all) given.push_back(bytes);
    return given;
  }
  std::string broken() override {
    const std::lock_guard lock(world_.mutex_);
    return aborted_ ? "aborted" : group_->over;
  }

 private:
  RanksWorld& world_;
  const std::shared_ptr<Group> group_;
  const int rank_;
  size_t exchanges_ = 0;
  bool aborted_ = false;
};

// A group is complete when all ranks have joined it; a new one begins with the next that joins.
inline std::unique_ptr<PeersMember> RanksWorld::join(const Joining& joining) {
  std::unique_lock lock(mutex_);
  std::shared_ptr<Group>& newest = newest_[joining.communicator];
  if (!newest || !newest->over.empty() || newest->joined == size_) {
    newest = std::make_shared<Group>();
    newest->operations = confused_ ? confused_ : std::make_shared<Operations>(size_);
  }
  const std::shared_ptr<Group> mine = newest;
  ++mine->joined;
  changed_.notify_all();
  while (mine->joined < size_ && mine->over.empty()) {
    changed_.wait_for(lock, std::chrono::milliseconds(1));
    if (!joining.cancelled()) continue;
    end_group(lock, *mine, "rank " + std::to_string(joining.rank) + " did not wait");
    throw std::runtime_error("it was cancelled");
  }
  if (mine->joined < size_) throw std::runtime_error(mine->over);
  return std::make_unique<Member>(*this, mine, joining.rank);
}

}  // namespace heddle
