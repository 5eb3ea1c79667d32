#include "run/device/device_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/text/text.h"
#include "plugin/host.h"
#include "schedule/run_control.h"
#include "schedule/worker.h"

namespace heddle {

Result<std::unique_ptr<DeviceRun>> DeviceRun::create(const Plan& plan) {
  std::unique_ptr<DeviceRun> run(new DeviceRun(plan));
  for (const PlanDevice& planned : plan.devices) {
    const size_t streams = planned.stream_classes.size();
    Side& side = run->sides_.emplace_back();
    side.device = planned.device.get();
    side.streams.resize(streams);
    side.passed = std::vector<std::atomic<uint32_t>>(streams);
    side.answers = std::vector<Answer>(streams);
    for (Answer& answer : side.answers) answer.run = run.get();
    side.first_draw.assign(streams, -1);
  }
  run->awaited_ = std::vector<Awaited>(plan.steps.size());
  for (uint32_t i = 0; i < plan.steps.size(); ++i) run->awaited_[i].run = run.get();
  run->records_.resize(plan.steps.size());
  run->wait_begin_.resize(plan.steps.size() + 1);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const DeviceWork* work = plan.steps[i].on_device.get();
    run->wait_begin_[i + 1] = run->wait_begin_[i] + static_cast<uint32_t>(work ? work->waits.size() : 0);
  }
  run->waits_.resize(run->wait_begin_.back());
  HEDDLE_CHECK(run->make_states(plan));
  HEDDLE_CHECK(run->make_extents(plan));
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
Status DeviceRun::make_extents(const Plan& plan) {
  for (const PlanValue& value : plan.values) {
    if (value.extent_slot < 0 || value.place.device == 0) continue;
    Side& side = sides_[value.place.device - 1u];
    if (!side.extents) {
      HEDDLE_TRY(side.extents, side.device->allocate(static_cast<int64_t>(plan.extent_slots * sizeof(int64_t))));
    }
  }
  return {};
}
DeviceRun::~DeviceRun() = default;

void DeviceRun::stand_in(const ContextMemory& memory) {
  staging_ = memory.staging();
  for (size_t d = 0; d < sides_.size(); ++d) sides_[d].arena = memory.arena(static_cast<uint8_t>(d + 1));
}

void DeviceRun::follow(const Workspace& workspace, const ContextMemory& memory) {
  stand_in(memory);
  for (size_t d = 0; d < sides_.size(); ++d) {
    Side& side = sides_[d];
    const std::vector<int32_t>& classes = plan_.devices[d].stream_classes;
    for (size_t s = 0; s < classes.size(); ++s) {
      const auto of_class = std::count(classes.begin(), classes.begin() + static_cast<std::ptrdiff_t>(s), classes[s]);
      side.streams[s] = side.answers[s].stream = workspace.stream(*side.device, classes[s], static_cast<size_t>(of_class));
    }
  }
  const auto event = [&](size_t e) { return workspace.event(*plan_.devices[plan_.events[e].device - 1u].device, plan_.events[e].index); };
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    const DeviceWork* work = plan_.steps[i].on_device.get();
    if (!work) continue;
    for (size_t w = 0; w < work->waits.size(); ++w) waits_[wait_begin_[i] + w] = event(work->waits[w]);
    records_[i] = work->records < 0 ? nullptr : event(static_cast<size_t>(work->records));
  }
}

void DeviceRun::follow(const DeviceRun& outer, uint32_t step, uint32_t subnet, const ContextMemory& memory) {
  stand_in(memory);
  outer_label_ = outer.label_of(step);
  subnet_ = subnet;
  for (Side& side : sides_)
    for (size_t s = 0; s < side.streams.size(); ++s)
      side.streams[s] = side.answers[s].stream = outer.stream(*outer.plan_.steps[step].on_device);
}

// Returns a step's number. In a subnet: the number of the outer step in the low 32 bits, and above it the subnet's number and that of its
// step in 4 and 28 bits. Steps of deeper subnets count as the step of the subnet.
uint64_t DeviceRun::label_of(uint32_t step) const {
  if (outer_label_ == UINT64_MAX) return step;
  if (outer_label_ >> 32 != 0) return outer_label_;
  constexpr uint32_t max_subnet = 14, max_step = (1u << 28) - 1;
  return outer_label_ | uint64_t{std::min(subnet_, max_subnet) + 1} << 60 | uint64_t{std::min(step, max_step)} << 32;
}

Status DeviceRun::usable() const {
  for (const Side& side : sides_) HEDDLE_CHECK(side.device->usable());
  return {};
}

