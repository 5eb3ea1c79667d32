#include "run/device_run.h"

#include <cstring>

#include "base/text.h"

namespace heddle {
namespace {

// Leaves the reason with the step, as a kernel would.
heddle_status refuse(const heddle_run_context* context, heddle_status status, const char* text) {
  if (status != HEDDLE_OK && *text) context->host->set_error(context, status, text, std::strlen(text));
  return status;
}

}  // namespace

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
  }
  return run;
}
DeviceRun::~DeviceRun() = default;

void DeviceRun::follow(const Workspace& workspace) {
  for (Side& side : sides_) side.arena = workspace.on(*side.device);
}

void DeviceRun::begin(bool observed) {
  observed_ = observed;
  for (Side& side : sides_)
    for (std::atomic<uint32_t>& passed : side.passed) passed.store(0, std::memory_order_relaxed);
}

heddle_status DeviceRun::work(const DeviceWork& work, const PlanStep& step, const heddle_run_context* context, char* error) {
  Device& device = *sides_[work.device - 1u].device;
  if (work.kind == DeviceWork::Kind::copy) {
    const auto bytes = static_cast<int64_t>(context->outputs[0]->byte_size);
    if (bytes == 0) return HEDDLE_OK;
    return device.copy(context->stream, context->outputs[0]->data, context->inputs[0]->data, bytes, work.copy_kind, error);
  }
  const heddle_kernel& kernel = *step.kernel->kernel;
  const heddle_status status = step.tiles > 0 ? kernel.run(context, 0, step.tiles) : HEDDLE_OK;
  return status == HEDDLE_OK && kernel.finish ? kernel.finish(context) : status;
}

heddle_status DeviceRun::enqueue(uint32_t index, const heddle_run_context* context) {
  const PlanStep& step = plan_.steps[index];
  const DeviceWork& planned = *step.on_device;
  Side& side = sides_[planned.device - 1u];
  char error[HEDDLE_DEVICE_ERROR_BYTES] = "";
  heddle_status status = HEDDLE_OK;
  side.device->label(context->stream, index);
  for (const uint32_t event : planned.waits)
    if (status == HEDDLE_OK) status = side.device->wait(context->stream, side.events[event].get(), error);
  if (status == HEDDLE_OK) status = work(planned, step, context, error);
  if (status == HEDDLE_OK && planned.records >= 0)
    status = side.device->record(context->stream, side.events[static_cast<size_t>(planned.records)].get(), error);
  if (status == HEDDLE_OK && observed_) status = side.device->synchronize(context->stream, error);
  return refuse(context, status, error);
}

heddle_status DeviceRun::notify(uint32_t index, const heddle_run_context* context, heddle_stream_callback callback, void* user) {
  const DeviceWork& planned = *plan_.steps[index].on_device;
  char error[HEDDLE_DEVICE_ERROR_BYTES] = "";
  return refuse(context, sides_[planned.device - 1u].device->notify(context->stream, callback, user, error), error);
}

void DeviceRun::passed(uint32_t fence) {
  const DeviceWork& planned = *plan_.steps[fence].on_device;
  sides_[planned.device - 1u].passed[planned.stream].store(fence + 1, std::memory_order_relaxed);
}

std::vector<DeviceRun::Failure> DeviceRun::drain() {
  std::vector<Failure> failures;
  for (uint32_t d = 0; d < sides_.size(); ++d)
    for (uint32_t s = 0; s < sides_[d].streams.size(); ++s) {
      char error[HEDDLE_DEVICE_ERROR_BYTES] = "";
      const heddle_status status = sides_[d].device->synchronize(sides_[d].streams[s].get(), error);
      if (status != HEDDLE_OK) failures.push_back(blame(sides_[d], d + 1, s, status, error));
    }
  return failures;
}

// Without the device's own word, any step behind the last fence that went well may have failed.
DeviceRun::Failure DeviceRun::blame(Side& side, uint32_t device, uint32_t stream, heddle_status status, const char* text) {
  const uint64_t label = side.device->failed_label(side.streams[stream].get());
  if (label < plan_.steps.size()) return {static_cast<uint32_t>(label), status, text};
  Failure failure = {0, status, text};
  std::vector<std::string> suspects;
  for (uint32_t i = side.passed[stream].load(std::memory_order_relaxed); i < plan_.steps.size(); ++i) {
    const DeviceWork* work = plan_.steps[i].on_device.get();
    if (!work || work->device != device || work->stream != stream || work->kind == DeviceWork::Kind::fence) continue;
    if (suspects.empty()) failure.step = i;
    suspects.push_back(quoted(plan_.steps[i].name));
    constexpr size_t most_suspects = 8;
    if (suspects.size() == most_suspects) break;
  }
  if (suspects.size() > 1) failure.text += " (the device does not say which of " + join(suspects, ", ") + " it was)";
  return failure;
}

}  // namespace heddle
