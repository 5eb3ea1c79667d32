// What kernels ask their host for while they run. Plugins call these functions, and nothing may be thrown across them.
#include <new>

#include "plugin/host.h"
#include "run/late_step.h"
#include "run/step_contexts.h"
#include "run/subnets.h"
#include "schedule/worker.h"

namespace heddle {
namespace {

void set_error(const void* context, heddle_status code, const char* text, size_t length) noexcept {
  const StepContext& c = StepContext::of(context);
  try {
    c.services().failures.note(c.step, code, kept_text(text, length));
  } catch (const std::bad_alloc&) {
    // The status is reported without its text.
  }
}

void* thread_scratch(const void* context) {
  const StepContext& c = StepContext::of(context);
  return c.thread_scratch ? c.thread_scratch : c.services().memory.thread_scratch(worker_index());
}

uint32_t thread_index(const void* context) {
  return StepContext::of(context).services().plan.max_threads > 1 ? worker_index() : 0;
}

int32_t cancelled(const void* context) {
  const StepContext& c = StepContext::of(context);
  return c.services().scope.should_stop(c.step) ? 1 : 0;
}

void* allocate_output(const void* context, uint32_t output, const int64_t* dims, int32_t rank) {
  const StepContext& c = StepContext::of(context);
  LateStep* const late = c.all->late(c.step);
  try {
    return late ? late->allocate_output(output, dims, rank) : nullptr;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

heddle_status run_subnet(const void* context, const heddle_subnet* subnet, const heddle_tensor* const* inputs, uint32_t input_count,
                         heddle_tensor* const* outputs, uint32_t output_count) {
  const StepContext& c = StepContext::of(context);
  try {
    return c.services().subnets.run(c.step, subnet, {inputs, input_count}, {outputs, output_count});
  } catch (const std::bad_alloc&) {
    return HEDDLE_ERROR_OUT_OF_MEMORY;
  }
}

}  // namespace

const heddle_host* step_host() {
  static const heddle_host table = [] {
    heddle_host h = *base_host();
    h.set_error = set_error;
    h.thread_scratch = thread_scratch;
    h.thread_index = thread_index;
    h.cancelled = cancelled;
    h.allocate_output = allocate_output;
    h.run_subnet = run_subnet;
    return h;
  }();
  return &table;
}

}  // namespace heddle
