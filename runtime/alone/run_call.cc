#include "alone/run_call.h"

#include <algorithm>
#include <new>

#include "base/checked.h"

namespace heddle {

heddle_status RunCall::complete(heddle_status status, std::string_view text) noexcept {
  const std::lock_guard lock(mutex_);
  if (complete_) return HEDDLE_ERROR_INVALID;
  complete_ = true;
  status_ = status;
  if (status != HEDDLE_OK && !text.empty()) say(text);
  completed_.notify_all();
  return HEDDLE_OK;
}

heddle_status RunCall::wait() {
  std::unique_lock lock(mutex_);
  completed_.wait(lock, [&] { return complete_; });
  return status_;
}

heddle_status RunCall::run_subnet(const heddle_subnet* subnet, uint64_t trip, Views inputs,
                                  std::span<heddle_tensor* const> outputs) noexcept {
  if (!host_ || !subnet) return HEDDLE_ERROR_UNSUPPORTED;
  if (conditions_.observer) conditions_.observer->run_ended();
  Status status;
  try {
    status = host_->run_subnet(subnet, trip, inputs, outputs);
  } catch (const std::bad_alloc&) {
    status = Status(Code::out_of_memory, "no memory to run a subnet");
  }
  if (conditions_.observer) conditions_.observer->run_begins();
  if (status.ok()) return HEDDLE_OK;
  const std::lock_guard lock(mutex_);
  error.code = status_of(status.code());
  error.cause = std::move(status);
  return error.code;
}

void* RunCall::allocate_output(uint32_t output, std::span<const int64_t> dims) noexcept {
  if (output >= outputs_.size() || std::any_of(dims.begin(), dims.end(), [](int64_t dim) { return dim < 0; })) return nullptr;
  heddle_tensor& view = *outputs_[output];
  const Shape shape(dims.data(), static_cast<int>(dims.size()));
  int64_t bytes = 0;
  if (!checked_byte_size(static_cast<DType>(view.dtype), shape, &bytes) || bytes > limit_bytes_) return nullptr;
  auto& made = dynamic_outputs[output];
  if (conditions_.observer) conditions_.observer->run_ended();
  try {
    made.emplace(conditions_, CallBytes::Memory::output, output, static_cast<DType>(view.dtype), shape, conditions_.output_fill);
  } catch (const std::bad_alloc&) {
    made.reset();  // nothing may be thrown across a plugin
  }
  if (conditions_.observer) conditions_.observer->run_begins();
  if (!made) return nullptr;
  view.data = made->data;
  view.flags &= ~static_cast<uint32_t>(HEDDLE_TENSOR_DYNAMIC);
  return made->data;
}

}  // namespace heddle