void DeviceRun::begin(bool observed, bool (*stops)(void* user), void* user) {
  observed_ = observed;
  stops_ = stops;
  user_ = user;
  for (Side& side : sides_) {
    for (std::atomic<uint32_t>& passed : side.passed) passed.store(0, std::memory_order_relaxed);
    for (Answer& answer : side.answers) answer.worked.store(false, std::memory_order_relaxed);
  }
  aborted_.store(false, std::memory_order_relaxed);
  aborts_.store(Aborts::any);
}

// ---------------------------------------------------------------- streams of the caller's

Status DeviceRun::stream_without_work(const CallerStream& option) {
  return {Code::invalid_argument, fmt::format("a stream of {} was given, where nothing of the net runs", quoted(option.device)),
          "give streams of the devices that plan() names, in full: \"kind:index\""};
}

Result<DeviceRun::Adopted*> DeviceRun::adopt(const CallerStream& option) {
  for (uint8_t d = 0; d < sides_.size(); ++d) {
    Side& side = sides_[d];
    if (side.device->name() != option.device) continue;
    for (Adopted& known : adopted_)
      if (known.native == option.stream && known.device == d + 1) return &known;
    HEDDLE_TRY(DeviceStream stream, side.device->create_stream(HEDDLE_STREAM_COMPUTE, option.stream));
    HEDDLE_TRY(DeviceEvent reached, side.device->create_event());
    adopted_.push_back({option.stream, static_cast<uint8_t>(d + 1), std::move(stream), std::move(reached)});
    return &adopted_.back();
  }
  return stream_without_work(option);
}

Status DeviceRun::follow_callers(std::span<const CallerStream> streams) {
  constexpr size_t max_kept = 16;
  if (adopted_.size() >= max_kept) adopted_.clear();  // the caller brings other streams every time; those of earlier runs are done
  for (const CallerStream& option : streams) {
    HEDDLE_TRY(Adopted* const adopted, adopt(option));
    Side& side = sides_[adopted->device - 1u];
    HostCall call;
    heddle_work record = {};
    record.record = adopted->reached.get();
    heddle_status status = enqueue(*side.device, adopted->stream.get(), record, 0, &call);
    void* const reached = adopted->reached.get();
    heddle_work wait = {};
    wait.wait_count = 1;
    wait.waits = &reached;
    for (uint32_t s = 0; s < side.streams.size() && status == HEDDLE_OK; ++s) {
      side.answers[s].worked.store(true, std::memory_order_relaxed);
      status = enqueue(*side.device, side.streams[s], wait, 0, &call);
    }
    if (status != HEDDLE_OK)
      return plugin_error(Code::device_failed, status, call.error)
          .during(fmt::format("while a stream of the caller's on {} was waited for", side.device->name()));
  }
  return {};
}

// ---------------------------------------------------------------- enqueueing

namespace {
// The device that the calling thread enqueued on last, and in which of its stays in a run. Null: it may have called other code since.
thread_local const Device* entered = nullptr;
thread_local uint64_t entered_in = 0;
// The device that the thread has yet to leave; its run is under way until then.
thread_local Device* to_leave = nullptr;

void leave_device() {
  if (to_leave) std::exchange(to_leave, nullptr)->leave();
}

// Among devices of one kind the thread leaves only the last: that restores the settings from before it entered the first.
void leave_later(Device& device) {
  if (to_leave && !to_leave->is_of_kind_of(device)) leave_device();
  to_leave = &device;
  when_thread_leaves_runs(leave_device);
  if (worker_stay() == 0) leave_device();
}
}  // namespace

bool DeviceRun::enters(const Device& device) const {
  const uint64_t stay = worker_stay();
  const bool alone = stay != 0 && plan_.devices_alone && !observed_;
  if (alone && entered == &device && entered_in == stay) return false;
  entered = alone ? &device : nullptr;
  entered_in = stay;
  return true;
}

void DeviceRun::forget_entered() {
  entered = nullptr;
}

heddle_status DeviceRun::enqueue(Device& device, void* stream, heddle_work work, uint64_t label, const heddle_call* call) {
  work.struct_size = sizeof(work);
  work.flags = enters(device) ? uint32_t{HEDDLE_WORK_ENTERS} : 0u;
  work.label = label;
  const heddle_status status = device.enqueue(stream, work, call);
  if ((work.flags & HEDDLE_WORK_ENTERS) != 0 && device.can_be_left()) leave_later(device);
  return status;
}

