#include "run/device_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/text.h"
#include "schedule/run_control.h"

namespace heddle {
Result<std::unique_ptr<DeviceRun>> DeviceRun::create(const Plan& plan) {
  std::unique_ptr<DeviceRun> run(new DeviceRun(plan));
  for (const PlanDevice& planned : plan.devices) {
    Side& side = run->sides_.emplace_back();
    side.device = planned.device.get();
    for (uint32_t i = 0; i < planned.streams; ++i) {
      HEDDLE_TRY(DeviceStream stream, side.device->create_stream());
      side.streams.push_back(std::move(stream));
    }
    for (uint32_t i = 0; i < planned.events; ++i) {
      HEDDLE_TRY(DeviceEvent event, side.device->create_event());
      side.events.push_back(std::move(event));
    }
    side.passed = std::vector<std::atomic<uint32_t>>(planned.streams);
    side.answers.resize(planned.streams);
    for (Answer& answer : side.answers) answer.run = run.get();
    side.first_draw.assign(planned.streams, -1);
  }
  HEDDLE_CHECK(run->make_states(plan));
  return run;
}

Status DeviceRun::make_states(const Plan& plan) {
  for (uint32_t i = 0; i < plan.steps.size(); ++i) {
    const DeviceWork* work = plan.steps[i].on_device.get();
    if (!work || !plan.steps[i].draws) continue;
    Side& side = sides_[work->device - 1u];
    if (side.first_draw[work->stream] < 0) side.first_draw[work->stream] = static_cast<int32_t>(i);
    if (!side.states) {
      HEDDLE_TRY(side.states, side.device->allocate(static_cast<int64_t>(side.streams.size() * state_stride)));
    }
  }
  return {};
}
DeviceRun::~DeviceRun() = default;

void DeviceRun::begin(bool observed, bool (*stops)(void* user), void* user) {
  observed_ = observed;
  stops_ = stops;
  user_ = user;
  for (Side& side : sides_) {
    for (std::atomic<uint32_t>& passed : side.passed) passed.store(0, std::memory_order_relaxed);
    for (Answer& answer : side.answers) answer.worked = false;
  }
}

Status DeviceRun::send_state(const heddle_run_state& state, const RunVariables& variables) {
  for (uint32_t d = 0; d < sides_.size(); ++d) {
    Side& side = sides_[d];
    const void* const counter = side.states ? variables.step_counter_on(static_cast<uint8_t>(d + 1)) : nullptr;
    for (uint32_t s = 0; s < side.streams.size() && side.states; ++s) {
      if (side.first_draw[s] < 0) continue;
      HostCall call;
      void* const stream = side.streams[s].get();
      heddle_run_state* const there = side.state_of(s);
      side.answers[s].worked = true;
      side.device->label(stream, static_cast<uint64_t>(side.first_draw[s]));
      heddle_status status = side.device->copy(stream, there, &state, sizeof(state), HEDDLE_COPY_HOST_TO_DEVICE, &call);
      if (status == HEDDLE_OK && counter)
        status = side.device->copy(stream, reinterpret_cast<std::byte*>(there) + offsetof(heddle_run_state, step), counter,
                                   sizeof(state.step), HEDDLE_COPY_DEVICE_TO_DEVICE, &call);
      if (status != HEDDLE_OK)
        return plugin_error(Code::device_failed, status, call.error)
            .during(fmt::format("while device {} was told the seed and step of the run", quoted(side.device->name())));
    }
  }
  return {};
}

heddle_status DeviceRun::work(const DeviceWork& work, const PlanStep& step, const heddle_run_context* context) {
  Device& device = *sides_[work.device - 1u].device;
  if (work.kind == DeviceWork::Kind::copy) {
    const auto bytes = static_cast<int64_t>(context->outputs[0]->byte_size);
    if (bytes == 0) return HEDDLE_OK;
    const void* from = context->inputs[0]->data;
    if (work.staging >= 0) from = std::memcpy(staging_ + work.staging, from, static_cast<size_t>(bytes));
    return device.copy(context->stream, context->outputs[0]->data, from, bytes, work.copy_kind, context->call);
  }
  const heddle_kernel& kernel = *step.kernel->kernel;
  if (work.kind == DeviceWork::Kind::launch) {
    if (step.tiles == 0) return HEDDLE_OK;
    auto* const scratch = static_cast<std::byte*>(context->scratch);
    const auto of_step = static_cast<uint64_t>(work.thread_scratch), whole = static_cast<uint64_t>(step.scratch_bytes);
    return device.launch(
        context->stream,
        {sizeof(heddle_launch), 0, &kernel, context, step.tiles, of_step, whole > of_step ? scratch + of_step : nullptr, whole - of_step},
        context->call);
  }
  const heddle_status status = step.tiles > 0 ? kernel.run(context, 0, step.tiles) : HEDDLE_OK;
  return status == HEDDLE_OK && kernel.finish ? kernel.finish(context) : status;
}

heddle_status DeviceRun::enqueue(uint32_t index, const heddle_run_context* context) {
  const PlanStep& step = plan_.steps[index];
  const DeviceWork& planned = *step.on_device;
  Side& side = sides_[planned.device - 1u];
  heddle_status status = HEDDLE_OK;
  side.answers[planned.stream].worked = true;
  side.device->label(context->stream, index);
  for (const uint32_t event : planned.waits)
    if (status == HEDDLE_OK) status = side.device->wait(context->stream, side.events[event].get(), context->call);
  if (status == HEDDLE_OK) status = work(planned, step, context);
  if (status == HEDDLE_OK && planned.records >= 0)
    status = side.device->record(context->stream, side.events[static_cast<size_t>(planned.records)].get(), context->call);
  if (status == HEDDLE_OK && observed_)
    status = wait_until_done(side, planned.stream, index < plan_.graph.tail_begin ? answer_after_stop_ns : answer_after_failure_ns,
                             context->call);
  return status;
}

heddle_status DeviceRun::notify(uint32_t index, const heddle_run_context* context, heddle_stream_callback callback, void* user) {
  const DeviceWork& planned = *plan_.steps[index].on_device;
  return sides_[planned.device - 1u].device->notify(context->stream, callback, user, context->call);
}

void DeviceRun::passed(uint32_t fence) {
  const DeviceWork& planned = *plan_.steps[fence].on_device;
  sides_[planned.device - 1u].passed[planned.stream].store(fence + 1, std::memory_order_relaxed);
}

// ---------------------------------------------------------------- the end of what is in flight

void DeviceRun::answer(void* user, heddle_status, const char*, size_t) {
  Answer& answer = *static_cast<Answer*>(user);
  DeviceRun& run = *answer.run;
  const std::lock_guard lock(run.mutex_);
  answer.given = true;
  if (run.unanswered_) run.unanswered_->answer();
  run.answered_.notify_all();  // under the lock: behind it the run may be gone
}

void DeviceRun::ask(Side& side, uint32_t stream) {
  Answer& asked = side.answers[stream];
  if (std::exchange(asked.asked, true)) return;
  asked.given = false;  // nothing else writes it before the stream is told
  if (side.device->notify(side.streams[stream].get(), answer, &asked, nullptr) == HEDDLE_OK) return;
  // A stream that takes no notify has failed: synchronize says how.
  const std::lock_guard lock(mutex_);
  asked.given = true;
}

template <class Given>
bool DeviceRun::wait_for(double ns, const Given& given) {
  std::unique_lock lock(mutex_);
  return answered_.wait_for(lock, std::chrono::nanoseconds(static_cast<int64_t>(ns)), given);
}

// Of a run that is looked at step by step.
heddle_status DeviceRun::wait_until_done(Side& side, uint32_t stream, double answer_ns, const heddle_call* call) {
  constexpr double look_again_ns = 5e6;
  ask(side, stream);
  Answer& asked = side.answers[stream];
  while (!wait_for(look_again_ns, [&] { return asked.given; }))
    if (stops_(user_) && !wait_for(answer_ns, [&] { return asked.given; })) return HEDDLE_ERROR_CANCELLED;
  asked.asked = false;
  return side.device->synchronize(side.streams[stream].get(), call);
}

std::vector<DeviceRun::Failure> DeviceRun::drain(double ns) {
  for (Side& side : sides_)
    for (uint32_t s = 0; s < side.streams.size(); ++s)
      if (side.answers[s].worked) ask(side, s);
  wait_for(ns, [&] {
    return std::all_of(sides_.begin(), sides_.end(), [](const Side& side) {
      return std::all_of(side.answers.begin(), side.answers.end(), [](const Answer& a) { return !a.asked || a.given; });
    });
  });
  std::vector<Failure> failures;
  for (uint32_t d = 0; d < sides_.size(); ++d) {
    Side& side = sides_[d];
    Failure unknown;
    std::vector<uint32_t> suspects;
    for (uint32_t s = 0; s < side.streams.size(); ++s) {
      Answer& asked = side.answers[s];
      if (!asked.asked || !wait_for(0, [&] { return asked.given; })) continue;
      asked.asked = asked.worked = false;
      HostCall call;
      const heddle_status status = side.device->synchronize(side.streams[s].get(), &call);
      if (status == HEDDLE_OK) continue;
      const uint64_t label = side.device->failed_label(side.streams[s].get());
      if (label < plan_.steps.size()) {
        failures.push_back({static_cast<uint32_t>(label), status, std::move(call.error.text)});
        continue;
      }
      if (unknown.status == HEDDLE_OK) unknown = {0, status, std::move(call.error.text)};
      const std::vector<uint32_t> behind = steps_behind(side, d + 1, s);
      suspects.insert(suspects.end(), behind.begin(), behind.end());
    }
    if (unknown.status != HEDDLE_OK) failures.push_back(blame(std::move(suspects), std::move(unknown)));
  }
  note_unanswered();
  return failures;
}

// Streams that were asked and not synchronised since. Some of them may have answered by now: they are synchronised by the next drain.
void DeviceRun::note_unanswered() {
  const std::lock_guard lock(mutex_);
  uint32_t asked = 0, missing = 0;
  for (const Side& side : sides_)
    for (const Answer& answer : side.answers) {
      asked += answer.asked ? 1 : 0;
      missing += answer.asked && !answer.given ? 1 : 0;
    }
  if (asked == 0)
    unanswered_ = nullptr;
  else if (!unanswered_)
    unanswered_ = std::make_shared<Unanswered>(missing, first_unanswered());
}

std::string DeviceRun::first_unanswered() const {
  for (uint32_t d = 0; d < sides_.size(); ++d)
    for (uint32_t s = 0; s < sides_[d].streams.size(); ++s) {
      if (!sides_[d].answers[s].asked) continue;
      const std::vector<uint32_t> steps = steps_behind(sides_[d], d + 1, s);
      return fmt::format("device {} still runs {}", quoted(sides_[d].device->name()),
                         steps.empty() ? "what it was given" : quoted(plan_.steps[steps.front()].name));
    }
  return {};
}

// Steps on the stream behind the last fence that went well.
std::vector<uint32_t> DeviceRun::steps_behind(const Side& side, uint32_t device, uint32_t stream) const {
  std::vector<uint32_t> steps;
  for (uint32_t i = side.passed[stream].load(std::memory_order_relaxed); i < plan_.steps.size(); ++i) {
    const DeviceWork* work = plan_.steps[i].on_device.get();
    if (work && work->device == device && work->stream == stream && work->kind != DeviceWork::Kind::fence) steps.push_back(i);
  }
  return steps;
}

// Without the device's own word, any step behind the last fence that went well may have failed, on any stream that failed.
DeviceRun::Failure DeviceRun::blame(std::vector<uint32_t> suspects, Failure failure) const {
  constexpr size_t most_named = 8;
  std::sort(suspects.begin(), suspects.end());
  std::vector<std::string> names;
  for (const uint32_t step : suspects)
    if (names.size() < most_named) names.push_back(quoted(plan_.steps[step].name));
  if (!suspects.empty()) failure.step = suspects.front();
  if (suspects.size() > most_named) names.push_back(fmt::format("{} more", suspects.size() - most_named));
  if (suspects.size() > 1) failure.text += fmt::format(" (the device does not say which of {} it was)", join(names, ", "));
  return failure;
}

}  // namespace heddle
