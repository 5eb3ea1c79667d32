#include "operator_runner/run_call.h"

#include <fmt/format.h>

#include <new>

#include "base/checked.h"
#include "base/exceptions.h"
#include "base/threads/mutex.h"
#include "plugin/abi_attributes.h"
#include "plugin/infer_operator.h"

namespace heddle {

heddle_status RunCall::complete(heddle_status status, std::string_view text) noexcept {
  if (!slot_) {
    completed_untold_ = true;
    return HEDDLE_ERROR_INVALID;
  }
  const MutexLock lock(mutex_);
  complete_ = true;
  status_ = status;
  if (status != HEDDLE_OK && !text.empty()) say(text);
  completed_.notify_all();
  return HEDDLE_OK;
}

const heddle_call* RunCall::token() {
  // A name this short is stored without an allocation, which would look like a leak of the kernel's.
  slot_ = &TokenSlot::take(static_cast<heddle_call*>(this), "an operator");
  return static_cast<const heddle_call*>(slot_->renew(TokenSlot::under_way));
}

const char* RunCall::wrong_completion() const {
  if (completed_untold_) return "the kernel completes a step that is done when its run() returns";
  return slot_ && slot_->refusals() > 0 ? "the kernel completes its step twice, or as pending" : nullptr;
}

heddle_status RunCall::wait() {
  const MutexLock lock(mutex_);
  while (!complete_) completed_.wait(mutex_);
  return status_;
}

heddle_status RunCall::run_subnet(const heddle_subnet* subnet, uint64_t trip, Views inputs,
                                  std::span<heddle_tensor* const> outputs) noexcept {
  if (!host_) return HEDDLE_ERROR_UNSUPPORTED;
  if (conditions_.observer) conditions_.observer->run_ended();
  Status status;
  try {
    status = subnet_attribute(attributes_, from_abi(subnet)) ? host_->run_subnet(subnet, trip, inputs, outputs) : not_its_subnet();
  } catch (const std::bad_alloc&) {
    status = Status(Code::out_of_memory, "no memory to run a subnet");
  }
  if (conditions_.observer) conditions_.observer->run_begins();
  if (status.ok()) return HEDDLE_OK;
  const MutexLock lock(mutex_);
  error.code = status_of(status.code());
  error.misused = error.misused || status.code() == Code::plugin_invalid;
  error.cause = std::move(status);
  return error.code;
}

heddle_status RunCall::move(uint32_t flags, void* destination, const void* source, uint64_t bytes) noexcept {
  if (bytes == 0) return HEDDLE_OK;
  Status wrong;
  if (!without_exceptions([&] { wrong = check_move(flags, destination, source, bytes); })) return HEDDLE_ERROR_OUT_OF_MEMORY;
  if (wrong.ok() && destination != source) std::memcpy(destination, source, bytes);
  if (wrong.ok()) return HEDDLE_OK;
  const MutexLock lock(mutex_);
  error.misused = true;
  error.missing = std::move(wrong);
  return HEDDLE_ERROR_INVALID;
}

Result<void*> RunCall::allocate(uint32_t output, const int64_t* dims, int32_t rank) {
  if (output >= outputs_.size())
    return Status(Code::kernel_failed, fmt::format("the kernel asks for memory for output {} of {}", output, outputs_.size()));
  HEDDLE_CHECK(check_asked_output(runs_subnets_, output, types_[output], dims, rank));
  heddle_tensor& view = *outputs_[output];
  const Shape shape(dims, rank);
  int64_t bytes = 0;
  if (!checked_byte_size(static_cast<DType>(view.dtype), shape, &bytes) || bytes > limit_bytes_)
    return Status(Code::limit_exceeded, fmt::format("output {} would be {}", output, shape.text()));
  dynamic_outputs[output].emplace(conditions_, CallBytes::Memory::output, output, static_cast<DType>(view.dtype), shape,
                                  conditions_.output_fill);
  view.data = dynamic_outputs[output]->data;
  view.flags &= ~static_cast<uint32_t>(HEDDLE_TENSOR_DYNAMIC);
  return view.data;
}

void* RunCall::allocate_output(uint32_t output, const int64_t* dims, int32_t rank) noexcept {
  if (conditions_.observer) conditions_.observer->run_ended();
  Result<void*> made = Status();
  try {
    made = allocate(output, dims, rank);
  } catch (...) {  // exceptions must not cross the plugin boundary
    made = status_of_exception();
  }
  if (conditions_.observer) conditions_.observer->run_begins();
  if (made.ok()) return *made;
  const MutexLock lock(mutex_);
  error.missing = std::move(made).status();
  return nullptr;
}

}  // namespace heddle
