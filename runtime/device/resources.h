// What plugins publish for the kernels of others: resources, met by name, interface and scope.
//
// A plugin's create runs on the thread that asks first, under no lock: other resources are found and made meanwhile, and it may ask for
// others itself; other threads that ask for the same one wait. One that could not be made leaves nothing behind, and the next who asks has
// it tried again. A resource stays as long as its table or anybody who uses it, and what it needs as long as it does.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "plugin/registry.h"

namespace heddle {

// One object that a plugin made. Thread-safe.
class Resource {
 public:
  virtual ~Resource() = default;
  void* object() const { return object_; }
  const std::string& name() const { return name_; }
  // Whether it can break, and if it has: device_failed with the plugin's words.
  bool may_break() const { return definition_->poll_error != nullptr; }
  Status poll() const;
  // For communicator scope: what waits in it is to fail soon.
  void abort(const std::string& why) const noexcept;

 protected:
  Resource(const heddle_resource& definition, std::string name) : definition_(&definition), name_(std::move(name)) {}
  const heddle_resource* const definition_;
  const std::string name_;
  void* object_ = nullptr;
};

// A need as a table keeps it: copies of everything.
struct ResourceNeed {
  std::string name, communicator;
  uint32_t interface_version = 0;
  std::vector<Attribute> options;  // by name
  // Equal for needs that one resource meets, in one place.
  std::string key() const;
};
// Errors: plugin_invalid (no name; an option without a name, or of a type that options do not have).
Result<ResourceNeed> need_from_abi(const heddle_resource_need& need);

// What is bound to one slot of a kernel.
struct ResourceSlot {
  std::shared_ptr<const Resource> made;      // null: of stream scope
  std::shared_ptr<const ResourceNeed> need;  // of stream scope: a context makes one for each of its streams
};

// Where it is needed.
struct ResourcePlace {
  std::string device;              // "cpu:0"
  std::shared_ptr<Device> opened;  // null on cpu
  void* stream = nullptr;          // of stream scope
};

class ResourceTable;

// What one kernel has asked for so far: equal needs have one slot.
struct BoundResources {
  std::vector<ResourceSlot> slots;
  std::vector<std::string> keys;  // beside them
  // Errors: as ResourceTable::bind.
  Result<uint32_t> bind(ResourceTable& table, const std::shared_ptr<const RegistrySnapshot>& registry, const ResourceNeed& need,
                        const ResourcePlace& place);
  void* object(uint32_t slot) const { return slot < slots.size() && slots[slot].made ? slots[slot].made->object() : nullptr; }
};

// The resources of a runtime, of a session in it, or of the streams of a context.
class ResourceTable {
 public:
  // `wider`: the table of what has a wider scope than `own`; null: everything is kept here.
  explicit ResourceTable(std::shared_ptr<ResourceTable> wider = nullptr, int32_t own = HEDDLE_SCOPE_SESSION);
  ~ResourceTable();
  ResourceTable(const ResourceTable&) = delete;
  ResourceTable& operator=(const ResourceTable&) = delete;
  // Made on first use, but for those of stream scope. Errors: missing_resource (no plugin publishes it, or an older version; it could not
  // be made; it needs itself or something of a narrower scope), or out_of_memory and device_failed when that is why.
  Result<ResourceSlot> bind(const std::shared_ptr<const RegistrySnapshot>& registry, const ResourceNeed& need, const ResourcePlace& place);
  // One of stream scope, of `place.stream`, made on first use. Errors: as bind.
  Result<std::shared_ptr<const Resource>> of_stream(const std::shared_ptr<const RegistrySnapshot>& registry, const ResourceNeed& need,
                                                    const ResourcePlace& place);
  // Forgets those of a plugin that is about to be unloaded; they go when nobody uses them.
  void drop(const std::string& plugin);
  // Forgets all of them, likewise.
  void clear();

 private:
  struct Entry;
  struct State;
  Result<std::shared_ptr<Entry>> find(Entry* asker, const std::shared_ptr<const RegistrySnapshot>& registry, const ResourceNeed& need,
                                      const ResourcePlace& place);
  const std::shared_ptr<ResourceTable> wider_;
  const int32_t own_;
  const std::unique_ptr<State> state_;
};

}  // namespace heddle
