#include "run/device/device_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "base/text/text.h"
#include "device/driver_turn.h"
#include "plugin/host.h"

namespace heddle {

// ---------------------------------------------------------------- before the first step

Status DeviceWorker::wait_for_callers(std::span<const CallerStream> streams) {
  streams_.forget_adopted();
  for (const CallerStream& option : streams) {
    HEDDLE_TRY(DeviceStreams::Adopted* const adopted, streams_.adopt(option));
    const uint32_t on = adopted->device;
    Device& device = streams_.device(on);
    HostCall call;
    heddle_work record = {};
    record.record = adopted->reached.get();
    heddle_status status = streams_.enqueue(device, adopted->stream.get(), record, 0, &call);
    void* const reached = adopted->reached.get();
    heddle_work wait = {};
    wait.wait_count = 1;
    wait.waits = &reached;
    for (uint32_t s = 0; s < streams_.stream_count(on) && status == HEDDLE_OK; ++s) {
      answers_.note_work(on, s);
      status = streams_.enqueue(device, streams_.stream(on, s), wait, 0, &call);
    }
    if (status != HEDDLE_OK)
      return plugin_error(Code::device_failed, status, call.error)
          .during(fmt::format("while a stream of the caller's on {} was waited for", device.name()));
  }
  return {};
}

Status DeviceWorker::send_state(const heddle_run_state& state, const RunVariables& variables) {
  for (uint32_t d = 1; d <= streams_.device_count(); ++d) {
    if (!streams_.has_states(d)) continue;
    const void* const counter = variables.step_counter_on(static_cast<uint8_t>(d));
    for (uint32_t s = 0; s < streams_.stream_count(d); ++s)
      if (streams_.first_draw(d, s) >= 0) HEDDLE_CHECK(send_state_to(d, s, state, counter));
  }
  return {};
}

// `counter`: where the device counts the steps; null: `state` has the step.
Status DeviceWorker::send_state_to(uint32_t device, uint32_t stream, const heddle_run_state& state, const void* counter) {
  Device& to = streams_.device(device);
  HostCall call;
  heddle_run_state* const there = streams_.state_on(device, stream);
  answers_.note_work(device, stream);
  const auto copy = [&](int32_t kind, void* destination, const void* source, uint64_t bytes) {
    const heddle_copy what = {sizeof(what), kind, destination, source, bytes, nullptr};
    heddle_work work = {};
    work.copy = &what;
    const uint64_t label = streams_.label_of(static_cast<uint32_t>(streams_.first_draw(device, stream)));
    return streams_.enqueue(to, streams_.stream(device, stream), work, label, &call);
  };
  static_assert(sizeof(state) <= max_value_bytes);
  heddle_status status = copy(HEDDLE_COPY_VALUE_TO_DEVICE, there, &state, sizeof(state));
  if (status == HEDDLE_OK && counter)
    status = copy(HEDDLE_COPY_DEVICE_TO_DEVICE, reinterpret_cast<std::byte*>(there) + offsetof(heddle_run_state, step), counter,
                  sizeof(state.step));
  if (status == HEDDLE_OK) return {};
  return plugin_error(Code::device_failed, status, call.error)
      .during(fmt::format("while device {} was told the seed and step of the run", quoted(to.name())));
}

// ---------------------------------------------------------------- steps

DeviceWorker::StepKernel DeviceWorker::planned_kernel(uint32_t step) const {
  const PlanStep& planned = plan_.steps[step];
  return {planned.kernel->kernel, planned.tiles, planned.scratch_bytes, planned.on_device->thread_scratch};
}

heddle_status DeviceWorker::enqueue(uint32_t index, const heddle_run_context* context, const StepKernel& kernel, bool fenced) {
  const DeviceWork& planned = *plan_.steps[index].on_device;
  answers_.note_work(planned.device, planned.stream);
  const heddle_work before = work_before(index), after = work_after(index, fenced);
  const bool sends = !planned.extents.empty();
  heddle_status status = work(index, kernel, context, before, sends ? heddle_work{} : after);
  if (status == HEDDLE_OK && sends) status = send_extents(index, after, context->call);
  if (status != HEDDLE_OK || !streams_.observed()) return status;
  if (answers_.wait_for_answer(index) == HEDDLE_PENDING) return HEDDLE_ERROR_CANCELLED;
  return streams_.device(planned.device).synchronize(streams_.stream(planned), context->call);
}

heddle_work DeviceWorker::work_before(uint32_t step) const {
  const std::span<void* const> waits = streams_.waits(step);
  heddle_work before = {};
  before.wait_count = static_cast<uint32_t>(waits.size());
  before.waits = waits.data();
  return before;
}

heddle_work DeviceWorker::work_after(uint32_t step, bool fenced) {
  heddle_work after = {};
  after.record = streams_.record(step);
  if (fenced) answers_.call_back(step, after);
  return after;
}

// Enqueues a step with the work before and after it in one call; kernels written for the device enqueue themselves, between two calls.
heddle_status DeviceWorker::work(uint32_t index, const StepKernel& of, const heddle_run_context* context, const heddle_work& before,
                                 const heddle_work& after) {
  const DeviceWork& planned = *plan_.steps[index].on_device;
  if (planned.kind == DeviceWork::Kind::commit) return commit(index, *context, before, after);
  if (planned.kind != DeviceWork::Kind::kernel) {
    heddle_work whole = before;
    whole.record = after.record;
    whole.callback = after.callback;
    whole.user = after.user;
    return planned.kind == DeviceWork::Kind::copy     ? copy(index, *context, before, whole)
           : planned.kind == DeviceWork::Kind::launch ? launch(index, of, *context, whole)
                                                      : report(index, *context, whole);
  }
  Device& device = streams_.device(planned.device);
  const uint64_t label = streams_.label_of(index);
  heddle_status status = streams_.enqueue(device, context->stream, before, label, context->call);
  if (status == HEDDLE_OK && of.tiles > 0) status = of.kernel->run(context, 0, of.tiles);
  if (status == HEDDLE_OK && of.kernel->finish) status = of.kernel->finish(context);
  if (status == HEDDLE_OK && (after.record || after.callback))
    status = streams_.enqueue(device, context->stream, after, label, context->call);
  return status;
}

// `whole`: the work before and after the copy.
heddle_status DeviceWorker::copy(uint32_t step, const heddle_run_context& context, const heddle_work& before, heddle_work whole) {
  const DeviceWork& planned = *plan_.steps[step].on_device;
  const uint64_t bytes = context.outputs[0]->byte_size;
  const void* from = context.inputs[0]->data;
  if (planned.staging >= 0 && bytes > 0) from = std::memcpy(streams_.staging() + planned.staging, from, bytes);
  void* const source_device = planned.copied_from == 0 || planned.copy_kind != HEDDLE_COPY_DEVICE_TO_DEVICE
                                  ? nullptr
                                  : streams_.device(planned.copied_from).handle();
  if (context.outputs[0]->extent) {
    const heddle_status status = copy_extent(step, context, before);
    if (status != HEDDLE_OK) return status;
    whole.wait_count = 0;
  }
  const heddle_copy copy = {sizeof(copy), planned.copy_kind, context.outputs[0]->data, from, bytes, source_device};
  if (bytes > 0) whole.copy = &copy;
  return streams_.enqueue(streams_.device(planned.device), context.stream, whole, streams_.label_of(step), context.call);
}

// The copies of a commit: on the device that decides the stop word and the marks of all devices, elsewhere what that device has found.
heddle_status DeviceWorker::commit(uint32_t step, const heddle_run_context& context, const heddle_work& before, const heddle_work& after) {
  const DeviceWork& planned = *plan_.steps[step].on_device;
  Device& device = streams_.device(planned.device);
  uint64_t* const holds = streams_.holds_on(planned.device);
  heddle_status status = streams_.enqueue(device, context.stream, before, streams_.label_of(step), context.call);
  const auto copy = [&](int32_t kind, void* to, const void* from, uint64_t bytes, uint32_t of) {
    void* const source_device = of == 0 || of == planned.device ? nullptr : streams_.device(of).handle();
    const heddle_copy what = {sizeof(what), kind, to, from, bytes, source_device};
    heddle_work work = {};
    work.copy = &what;
    if (status == HEDDLE_OK) status = streams_.enqueue(device, context.stream, work, streams_.label_of(step), context.call);
  };
  if (planned.copied_from == planned.device) {
    CommitWords& words = streams_.commit_words();
    copy(HEDDLE_COPY_HOST_TO_DEVICE, holds, &words.stop, sizeof(uint64_t), 0);
    copy(HEDDLE_COPY_DEVICE_TO_HOST, &words.outcome, holds, sizeof(uint64_t), 0);
    for (uint32_t d = 1; d <= streams_.device_count(); ++d)
      if (plan_.devices[d - 1].may_report) copy(HEDDLE_COPY_DEVICE_TO_DEVICE, holds + d, &streams_.fault_on(d)->mark, sizeof(uint64_t), d);
  } else {
    copy(HEDDLE_COPY_DEVICE_TO_DEVICE, holds, streams_.holds_on(planned.copied_from), streams_.hold_count() * sizeof(uint64_t),
         planned.copied_from);
  }
  return status == HEDDLE_OK ? streams_.enqueue(device, context.stream, after, streams_.label_of(step), context.call) : status;
}

// `whole`: the work before and after the copy.
heddle_status DeviceWorker::report(uint32_t step, const heddle_run_context& context, heddle_work whole) {
  const DeviceWork& planned = *plan_.steps[step].on_device;
  const auto bytes = static_cast<uint64_t>(FaultBlock::bytes(streams_.device_count()));
  const heddle_copy copy = {
      sizeof(copy), HEDDLE_COPY_DEVICE_TO_HOST, streams_.reported(planned.device), streams_.block_on(planned.device), bytes, nullptr};
  whole.copy = &copy;
  return streams_.enqueue(streams_.device(planned.device), context.stream, whole, streams_.label_of(step), context.call);
}

// Enqueues the copy of a bounded value's extent, before that of its bytes.
heddle_status DeviceWorker::copy_extent(uint32_t step, const heddle_run_context& context, heddle_work before) {
  const DeviceWork& planned = *plan_.steps[step].on_device;
  const heddle_tensor &from = *context.inputs[0], &to = *context.outputs[0];
  const bool of_host = from.space == HEDDLE_SPACE_HOST, to_host = to.space == HEDDLE_SPACE_HOST;
  const int32_t kind = of_host ? HEDDLE_COPY_VALUE_TO_DEVICE : to_host ? HEDDLE_COPY_DEVICE_TO_HOST : HEDDLE_COPY_DEVICE_TO_DEVICE;
  void* const source_device = of_host || to_host || planned.copied_from == 0 ? nullptr : streams_.device(planned.copied_from).handle();
  const heddle_copy copy = {sizeof(copy), kind, to.extent, from.extent, sizeof(int64_t), source_device};
  before.copy = &copy;
  return streams_.enqueue(streams_.device(planned.device), context.stream, before, streams_.label_of(step), context.call);
}

// `whole`: the work before and after the launch.
heddle_status DeviceWorker::launch(uint32_t step, const StepKernel& of, const heddle_run_context& context, heddle_work whole) {
  const DeviceWork& planned = *plan_.steps[step].on_device;
  const heddle_launch launch = launch_of(step, of, context);
  if (of.tiles > 0) whole.launch = &launch;
  return streams_.enqueue(streams_.device(planned.device), context.stream, whole, streams_.label_of(step), context.call);
}

heddle_launch DeviceWorker::launch_of(uint32_t step, const StepKernel& of, const heddle_run_context& context) const {
  auto* const scratch = static_cast<std::byte*>(context.scratch);
  const auto of_step = static_cast<uint64_t>(of.thread_scratch_at), all = static_cast<uint64_t>(of.scratch_bytes);
  return {sizeof(heddle_launch),
          guard_after(plan_.steps[step].on_device->device, context),
          of.kernel,
          &context,
          of.tiles,
          of_step,
          all > of_step ? scratch + of_step : nullptr,
          all - of_step};
}

// Returns the bytes that may be guarded after the outputs. Only the arena has room for guards: after buffers that the caller, or the
// operator around a subnet, has bound lies memory of theirs.
uint32_t DeviceWorker::guard_after(uint32_t device, const heddle_run_context& context) const {
  const PlanDevice& planned = plan_.devices[device - 1u];
  const std::byte* const arena = streams_.arena(device);
  const auto in_arena = [&](const heddle_tensor* t) {
    const auto* const data = t ? static_cast<const std::byte*>(t->data) : nullptr;
    return !data || (data >= arena && data < arena + planned.arena_bytes);
  };
  const bool all = std::all_of(context.outputs, context.outputs + context.output_count, in_arena);
  return all ? static_cast<uint32_t>(planned.guard_bytes()) : 0;
}

// Copies to the host, right before the fence, the extents that late steps after it are resolved by.
heddle_status DeviceWorker::send_extents(uint32_t step, const heddle_work& after, const heddle_call* call) {
  const DeviceWork& planned = *plan_.steps[step].on_device;
  auto* const staged = reinterpret_cast<int64_t*>(streams_.staging() + plan_.extent_staging);
  for (const uint32_t slot : planned.extents) {
    const heddle_status status =
        move(step, HEDDLE_COPY_DEVICE_TO_HOST, staged + slot, streams_.extents_on(planned.device) + slot, sizeof(*staged), call);
    if (status != HEDDLE_OK) return status;
  }
  return streams_.enqueue(streams_.device(planned.device), streams_.stream(planned), after, streams_.label_of(step), call);
}

// ---------------------------------------------------------------- groups

heddle_status DeviceWorker::take_place(uint32_t index, const heddle_run_context* context) {
  const DeviceWork& planned = *plan_.steps[index].on_device;
  answers_.note_work(planned.device, planned.stream);
  return streams_.enqueue(streams_.device(planned.device), context->stream, work_before(index), streams_.label_of(index), context->call);
}

heddle_status DeviceWorker::enqueue_group(uint32_t index, std::span<const heddle_run_context* const> parts, bool fenced) {
  const DeviceWork& planned = *plan_.steps[index].on_device;
  const std::span<const uint32_t> group = planned.group;
  const auto own = static_cast<size_t>(std::find(group.begin(), group.end(), index) - group.begin());
  heddle_status status = take_place(index, parts[own]);
  if (status == HEDDLE_OK)
    status =
        planned.kind == DeviceWork::Kind::launch ? launch_group(group, parts, fenced, parts[own]->call) : run_group(group, parts, fenced);
  for (size_t i = 0; i < group.size() && status == HEDDLE_OK && streams_.observed(); ++i) {
    const DeviceWork& member = *plan_.steps[group[i]].on_device;
    if (answers_.wait_for_answer(group[i]) == HEDDLE_PENDING) return HEDDLE_ERROR_CANCELLED;
    status = streams_.device(member.device).synchronize(streams_.stream(member), parts[own]->call);
  }
  return status;
}

// The device does the launches when all streams have come to them.
heddle_status DeviceWorker::launch_group(std::span<const uint32_t> group, std::span<const heddle_run_context* const> parts, bool fenced,
                                         const heddle_call* call) {
  std::array<Device*, max_devices> devices;
  std::array<void*, max_devices> streams;
  std::array<heddle_work, max_devices> works;
  std::array<heddle_launch, max_devices> launches;
  for (size_t i = 0; i < group.size(); ++i) {
    const DeviceWork& member = *plan_.steps[group[i]].on_device;
    devices[i] = &streams_.device(member.device);
    streams[i] = parts[i]->stream;
    launches[i] = launch_of(group[i], planned_kernel(group[i]), *parts[i]);
    works[i] = work_after(group[i], fenced && member.fence >= 0);
    works[i].struct_size = sizeof(heddle_work);
    works[i].label = streams_.label_of(group[i]);
    works[i].launch = &launches[i];
  }
  const DriverTurn turn(DriverTurn::For::group);
  return enqueue_group_entering({devices.data(), group.size()}, {streams.data(), group.size()}, {works.data(), group.size()}, call);
}

heddle_status DeviceWorker::run_group(std::span<const uint32_t> group, std::span<const heddle_run_context* const> parts, bool fenced) {
  heddle_status status = HEDDLE_OK;
  {
    const DriverTurn turn(DriverTurn::For::group);
    status = planned_kernel(group[0]).kernel->run_group(parts.data(), static_cast<uint32_t>(parts.size()));
  }
  forget_entered_device();
  for (size_t i = 0; i < group.size() && status == HEDDLE_OK; ++i) {
    const DeviceWork& member = *plan_.steps[group[i]].on_device;
    const heddle_work after = work_after(group[i], fenced && member.fence >= 0);
    if (after.record || after.callback)
      status = streams_.enqueue(streams_.device(member.device), parts[i]->stream, after, streams_.label_of(group[i]), parts[i]->call);
  }
  return status;
}

// ---------------------------------------------------------------- copies beside the steps

heddle_status DeviceWorker::move(uint32_t step, int32_t kind, void* destination, const void* source, uint64_t bytes,
                                 const heddle_call* call) {
  const DeviceWork& planned = *plan_.steps[step].on_device;
  const heddle_copy copy = {sizeof(copy), kind, destination, source, bytes, nullptr};
  heddle_work work = {};
  work.copy = &copy;
  return streams_.enqueue(streams_.device(planned.device), streams_.stream(planned), work, streams_.label_of(step), call);
}

heddle_status DeviceWorker::fetch(uint32_t step, void* destination, const void* source, uint64_t bytes, const heddle_call* call) {
  const heddle_status status = move(step, HEDDLE_COPY_DEVICE_TO_HOST, destination, source, bytes, call);
  if (status != HEDDLE_OK) return status;
  const heddle_status answered = answers_.wait_for_answer(step);
  return answered == HEDDLE_PENDING ? HEDDLE_ERROR_CANCELLED : answered;
}

Status DeviceWorker::copy_after(uint8_t device, void* destination, const void* source, int64_t bytes) {
  HostCall call;
  const heddle_copy copy = {sizeof(copy), HEDDLE_COPY_DEVICE_TO_DEVICE, destination, source, static_cast<uint64_t>(bytes), nullptr};
  heddle_work work = {};
  work.copy = &copy;
  answers_.note_work(device, 0);
  const heddle_status status = streams_.enqueue(streams_.device(device), streams_.stream(device, 0), work, streams_.label_of(0), &call);
  return status == HEDDLE_OK ? Status() : plugin_error(Code::device_failed, status, call.error);
}

}  // namespace heddle