Status DeviceRun::send_state(const heddle_run_state& state, const RunVariables& variables) {
  for (uint32_t d = 0; d < sides_.size(); ++d) {
    Side& side = sides_[d];
    const void* const counter = side.states ? variables.step_counter_on(static_cast<uint8_t>(d + 1)) : nullptr;
    for (uint32_t s = 0; s < side.streams.size() && side.states; ++s) {
      if (side.first_draw[s] < 0) continue;
      HostCall call;
      heddle_run_state* const there = side.state_of(s);
      side.answers[s].worked.store(true, std::memory_order_relaxed);
      const auto copy = [&](int32_t kind, void* destination, const void* source, uint64_t bytes) {
        const heddle_copy what = {sizeof(what), kind, destination, source, bytes, nullptr};
        heddle_work work = {};
        work.copy = &what;
        return enqueue(*side.device, side.streams[s], work, label_of(static_cast<uint32_t>(side.first_draw[s])), &call);
      };
      static_assert(sizeof(state) <= max_value_bytes);
      heddle_status status = copy(HEDDLE_COPY_VALUE_TO_DEVICE, there, &state, sizeof(state));
      if (status == HEDDLE_OK && counter)
        status = copy(HEDDLE_COPY_DEVICE_TO_DEVICE, reinterpret_cast<std::byte*>(there) + offsetof(heddle_run_state, step), counter,
                      sizeof(state.step));
      if (status != HEDDLE_OK)
        return plugin_error(Code::device_failed, status, call.error)
            .during(fmt::format("while device {} was told the seed and step of the run", quoted(side.device->name())));
    }
  }
  return {};
}

// Returns the bytes that may be guarded after the outputs. Only the arena has room for guards: after buffers that the caller, or the
// operator around a subnet, has bound lies memory of theirs.
uint32_t DeviceRun::guard_behind(const Side& side, const PlanDevice& device, const heddle_run_context& context) const {
  const auto in_arena = [&](const heddle_tensor* t) {
    const auto* const data = t ? static_cast<const std::byte*>(t->data) : nullptr;
    return !data || (data >= side.arena && data < side.arena + device.arena_bytes);
  };
  const bool all = std::all_of(context.outputs, context.outputs + context.output_count, in_arena);
  return all ? static_cast<uint32_t>(device.guard_bytes()) : 0;
}

// Enqueues the copy of a bounded value's extent, before that of its bytes.
heddle_status DeviceRun::copy_extent(const DeviceWork& planned, const heddle_run_context& context, heddle_work before, uint64_t label) {
  const heddle_tensor &from = *context.inputs[0], &to = *context.outputs[0];
  const bool of_host = from.space == HEDDLE_SPACE_HOST, to_host = to.space == HEDDLE_SPACE_HOST;
  const int32_t kind = of_host ? HEDDLE_COPY_VALUE_TO_DEVICE : to_host ? HEDDLE_COPY_DEVICE_TO_HOST : HEDDLE_COPY_DEVICE_TO_DEVICE;
  void* const source_device = of_host || to_host || planned.copied_from == 0 ? nullptr : sides_[planned.copied_from - 1u].device->handle();
  const heddle_copy copy = {sizeof(copy), kind, to.extent, from.extent, sizeof(int64_t), source_device};
  before.copy = &copy;
  return enqueue(*sides_[planned.device - 1u].device, context.stream, before, label, context.call);
}

// Enqueues a step with the work before and after it in one call; kernels written for the device enqueue themselves, between two calls.
heddle_status DeviceRun::work(uint32_t index, const StepKernel& of, const heddle_run_context* context, heddle_work before,
                              heddle_work behind) {
  const DeviceWork& planned = *plan_.steps[index].on_device;
  Device& device = *sides_[planned.device - 1u].device;
  void* const stream = context->stream;
  const uint64_t label = label_of(index);
  heddle_work whole = before;
  whole.record = behind.record;
  whole.callback = behind.callback;
  whole.user = behind.user;
  if (planned.kind == DeviceWork::Kind::copy) {
    const uint64_t bytes = context->outputs[0]->byte_size;
    const void* from = context->inputs[0]->data;
    if (planned.staging >= 0 && bytes > 0) from = std::memcpy(staging_ + planned.staging, from, bytes);
    void* const source_device = planned.copied_from == 0 || planned.copy_kind != HEDDLE_COPY_DEVICE_TO_DEVICE
                                    ? nullptr
                                    : sides_[planned.copied_from - 1u].device->handle();
    if (context->outputs[0]->extent) {
      const heddle_status status = copy_extent(planned, *context, before, label);
      if (status != HEDDLE_OK) return status;
      whole.wait_count = 0;
    }
    const heddle_copy copy = {sizeof(copy), planned.copy_kind, context->outputs[0]->data, from, bytes, source_device};
    if (bytes > 0) whole.copy = &copy;
    return enqueue(device, stream, whole, label, context->call);
  }
  if (planned.kind == DeviceWork::Kind::launch) {
    auto* const scratch = static_cast<std::byte*>(context->scratch);
    const auto of_step = static_cast<uint64_t>(of.thread_scratch_at), all = static_cast<uint64_t>(of.scratch_bytes);
    const heddle_launch launch = {sizeof(launch),
                                  guard_behind(sides_[planned.device - 1u], plan_.devices[planned.device - 1u], *context),
                                  of.kernel,
                                  context,
                                  of.tiles,
                                  of_step,
                                  all > of_step ? scratch + of_step : nullptr,
                                  all - of_step};
    if (of.tiles > 0) whole.launch = &launch;
    return enqueue(device, stream, whole, label, context->call);
  }
  heddle_status status = enqueue(device, stream, before, label, context->call);
  if (status == HEDDLE_OK && of.tiles > 0) status = of.kernel->run(context, 0, of.tiles);
  if (status == HEDDLE_OK && of.kernel->finish) status = of.kernel->finish(context);
  if (status == HEDDLE_OK && (behind.record || behind.callback)) status = enqueue(device, stream, behind, label, context->call);
  return status;
}

