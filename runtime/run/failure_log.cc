#include "run/failure_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/exceptions.h"
#include "base/text/text.h"
#include "base/threads/mutex.h"
#include "plugin/host.h"
#include "schedule/run_control.h"

namespace heddle {
namespace {

// Returns the device that does the step's work: that of a copy to the host is the other one.
std::string worker_of(const Plan& plan, const PlanStep& step) {
  const bool known = step.on_device && step.on_device->device <= plan.devices.size() && plan.devices[step.on_device->device - 1u].device;
  return known ? plan.devices[step.on_device->device - 1u].device->name() : plan.device_of(step);
}

}  // namespace
FailureLog::FailureLog(const Plan& plan) : plan_(plan) {
  failures_.reserve(16);
}

FailureLog::Failure& FailureLog::entry(uint32_t step, heddle_status status) noexcept {
  for (Failure& f : failures_)
    if (f.step == step) return f;
  std::vector<Failure>* const failures = &failures_;  // clang does not see in the lambda that the lock is held
  if (!without_exceptions([&] { failures->emplace_back(); })) return failures_.back();
  Failure& made = failures_.back();
  made.step = step;
  made.status = status;
  return made;
}

FailureLog::Failure& FailureLog::noted(uint32_t step, heddle_status status, std::string_view text) noexcept {
  Failure& f = entry(step, status);
  if (f.reported) return f;  // later notes only follow from the failure: a step that is signalled to end leaves one too
  if (text.data()) without_exceptions([&] { f.text = kept_text(text.data(), text.size()); });
  if (!text.empty()) f.cause = Status();
  return f;
}

void FailureLog::note(uint32_t step, heddle_status status, std::string_view text) noexcept {
  const MutexLock lock(mutex_);
  noted(step, status, text);
}

void FailureLog::note_cause(uint32_t step, Status cause) noexcept {
  const MutexLock lock(mutex_);
  const heddle_status status = status_of(cause.code());
  if (Failure& f = entry(step, status); !f.reported) f.cause = std::move(cause);
}

void FailureLog::note_refusal(uint32_t step, Status refusal) noexcept {
  const MutexLock lock(mutex_);
  if (Failure& f = entry(step, status_of(refusal.code())); !f.reported) f.refusal = std::move(refusal);
}

void FailureLog::note_behind_device(uint32_t step) noexcept {
  const MutexLock lock(mutex_);
  entry(step, HEDDLE_OK).behind_device = true;
}

uint32_t FailureLog::culprit(uint32_t step) const {
  const DeviceWork* const work = plan_.steps[step].on_device.get();
  if (!work || work->group.empty()) return step;
  const auto said = std::find_if(failures_.begin(), failures_.end(), [&](const Failure& f) {
    return !f.text.empty() && std::find(work->group.begin(), work->group.end(), f.step) != work->group.end();
  });
  return said == failures_.end() ? step : said->step;
}

void FailureLog::report(uint32_t step, heddle_status status, std::string_view text) noexcept {
  const MutexLock lock(mutex_);
  step = culprit(step);
  Failure& known = entry(step, status);
  // Its device was lost, and now reports that this step was the cause.
  if (known.reported && known.refused && text.data()) known.reported = false;
  Failure& f = noted(step, status, text);
  if (std::exchange(f.reported, true)) return;
  f.status = status;
  f.refused = status == HEDDLE_ERROR_DEVICE_LOST && !text.data();
}

void FailureLog::report_suspect(uint32_t step, std::string_view text) noexcept {
  const MutexLock lock(mutex_);
  Failure& f = noted(step, HEDDLE_ERROR_DEVICE, text);
  if (std::exchange(f.reported, true)) return;
  f.status = HEDDLE_ERROR_DEVICE;
  f.suspected = true;
}

void FailureLog::move_suspicion(uint32_t step) noexcept {
  const MutexLock lock(mutex_);
  const auto suspected = std::find_if(failures_.begin(), failures_.end(), [](const Failure& f) { return f.reported && f.suspected; });
  if (suspected == failures_.end() || suspected->step == step) return;
  std::erase_if(failures_, [step](const Failure& f) { return f.step == step; });
  for (Failure& f : failures_)
    if (f.suspected) f.step = step;
}

Status FailureLog::Failure::why(heddle_status answer) const {
  return plugin_error(Code::kernel_failed, answer, {answer, text, cause, refusal});
}

Status FailureLog::of_kernel(uint32_t step, heddle_status status) const {
  const MutexLock lock(mutex_);
  for (const Failure& f : failures_)
    if (f.step == step) return f.why(status);
  return plugin_error(Code::kernel_failed, status, {});
}

Status FailureLog::refusal_of(uint32_t step) const {
  const MutexLock lock(mutex_);
  for (const Failure& f : failures_)
    if (f.step == step) return f.refusal;
  return {};
}

bool FailureLog::reported_from(uint32_t first) const {
  const MutexLock lock(mutex_);
  return std::any_of(failures_.begin(), failures_.end(), [&](const Failure& f) { return f.reported && f.step >= first; });
}

void FailureLog::forget_fences(uint8_t device) {
  const MutexLock lock(mutex_);
  std::erase_if(failures_, [&](const Failure& f) {
    const DeviceWork* work = plan_.steps[f.step].on_device.get();
    return work && (work->kind == DeviceWork::Kind::fence || f.behind_device) && work->device == device;
  });
}

Status FailureLog::described(const Failure& f, uint32_t stop, bool untold) const {
  const DeviceWork* const work = plan_.steps[f.step].on_device.get();
  const PlanStep& step = plan_.steps[work && work->checks_for >= 0 ? static_cast<uint32_t>(work->checks_for) : f.step];
  Status status = f.why(f.status);
  if (untold) status = cancelled_untold();
  if (f.status == HEDDLE_ERROR_CANCELLED && stop == stop_deadline) status = Status(Code::deadline_exceeded, "the deadline passed");
  std::vector<std::string> shapes;
  for (const Operand& in : step.inputs) {
    const TensorType* const type = in.value.valid() ? &plan_.values[in.value.index].type : nullptr;
    shapes.push_back(type ? std::string(to_string(type->dtype)) + type->shape.text() : "-");
  }
  // Ranks compare where they were, with `heddle plan` in hand.
  const std::string place = step.collective ? fmt::format("as step {} of the plan ", &step - plan_.steps.data()) : std::string();
  if (f.cause.ok())
    status =
        std::move(status).during(shapes.empty() ? fmt::format("{}on {}", place, plan_.device_of(step))
                                                : fmt::format("{}on {} with inputs {}", place, worker_of(plan_, step), join(shapes, ", ")));
  return std::move(status).at(step.name, display_name(step.domain, step.type)).in_net(plan_.net_name);
}

Status FailureLog::error(uint32_t stop, bool told_outside) const {
  const MutexLock lock(mutex_);
  std::vector<const Failure*> reported;
  for (const Failure& f : failures_)
    if (f.reported) reported.push_back(&f);
  if (reported.empty()) {
    if (stop == stop_deadline)
      return {Code::deadline_exceeded, "the deadline passed before the run was done", "allow more time, or more threads"};
    return {Code::cancelled, "the run was cancelled"};
  }
  // A step that was signalled to end because another one failed is not the cause, nor is one that a lost device has refused.
  const auto rank = [](const Failure* f) { return std::tuple(f->status == HEDDLE_ERROR_CANCELLED, f->refused, f->step); };
  std::sort(reported.begin(), reported.end(), [&](const Failure* a, const Failure* b) { return rank(a) < rank(b); });
  // Such a step says nothing that is not known from the failure because of which it was signalled.
  if (reported.front()->status != HEDDLE_ERROR_CANCELLED)
    std::erase_if(reported, [](const Failure* f) { return f->status == HEDDLE_ERROR_CANCELLED; });
  // If the step that lost a device is reported, the steps that the device then refused add nothing.
  const auto device_of = [&](const Failure* f) { return plan_.steps[f->step].on_device ? plan_.steps[f->step].on_device->device : 0; };
  const auto told = [&](const Failure* f) {
    return std::any_of(reported.begin(), reported.end(), [&](const Failure* other) {
      return other->status == HEDDLE_ERROR_DEVICE_LOST && !other->refused && device_of(other) == device_of(f);
    });
  };
  std::erase_if(reported, [&](const Failure* f) { return f->refused && told(f); });
  const bool known = std::any_of(reported.begin(), reported.end(), [&](const Failure* f) {
    return !f->suspected && f->status != HEDDLE_ERROR_CANCELLED && plan_.steps[f->step].uses_communicator();
  });
  std::erase_if(reported, [&](const Failure* f) { return f->suspected && known; });
  const bool untold = reported.front()->status == HEDDLE_ERROR_CANCELLED && stop == stop_failed && !told_outside;
  Status first = described(*reported.front(), stop, untold);
  for (size_t i = 1; i < reported.size(); ++i) {
    Status other = described(*reported[i], stop);
    first.diagnostic().attached.push_back(std::move(other.diagnostic()));
  }
  return first;
}

}  // namespace heddle
