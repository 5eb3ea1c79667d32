#include "run/step_contexts.h"

#include "run/late/late_step.h"
#include "run/pending_steps.h"
#include "run/step_resources.h"
#include "run/subnets/subnets.h"
#include "run/tile_ranges.h"
#include "schedule/step_call.h"

namespace heddle {
namespace {

// A step of several tiles that costs at least this, or an unknown amount, runs in ranges of tiles, so that it can stop in between.
constexpr double long_step_ns = 10e6;

// Runs a step whose shapes leave nothing to do.
heddle_status run_nothing(const heddle_run_context*, int64_t, int64_t) {
  return HEDDLE_OK;
}

// Runs a kernel that reads extents itself, after checking them.
heddle_status run_with_extents(const heddle_run_context* context, int64_t begin, int64_t end) {
  const StepContext& c = StepContext::of(*context);
  if (const Status bad = check_input_extents(*context); !bad.ok()) {
    c.services().failures.note(c.step, HEDDLE_ERROR_INVALID, bad.diagnostic().message);
    return HEDDLE_ERROR_INVALID;
  }
  return c.planned().kernel->kernel->run(context, begin, end);
}

// Runs a kernel that may take long, in ranges of tiles.
heddle_status run_in_ranges(const heddle_run_context* context, int64_t begin, int64_t end) {
  const StepContext& c = StepContext::of(*context);
  const PlanStep& step = c.planned();
  const heddle_run_function run = step.reads_extents ? run_with_extents : step.kernel->kernel->run;
  return run_tiles(c.services().scope, c.step, run, context, {begin, end}, step.cost_ns / static_cast<double>(step.tiles));
}

// Starts an asynchronous step.
heddle_status start(const heddle_run_context* context, int64_t begin, int64_t end) {
  const StepContext& c = StepContext::of(*context);
  PendingSteps& pending = c.services().pending;
  const heddle_run_function run = c.planned().reads_extents ? run_with_extents : c.planned().kernel->kernel->run;
  pending.starting(c.step);
  try {
    return pending.started(c.step, run(context, begin, end));
  } catch (...) {
    return pending.started(c.step, say_threw(context));
  }
}

// Runs a kernel that may suspend.
heddle_status run_resuming(const heddle_run_context* context, int64_t, int64_t) {
  const auto kernel = [](const heddle_run_context* own, bool resumed) {
    const StepContext& c = StepContext::of(*own);
    if (c.planned().late) return c.all->late(c.step)->run_whole(resumed);
    c.abi().resumed = resumed ? 1 : 0;
    return call_run({c.planned().reads_extents ? run_with_extents : c.planned().kernel->kernel->run, own, 1}, 0, 1);
  };
  const StepContext& c = StepContext::of(*context);
  return c.services().subnets.call(c.step, kernel, context);
}

heddle_status run_late(const heddle_run_context* context, int64_t begin, int64_t end) {
  const StepContext& c = StepContext::of(*context);
  LateStep& late = *c.all->late(c.step);
  if (begin < end && !c.planned().asynchronous()) return late.run(begin, end);
  const Status status = c.planned().asynchronous() ? late.start(c.services().pending) : late.resolve();
  if (status.ok()) return HEDDLE_OK;
  c.services().failures.note_cause(c.step, status);
  return status_of(status.code());
}

// Called when the device has completed the step before a fence; `user` is the context of the fence. After it the run may be over and the
// execution destroyed.
void fence_passed(void* user, heddle_status failed) {
  const StepContext& fence = *static_cast<StepContext*>(user);
  fence.services().scheduler.complete(fence.step, failed);
}

// Enqueues a step on a device.
heddle_status enqueue(const heddle_run_context* context, int64_t, int64_t) {
  const StepContext& c = StepContext::of(*context);
  Scheduler& scheduler = c.services().scheduler;
  DeviceRun& devices = *c.services().devices;
  const int32_t fence = c.planned().on_device->fence;
  const auto enqueue = [&](bool fenced) {
    if (LateStep* const late = c.all->late(c.step)) return late->enqueue(fenced);
    return devices.worker().enqueue(c.step, context, devices.worker().planned_kernel(c.step), fenced);
  };
  // A step of a traced run waits for its own work.
  if (fence < 0 || devices.streams().observed()) return enqueue(false);
  const auto awaited = static_cast<uint32_t>(fence);
  scheduler.expect(awaited);
  devices.answers().await(c.step, {fence_passed, &(*c.all)[awaited]});
  heddle_status status = HEDDLE_OK;
  try {
    status = enqueue(true);
  } catch (...) {  // the fence is expected: nothing may be thrown before unexpect()
    status = say_threw(context);
  }
  // A fence that was completed with a failure meanwhile must not be unexpected as well.
  if (status != HEDDLE_OK && devices.answers().withdraw(c.step)) scheduler.unexpect();
  return status;
}

}  // namespace

StepContexts::StepContexts(const StepServices& services, ValueViews& views) : services_(services) {
  const Plan& plan = services.plan;
  contexts_ = std::vector<StepContext>(plan.steps.size());
  abi_.resize(plan.steps.size());
  steps_.resize(plan.steps.size());
  if (plan.has_late_steps) late_.resize(plan.steps.size());
  heddle_tensor** next = views.operands();
  for (uint32_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    StepContext& c = contexts_[i];
    c.all = this;
    c.step = i;
    heddle_run_context& abi = abi_[i];
    abi.struct_size = sizeof(heddle_run_context);
    abi.input_count = static_cast<uint32_t>(step.inputs.size());
    abi.output_count = static_cast<uint32_t>(step.outputs.size());
    abi.random_stream = step.random_stream;
    abi.inputs = next;
    next += step.inputs.size();
    abi.outputs = next;
    next += step.outputs.size();
    abi.state = step.state.get();
    abi.scratch = services.memory.scratch(i);
    if (step.data_scratch_bytes > 0) abi.data_scratch = services.memory.data_scratch(i);
    abi.host = host_table();
    abi.call = &c;
    if (step.on_device) abi.stream = services.devices->streams().stream(*step.on_device);
    const std::span<void* const> resources = services.resources.of(i);
    abi.resources = resources.data();
    abi.resource_count = static_cast<uint32_t>(resources.size());
    if (step.draws) abi.run_state = step.on_device ? services.devices->streams().run_state(*step.on_device) : &services.scope.state();
    if (step.late) late_[i] = std::make_unique<LateStep>(c);
    steps_[i] = step_for(i);
  }
  services.pending.give_tokens([](void* self, uint32_t step) -> heddle_call& { return static_cast<StepContexts*>(self)->contexts_[step]; },
                               this);
}

StepContexts::~StepContexts() = default;

Step StepContexts::step_for(uint32_t index) {
  const PlanStep& step = services_.plan.steps[index];
  heddle_run_context* const context = &abi_[index];
  if (step.on_device) return {step.on_device->kind == DeviceWork::Kind::fence ? run_nothing : enqueue, context, 1};
  if (step.suspends && (step.late || step.tiles > 0)) return {run_resuming, context, 1};
  if (step.late) return {run_late, context, step.asynchronous() ? 1 : late_[index]->tiles()};
  if (step.asynchronous() && step.tiles > 0) {
    services_.pending.set(index, step.kernel->kernel, context);
    return {start, context, 1};
  }
  if (step.tiles > 1 && (step.cost_ns <= 0 || step.cost_ns >= long_step_ns)) return {run_in_ranges, context, step.tiles};
  if (step.tiles == 0) return {run_nothing, context, 1};
  return {step.reads_extents ? run_with_extents : step.kernel->kernel->run, context, step.tiles};
}

void StepContexts::move() {
  for (uint32_t i = 0; i < abi_.size(); ++i) {
    abi_[i].scratch = services_.memory.scratch(i);
    if (services_.plan.steps[i].data_scratch_bytes > 0) abi_[i].data_scratch = services_.memory.data_scratch(i);
    if (const DeviceWork* work = services_.plan.steps[i].on_device.get()) abi_[i].stream = services_.devices->streams().stream(*work);
  }
  for (const auto& late : late_)
    if (late) late->move();
}

int64_t StepContexts::unplanned_bytes(uint8_t device) const {
  int64_t total = 0;
  for (const auto& late : late_)
    if (late) total += late->unplanned_bytes(device);
  return total;
}

}  // namespace heddle
