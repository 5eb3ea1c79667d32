// Ranks that update variables: either all do so in a run or none, whatever ends the run of one of them, and whenever.
#include <array>
#include <atomic>
#include <chrono>
#include <memory>

#include "collectives/participants.h"

namespace heddle {
namespace {

using namespace testing_collectives;

HEDDLE_CREW_SUITE_OF(UpdatesOfRanks, kinds_of_ranks);

// A rank with a variable that all ranks add the sum of their numbers to, beside an operator that fails if `row` says so.
struct LearningRank {
  LearningRank(const Crew& crew, const std::string& job, int rank, bool commit_late = true) : runtime(runtime_with_devices(1, crew.kind)) {
    NetBuilder b("rank");
    const ValueId sum = b.add1("AllReduce", "sum", {b.input("x", DType::f32, {2})}, {{"communicator", world}}, "heddle");
    b.output(b.add1("Gather", "row_of_sum", {sum, b.input("row", DType::i64, {1})}));
    const std::vector<float> zeros(2);
    const ValueId w = b.variable("w", Blob::copy_of(DType::f32, {2}, zeros.data()));
    b.updates(b.add1("AccumulateAdd", "update", {w, sum}, {}, "heddle"), w);
    SessionOptions options = options_of(crew, job, rank);
    options.commit_late = commit_late;
    auto opened = runtime.open(b.finish(), options);
    EXPECT_TRUE(opened.ok()) << opened.status().text();
    session = std::make_unique<Session>(std::move(*opened));
    auto prepared = session->prepare();
    EXPECT_TRUE(prepared.ok()) << prepared.status().text();
    context = std::make_unique<Context>(std::move(*prepared));
    EXPECT_TRUE(context->bind_input(0, x.data()).ok());
    EXPECT_TRUE(context->bind_input(1, &row).ok());
  }
  std::vector<float> w() const {
    const auto read = session->read_variable("w");
    EXPECT_TRUE(read.ok()) << read.status().text();
    return read.ok() ? copy_of(*read).as<float>() : std::vector<float>();
  }

  std::vector<float> x = {1, 2};
  int64_t row = 0;
  Runtime runtime;
  std::unique_ptr<Session> session;
  std::unique_ptr<Context> context;
  Status status;
};

using LearningRanks = std::vector<std::unique_ptr<LearningRank>>;

LearningRanks learning_ranks(Crew crew, const std::string& job, int size, bool commit_late = true) {
  LearningRanks ranks;
  crew.size = size;
  for (int r = 0; r < size; ++r) ranks.push_back(std::make_unique<LearningRank>(crew, job, r, commit_late));
  return ranks;
}

void run_all(const LearningRanks& ranks) {
  std::vector<std::thread> threads;
  for (const auto& rank : ranks) threads.emplace_back([&rank] { rank->status = rank->context->run(); });
  for (std::thread& thread : threads) thread.join();
}

void expect_one_update(const LearningRanks& ranks, const std::vector<float>& before) {
  const auto n = static_cast<float>(ranks.size());
  for (const auto& rank : ranks) EXPECT_TRUE(rank->status.ok()) << rank->status.text();
  for (const auto& rank : ranks) EXPECT_EQ(rank->w(), (std::vector<float>{before[0] + n, before[1] + 2 * n}));
}

void expect_update(const LearningRanks& ranks) {
  const std::vector<float> before = ranks[0]->w();
  run_all(ranks);
  expect_one_update(ranks, before);
}

// A run that was cancelled while its plugin connects leaves that to a thread, which may still meet a rank that runs already, and leave.
bool has_met_an_earlier_run(const Status& status) {
  return status.text().find(": the run that needed it has ended") != std::string::npos;
}

// Expects one update where a run was cancelled just before. The next run of a rank that has met it joins the others.
void expect_update_after_cancel(const LearningRanks& ranks) {
  const std::vector<float> before = ranks[0]->w();
  std::vector<std::thread> threads;
  for (const auto& rank : ranks)
    threads.emplace_back([&rank] {
      do rank->status = rank->context->run();
      while (has_met_an_earlier_run(rank->status));
    });
  for (std::thread& thread : threads) thread.join();
  expect_one_update(ranks, before);
}

TEST_P(UpdatesOfRanks, AreMadeByNoneWhereOneFails) {
  const LearningRanks ranks = learning_ranks(GetParam(), "one_fails", 3);
  expect_update(ranks);
  for (size_t failing = 0; failing < ranks.size(); ++failing) {
    const std::vector<float> before = ranks[0]->w();
    ranks[failing]->row = 9;
    run_all(ranks);
    ranks[failing]->row = 0;
    for (const auto& rank : ranks) {
      EXPECT_FALSE(rank->status.ok());
      EXPECT_EQ(rank->w(), before);
    }
    EXPECT_NE(ranks[failing]->status.text().find("row_of_sum"), std::string::npos) << ranks[failing]->status.text();
    expect_update(ranks);
  }
}

// One run is cancelled at any moment: all have made the update, or none.
TEST_P(UpdatesOfRanks, AreMadeByAllOrNoneWhenOneIsCancelled) {
  const LearningRanks ranks = learning_ranks(GetParam(), "cancelled", 2);
  expect_update(ranks);
  // Processes have to connect anew after each.
  for (int attempt = 0, attempts = GetParam().kind == "gloo" ? 60 : 300; attempt < attempts; ++attempt) {
    const std::vector<float> before = ranks[0]->w();
    std::atomic<bool> begun{false};
    std::array<std::atomic<bool>, 2> over{};
    const auto run = [&](size_t rank) {
      if (rank == 0) begun = true;
      ranks[rank]->status = ranks[rank]->context->run();
      over[rank] = true;
    };
    // Repeated, as a run may begin after it, and after the other rank has left.
    const auto cancel = [&](size_t rank) {
      for (; !over[rank]; std::this_thread::sleep_for(std::chrono::microseconds(100))) ranks[rank]->context->cancel();
    };
    std::thread other(run, 1), cancelled(run, 0);
    while (!begun) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(attempt % 100 * 3));
    cancel(0);
    cancelled.join();
    cancel(1);
    other.join();
    EXPECT_EQ(ranks[0]->w(), ranks[1]->w()) << ranks[0]->status.text() << "\n" << ranks[1]->status.text();
    EXPECT_EQ(ranks[0]->status.ok(), ranks[0]->w() != before) << ranks[0]->status.text();
    if (GetParam().kind == "gloo" || GetParam().kind == "nccl") continue;  // connections that close have errors of their own
    EXPECT_TRUE(ranks[0]->status.ok() || ranks[0]->status.code() == Code::cancelled || has_met_an_earlier_run(ranks[0]->status))
        << ranks[0]->status.text();
  }
  expect_update_after_cancel(ranks);
}

TEST_P(UpdatesOfRanks, AreRefusedAsSoonAsTheyCanBeMade) {
  const LearningRanks ranks = learning_ranks(GetParam(), "early", 2, false);
  run_all(ranks);
  for (const auto& rank : ranks)
    EXPECT_NE(rank->status.text().find("updates variables before the run can no longer fail"), std::string::npos) << rank->status.text();
}

}  // namespace
}  // namespace heddle
