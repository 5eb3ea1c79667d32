#include "device/device.h"

#include <fmt/format.h>

#include <array>
#include <new>

#include "base/content_hash.h"
#include "base/exceptions.h"
#include "base/text/text.h"
#include "base/threads/mutex.h"
#include "device/driver_turn.h"
#include "plugin/host.h"

namespace heddle {
namespace {

// Calls into a backend; an exception becomes a failure.
template <class Function>
heddle_status guarded(const heddle_call* call, Function&& function) noexcept {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    constexpr std::string_view text = "the backend had no memory for it on the host";
    host_table()->set_error(call, HEDDLE_ERROR_OUT_OF_MEMORY, text.data(), text.size());
    return HEDDLE_ERROR_OUT_OF_MEMORY;
  } catch (...) {
    constexpr std::string_view text = "threw an exception across the plugin boundary";
    host_table()->set_error(call, HEDDLE_ERROR_INTERNAL, text.data(), text.size());
    return HEDDLE_ERROR_INTERNAL;
  }
}

// Destructors can not return an error: it is logged.
template <class Function>
void quietly(const std::string& device, Function&& function) noexcept {
  try {
    function();
  } catch (...) {
    without_exceptions(
        [&] { log_line(HEDDLE_LOG_WARNING, fmt::format("device {} threw an exception while something was released", quoted(device))); });
  }
}

}  // namespace

void release_device_memory(Device& device, void* memory) {
  const DriverTurn turn(DriverTurn::For::allocation);
  quietly(device.name_, [&] { device.backend_.release(device.handle_, memory); });
}
void destroy_device_stream(Device& device, void* stream) {
  quietly(device.name_, [&] { device.backend_.destroy_stream(device.handle_, stream); });
}
void destroy_device_event(Device& device, void* event) {
  quietly(device.name_, [&] { device.backend_.destroy_event(device.handle_, event); });
}

void release_pinned_memory(Device& device, void* memory) {
  const DriverTurn turn(DriverTurn::For::allocation);
  quietly(device.name_, [&] { device.backend_.release_host(device.handle_, memory); });
}
void unregister_host_memory(Device& device, void* memory) {
  const DriverTurn turn(DriverTurn::For::allocation);
  quietly(device.name_, [&] { device.backend_.unregister_host(device.handle_, memory); });
}

// Calls the backend for the open device and notes if the device was lost.
template <class Function>
heddle_status Device::ask(const heddle_call* call, Function&& function) noexcept {
  const heddle_status status = guarded(call, function);
  if (status == HEDDLE_ERROR_DEVICE_LOST) lost_.store(true, std::memory_order_release);
  return status;
}

Device::Device(std::shared_ptr<const LoadedPlugin> plugin, const heddle_device_backend& backend, int32_t index, void* handle,
               std::shared_ptr<OutstandingWork> outstanding)
    : plugin_(std::move(plugin)),
      backend_(backend),
      name_(fmt::format("{}:{}", backend.kind, index)),
      handle_(handle),
      outstanding_(std::move(outstanding)) {}

Device::~Device() {
  // No other thread has the device any more, and no copy that was given up: no lock is needed.
  const std::span<void* const> streams(idle_streams_);
  quietly(name_, [&] {
    for (void* const stream : streams) backend_.destroy_stream(handle_, stream);
    backend_.close(handle_);
  });
}

constexpr const char* after_loss = "make the context anew; if the device stays lost, restart the process";

Status Device::error(const char* what, heddle_status status, const HostCall& call) const {
  const std::string text = fmt::format("device {} {}: {}", quoted(name_), what, call.reason());
  if (status == HEDDLE_ERROR_OUT_OF_MEMORY) return {Code::out_of_memory, text, "use smaller inputs, fewer contexts or fewer plans"};
  if (status == HEDDLE_ERROR_DEVICE_LOST) return {Code::device_lost, text, after_loss};
  return {Code::device_failed, text};
}

Status Device::usable() const {
  if (!lost()) return {};
  return {Code::device_lost, fmt::format("device {} was lost, and what was on it is gone", quoted(name_)), after_loss};
}

Status Device::runs() const {
  if (!has(HEDDLE_DEVICE_DESCRIBED)) return usable();
  return {Code::no_such_device,
          fmt::format("device {} is not here, it was described: plans are made for it, and nothing runs on it", quoted(name_)),
          "run where the device is, without a description"};
}