DeviceRun::StepKernel DeviceRun::planned_kernel(uint32_t step) const {
  const PlanStep& planned = plan_.steps[step];
  return {planned.kernel->kernel, planned.tiles, planned.scratch_bytes, planned.on_device->thread_scratch};
}

// Copies to the host, right before the fence, the extents that late steps after it are resolved by.
heddle_status DeviceRun::send_extents(uint32_t step, heddle_work behind, const heddle_call* call) {
  const DeviceWork& planned = *plan_.steps[step].on_device;
  auto* const staged = reinterpret_cast<int64_t*>(staging_ + plan_.extent_staging);
  for (const uint32_t slot : planned.extents) {
    const heddle_status status =
        move(step, HEDDLE_COPY_DEVICE_TO_HOST, staged + slot, extents_on(planned.device) + slot, sizeof(*staged), call);
    if (status != HEDDLE_OK) return status;
  }
  return enqueue(*sides_[planned.device - 1u].device, stream(planned), behind, label_of(step), call);
}

heddle_status DeviceRun::enqueue(uint32_t index, const heddle_run_context* context, const StepKernel& kernel, bool fenced) {
  const DeviceWork& planned = *plan_.steps[index].on_device;
  Side& side = sides_[planned.device - 1u];
  side.answers[planned.stream].worked.store(true, std::memory_order_relaxed);
  heddle_work before = {}, behind = {};
  before.wait_count = wait_begin_[index + 1] - wait_begin_[index];
  before.waits = waits_.data() + wait_begin_[index];
  behind.record = records_[index];
  if (fenced) {
    behind.callback = fence_reached;
    behind.user = &awaited_[index];
  }
  const bool sends = !planned.extents.empty();
  heddle_status status = work(index, kernel, context, before, sends ? heddle_work{} : behind);
  if (status == HEDDLE_OK && sends) status = send_extents(index, behind, context->call);
  if (status != HEDDLE_OK || !observed_) return status;
  if (wait_for_answer(side, planned.stream, answer_ns(index)) == HEDDLE_PENDING) return HEDDLE_ERROR_CANCELLED;
  return side.device->synchronize(side.streams[planned.stream], context->call);
}

double DeviceRun::answer_ns(uint32_t step) const {
  return step < plan_.graph.tail_begin ? answer_after_stop_ns : answer_after_failure_ns;
}

heddle_status DeviceRun::fetch(uint32_t step, void* destination, const void* source, uint64_t bytes, const heddle_call* call) {
  const DeviceWork& planned = *plan_.steps[step].on_device;
  const heddle_status status = move(step, HEDDLE_COPY_DEVICE_TO_HOST, destination, source, bytes, call);
  if (status != HEDDLE_OK) return status;
  const heddle_status answered = wait_for_answer(sides_[planned.device - 1u], planned.stream, answer_ns(step));
  return answered == HEDDLE_PENDING ? HEDDLE_ERROR_CANCELLED : answered;
}

heddle_status DeviceRun::move(uint32_t step, int32_t kind, void* destination, const void* source, uint64_t bytes, const heddle_call* call) {
  const DeviceWork& planned = *plan_.steps[step].on_device;
  const heddle_copy copy = {sizeof(copy), kind, destination, source, bytes, nullptr};
  heddle_work work = {};
  work.copy = &copy;
  return enqueue(*sides_[planned.device - 1u].device, stream(planned), work, label_of(step), call);
}

Status DeviceRun::copy_behind(uint8_t device, void* destination, const void* source, int64_t bytes) {
  Side& side = sides_[device - 1u];
  HostCall call;
  const heddle_copy copy = {sizeof(copy), HEDDLE_COPY_DEVICE_TO_DEVICE, destination, source, static_cast<uint64_t>(bytes), nullptr};
  heddle_work work = {};
  work.copy = &copy;
  side.answers[0].worked.store(true, std::memory_order_relaxed);
  const heddle_status status = enqueue(*side.device, side.streams[0], work, label_of(0), &call);
  return status == HEDDLE_OK ? Status() : plugin_error(Code::device_failed, status, call.error);
}

}  // namespace heddle
