#include "compile/plan_check/update_phase_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace heddle::compiling {
namespace {

class PhaseJudge {
 public:
  PhaseJudge(const Plan& plan, const PlanOrder& order) : plan_(plan), order_(order), begin_(plan.graph.tail_begin), end_(plan.graph.count) {
    for (uint32_t s = 0; s < end_; ++s) {
      if (plan.steps[s].updates_variable) updates_.push_back(s);
      if (is(s, DeviceWork::Kind::commit)) commits_.push_back(s);
    }
  }
  Status run() const {
    if (plan_.has_variable_updates != !updates_.empty())
      return wrong_plan("whether there are updates of variables is not what the plan says");
    HEDDLE_CHECK(check_commits());
    if (begin_ == end_) return {};
    HEDDLE_CHECK(check_members());
    HEDDLE_CHECK(check_begin());
    return plan_.joins_tail ? check_held() : Status();
  }

 private:
  const DeviceWork* work(uint32_t step) const { return plan_.steps[step].on_device.get(); }
  bool is(uint32_t step, DeviceWork::Kind kind) const { return work(step) && work(step)->kind == kind; }
  std::string name(uint32_t step) const { return plan_step_name(plan_, step); }

  // Commits are the first steps of a phase that joins on devices, one a device, and the first of them decides.
  Status check_commits() const {
    for (const uint32_t c : commits_)
      if (!plan_.joins_tail || c < begin_ || c >= begin_ + plan_.commits)
        return wrong_plan(fmt::format("{} is a commit, but not among the first steps of an update phase that joins on devices", name(c)));
    if (!plan_.joins_tail) return {};
    if (commits_.empty() || commits_.front() != begin_) return wrong_plan("the update phase begins on devices without a commit");
    if (commits_.size() != plan_.commits) return wrong_plan(fmt::format("{} commits are said to be {}", commits_.size(), plan_.commits));
    for (const uint32_t c : commits_) {
      if (work(c)->copied_from != work(commits_.front())->device)
        return wrong_plan(fmt::format("{} does not find what the first has found", name(c)));
      if (c != commits_.front() && !order_.reaches(commits_.front(), c))
        return wrong_plan(fmt::format("{} is not after the first", name(c)));
    }
    return {};
  }
  Status check_members() const {
    if (!updates_.empty() && updates_.front() < begin_)
      return wrong_plan(fmt::format("{} updates a variable before the tail", name(updates_.front())));
    for (uint32_t s = begin_; s < end_; ++s) {
      // A report of faults belongs to the phase, wherever its device has work.
      const auto admits = [&](uint32_t u) {
        return (plan_.steps[u].updates_variable || is(u, DeviceWork::Kind::faults)) && (u == s || order_.reaches(u, s));
      };
      bool belongs = is(s, DeviceWork::Kind::commit);
      for (uint32_t u = begin_; u <= s && !belongs; ++u) belongs = admits(u);
      if (!belongs) return wrong_plan(fmt::format("{} is in the update phase, but neither an update nor after one", name(s)));
    }
    return {};
  }
  Status check_begin() const {
    for (uint32_t s = 0; s < begin_; ++s) {
      if (!work(s) || is(s, DeviceWork::Kind::fence)) continue;
      bool seen = plan_.joins_tail && order_.reaches(s, commits_.front());
      for (uint32_t f = s + 1; f < begin_ && !seen; ++f) seen = is(f, DeviceWork::Kind::fence) && order_.reaches(s, f);
      if (!seen) return wrong_plan(fmt::format("{} may run when the update phase begins", name(s)));
    }
    return {};
  }
  Status check_held() const {
    for (uint32_t s = begin_ + plan_.commits; s < end_; ++s) {
      if (!work(s)) return wrong_plan(fmt::format("{} is on the host, and the update phase begins on devices", name(s)));
      if (!plan_.steps[s].updates_variable) continue;
      const auto decides = [&](uint32_t c) { return work(c)->device == work(s)->device && order_.reaches(c, s); };
      if (std::none_of(commits_.begin(), commits_.end(), decides))
        return wrong_plan(fmt::format("{} updates a variable and is not after a commit on its device", name(s)));
      if (!work(s)->held) return wrong_plan(fmt::format("{} updates a variable and does not obey its commit", name(s)));
    }
    return {};
  }

  const Plan& plan_;
  const PlanOrder& order_;
  const uint32_t begin_, end_;
  std::vector<uint32_t> updates_, commits_;
};

}  // namespace

Status check_update_phase(const Plan& plan, const PlanOrder& order) {
  return PhaseJudge(plan, order).run();
}

}  // namespace heddle::compiling