Result<std::shared_ptr<Device>> Device::open(std::shared_ptr<const LoadedPlugin> plugin, const heddle_device_backend& backend,
                                             int32_t index, std::shared_ptr<OutstandingWork> outstanding) {
  HostCall call;
  void* handle = nullptr;
  const heddle_status status = guarded(&call, [&] { return backend.open(index, &handle, &call); });
  if (status != HEDDLE_OK || !handle) {
    const Code code = status == HEDDLE_ERROR_OUT_OF_MEMORY ? Code::out_of_memory : Code::device_failed;
    return Status(code, fmt::format("device {} could not be opened: {}", quoted(fmt::format("{}:{}", backend.kind, index)), call.reason()));
  }
  // If there is no memory for the object that closes the device, it is closed here, while its plugin is loaded.
  const auto close = [&](void* opened) { backend.close(opened); };
  std::unique_ptr<void, decltype(close)> held(handle, close);
  std::unique_ptr<Device> owner(new Device(plugin, backend, index, handle, std::move(outstanding)));
  static_cast<void>(held.release());
  std::shared_ptr<Device> device(std::move(owner));
  HEDDLE_CHECK(device->ask_properties());
  return device;
}

Status Device::ask_properties() {
  HostCall call;
  properties_.struct_size = sizeof(properties_);
  const heddle_status status = ask(&call, [&] { return backend_.properties(handle_, &properties_, &call); });
  if (status != HEDDLE_OK) return error("does not say what it is like", status, call);
  const uint32_t alignment = properties_.alignment;
  if (alignment < 64 || (alignment & (alignment - 1)) != 0)
    return {Code::plugin_invalid, fmt::format("device {} aligns its memory to {} bytes, at least 64 are needed", quoted(name_), alignment)};
  if (has(HEDDLE_DEVICE_DROPS_CALLBACKS) && !backend_.query)
    return {Code::plugin_invalid, fmt::format("device {} drops callbacks and has no query", quoted(name_))};
  return {};
}

bool Device::reaches(Device& source) {
  bool there = false;
  if (&source.backend_ == &backend_ && backend_.reaches) quietly(name_, [&] { there = backend_.reaches(handle_, source.handle_) != 0; });
  return there;
}
bool Device::waits_for(const Device& other) const {
  return &other.backend_ == &backend_ && has(HEDDLE_DEVICE_SHARED_EVENTS);
}

std::string Device::description() {
  const char* text = nullptr;
  quietly(name_, [&] { text = backend_.description(handle_); });
  return text ? text : "";
}

Status Device::memory_info(int64_t* free_bytes, int64_t* total_bytes) {
  HostCall call;
  uint64_t free = 0, total = 0;
  const heddle_status status = ask(&call, [&] { return backend_.memory_info(handle_, &free, &total, &call); });
  if (status != HEDDLE_OK) return error("does not know its memory", status, call);
  *free_bytes = static_cast<int64_t>(free);
  *total_bytes = static_cast<int64_t>(total);
  return {};
}

Result<DeviceMemory> Device::allocate(int64_t bytes) {
  if (bytes == 0) return DeviceMemory();
  HostCall call;
  void* memory = nullptr;
  const DriverTurn turn(DriverTurn::For::allocation);
  const heddle_status status = ask(&call, [&] { return backend_.allocate(handle_, static_cast<uint64_t>(bytes), &memory, &call); });
  if (status != HEDDLE_OK || !memory) return error(fmt::format("has no {}", human_bytes(bytes)).c_str(), status, call);
  return DeviceMemory(shared_from_this(), memory);
}

Result<void*> Device::make_stream(int32_t stream_class, void* adopted) {
  HostCall call;
  void* stream = nullptr;
  // Copy streams have priority: work waits for them.
  const int32_t priority = stream_class == HEDDLE_STREAM_COMPUTE ? properties_.lowest_priority : properties_.highest_priority;
  const heddle_stream_request request = {sizeof(request), stream_class, priority, 0, adopted};
  const heddle_status status = ask(&call, [&] { return backend_.create_stream(handle_, &request, &stream, &call); });
  if (status != HEDDLE_OK || !stream) return error("made no stream", status, call);
  return stream;
}

Result<DeviceStream> Device::create_stream(int32_t stream_class, void* adopted) {
  HEDDLE_TRY(void* const stream, make_stream(stream_class, adopted));
  return DeviceStream(shared_from_this(), stream);
}

