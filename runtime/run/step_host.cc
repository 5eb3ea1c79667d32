// The host's functions for running kernels (StepContext). Plugins call them, and nothing may be thrown across them.
#include <fmt/format.h>

#include <cstring>
#include <new>
#include <utility>

#include "base/exceptions.h"
#include "plugin/host.h"
#include "plugin/infer_operator.h"
#include "run/late/late_step.h"
#include "run/pending_steps.h"
#include "run/step_contexts.h"
#include "run/subnets/subnets.h"
#include "schedule/step_call.h"

namespace heddle {

void StepContext::set_error(heddle_status code, std::string_view text) noexcept {
  services().failures.note(step, code, text);
}

void StepContext::refuse(std::string_view what) noexcept {
  without_exceptions([&] {
    services().failures.note_refusal(
        step, {Code::kernel_failed, fmt::format("the kernel {}", what), "see what heddle/abi.h says of heddle_host"});
  });
}

// A plan for one thread has one thread scratch; as the plan of a subnet it may run on any thread.
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
  if (!planned().asynchronous()) {
    without_exceptions([&] {
      log_line(HEDDLE_LOG_WARNING, fmt::format("{} completes a step that is done when its run() returns, which is refused; declare "
                                               "HEDDLE_KERNEL_ASYNC, or return the status",
                                               name_of(planned())));
    });
    return HEDDLE_ERROR_INVALID;
  }
  if (status != HEDDLE_OK && !text.empty()) set_error(status, text);
  services().pending.publish(step, status);  // from here on the run may be over
  return HEDDLE_OK;
}

heddle_status StepContext::call_own_finish() const noexcept {
  const heddle_finish_function finish = planned().kernel->kernel->finish;
  try {
    return finish ? finish(&abi()) : HEDDLE_OK;
  } catch (...) {
    return say_threw(&abi());
  }
}

heddle_status StepContext::finish_step() noexcept {
  Status status;
  try {
    if (LateStep* const late = all->late(step))
      status = late->finish();
    else if (const heddle_status answer = call_own_finish(); answer != HEDDLE_OK)
      return answer;
    if (status.ok()) status = check_written_extents(abi());
  } catch (...) {
    status = status_of_exception();
  }
  if (status.ok()) return HEDDLE_OK;
  const heddle_status code = status_of(status.code());
  services().failures.note_cause(step, std::move(status));
  return code;
}

void* StepContext::allocate_output(uint32_t output, const int64_t* dims, int32_t rank) noexcept {
  LateStep* const late = all->late(step);
  Status refusal;
  try {
    Result<void*> made =
        late ? late->allocate_output(output, dims, rank) : Result<void*>(check_asked_output(false, output, {}, dims, rank));
    if (made.ok()) return *made;
    refusal = std::move(made).status();
  } catch (...) {
    refusal = status_of_exception();
  }
  services().failures.note_refusal(step, std::move(refusal));
  return nullptr;
}

heddle_status StepContext::move(uint32_t flags, void* destination, const void* source, uint64_t bytes) noexcept {
  if (bytes == 0) return HEDDLE_OK;
  const bool value = (flags & HEDDLE_MOVE_VALUE) != 0;
  if (!destination || !source || (value && bytes > static_cast<uint64_t>(max_value_bytes))) {
    without_exceptions([&] { services().failures.note_refusal(step, check_move(flags, destination, source, bytes)); });
    return HEDDLE_ERROR_INVALID;
  }
  if (destination == source) return HEDDLE_OK;
  const int32_t kind = value ? HEDDLE_COPY_VALUE_TO_DEVICE : HEDDLE_COPY_DEVICE_TO_DEVICE;
  if (planned().on_device) return services().devices->worker().move(step, kind, destination, source, bytes, this);
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
