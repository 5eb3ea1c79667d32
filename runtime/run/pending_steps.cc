#include "run/pending_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/exceptions.h"
#include "base/text.h"
#include "plugin/host.h"

namespace heddle {

PendingSteps::PendingSteps(const Plan& plan, const StepResources& resources, void (*done)(void* user, uint32_t step, heddle_status status),
                           void* user)
    : plan_(plan), resources_(resources), done_(done), user_(user) {
  for (uint32_t i = 0; i < plan.graph.count; ++i)
    if ((plan.graph.flags[i] & step_async) != 0) steps_.push_back(i);
  if (steps_.empty()) return;
  slots_.assign(plan.graph.count, 0);
  pending_ = std::vector<Pending>(steps_.size());
  for (uint32_t slot = 0; slot < steps_.size(); ++slot) slots_[steps_[slot]] = slot;
}

void PendingSteps::set(uint32_t step, const heddle_kernel* kernel, const heddle_run_context* context) {
  of(step).kernel = kernel;
  of(step).context = context;
}

void PendingSteps::begin() {
  told_end_.store(0, std::memory_order_relaxed);
  for (Pending& pending : pending_) pending.state.store(0, std::memory_order_relaxed);
}

void PendingSteps::starting(uint32_t step) {
  count_->fetch_add(1, std::memory_order_relaxed);
  of(step).state.store(under_way, std::memory_order_release);
}

heddle_status PendingSteps::started(uint32_t step, heddle_status answer) {
  Pending& pending = of(step);
  if (answer != HEDDLE_OK) {
    uint32_t state = under_way;
    if (!pending.state.compare_exchange_strong(state, 0)) return HEDDLE_OK;  // it completed, and said how: that counts
    count_->fetch_sub(1, std::memory_order_relaxed);
    return answer;
  }
  // Before this the step was not among those to tell; whoever set the mark before this must be obeyed here.
  pending.state.fetch_or(returned);
  if (step < told_end_.load()) tell(step);
  return HEDDLE_OK;
}

bool PendingSteps::claim(uint32_t step) {
  std::atomic<uint32_t>& state = of(step).state;
  uint32_t now = state.load();
  do {
    if ((now & under_way) == 0 || (now & claimed) != 0) return false;
  } while (!state.compare_exchange_weak(now, now | claimed));
  return true;
}

void PendingSteps::publish(uint32_t step, heddle_status status) {
  Pending& pending = of(step);
  pending.status = status;
  // While its abort() is being called the step stays; who calls that finishes it.
  if ((pending.state.fetch_or(published) & telling) == 0) finish(step, status);
}

// Behind `done` the run may be over, and this object gone; while it counts, neither is.
void PendingSteps::finish(uint32_t step, heddle_status status) {
  const std::shared_ptr<std::atomic<uint32_t>> count = count_;
  done_(user_, step, status);
  count->fetch_sub(1, std::memory_order_release);
}

void PendingSteps::tell(uint32_t step) {
  Pending& pending = of(step);
  uint32_t now = pending.state.load();
  do {
    if ((now & (under_way | returned)) != (under_way | returned) || (now & (told | claimed)) != 0) return;
  } while (!pending.state.compare_exchange_weak(now, now | told | telling));
  if (pending.kernel->abort) try {
      pending.kernel->abort(pending.context);
    } catch (...) {
      without_exceptions([&] {
        log_line(HEDDLE_LOG_WARNING, fmt::format("operator {} threw an exception out of abort", quoted(plan_.steps[step].name)));
      });
    }
  resources_.abort(step, "a run that uses it is to end");
  if ((pending.state.fetch_and(~uint32_t{telling}) & published) != 0) finish(step, pending.status);
}

void PendingSteps::abort(uint32_t end) {
  uint32_t before = told_end_.load();
  while (before < end && !told_end_.compare_exchange_weak(before, end)) {
  }
  for (const uint32_t step : steps_)
    if (step < end) tell(step);
}

void PendingSteps::blame(FailureLog& failures, const std::string& text) const {
  for (const uint32_t step : steps_) {
    const uint32_t state = of(step).state.load();
    if ((state & under_way) == 0 || (state & claimed) != 0) continue;
    failures.report(step, HEDDLE_ERROR_DEVICE, text);
    return;
  }
}

void PendingSteps::note_unanswered(std::shared_ptr<const Unanswered> next) {
  unanswered_ = nullptr;
  if (count_->load(std::memory_order_acquire) == 0) return;
  const auto open = [&](uint32_t i) { return (of(i).state.load() & (under_way | published)) == under_way; };
  const auto found = std::find_if(steps_.begin(), steps_.end(), open);
  // One that is just being published is as good as any.
  const PlanStep& step = plan_.steps[found == steps_.end() ? steps_.front() : *found];
  unanswered_ = std::make_shared<Unanswered>(
      count_, fmt::format("operator {} ({}) has not completed", quoted(step.name), display_name(step.domain, step.type)), std::move(next));
}

}  // namespace heddle