Result<DeviceEvent> Device::create_event() {
  HostCall call;
  void* event = nullptr;
  const heddle_status status = ask(&call, [&] { return backend_.create_event(handle_, &event, &call); });
  if (status != HEDDLE_OK || !event) return error("made no event", status, call);
  return DeviceEvent(shared_from_this(), event);
}

Result<PinnedMemory> Device::allocate_pinned(int64_t bytes) {
  if (bytes == 0) return PinnedMemory();
  HostCall call;
  void* memory = nullptr;
  const DriverTurn turn(DriverTurn::For::allocation);
  const heddle_status status = ask(&call, [&] { return backend_.allocate_host(handle_, static_cast<uint64_t>(bytes), &memory, &call); });
  if (status != HEDDLE_OK || !memory) return error(fmt::format("pinned no {} of the host", human_bytes(bytes)).c_str(), status, call);
  return PinnedMemory(shared_from_this(), memory);
}

Result<HostRegistration> Device::pin(void* memory, int64_t bytes) {
  if (bytes == 0 || !backend_.register_host) return HostRegistration();
  HostCall call;
  const DriverTurn turn(DriverTurn::For::allocation);
  const heddle_status status = ask(&call, [&] { return backend_.register_host(handle_, memory, static_cast<uint64_t>(bytes), &call); });
  if (status != HEDDLE_OK) return error(fmt::format("pinned no {} of the caller's", human_bytes(bytes)).c_str(), status, call);
  return HostRegistration(shared_from_this(), memory);
}

Result<std::shared_ptr<const DeviceMemory>> Device::upload(const std::shared_ptr<const Blob>& blob, const Interruption& until) {
  // Sessions share uploads, and nets are not trusted.
  const std::string key = content_key({blob->data, static_cast<size_t>(blob->bytes)}) + to_string(blob->dtype) + blob->shape.text();
  {
    const MutexLock lock(mutex_);
    std::erase_if(uploads_, [](const auto& upload) { return upload.second.expired(); });
    if (const auto known = uploads_.find(key); known != uploads_.end())
      if (auto there = known->second.lock()) return there;
  }
  HEDDLE_TRY(DeviceMemory memory, allocate(blob->bytes));
  const auto made = std::make_shared<const DeviceMemory>(std::move(memory));
  HEDDLE_CHECK(write(made->get(), blob->data, blob->bytes, {until, made, blob}));
  const MutexLock lock(mutex_);
  std::weak_ptr<const DeviceMemory>& entry = uploads_[key];
  if (auto there = entry.lock()) return there;
  entry = made;
  return made;
}

void Device::leave() noexcept {
  if (backend_.leave && !lost()) quietly(name_, [&] { backend_.leave(handle_); });
}

heddle_status Device::enqueue(void* stream, const heddle_work& work, const heddle_call* call) noexcept {
  return ask(call, [&] { return backend_.enqueue(handle_, stream, &work, call); });
}
heddle_status Device::enqueue_group(std::span<Device* const> devices, std::span<void* const> streams, std::span<const heddle_work> works,
                                    const heddle_call* call) noexcept {
  std::array<void*, UINT8_MAX + 1> handles = {};  // a plan numbers devices by uint8_t
  for (size_t i = 0; i < devices.size(); ++i) handles[i] = devices[i]->handle_;
  const heddle_device_backend& backend = devices[0]->backend_;
  return devices[0]->ask(
      call, [&] { return backend.enqueue_group(handles.data(), streams.data(), works.data(), static_cast<uint32_t>(works.size()), call); });
}
heddle_status Device::synchronize(void* stream, const heddle_call* call) noexcept {
  return ask(call, [&] { return backend_.synchronize(handle_, stream, call); });
}
heddle_status Device::query(void* stream) noexcept {
  return backend_.query ? ask(nullptr, [&] { return backend_.query(handle_, stream, nullptr); }) : HEDDLE_PENDING;
}
void Device::abort(void* stream) noexcept {
  if (backend_.abort_stream) ask(nullptr, [&] { return backend_.abort_stream(handle_, stream, nullptr); });
}
uint64_t Device::failed_label(void* stream) noexcept {
  uint64_t number = UINT64_MAX;
  if (backend_.failed_label) quietly(name_, [&] { number = backend_.failed_label(handle_, stream); });
  return number;
}

}  // namespace heddle
