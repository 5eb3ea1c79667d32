// Predicts the time of a run on each of several ranks, from the times of its steps on one rank and from what the network between them does.
#include <algorithm>
#include <bit>
#include <map>
#include <queue>
#include <set>
#include <string>

#include "heddle/plan_info.h"
#include "session/plain_values.h"

namespace heddle {
namespace {

// How the ranks of the CPU plugin do an all-reduce (plugins/cpu/collective/message_sizes.h).
constexpr int64_t short_bytes = 16 << 10, min_chunk_bytes = 1 << 20, part_bytes = 64 << 10;
constexpr int tree_from = 9;

double of_bytes(const RankLink& link, double bytes) {
  return bytes * link.ns_per_byte;
}

// How many bytes a rank receives.
double received(int64_t bytes, const RankLink& link) {
  const double others = link.ranks - 1;
  return (bytes > short_bytes ? 2 * others / link.ranks : std::min(others, 2.0)) * static_cast<double>(bytes);
}

// Each rank gets so many bytes from all others.
double from_all(double bytes, const RankLink& link) {
  const double others = link.ranks - 1;
  return others > 0 ? others * (static_cast<double>(link.message_ns) + of_bytes(link, bytes)) + static_cast<double>(link.delay_ns) : 0;
}

double short_all_reduce(double bytes, const RankLink& link) {
  const double message = static_cast<double>(link.message_ns), delay = static_cast<double>(link.delay_ns);
  if (link.ranks < tree_from) return from_all(bytes, link);
  return 2 * std::bit_width(static_cast<unsigned>(link.ranks - 1)) * (message + delay + of_bytes(link, bytes));
}

double long_all_reduce(int64_t bytes, const RankLink& link) {
  const int64_t of_chunk = std::max(min_chunk_bytes, part_bytes * link.ranks);
  const int64_t count = (bytes + of_chunk - 1) / of_chunk;
  const double chunks = static_cast<double>(count), others = link.ranks - 1;
  return 2 * static_cast<double>(link.delay_ns) + chunks * 2 * others * static_cast<double>(link.message_ns) +
         of_bytes(link, received(bytes, link));
}

// The steps of a run on one thread, beside collectives that follow each other.
class RankRun {
 public:
  RankRun(const PlanInfo& plan, const std::vector<int64_t>& step_ns, const RankLink& link, bool communicates)
      : plan_(plan), step_ns_(step_ns), link_(link), communicates_(communicates), waits_for_(plan.steps.size()) {
    for (const PlanInfo::Collective& collective : plan.collectives) collectives_.insert(collective.name);
    for (const PlanInfo::Step& step : plan.steps) {
      for (const size_t next : step.successors) ++waits_for_[next];
      left_before_tail_ += step.tail ? 0 : 1;
    }
  }

  PredictedStep run() {
    for (size_t i = 0; i < plan_.steps.size(); ++i)
      if (waits_for_[i] == 0 && !plan_.steps[i].tail) ready_.push(i);
    if (left_before_tail_ == 0) begin_tail();
    while (!ready_.empty() || !under_way_.empty()) {
      if (ready_.empty()) {
        now_ = std::max(now_, under_way_.begin()->first);
        end_collectives();
        continue;
      }
      const size_t step = ready_.top();
      ready_.pop();
      if (collectives_.count(plan_.steps[step].name) > 0) {
        begin_collective(step);
      } else {
        now_ += time_of(step);
        end(step);
      }
      end_collectives();
    }
    result_.ns = static_cast<int64_t>(now_);
    return result_;
  }

 private:
  double time_of(size_t step) const { return step < step_ns_.size() ? static_cast<double>(step_ns_[step]) : 0; }

  void begin_collective(size_t step) {
    const bool gathers = plan_.steps[step].type == "AllGather";
    double takes = 0, bytes_received = 0;
    int64_t together = 0;
    for (const PlanInfo::Operand& input : plan_.steps[step].inputs) {
      const int64_t bytes = input.value ? plan_.values[*input.value].bytes : 0;
      if (gathers)
        takes += bytes > 0 ? from_all(static_cast<double>(bytes), link_) : 0;
      else if (bytes > short_bytes)
        takes += static_cast<double>(all_reduce_ns(bytes, link_));
      else
        together += bytes;
      bytes_received += gathers ? static_cast<double>(bytes) * (link_.ranks - 1) : received(bytes, link_);
    }
    if (together > 0) takes += static_cast<double>(all_reduce_ns(together, link_));
    result_.communication_ns += static_cast<int64_t>(takes);
    link_free_ = std::max(link_free_, now_) + (communicates_ ? takes : 0);
    under_way_.emplace(link_free_, step);
    if (communicates_) now_ += bytes_received * link_.processor_ns_per_byte;
  }

  void end_collectives() {
    while (!under_way_.empty() && under_way_.begin()->first <= now_) {
      const size_t step = under_way_.begin()->second;
      under_way_.erase(under_way_.begin());
      end(step);
    }
  }

  void end(size_t step) {
    for (const size_t next : plan_.steps[step].successors)
      if (--waits_for_[next] == 0 && (!plan_.steps[next].tail || left_before_tail_ == 0)) ready_.push(next);
    if (!plan_.steps[step].tail && --left_before_tail_ == 0) begin_tail();
  }

  // The ranks agree before they update anything.
  void begin_tail() {
    bool any = false;
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      if (!plan_.steps[i].tail) continue;
      any = true;
      if (waits_for_[i] == 0) ready_.push(i);
    }
    if (any && communicates_ && link_.ranks > 1) now_ += short_all_reduce(sizeof(uint64_t), link_);
  }

  const PlanInfo& plan_;
  const std::vector<int64_t>& step_ns_;
  const RankLink& link_;
  const bool communicates_;
  std::set<std::string> collectives_;
  std::vector<size_t> waits_for_;  // by step
  size_t left_before_tail_ = 0;
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready_;  // in the order of the plan
  std::multimap<double, size_t> under_way_;                                 // collectives, by their end
  double now_ = 0, link_free_ = 0;
  PredictedStep result_;
};

}  // namespace

int64_t all_reduce_ns(int64_t bytes, const RankLink& link) {
  if (link.ranks < 2 || bytes <= 0) return 0;
  const double ns = bytes <= short_bytes ? short_all_reduce(static_cast<double>(bytes), link) : long_all_reduce(bytes, link);
  return static_cast<int64_t>(std::min(ns, 9e18));
}

PredictedStep predict_step(const PlanInfo& plan, const std::vector<int64_t>& step_ns, const RankLink& link) {
  return or_empty("no memory to predict a step of several ranks", [&] {
    PredictedStep step = RankRun(plan, step_ns, link, true).run();
    step.exposed_ns = step.ns - RankRun(plan, step_ns, link, false).run().ns;
    return step;
  });
}

}  // namespace heddle
