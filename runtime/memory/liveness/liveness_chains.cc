#include "memory/liveness/liveness_chains.h"

#include <algorithm>

namespace heddle {
namespace {

constexpr uint32_t no_row = UINT32_MAX;

// Kept while steps are placed: for each step not yet placed that has a placed predecessor, how many positions of each chain happen before
// it. Rows exist from a step's first placed predecessor to the step itself.
class Reached {
 public:
  Reached(uint32_t steps, uint32_t width) : width_(width), row_of_(steps, no_row), zero_(width, 0) {}

  const uint32_t* of(uint32_t step) const { return row_of_[step] == no_row ? zero_.data() : row(row_of_[step]); }
  // Records that `from` happens before `to`.
  void pass_on(uint32_t from, uint32_t to) {
    if (row_of_[to] == no_row) row_of_[to] = make();
    const uint32_t* source = of(from);
    uint32_t* target = row(row_of_[to]);
    for (uint32_t k = 0; k < width_; ++k) target[k] = std::max(target[k], source[k]);
  }
  // Records that `step` is at `position` of `chain`, and so reaches itself.
  void arrive(uint32_t step, uint32_t chain, uint32_t position) {
    if (row_of_[step] == no_row) row_of_[step] = make();
    row(row_of_[step])[chain] = position + 1;
  }
  // Adds to `step` all that `row` has reached.
  void take_over(uint32_t step, const std::vector<uint32_t>& row) {
    uint32_t* target = this->row(row_of_[step]);
    for (uint32_t k = 0; k < width_; ++k) target[k] = std::max(target[k], row[k]);
  }
  void drop(uint32_t step) {
    spare_.push_back(row_of_[step]);
    row_of_[step] = no_row;
  }

 private:
  uint32_t* row(uint32_t r) { return rows_.data() + static_cast<size_t>(r) * width_; }
  const uint32_t* row(uint32_t r) const { return rows_.data() + static_cast<size_t>(r) * width_; }
  uint32_t make() {
    if (spare_.empty()) {
      rows_.resize(rows_.size() + width_, 0);
      return static_cast<uint32_t>(rows_.size() / width_) - 1;
    }
    const uint32_t r = spare_.back();
    spare_.pop_back();
    std::fill_n(row(r), width_, 0);
    return r;
  }

  uint32_t width_;
  std::vector<uint32_t> row_of_, spare_, rows_;
  std::vector<uint32_t> zero_;
};

class Coverer {
 public:
  explicit Coverer(const LivenessProblem& problem)
      : problem_(problem), width_(chains_of(problem)), reached_(problem.steps, width_), ready_(problem.steps, 0), done_(width_, 0) {
    cover_.chain.resize(problem.steps);
    cover_.position.resize(problem.steps);
  }

  ChainCover run() {
    for (uint32_t step = 0; step < problem_.steps; ++step) {
      join(step, choose(step));
      for (uint32_t i = problem_.successor_begin[step]; i < problem_.successor_begin[step + 1]; ++i) {
        const uint32_t next = problem_.successors[i];
        reached_.pass_on(step, next);
        ready_[next] = std::max(ready_[next], ready_[step]);
      }
      // The step that joins this chain next runs after this one: it takes the row over.
      if (last_row_.size() < cover_.members.size()) last_row_.resize(cover_.members.size());
      last_row_[cover_.chain[step]].assign(reached_.of(step), reached_.of(step) + width_);
      reached_.drop(step);
    }
    return std::move(cover_);
  }

 private:
  static constexpr uint32_t none = UINT32_MAX;

  // True if the last step of `chain` happens before `step` without a new edge.
  bool follows(uint32_t chain, const uint32_t* reached) const { return reached[chain] == cover_.members[chain].size(); }

  uint32_t choose(uint32_t step) const {
    if (problem_.lag != 0) return step % problem_.lag;
    const uint32_t* reached = reached_.of(step);
    uint32_t following = none;  // the candidate that is done latest: the other chains stay free for steps that have waited longer
    uint32_t soonest = none;
    for (uint32_t k = 0; k < cover_.chains(); ++k) {
      if (follows(k, reached) && (following == none || done_[k] > done_[following])) following = k;
      if (soonest == none || done_[k] < done_[soonest]) soonest = k;
    }
    if (following != none) return following;
    if (cover_.chains() < width_) return cover_.chains();
    return soonest;
  }

  void join(uint32_t step, uint32_t chain) {
    if (chain == cover_.chains()) cover_.members.emplace_back();
    std::vector<uint32_t>& members = cover_.members[chain];
    const bool follows_already = follows(chain, reached_.of(step));
    cover_.chain[step] = chain;
    cover_.position[step] = static_cast<uint32_t>(members.size());
    reached_.arrive(step, chain, cover_.position[step]);
    if (!members.empty() && !follows_already) {
      cover_.added_edges.emplace_back(members.back(), step);
      reached_.take_over(step, last_row_[chain]);
      ready_[step] = std::max(ready_[step], done_[chain]);
    }
    members.push_back(step);
    ready_[step] += problem_.cost.empty() ? 1.0 : static_cast<double>(problem_.cost[step]);
    done_[chain] = ready_[step];
  }

  const LivenessProblem& problem_;
  const uint32_t width_;
  ChainCover cover_;
  Reached reached_;
  std::vector<std::vector<uint32_t>> last_row_;  // the row of each chain's last step
  std::vector<double> ready_;                    // when each step can start; once placed: when it is done
  std::vector<double> done_;                     // when each chain is done
};

}  // namespace

ChainCover cover_with_chains(const LivenessProblem& problem) {
  return Coverer(problem).run();
}

ForwardClocks::ForwardClocks(const LivenessProblem& problem, const ChainCover& cover)
    : chains_(cover.chains()), rows_(static_cast<size_t>(problem.steps) * cover.chains()) {
  for (uint32_t step = problem.steps; step-- > 0;) {
    uint32_t* row = rows_.data() + static_cast<size_t>(step) * chains_;
    for (size_t k = 0; k < chains_; ++k) row[k] = static_cast<uint32_t>(cover.members[k].size());
    const auto follow = [&](uint32_t next) {
      const uint32_t* after = this->row(next);
      for (size_t k = 0; k < chains_; ++k) row[k] = std::min(row[k], after[k]);
      row[cover.chain[next]] = std::min(row[cover.chain[next]], cover.position[next]);
    };
    for (uint32_t i = problem.successor_begin[step]; i < problem.successor_begin[step + 1]; ++i) follow(problem.successors[i]);
    const std::vector<uint32_t>& chain = cover.members[cover.chain[step]];
    if (cover.position[step] + 1 < chain.size()) follow(chain[cover.position[step] + 1]);
  }
}

}  // namespace heddle
