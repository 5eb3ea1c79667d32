// Ranks of one process that sum what each of them has.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "collectives/participants.h"

namespace heddle::testing_collectives {

// A time-out that ranks soon come to, and within which those that are there have connected: under ThreadSanitizer that takes some ten times
// as long.
#if defined(__SANITIZE_THREAD__)
inline constexpr int64_t short_timeout_ms = 1000;
#else
inline constexpr int64_t short_timeout_ms = 100;
#endif

// One rank of a job, with a net that sums x over all ranks, and then looks up row `row` of the sum.
struct Rank {
  Rank(Crew crew, const std::string& job, int rank, int size, int64_t timeout_ms = 30'000, int collectives = 1)
      : runtime(runtime_with_devices(1, crew.kind)) {
    crew.size = size;
    NetBuilder b("rank");
    ValueId sum = b.input("x", DType::f32, {2});
    for (int i = 0; i < collectives; ++i) sum = b.add1("AllReduce", "sum" + std::to_string(i), {sum}, {{"communicator", world}}, "heddle");
    b.output(sum);
    const ValueId row = b.input("row", DType::i64, {1});
    b.output(b.add1("Gather", "row_of_sum", {sum, row}));
    SessionOptions options = options_of(crew, job, rank);
    options.communicators[0].timeout_ns = timeout_ms * 1'000'000;
    auto opened = runtime.open(b.finish(), options);
    EXPECT_TRUE(opened.ok()) << opened.status().text();
    session = std::make_unique<Session>(std::move(*opened));
    auto prepared = session->prepare();
    EXPECT_TRUE(prepared.ok()) << prepared.status().text();
    context = std::make_unique<Context>(std::move(*prepared));
    EXPECT_TRUE(context->bind_input(0, x.data()).ok());
    EXPECT_TRUE(context->bind_input(1, &index).ok());
  }
  void run() { status = context->run(); }
  std::vector<float> sum() const { return copy_of(context->output(0)).as<float>(); }

  std::vector<float> x = {1, 2};
  int64_t index = 0;
  Runtime runtime;
  std::unique_ptr<Session> session;
  std::unique_ptr<Context> context;
  Status status;
};

using AllRanks = std::vector<std::unique_ptr<Rank>>;

inline AllRanks ranks_of(const Crew& crew, const std::string& job, int size, int64_t timeout_ms = 30'000) {
  AllRanks ranks;
  for (int r = 0; r < size; ++r) ranks.push_back(std::make_unique<Rank>(crew, job, r, size, timeout_ms));
  return ranks;
}

inline void run_all(const AllRanks& ranks) {
  std::vector<std::thread> threads;
  for (const auto& rank : ranks) threads.emplace_back([&rank] { rank->run(); });
  for (std::thread& thread : threads) thread.join();
}

inline void expect_right(const AllRanks& ranks) {
  run_all(ranks);
  const auto n = static_cast<float>(ranks.size());
  for (const auto& rank : ranks) {
    ASSERT_TRUE(rank->status.ok()) << rank->status.text();
    EXPECT_EQ(rank->sum(), (std::vector<float>{n, 2 * n}));
  }
}

}  // namespace heddle::testing_collectives
