// A walk through everything that three threads can do with a TurnQueue in four calls each: enter for any use, have it alone, leave, and
// give up a wait, as a deadline or a cancellation does, at any moment. Every state that can be reached is checked.
#include "base/threads/turn_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace heddle {
namespace {

constexpr int threads = 3, calls_of_each = 4;

// One thread does this next.
enum class Act : uint8_t { enter_shared, enter_updating, enter_alone, upgrade, leave, give_up };
struct Move {
  int thread = 0;
  Act act = Act::leave;
};

// A queue with its threads, as far as some moves have brought them.
class World {
 public:
  enum class Is : uint8_t { outside, waits, reads, updates, waits_for_upgrade, alone };

  // Called for each waiter that is admitted: it came before all that still wait, or is the updater.
  void admitted(TurnWaiter& waiter) {
    for (Thread& t : threads_) {
      if (&t.waiter != &waiter) continue;
      const bool upgrades = t.is == Is::waits_for_upgrade;
      for (const Thread& other : threads_)
        if (!upgrades && other.is == Is::waits && other.arrived < t.arrived) wrong_ = "one that came later is admitted first";
      if (!waiter.admitted) wrong_ = "one is called and not admitted";
      t.is = upgrades ? Is::alone : inside(waiter.use);
    }
  }

  // Returns false if the thread cannot do that now.
  bool make(const Move& move) {
    Thread& t = threads_[static_cast<size_t>(move.thread)];
    const auto called = [this](TurnWaiter& waiter) { admitted(waiter); };
    if (move.act == Act::give_up) {
      if (t.is != Is::waits && t.is != Is::waits_for_upgrade) return false;
      const bool upgrades = t.is == Is::waits_for_upgrade;
      t.is = upgrades ? Is::updates : Is::outside;
      if (upgrades)
        queue_.give_up_upgrade(called);
      else
        queue_.remove(t.waiter, called);
      return true;
    }
    if (t.calls == calls_of_each || !may(t.is, move.act)) return false;
    ++t.calls;
    switch (move.act) {
      case Act::leave: {
        const TurnUse use = t.is == Is::reads ? TurnUse::shared : t.is == Is::updates ? TurnUse::updating : TurnUse::alone;
        t.is = Is::outside;
        queue_.leave(use, called);
      } break;
      case Act::upgrade:
        t.waiter = {};
        t.is = queue_.upgrade() ? Is::alone : Is::waits_for_upgrade;
        if (t.is == Is::waits_for_upgrade) queue_.wait_for_upgrade(t.waiter);
        break;
      default: {
        const TurnUse use = move.act == Act::enter_shared     ? TurnUse::shared
                            : move.act == Act::enter_updating ? TurnUse::updating
                                                              : TurnUse::alone;
        t.waiter = {use, false, nullptr};
        t.arrived = ++arrivals_;
        t.is = queue_.enter(use) ? inside(use) : Is::waits;
        if (t.is == Is::waits) queue_.wait(t.waiter);
      }
    }
    return true;
  }

  // Returns what is wrong with the state; empty: nothing is.
  std::string wrong() const {
    if (!wrong_.empty()) return wrong_;
    const int reads = count(Is::reads), upgrades = count(Is::waits_for_upgrade), updates = count(Is::updates) + upgrades,
              alone = count(Is::alone), waits = count(Is::waits);
    if (alone > 1 || (alone == 1 && reads + updates > 0)) return "one has it alone beside others";
    if (updates > 1) return "two update at once";
    if (queue_.readers() != static_cast<size_t>(reads)) return "the readers are miscounted";
    const TurnUse holder = alone > 0 ? TurnUse::alone : updates > 0 ? TurnUse::updating : TurnUse::shared;
    if (queue_.holder() != holder) return "the holder is another";
    if (waits > 0 && reads + updates + alone == 0) return "threads wait, and no thread has a turn";
    if (upgrades > 0 && reads == 0) return "an updater waits for readers that are not there";
    const Thread* first = nullptr;
    for (const Thread& t : threads_)
      if (t.is == Is::waits && (!first || t.arrived < first->arrived)) first = &t;
    if (first && first->waiter.use == TurnUse::shared && alone == 0 && upgrades == 0) return "the first that waits could read";
    if (first && first->waiter.use == TurnUse::updating && alone == 0 && updates == 0) return "the first that waits could update";
    return {};
  }

  // The state as far as the future depends on it.
  std::string key() const {
    std::string text;
    for (const Thread& t : threads_) {
      text += static_cast<char>('a' + static_cast<int>(t.is));
      text += static_cast<char>('0' + t.calls);
      text += t.is == Is::waits ? static_cast<char>('0' + static_cast<int>(t.waiter.use)) : '-';
    }
    std::vector<std::pair<int, size_t>> order;
    for (size_t i = 0; i < threads_.size(); ++i)
      if (threads_[i].is == Is::waits) order.emplace_back(threads_[i].arrived, i);
    std::sort(order.begin(), order.end());
    for (const auto& [arrived, thread] : order) text += static_cast<char>('0' + static_cast<int>(thread));
    return text;
  }

 private:
  struct Thread {
    Is is = Is::outside;
    int calls = 0, arrived = 0;
    TurnWaiter waiter;
  };
  static Is inside(TurnUse use) { return use == TurnUse::shared ? Is::reads : use == TurnUse::updating ? Is::updates : Is::alone; }
  static bool may(Is is, Act act) {
    switch (act) {
      case Act::upgrade:
        return is == Is::updates;
      case Act::leave:
        return is == Is::reads || is == Is::updates || is == Is::alone;
      default:
        return is == Is::outside;
    }
  }
  int count(Is is) const {
    return static_cast<int>(std::count_if(threads_.begin(), threads_.end(), [&](const Thread& t) { return t.is == is; }));
  }
  TurnQueue queue_;
  std::array<Thread, threads> threads_;
  int arrivals_ = 0;
  std::string wrong_;
};

TEST(TurnQueue, EveryStateOfThreeThreadsWithFourCallsIsRight) {
  std::vector<Move> moves;
  for (int t = 0; t < threads; ++t)
    for (const Act act : {Act::enter_shared, Act::enter_updating, Act::enter_alone, Act::upgrade, Act::leave, Act::give_up})
      moves.push_back({t, act});
  std::deque<std::vector<Move>> open = {{}};
  std::set<std::string> known = {World().key()};
  size_t steps = 0, upgrades = 0;
  while (!open.empty()) {
    const std::vector<Move> path = std::move(open.front());
    open.pop_front();
    for (const Move& next : moves) {
      World world;
      for (const Move& move : path) ASSERT_TRUE(world.make(move));
      if (!world.make(next)) continue;
      ++steps;
      upgrades += next.act == Act::upgrade ? 1 : 0;
      ASSERT_EQ(world.wrong(), "") << "after " << path.size() << " moves, in " << world.key();
      if (!known.insert(world.key()).second) continue;
      open.push_back(path);
      open.back().push_back(next);
    }
  }
  std::printf("%zu states, %zu steps between them, %zu upgrades\n", known.size(), steps, upgrades);
  EXPECT_GT(known.size(), 10'000u);
  EXPECT_GT(upgrades, 1'000u);
}

}  // namespace
}  // namespace heddle
