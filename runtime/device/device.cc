#include "device/device.h"

#include <fmt/format.h>

#include "base/content_hash.h"
#include "base/text.h"
#include "plugin/host.h"

namespace heddle {
namespace {

// A call into a backend; what it throws becomes a failure.
template <class Function>
heddle_status guarded(const heddle_call* call, Function&& function) noexcept {
  try {
    return function();
  } catch (...) {
    constexpr std::string_view text = "threw an exception across the plugin boundary";
    host_table()->set_error(call, HEDDLE_ERROR_INTERNAL, text.data(), text.size());
    return HEDDLE_ERROR_INTERNAL;
  }
}

// Destructors can not return an error: it goes to the log.
template <class Function>
void quietly(const std::string& device, Function&& function) noexcept {
  try {
    function();
  } catch (...) {
    log_line(HEDDLE_LOG_WARNING, fmt::format("device {} threw an exception while something was released", quoted(device)));
  }
}

}  // namespace

void release_device_memory(Device& device, void* memory) {
  quietly(device.name_, [&] { device.backend_.release(device.handle_, memory); });
}
void destroy_device_stream(Device& device, void* stream) {
  quietly(device.name_, [&] { device.backend_.destroy_stream(device.handle_, stream); });
}
void destroy_device_event(Device& device, void* event) {
  quietly(device.name_, [&] { device.backend_.destroy_event(device.handle_, event); });
}

Device::Device(std::shared_ptr<const LoadedPlugin> plugin, const heddle_device_backend& backend, int32_t index, void* handle)
    : plugin_(std::move(plugin)), backend_(backend), name_(fmt::format("{}:{}", backend.kind, index)), handle_(handle) {}

Device::~Device() {
  quietly(name_, [&] {
    for (void* const stream : idle_streams_) backend_.destroy_stream(handle_, stream);
    if (given_up_copies_.empty()) backend_.close(handle_);
  });
}

Status Device::error(const char* what, heddle_status status, const HostCall& call) const {
  const Code code = status == HEDDLE_ERROR_OUT_OF_MEMORY ? Code::out_of_memory : Code::device_failed;
  return {code, fmt::format("device {} {}: {}", quoted(name_), what, call.reason()),
          code == Code::out_of_memory ? "use smaller inputs, fewer contexts or fewer plans" : ""};
}

Result<std::shared_ptr<Device>> Device::open(std::shared_ptr<const LoadedPlugin> plugin, const heddle_device_backend& backend,
                                             int32_t index) {
  HostCall call;
  void* handle = nullptr;
  const heddle_status status = guarded(&call, [&] { return backend.open(index, &handle, &call); });
  if (status != HEDDLE_OK || !handle) {
    const Code code = status == HEDDLE_ERROR_OUT_OF_MEMORY ? Code::out_of_memory : Code::device_failed;
    return Status(code, fmt::format("device {} could not be opened: {}", quoted(fmt::format("{}:{}", backend.kind, index)), call.reason()));
  }
  return std::shared_ptr<Device>(new Device(std::move(plugin), backend, index, handle));
}

std::string Device::description() {
  const char* text = nullptr;
  quietly(name_, [&] { text = backend_.description(handle_); });
  return text ? text : "";
}

Status Device::memory_info(int64_t* free_bytes, int64_t* total_bytes) {
  HostCall call;
  uint64_t free = 0, total = 0;
  const heddle_status status = guarded(&call, [&] { return backend_.memory_info(handle_, &free, &total, &call); });
  if (status != HEDDLE_OK) return error("does not know its memory", status, call);
  *free_bytes = static_cast<int64_t>(free);
  *total_bytes = static_cast<int64_t>(total);
  return {};
}

Result<DeviceMemory> Device::allocate(int64_t bytes) {
  if (bytes == 0) return DeviceMemory();
  HostCall call;
  void* memory = nullptr;
  const heddle_status status = guarded(&call, [&] { return backend_.allocate(handle_, static_cast<uint64_t>(bytes), &memory, &call); });
  if (status != HEDDLE_OK || !memory) return error(fmt::format("has no {}", human_bytes(bytes)).c_str(), status, call);
  return DeviceMemory(shared_from_this(), memory);
}

Result<void*> Device::make_stream() {
  HostCall call;
  void* stream = nullptr;
  const heddle_status status = guarded(&call, [&] { return backend_.create_stream(handle_, &stream, &call); });
  if (status != HEDDLE_OK || !stream) return error("made no stream", status, call);
  return stream;
}

Result<DeviceStream> Device::create_stream() {
  HEDDLE_TRY(void* const stream, make_stream());
  return DeviceStream(shared_from_this(), stream);
}

Result<DeviceEvent> Device::create_event() {
  HostCall call;
  void* event = nullptr;
  const heddle_status status = guarded(&call, [&] { return backend_.create_event(handle_, &event, &call); });
  if (status != HEDDLE_OK || !event) return error("made no event", status, call);
  return DeviceEvent(shared_from_this(), event);
}

Result<std::shared_ptr<const DeviceMemory>> Device::upload(const std::shared_ptr<const Blob>& blob, const Interruption& until) {
  // Sessions share uploads, and nets are not trusted.
  const std::string key = content_key({blob->data, static_cast<size_t>(blob->bytes)}) + to_string(blob->dtype) + blob->shape.text();
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(uploads_, [](const auto& upload) { return upload.second.expired(); });
    if (const auto known = uploads_.find(key); known != uploads_.end())
      if (auto there = known->second.lock()) return there;
  }
  HEDDLE_TRY(DeviceMemory memory, allocate(blob->bytes));
  const auto made = std::make_shared<const DeviceMemory>(std::move(memory));
  HEDDLE_CHECK(write(made->get(), blob->data, blob->bytes, {until, made, blob}));
  const std::lock_guard lock(mutex_);
  std::weak_ptr<const DeviceMemory>& entry = uploads_[key];
  if (auto there = entry.lock()) return there;
  entry = made;
  return made;
}

