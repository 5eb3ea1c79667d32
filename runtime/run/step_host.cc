// What kernels ask their host for while they run. Plugins call these functions, and nothing may be thrown across them.
#include <cstring>
#include <new>
#include <utility>

#include "base/exceptions.h"
#include "run/late_step.h"
#include "run/pending_steps.h"
#include "run/step_contexts.h"
#include "run/subnets.h"

namespace heddle {

void StepContext::set_error(heddle_status code, std::string_view text) noexcept {
  services().failures.note(step, code, text);
}

// A plan for one thread has one thread scratch, and is one of a subnet whose runs may be on any.
void* StepContext::thread_scratch() const noexcept {
  const uint32_t index = thread_index();
  if (index == HEDDLE_NO_THREAD) return nullptr;
  const LateStep* const late = all->late(step);
  return late ? late->thread_scratch(index) : services().memory.thread_scratch(index);
}

uint32_t StepContext::thread_index() const noexcept {
  return services().scheduler.worker_here();
}

bool StepContext::cancelled() const noexcept {
  return services().scope.should_stop(step);
}

heddle_status StepContext::complete(heddle_status status, std::string_view text) noexcept {
  PendingSteps& pending = services().pending;
  if (status == HEDDLE_PENDING) return HEDDLE_ERROR_INVALID;  // of steps that run subnets, and said otherwise
  if (!pending.any() || !planned().asynchronous() || !pending.claim(step)) return HEDDLE_ERROR_INVALID;
  if (status != HEDDLE_OK && !text.empty()) set_error(status, text);
  pending.publish(step, status);  // from here on the run may be over
  return HEDDLE_OK;
}

heddle_status StepContext::finish_step() noexcept {
  Status status;
  try {
    status = all->late(step)->finish();
  } catch (...) {
    status = status_of_exception();
  }
  if (status.ok()) return HEDDLE_OK;
  const heddle_status code = status_of(status.code());
  services().failures.note_cause(step, std::move(status));
  return code;
}

void* StepContext::allocate_output(uint32_t output, std::span<const int64_t> dims) noexcept {
  LateStep* const late = all->late(step);
  try {
    return late ? late->allocate_output(output, dims.data(), static_cast<int32_t>(dims.size())) : nullptr;
  } catch (...) {
    return nullptr;
  }
}

heddle_status StepContext::move(uint32_t flags, void* destination, const void* source, uint64_t bytes) noexcept {
  if (bytes == 0 || destination == source) return HEDDLE_OK;
  const bool value = (flags & HEDDLE_MOVE_VALUE) != 0;
  if (value && bytes > static_cast<uint64_t>(most_value_bytes)) return HEDDLE_ERROR_INVALID;
  const int32_t kind = value ? HEDDLE_COPY_VALUE_TO_DEVICE : HEDDLE_COPY_DEVICE_TO_DEVICE;
  if (planned().on_device) return services().devices->move(step, kind, destination, source, bytes, this);
  std::memcpy(destination, source, bytes);
  return HEDDLE_OK;
}

heddle_status StepContext::run_subnet(const heddle_subnet* subnet, uint64_t trip, Views inputs,
                                      std::span<heddle_tensor* const> outputs) noexcept {
  try {
    return services().subnets.run(step, subnet, trip, inputs, outputs);
  } catch (...) {
    return status_of(status_of_exception().code());
  }
}

}  // namespace heddle
