// An open device of a backend, and what is made on it: memory, streams, events. The only place that calls a backend's tables.
//
// Everything made on a device keeps it open, and an open device keeps its plugin loaded. Thread-safe; work of one stream is enqueued by one
// thread after the other. A device that was lost stays lost: DeviceManager opens another in its place, and it is closed when everything
// made on it has been destroyed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/threads/interruption.h"
#include "base/threads/mutex.h"
#include "device/outstanding_work.h"
#include "heddle/device_plugin.h"
#include "heddle/status.h"
#include "net/net.h"
#include "plugin/host.h"
#include "plugin/schema.h"

namespace heddle {

class Device;

// Sole owner of an object that a backend made. Empty after a move; an empty object owns nothing.
template <void (*destroy)(Device&, void*)>
class DeviceObject {
 public:
  DeviceObject() = default;
  DeviceObject(std::shared_ptr<Device> device, void* object) : device_(std::move(device)), object_(object) {}
  DeviceObject(DeviceObject&& other) noexcept : device_(std::move(other.device_)), object_(std::exchange(other.object_, nullptr)) {}
  DeviceObject& operator=(DeviceObject&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(object_, other.object_);
    return *this;
  }
  ~DeviceObject() {
    if (object_) destroy(*device_, object_);
  }
  void* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  std::shared_ptr<Device> device_;
  void* object_ = nullptr;
};
void release_device_memory(Device& device, void* memory);
void destroy_device_stream(Device& device, void* stream);
void destroy_device_event(Device& device, void* event);
void release_pinned_memory(Device& device, void* memory);
void unregister_host_memory(Device& device, void* memory);
using DeviceMemory = DeviceObject<release_device_memory>;
using DeviceStream = DeviceObject<destroy_device_stream>;
using DeviceEvent = DeviceObject<destroy_device_event>;
using PinnedMemory = DeviceObject<release_pinned_memory>;       // on the host
using HostRegistration = DeviceObject<unregister_host_memory>;  // of memory that the caller owns

// How to wait for a copy.
struct CopyWait {
  Interruption until;  // its flag is polled about every 5 ms
  // Keep the memory of both sides alive when the wait ends before the copy does.
  std::shared_ptr<const void> keep;
  std::shared_ptr<const void> keep_host;
};

class Device : public std::enable_shared_from_this<Device> {
 public:
  // `outstanding` takes the copies that are given up. Errors: device_failed or out_of_memory with the backend's reason.
  static Result<std::shared_ptr<Device>> open(std::shared_ptr<const LoadedPlugin> plugin, const heddle_device_backend& backend,
                                              int32_t index, std::shared_ptr<OutstandingWork> outstanding);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const std::string& name() const { return name_; }  // "cuda:0"
  void* handle() const { return handle_; }
  const LoadedPlugin& plugin() const { return *plugin_; }
  // Called when its plugin is being unloaded: owners that keep memory on it for later free that memory.
  void retire() { retired_.store(true, std::memory_order_relaxed); }
  bool retired() const { return retired_.load(std::memory_order_relaxed) || lost(); }
  // True once a call has reported the loss: nothing made on the device is usable any more.
  bool lost() const { return lost_.load(std::memory_order_acquire); }
  // Errors: device_lost, with how to proceed.
  Status usable() const;
  // Returns ok if work for it can succeed. Errors: as usable; no_such_device for one that was only described.
  Status runs() const;
  const heddle_device_properties& properties() const { return properties_; }
  bool has(uint32_t flag) const { return (properties_.flags & flag) != 0; }
  // True if copies to it may come straight from `source`, and if its streams may wait for events of `other`.
  bool reaches(Device& source);
  bool waits_for(const Device& other) const;
  bool pins() const { return backend_.allocate_host != nullptr; }
  bool registers() const { return backend_.register_host != nullptr; }
  bool is_of_kind_of(const Device& other) const { return &other.backend_ == &backend_; }
  bool can_be_left() const { return backend_.leave != nullptr; }
  bool can_abort() const { return backend_.abort_stream != nullptr; }
  std::string description();
  Status memory_info(int64_t* free_bytes, int64_t* total_bytes);

