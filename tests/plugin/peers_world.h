// A world of ranks for the plugin "peers": what each has been asked to do is counted, and a test says what goes wrong.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "../plugins/peers.h"
#include "heddle/session.h"
#include "net/net.h"
#include "plugins.h"

namespace heddle {

inline Runtime runtime_with_peers(int threads = 1) {
  RuntimeOptions options;
  options.default_plugins = false;
  options.threads = threads;
  options.plugins = {test_plugin("peers"), HEDDLE_BINARY_DIR "/lib/cpu.so", HEDDLE_BINARY_DIR "/lib/sim.so"};
  auto made = Runtime::create(options);
  EXPECT_TRUE(made.ok()) << made.status().text();
  return *made;
}

inline ValueId sum(NetBuilder& b, const std::string& name, ValueId x, const std::string& communicator = "world") {
  return b.add1("Sum", name, {x}, {{"communicator", communicator}}, "peers");
}

// Thread-safe. Must outlive the sessions whose communicators have it as their rendezvous.
class World final : public PeersWorld {
 public:
  // How join() behaves. A slow one takes as long as `slow_ms` says, whether the host still wants it or not.
  enum class Join { quick, slow, until_cancelled, fails };

  void set(Join join, int slow_ms = 0) {
    const std::lock_guard lock(mutex_);
    join_ = join;
    slow_ms_ = slow_ms;
  }
  // A peer is lost: operations stay where they are, and broken() says so.
  void lose_peers(bool lost) {
    const std::lock_guard lock(mutex_);
    lost_ = lost;
  }
  // Sets the hash that the other ranks give of their collectives; 0: the same as this one.
  void set_other_hash(uint64_t hash) {
    const std::lock_guard lock(mutex_);
    other_hash_ = hash;
  }
  // The next `number` operations are done at once, as if the peers were there.
  void complete(int number) {
    const std::lock_guard lock(mutex_);
    completes_ = number;
  }
  int exchanges() const { return copy(exchanges_); }
  std::vector<Joining> joined() const { return copy(joined_); }
  int begun() const { return copy(begun_); }
  int aborts() const { return copy(aborts_); }
  int gone() const { return copy(gone_); }
  int polls() const { return copy(polls_); }
  int max_users() const { return copy(max_users_); }
  // Waits until `number` members have been destroyed, or have begun an operation.
  void wait_for_gone(int number) {
    wait([&] { return gone_ >= number; });
  }
  void wait_for_begun(int number) {
    wait([&] { return begun_ >= number; });
  }
  void wait_for_joining(int number) {
    wait([&] { return joining_ >= number; });
  }

  CommunicatorOptions communicator(int rank = 0, int size = 1) const {
    CommunicatorOptions made;
    made.rank = rank;
    made.size = size;
    made.rendezvous = world_at(*this);
    return made;
  }

  std::unique_ptr<PeersMember> join(const Joining& joining) override;

 private:
  class Member;
  template <class T>
  T copy(const T& value) const {
    const std::lock_guard lock(mutex_);
    return value;
  }
  template <class Done>
  void wait(const Done& done) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, done);
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Join join_ = Join::quick;
  int slow_ms_ = 0;
  bool lost_ = false;
  uint64_t other_hash_ = 0;
  int exchanges_ = 0, completes_ = 0;
  std::vector<Joining> joined_;
  int joining_ = 0, begun_ = 0, aborts_ = 0, gone_ = 0, polls_ = 0, users_ = 0, max_users_ = 0;
};

// Alone it adds nothing to what it has; with peers, whom nobody plays here, it waits for them until it is aborted.
class World::Member final : public PeersMember {
 public:
  Member(World& world, int size) : world_(world), size_(size) {}
  ~Member() override {
    const std::lock_guard lock(world_.mutex_);
    ++world_.gone_;
    world_.changed_.notify_all();
  }
  void start(const float* mine, float* sum, int64_t count, std::function<void(const std::string&)> done) override {
    std::string failure;
    {
      const std::lock_guard lock(world_.mutex_);
      world_.max_users_ = std::max(world_.max_users_, ++world_.users_);
      ++world_.begun_;
      world_.changed_.notify_all();
      if (size_ > 1 && aborted_.empty() && --world_.completes_ < 0) return waiting_.push_back(std::move(done));
      failure = aborted_;
    }
    std::copy(mine, mine + count, sum);
    end(done, failure);
  }
  void abort(const std::string& why) override {
    std::vector<std::function<void(const std::string&)>> waiting;
    {
      const std::lock_guard lock(world_.mutex_);
      if (aborted_.empty()) ++world_.aborts_;
      aborted_ = "aborted: " + why;
      waiting.swap(waiting_);
    }
    for (const auto& done : waiting) end(done, "aborted: " + why);
  }
  // A hash is a number of its own; lengths are short ones.
  std::vector<std::string> exchange(const std::string& mine) override {
    const std::lock_guard lock(world_.mutex_);
    ++world_.exchanges_;
    std::vector<std::string> all(static_cast<size_t>(size_), mine);
    uint64_t number = 0;
    if (mine.size() == sizeof(number)) std::memcpy(&number, mine.data(), sizeof(number));
    if (world_.other_hash_ != 0 && number > 1'000'000) std::memcpy(all.back().data(), &world_.other_hash_, sizeof(number));
    return all;
  }
  std::string broken() override {
    const std::lock_guard lock(world_.mutex_);
    ++world_.polls_;
    return world_.lost_ ? "a peer is lost" : aborted_;
  }

 private:
  void end(const std::function<void(const std::string&)>& done, const std::string& failure) {
    {
      const std::lock_guard lock(world_.mutex_);
      --world_.users_;
    }
    done(failure);
  }
  World& world_;
  const int size_;
  std::string aborted_;
  std::vector<std::function<void(const std::string&)>> waiting_;
};

inline std::unique_ptr<PeersMember> World::join(const Joining& joining) {
  std::unique_lock lock(mutex_);
  joined_.push_back(joining);
  joined_.back().cancelled = nullptr;  // valid during join only
  ++joining_;
  changed_.notify_all();
  const Join how = join_;
  if (how == Join::fails) throw std::runtime_error("nobody is there");
  if (how == Join::slow) {
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(slow_ms_));
  }
  if (how == Join::until_cancelled) {
    lock.unlock();
    while (!joining.cancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    throw std::runtime_error("it was cancelled");
  }
  return std::make_unique<Member>(*this, joining.size);
}

}  // namespace heddle
