#include "run/pending_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "base/exceptions.h"
#include "base/text/text.h"
#include "plugin/host.h"

namespace heddle {

std::string name_of(const PlanStep& step) {
  return fmt::format("operator {} ({})", quoted(step.name), display_name(step.domain, step.type));
}

PendingSteps::PendingSteps(const Plan& plan, void (*done)(void* user, uint32_t step, heddle_status status), void* user)
    : plan_(plan), done_(done), user_(user) {
  for (uint32_t i = 0; i < plan.graph.count; ++i)
    if ((plan.graph.flags[i] & step_async) != 0) steps_.push_back(i);
  if (steps_.empty()) return;
  slots_.assign(plan.graph.count, 0);
  pending_ = std::vector<Pending>(steps_.size());
  for (uint32_t slot = 0; slot < steps_.size(); ++slot) slots_[steps_[slot]] = slot;
}

PendingSteps::~PendingSteps() {
  for (const Pending& pending : pending_)
    if (pending.slot) pending.slot->give_back();
}

void PendingSteps::give_tokens(heddle_call& (*call)(void* user, uint32_t step), void* user) {
  for (const uint32_t step : steps_) of(step).slot = &TokenSlot::take(&call(user, step), name_of(plan_.steps[step]));
}

void PendingSteps::set(uint32_t step, const heddle_kernel* kernel, heddle_run_context* context) {
  of(step).kernel = kernel;
  of(step).context = context;
}

void PendingSteps::begin() {
  told_end_.store(0, std::memory_order_relaxed);
  for (const Pending& pending : pending_) pending.slot->renew(0);
}

void PendingSteps::starting(uint32_t step) {
  count_->fetch_add(1, std::memory_order_relaxed);
  of(step).context->call = static_cast<const heddle_call*>(of(step).slot->renew(TokenSlot::under_way));
}

heddle_status PendingSteps::started(uint32_t step, heddle_status answer) {
  std::atomic<uint64_t>& state = of(step).slot->state;
  if (answer == HEDDLE_OK) {
    // Until this point abort() skips the step; an abort() that set told_end_ earlier is obeyed here.
    if ((state.fetch_or(TokenSlot::returned) & TokenSlot::published) != 0)
      finish(step, of(step).status);
    else if (step < told_end_.load())
      tell(step);
    return HEDDLE_OK;
  }
  uint64_t now = state.load();
  while ((now & TokenSlot::claimed) == 0 && !state.compare_exchange_weak(now, now & ~uint64_t{TokenSlot::under_way})) {
  }
  if ((now & TokenSlot::claimed) != 0) {
    while ((state.load() & TokenSlot::published) == 0)
      std::this_thread::yield();  // complete() has claimed the step and has not published its status yet
    state.fetch_and(~uint64_t{TokenSlot::under_way});
    without_exceptions([&] {
      log_line(
          HEDDLE_LOG_WARNING,
          fmt::format("{} completes its step and then fails to start it, so that the step has failed; let run() fail, or complete the step",
                      name_of(plan_.steps[step])));
    });
  }
  count_->fetch_sub(1, std::memory_order_relaxed);
  return answer;
}

void PendingSteps::publish(uint32_t step, heddle_status status) {
  Pending& pending = of(step);
  pending.status = status;
  // While its abort() is being called, the thread that calls it finishes the step; before run() has returned, started() does.
  // A step without tiles has no complete() that claims it: it is claimed here, so that abort() skips it from now on.
  const uint64_t before = pending.slot->state.fetch_or(TokenSlot::published | TokenSlot::claimed);
  if ((before & TokenSlot::telling) == 0 && (before & TokenSlot::returned) != 0) finish(step, status);
}

// After `done_` the run may be over and this object destroyed, hence the copy of the count. A step of a run that was given up counts as
// under way until `done_` has returned, which keeps the execution.
void PendingSteps::finish(uint32_t step, heddle_status status) {
  const std::shared_ptr<std::atomic<uint32_t>> count = count_;
  done_(user_, step, status);
  count->fetch_sub(1, std::memory_order_release);
}

void PendingSteps::tell(uint32_t step) {
  Pending& pending = of(step);
  constexpr uint64_t started = TokenSlot::under_way | TokenSlot::returned;
  uint64_t now = pending.slot->state.load();
  do {
    if ((now & started) != started || (now & (TokenSlot::told | TokenSlot::claimed)) != 0) return;
  } while (!pending.slot->state.compare_exchange_weak(now, now | TokenSlot::told | TokenSlot::telling));
  if (pending.kernel->abort) try {
      pending.kernel->abort(pending.context);
    } catch (...) {
      without_exceptions([&] {
        log_line(HEDDLE_LOG_WARNING, fmt::format("operator {} threw an exception out of abort", quoted(plan_.steps[step].name)));
      });
    }
  if ((pending.slot->state.fetch_and(~uint64_t{TokenSlot::telling}) & TokenSlot::published) != 0) finish(step, pending.status);
}

void PendingSteps::abort(uint32_t end) {
  uint32_t before = told_end_.load();
  while (before < end && !told_end_.compare_exchange_weak(before, end)) {
  }
  for (const uint32_t step : steps_)
    if (step < end) tell(step);
}

bool PendingSteps::blame(FailureLog& failures, const std::string& text) const {
  std::optional<uint32_t> suspect;
  for (const uint32_t step : steps_) {
    const uint64_t state = of(step).slot->state.load();
    if ((state & TokenSlot::under_way) == 0 || (state & TokenSlot::claimed) != 0) continue;
    if (!suspect || (plan_.steps[step].uses_communicator() && !plan_.steps[*suspect].uses_communicator())) suspect = step;
  }
  if (suspect) failures.report_suspect(*suspect, text);
  return suspect.has_value();
}

// The count is that of the next run, too: an item of this one must not stay in the list.
void PendingSteps::note_unanswered(const LeftWork& left) {
  std::shared_ptr<Unanswered> noted;
  if (count_->load(std::memory_order_acquire) != 0) {
    const auto open = [&](uint32_t i) {
      return (of(i).slot->state.load() & (TokenSlot::under_way | TokenSlot::published)) == TokenSlot::under_way;
    };
    const auto found = std::find_if(steps_.begin(), steps_.end(), open);
    // If the last one is being published right now, any step may be named.
    const PlanStep& step = plan_.steps[found == steps_.end() ? steps_.front() : *found];
    noted = left.add(count_, fmt::format("{} has not completed", name_of(step)));
  }
  if (unanswered_) left.remove(*unanswered_);
  unanswered_ = std::move(noted);
}

}  // namespace heddle
