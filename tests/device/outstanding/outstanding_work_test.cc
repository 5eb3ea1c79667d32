// The list of outstanding work: what it says is busy, what it keeps alive, and when both end.
#include "device/outstanding_work.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "heddle/session.h"

namespace heddle {
namespace {

std::shared_ptr<Unanswered> item_of(uint32_t left, const std::string& message, std::vector<BusyName> names) {
  return std::make_shared<Unanswered>(left, message, std::move(names));
}

// An object that is kept until `answered`; it notes in `gone` when it is destroyed, as the memory that it works in does.
class Waiting final : public OutstandingWork::Kept {
 public:
  Waiting(BusyName name, std::string called, std::vector<std::string>& gone) : Kept(name), called_(std::move(called)), gone_(gone) {}
  ~Waiting() override { gone_.push_back(called_); }
  bool look_for_answers() noexcept override {
    ++looks;
    return answered.load();
  }
  std::shared_ptr<const Unanswered> unanswered() const override {
    return std::make_shared<Unanswered>(1, called_ + " has not completed", std::vector<BusyName>{name()});
  }
  std::atomic<bool> answered{false};
  std::atomic<int> looks{0};

 private:
  const std::string called_;
  std::vector<std::string>& gone_;
};

std::shared_ptr<const void> memory_of(std::string called, std::vector<std::string>& gone) {
  return {static_cast<const void*>(&gone), [called = std::move(called), &gone](const void*) { gone.push_back(called); }};
}

TEST(OutstandingWork, NamesAreNeverReused) {
  std::vector<BusyName> names;
  for (int i = 0; i < 100; ++i) names.push_back(new_busy_name());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST(OutstandingWork, KeepsBusyWhatItNamesUntilAllHasCompleted) {
  OutstandingWork work;
  const BusyName run = new_busy_name(), memory = new_busy_name(), other = new_busy_name();
  EXPECT_TRUE(work.busy(run).ok());
  const auto item = item_of(2, "device \"d\" still runs \"a\"", {run, memory});
  work.add(item);
  for (const BusyName name : {run, memory}) {
    const Status status = work.busy(name);
    EXPECT_EQ(status.code(), Code::busy);
    EXPECT_NE(status.text().find("still runs \"a\""), std::string::npos) << status.text();
    EXPECT_EQ(work.item(name), item);
  }
  EXPECT_TRUE(work.busy(other).ok());
  item->answer();
  EXPECT_EQ(work.busy(memory).code(), Code::busy);
  item->answer();
  EXPECT_TRUE(work.busy(memory).ok());
  EXPECT_TRUE(work.busy(run).ok());
  item->answer();  // once too often
  EXPECT_TRUE(work.busy(run).ok());
}

TEST(OutstandingWork, DropsItemsThatHaveCompleted) {
  OutstandingWork work;
  const BusyName one = new_busy_name(), two = new_busy_name();
  const auto first = item_of(1, "first", {one}), second = item_of(1, "second", {two}), third = item_of(1, "third", {two});
  std::weak_ptr<const Unanswered> asked, swept;
  for (const auto& item : {first, second, third}) work.add(item);
  EXPECT_EQ(first.use_count(), 2);
  first->answer();
  EXPECT_EQ(work.items(), 2u);
  EXPECT_EQ(work.busy(two).code(), Code::busy);  // whatever is asked for
  EXPECT_EQ(first.use_count(), 1);
  second->answer();
  work.sweep();
  EXPECT_EQ(second.use_count(), 1);
  EXPECT_EQ(third.use_count(), 2);
  EXPECT_EQ(work.items(), 1u);
}

TEST(OutstandingWork, TellsOfOwnWorkFirst) {
  OutstandingWork work;
  const BusyName name = new_busy_name(), inner = new_busy_name();
  const auto own = item_of(1, "own", {name}), inside = item_of(1, "inside", {inner, name});
  work.add(own);
  work.add(inside);
  EXPECT_EQ(work.item(name), own);
  EXPECT_EQ(work.item(inner), inside);
  own->answer();
  EXPECT_EQ(work.item(name), inside);
}

TEST(OutstandingWork, TellsOfTheWorkThatWasAddedLast) {
  OutstandingWork work;
  const BusyName name = new_busy_name();
  const auto first = item_of(1, "first", {name}), second = item_of(1, "second", {name});
  work.add(first);
  work.add(second);
  EXPECT_EQ(work.item(name), second);
  second->answer();
  EXPECT_EQ(work.item(name), first);
  work.remove(first.get());
  EXPECT_EQ(work.item(name), nullptr);
  work.remove(first.get());  // it is not there any more
  EXPECT_EQ(work.items(), 0u);
}

TEST(OutstandingWork, KeepsObjectsUntilTheyAnswerAndTheirMemoryLonger) {
  OutstandingWork work;
  std::vector<std::string> gone;
  const BusyName one = new_busy_name(), two = new_busy_name();
  auto first = std::make_unique<Waiting>(one, "first", gone);
  auto second = std::make_unique<Waiting>(two, "second", gone);
  Waiting &a = *first, &b = *second;
  work.keep(std::move(first), memory_of("memory of first", gone));
  work.keep(std::move(second), nullptr);
  work.sweep();
  EXPECT_EQ(work.kept(), 2u);
  EXPECT_EQ(a.looks, 1);
  EXPECT_EQ(b.looks, 1);
  work.sweep(two);  // looks at nothing else
  EXPECT_EQ(a.looks, 1);
  EXPECT_EQ(b.looks, 2);
  a.answered = true;
  work.sweep(two);
  EXPECT_EQ(work.kept(), 2u);
  work.sweep();
  EXPECT_EQ(work.kept(), 1u);
  EXPECT_EQ(gone, (std::vector<std::string>{"first", "memory of first"}));
  b.answered = true;
  work.sweep(two);
  EXPECT_EQ(work.kept(), 0u);
  EXPECT_EQ(gone.back(), "second");
}

// An object may own the list, and use it while it is destroyed.
TEST(OutstandingWork, HoldsNoLockWhenObjectsGo) {
  const auto work = std::make_shared<OutstandingWork>();
  std::vector<std::string> gone;
  auto waiting = std::make_unique<Waiting>(new_busy_name(), "it", gone);
  waiting->answered = true;
  const auto uses = [work](const void*) {
    work->sweep();
    EXPECT_EQ(work->kept(), 0u);
  };
  work->keep(std::move(waiting), std::shared_ptr<const void>(&gone, uses));
  work->sweep();
  EXPECT_EQ(gone, std::vector<std::string>{"it"});
}

TEST(OutstandingWork, LeavesBehindWhatNeverAnswersAndSaysSo) {
  static std::vector<std::string> gone;  // objects that are never destroyed refer to it
  std::vector<std::string> lines;
  set_log_function(
      [](void* user, int, const char* text, size_t length) { static_cast<std::vector<std::string>*>(user)->emplace_back(text, length); },
      &lines);
  {
    OutstandingWork work;
    auto done = std::make_unique<Waiting>(new_busy_name(), "done", gone);
    done->answered = true;
    work.keep(std::make_unique<Waiting>(new_busy_name(), "first", gone), memory_of("memory", gone));
    work.keep(std::move(done), nullptr);
    work.keep(std::make_unique<Waiting>(new_busy_name(), "second", gone), nullptr);
    work.abandon();
    EXPECT_EQ(work.kept(), 0u);
  }
  set_log_function(nullptr, nullptr);
  EXPECT_EQ(gone, std::vector<std::string>{"done"});
  ASSERT_EQ(lines.size(), 2u);
  for (const std::string& line : lines) EXPECT_NE(line.find("what it works with is never freed"), std::string::npos) << line;
}

TEST(OutstandingWork, ManyEntriesNeedNoStackWhenTheyGo) {
  const BusyName name = new_busy_name();
  const auto left = std::make_shared<Unanswered::Count>(1);
  OutstandingWork work, dropped;
  for (int i = 0; i < 200'000; ++i)
    for (OutstandingWork* list : {&work, &dropped})
      list->add(std::make_shared<Unanswered>(left, "one of many", std::vector<BusyName>{name}));
  EXPECT_EQ(work.items(), 200'000u);
  *left = 0;
  EXPECT_TRUE(work.busy(name).ok());
}

// An object that has completed already, and may be destroyed by any thread.
class Done final : public OutstandingWork::Kept {
 public:
  Done(BusyName name, std::atomic<int>& destroyed) : Kept(name), destroyed_(destroyed) {}
  ~Done() override { ++destroyed_; }
  bool look_for_answers() noexcept override { return true; }
  std::shared_ptr<const Unanswered> unanswered() const override { return nullptr; }

 private:
  std::atomic<int>& destroyed_;
};

TEST(OutstandingWork, ThreadsAddAnswerAskAndSweep) {
  OutstandingWork work;
  const BusyName all = new_busy_name();
  std::atomic<int> destroyed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      const BusyName own = new_busy_name();
      for (int i = 0; i < 500; ++i) {
        const auto item = item_of(1, "one", {own, all});
        work.add(item);
        EXPECT_EQ(work.item(own), item);
        EXPECT_EQ(work.busy(all).code(), Code::busy);
        work.keep(std::make_unique<Done>(own, destroyed), nullptr);
        item->answer();
        EXPECT_TRUE(work.busy(own).ok());
        i % 2 ? work.sweep() : work.sweep(own);
      }
    });
  for (std::thread& thread : threads) thread.join();
  work.sweep();
  EXPECT_EQ(work.kept(), 0u);
  EXPECT_EQ(destroyed, 4 * 500);
  EXPECT_TRUE(work.busy(all).ok());
}

}  // namespace
}  // namespace heddle
