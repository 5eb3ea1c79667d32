#include "device/device.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/content_hash.h"
#include "base/text.h"
#include "plugin/host.h"

namespace heddle {
namespace {

// A call into a backend; what it throws becomes a failure.
template <class Function>
heddle_status guarded(char* error, Function&& function) noexcept {
  try {
    return function();
  } catch (...) {
    std::snprintf(error, HEDDLE_DEVICE_ERROR_BYTES, "threw an exception across the plugin boundary");
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

Status Device::error(const char* what, heddle_status status, const char* text) const {
  const Code code = status == HEDDLE_ERROR_OUT_OF_MEMORY ? Code::out_of_memory : Code::device_failed;
  return {code, fmt::format("device {} {}: {}", quoted(name_), what, *text ? text : "it gave no reason"),
          code == Code::out_of_memory ? "use smaller inputs, fewer contexts or fewer plans" : ""};
}

Result<std::shared_ptr<Device>> Device::open(std::shared_ptr<const LoadedPlugin> plugin, const heddle_device_backend& backend,
                                             int32_t index) {
  char error[HEDDLE_DEVICE_ERROR_BYTES] = "";
  void* handle = nullptr;
  const heddle_status status = guarded(error, [&] { return backend.open(index, &handle, error); });
  if (status != HEDDLE_OK || !handle) {
    const Code code = status == HEDDLE_ERROR_OUT_OF_MEMORY ? Code::out_of_memory : Code::device_failed;
    return Status(code, fmt::format("device {} could not be opened: {}", quoted(fmt::format("{}:{}", backend.kind, index)),
                                    *error ? error : "it gave no reason"));
  }
  return std::shared_ptr<Device>(new Device(std::move(plugin), backend, index, handle));
}

std::string Device::description() {
  const char* text = nullptr;
  quietly(name_, [&] { text = backend_.description(handle_); });
  return text ? text : "";
}

Status Device::memory_info(int64_t* free_bytes, int64_t* total_bytes) {
  char text[HEDDLE_DEVICE_ERROR_BYTES] = "";
  uint64_t free = 0, total = 0;
  const heddle_status status = guarded(text, [&] { return backend_.memory_info(handle_, &free, &total, text); });
  if (status != HEDDLE_OK) return error("does not know its memory", status, text);
  *free_bytes = static_cast<int64_t>(free);
  *total_bytes = static_cast<int64_t>(total);
  return {};
}

Result<DeviceMemory> Device::allocate(int64_t bytes) {
  if (bytes == 0) return DeviceMemory();
  char text[HEDDLE_DEVICE_ERROR_BYTES] = "";
  void* memory = nullptr;
  const heddle_status status = guarded(text, [&] { return backend_.allocate(handle_, static_cast<uint64_t>(bytes), &memory, text); });
  if (status != HEDDLE_OK || !memory) return error(fmt::format("has no {}", human_bytes(bytes)).c_str(), status, text);
  return DeviceMemory(shared_from_this(), memory);
}

Result<void*> Device::make_stream() {
  char text[HEDDLE_DEVICE_ERROR_BYTES] = "";
  void* stream = nullptr;
  const heddle_status status = guarded(text, [&] { return backend_.create_stream(handle_, &stream, text); });
  if (status != HEDDLE_OK || !stream) return error("made no stream", status, text);
  return stream;
}

Result<DeviceStream> Device::create_stream() {
  HEDDLE_TRY(void* const stream, make_stream());
  return DeviceStream(shared_from_this(), stream);
}

Result<DeviceEvent> Device::create_event() {
  char text[HEDDLE_DEVICE_ERROR_BYTES] = "";
  void* event = nullptr;
  const heddle_status status = guarded(text, [&] { return backend_.create_event(handle_, &event, text); });
  if (status != HEDDLE_OK || !event) return error("made no event", status, text);
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

heddle_status Device::copy(void* stream, void* destination, const void* source, int64_t bytes, int32_t kind, char* error) noexcept {
  return guarded(error, [&] { return backend_.copy(handle_, stream, destination, source, static_cast<uint64_t>(bytes), kind, error); });
}
heddle_status Device::record(void* stream, void* event, char* error) noexcept {
  return guarded(error, [&] { return backend_.record(handle_, stream, event, error); });
}
heddle_status Device::wait(void* stream, void* event, char* error) noexcept {
  return guarded(error, [&] { return backend_.wait(handle_, stream, event, error); });
}
heddle_status Device::notify(void* stream, heddle_stream_callback callback, void* user, char* error) noexcept {
  return guarded(error, [&] { return backend_.notify(handle_, stream, callback, user, error); });
}
heddle_status Device::synchronize(void* stream, char* error) noexcept {
  return guarded(error, [&] { return backend_.synchronize(handle_, stream, error); });
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
