// RankExchange: what the ranks of a training tell each other beside its steps.
//
// It has small nets of collectives, in a session of its own: they are made once, with a communicator of their own, which is made when it is
// first used. All ranks call the same functions in the same order. What comes out is the same on all ranks, bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heddle/session.h"
#include "heddle/training.h"
#include "net/net.h"
#include "train/run_cancellation.h"

namespace heddle {

// For how many ranks of which communicator a net was made (DataParallelOptions::ranks).
struct RanksOfNet {
  std::string communicator;
  int64_t ranks = 1;
};
// None: it learns alone. Errors: invalid_argument (the net says something else).
Result<std::optional<RanksOfNet>> ranks_of(const Net& net);
// Does so for one of several nets. Errors also: unknown_name.
Result<std::optional<RanksOfNet>> ranks_of(const Nets& nets, const std::string& name);

// Threads: one at a time. Errors of all functions but create(): device_failed, naming ranks that are lost; cancelled.
class RankExchange {
 public:
  // `learner`: a net for several ranks, of a session that says which of them it is. Returns null if the net was made for one, or the
  // session is the only one. `use`: a word that communicators of several exchanges between the same ranks differ by. Errors:
  // invalid_argument (the session is one of another number of ranks).
  static Result<std::unique_ptr<RankExchange>> create(const Session& learner, const std::string& use);

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  bool is_first() const { return rank_ == 0; }
  // Adds the numbers of all ranks, which have equally many.
  Status sum(std::span<double> numbers, RunCancellation& cancellation);
  // Returns the texts that the ranks give, by rank.
  Result<std::vector<std::string>> texts(const std::string& mine, RunCancellation& cancellation);
  // Gives all ranks the bytes that rank 0 has, piece by piece. All have equally many.
  Status copy_first(std::span<std::byte> bytes, RunCancellation& cancellation);
  // Leaves: ranks that wait for this one are told why.
  void leave(const std::string& why) noexcept;

 private:
  RankExchange(int rank, int ranks, Session nets) : rank_(rank), ranks_(ranks), nets_(std::move(nets)) {}
  // Runs a net on `count` elements; its result, of `result_bytes` bytes, goes to `result`.
  Status run(const char* net, DType dtype, int64_t count, const void* given, void* result, int64_t result_bytes,
             RunCancellation& cancellation);

  const int rank_, ranks_;
  Session nets_;
  std::map<std::pair<std::string, int64_t>, Context> contexts_;  // by net and number of elements
};

}  // namespace heddle