  // Errors: out_of_memory with the size requested and the size free. 0 bytes: an empty object.
  Result<DeviceMemory> allocate(int64_t bytes);
  // `stream_class`: HEDDLE_STREAM_*. `adopted`: a stream of the embedding program, made by the vendor's functions; null: a new one.
  Result<DeviceStream> create_stream(int32_t stream_class = HEDDLE_STREAM_COMPUTE, void* adopted = nullptr);
  Result<DeviceEvent> create_event();
  // Allocates host memory that the device copies from and to fast, aligned to 64 bytes; only if pins(). `pin` does so for existing memory
  // and returns an empty object where the device can't. Errors: out_of_memory, device_failed.
  Result<PinnedMemory> allocate_pinned(int64_t bytes);
  Result<HostRegistration> pin(void* memory, int64_t bytes);
  // Returns device memory with a blob's bytes, shared by all callers with the same content and alive as long as one of them holds it.
  // Errors: out_of_memory, and those of write.
  Result<std::shared_ptr<const DeviceMemory>> upload(const std::shared_ptr<const Blob>& blob, const Interruption& until);
  // Copies that are done when they return. Errors: device_failed; deadline_exceeded and cancelled: the device may still be copying, and
  // other copies fail with busy until it is done. A copy that was given up keeps the device open, and what `wait` says, until it completes.
  Status write(void* device_memory, const void* host, int64_t bytes, const CopyWait& wait = {});
  Status read(void* host, const void* device_memory, int64_t bytes, const CopyWait& wait = {});
  Status copy_within(void* destination, const void* source, int64_t bytes, const CopyWait& wait = {});

  // The calls of a run; see device_plugin.h. `call` receives the reason of a failing status.
  heddle_status enqueue(void* stream, const heddle_work& work, const heddle_call* call) noexcept;
  // Enqueues the launches of a group. `devices` are of one kind, whose backend has enqueue_group. The status is that of all.
  static heddle_status enqueue_group(std::span<Device* const> devices, std::span<void* const> streams, std::span<const heddle_work> works,
                                     const heddle_call* call) noexcept;
  // Called when the calling thread, which has entered the device, returns to the embedding program's code.
  void leave() noexcept;
  heddle_status synchronize(void* stream, const heddle_call* call) noexcept;
  // Returns HEDDLE_PENDING where the device can't be queried.
  heddle_status query(void* stream) noexcept;
  void abort(void* stream) noexcept;
  uint64_t failed_label(void* stream) noexcept;

 private:
  friend void release_device_memory(Device& device, void* memory);
  friend void destroy_device_stream(Device& device, void* stream);
  friend void destroy_device_event(Device& device, void* event);
  friend void release_pinned_memory(Device& device, void* memory);
  friend void unregister_host_memory(Device& device, void* memory);
  Device(std::shared_ptr<const LoadedPlugin> plugin, const heddle_device_backend& backend, int32_t index, void* handle,
         std::shared_ptr<OutstandingWork> outstanding);
  class Arrival;
  Status copy_now(void* destination, const void* source, int64_t bytes, int32_t kind, const CopyWait& wait);
  Result<void*> take_stream();
  Result<void*> make_stream(int32_t stream_class, void* adopted);
  Status ask_properties();
  template <class Function>
  heddle_status ask(const heddle_call* call, Function&& function) noexcept;
  void give_back_stream(void* stream);
  Status error(const char* what, heddle_status status, const HostCall& call) const;

  const std::shared_ptr<const LoadedPlugin> plugin_;
  const heddle_device_backend& backend_;
  const std::string name_;
  void* const handle_;
  heddle_device_properties properties_ = {};
  const BusyName busy_name_ = new_busy_name();  // kept busy by copies that were given up
  const std::shared_ptr<OutstandingWork> outstanding_;
  std::atomic<bool> retired_{false}, lost_{false};
  Mutex mutex_;
  std::vector<void*> idle_streams_ HEDDLE_GUARDED_BY(mutex_);  // streams of blocking copies; has room for all of them
  size_t copy_streams_ HEDDLE_GUARDED_BY(mutex_) = 0;          // the number of streams made for them
  std::unordered_map<std::string, std::weak_ptr<const DeviceMemory>> uploads_ HEDDLE_GUARDED_BY(mutex_);  // by content
};

}  // namespace heddle