heddle_status Device::copy(void* stream, void* destination, const void* source, int64_t bytes, int32_t kind,
                           const heddle_call* call) noexcept {
  return guarded(call, [&] { return backend_.copy(handle_, stream, destination, source, static_cast<uint64_t>(bytes), kind, call); });
}
heddle_status Device::launch(void* stream, const heddle_launch& launch, const heddle_call* call) noexcept {
  return guarded(call, [&] { return backend_.launch(handle_, stream, &launch, call); });
}
heddle_status Device::record(void* stream, void* event, const heddle_call* call) noexcept {
  return guarded(call, [&] { return backend_.record(handle_, stream, event, call); });
}
heddle_status Device::wait(void* stream, void* event, const heddle_call* call) noexcept {
  return guarded(call, [&] { return backend_.wait(handle_, stream, event, call); });
}
heddle_status Device::notify(void* stream, heddle_stream_callback callback, void* user, const heddle_call* call) noexcept {
  return guarded(call, [&] { return backend_.notify(handle_, stream, callback, user, call); });
}
heddle_status Device::synchronize(void* stream, const heddle_call* call) noexcept {
  return guarded(call, [&] { return backend_.synchronize(handle_, stream, call); });
}

void Device::label(void* stream, uint64_t number) noexcept {
  if (HEDDLE_HAS(heddle_device_backend, &backend_, failed_label) && backend_.label && backend_.failed_label)
    quietly(name_, [&] { backend_.label(handle_, stream, number); });
}
uint64_t Device::failed_label(void* stream) noexcept {
  uint64_t number = UINT64_MAX;
  if (HEDDLE_HAS(heddle_device_backend, &backend_, failed_label) && backend_.label && backend_.failed_label)
    quietly(name_, [&] { number = backend_.failed_label(handle_, stream); });
  return number;
}

}  // namespace heddle
