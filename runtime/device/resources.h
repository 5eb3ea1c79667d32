// Resources: objects that plugins publish for the kernels of others, found by name, interface and scope.
//
// A plugin's create runs on the thread that requests the resource first, under no lock: other resources are found and made meanwhile, and
// it may request others itself; other threads that request the same one wait. A resource that could not be made leaves nothing in the
// table, and the next request tries again. A resource lives as long as its table or any user of it, and the resources it needs live as long
// as it does. Objects of communicator scope belong to runs, and are in no table (device/communicator_turns.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "plugin/registry.h"

namespace heddle {

// Which users share a resource, as the plugin that publishes it declares: HEDDLE_SCOPE_* of heddle/abi.h. From wide to narrow.
enum class ResourceScope : uint8_t {
  runtime = HEDDLE_SCOPE_RUNTIME,
  device = HEDDLE_SCOPE_DEVICE,
  session = HEDDLE_SCOPE_SESSION,
  communicator = HEDDLE_SCOPE_COMMUNICATOR,
  stream = HEDDLE_SCOPE_STREAM,
};
// Who owns a table of resources, which live as long as it. From wide to narrow: a table asks its wider one for resources of wider holders.
enum class ResourceHolder : uint8_t {
  runtime,
  session,
  workspace,  // for the streams of devices, which the workspace owns: one table for each session (StreamResources)
  context,    // for the context itself, which on the host is one stream; in a subnet, the outermost net's
};
// Returns the holder whose table serves a slot of `scope`, for a step on the host or `on_device`. Steps of subnets
// have no tables of their own: they use the workspace of the outer context and, on the host, are part of its stream.
ResourceHolder holder_of(ResourceScope scope, bool on_device);

// One object that a plugin made. Thread-safe.
class Resource {
 public:
  virtual ~Resource() = default;
  void* object() const { return object_; }
  const std::string& name() const { return name_; }
  bool of_communicator() const { return definition_->scope == HEDDLE_SCOPE_COMMUNICATOR; }
  // True if it can break; poll: device_failed with the plugin's message if it has.
  bool may_break() const { return definition_->poll_error != nullptr; }
  Status poll() const;
  // Gives the bytes of `mine`, of which all ranks have as many, to all ranks, and returns what each gave, by rank: of a text one after the
  // other. `size`: the number of ranks. Nothing if the plugin compares nothing. Waits until the deadline (ticks; 0: none) or until abort().
  // Errors: device_failed.
  Result<std::vector<uint64_t>> exchange(uint64_t mine, size_t size, uint64_t deadline_ticks) const;
  Result<std::string> exchange(const std::string& mine, size_t size, uint64_t deadline_ticks) const;
  // For communicator scope: makes everything that waits in it fail soon. [any thread]
  void abort(const std::string& why) const noexcept;

 protected:
  Status exchange(const void* mine, uint64_t bytes, void* all, uint64_t deadline_ticks) const;
  Resource(const heddle_resource& definition, std::string name) : definition_(&definition), name_(std::move(name)) {}
  const heddle_resource* const definition_;
  const std::string name_;
  void* object_ = nullptr;
};

// A need as a table keeps it: copies of all its fields.
struct ResourceNeed {
  std::string name, communicator;
  uint32_t interface_version = 0;
  std::vector<Attribute> options;  // sorted by name
  // Returns a key that is equal for needs that one resource meets, in one place.
  std::string key() const;
};
// Errors: plugin_invalid (no name; an option without a name, or of a type that options do not have).
Result<ResourceNeed> need_from_abi(const heddle_resource_need& need);

// The resource bound to one slot of a kernel.
struct ResourceSlot {
  ResourceScope scope = ResourceScope::session;
  std::shared_ptr<const Resource> made;  // of all scopes but communicator and stream
  // For communicator scope, whose objects belong to runs, and for stream scope, where one is made for each stream that a step requests it
  // on.
  std::shared_ptr<const ResourceNeed> need;
  bool of_communicator() const { return scope == ResourceScope::communicator; }
  bool of_stream() const { return scope == ResourceScope::stream; }
};

// The place where a resource is needed.
struct ResourcePlace {
  std::string device;              // "cpu:0"
  std::shared_ptr<Device> opened;  // null on cpu
  void* stream = nullptr;          // for stream scope
};

// The part of heddle_resource_request that is for communicator scope; texts are valid during the call.
struct CommunicatorRequest {
  int rank = 0, size = 1;
  uint32_t attempt = 0;
  std::vector<const char*> members;
  const char* rendezvous = "";
  int64_t timeout_ns = 0;
  uint64_t deadline_ticks = 0;  // base/threads/clock.h; 0: none
  // Set once the run that needs the object has ended without it. Borrowed during the call.
  const std::atomic<bool>* cancelled = nullptr;
  // The objects of the same communicator that are made already: it may need these.
  std::vector<std::shared_ptr<const Resource>> made = {};
};

class ResourceTable;

// The needs that one kernel has declared so far: equal needs have one slot.
struct BoundResources {
  std::vector<ResourceSlot> slots;
  std::vector<std::string> keys;  // the keys of slots
  // Errors: as ResourceTable::bind.
  Result<uint32_t> bind(ResourceTable& table, const std::shared_ptr<const RegistrySnapshot>& registry, const ResourceNeed& need,
                        const ResourcePlace& place);
  // Returns null for slots of communicator and stream scope, whose resources a kernel sees when it runs.
  void* object(uint32_t slot) const { return slot < slots.size() && slots[slot].made ? slots[slot].made->object() : nullptr; }
};

// The resources of one holder.
class ResourceTable {
 public:
  // `wider`: the table for resources of wider holders; null: they are kept here.
  explicit ResourceTable(ResourceHolder holder, std::shared_ptr<ResourceTable> wider = nullptr);
  ~ResourceTable();
  ResourceTable(const ResourceTable&) = delete;
  ResourceTable& operator=(const ResourceTable&) = delete;
  const std::shared_ptr<ResourceTable>& wider() const { return wider_; }
  // Makes the resource on first use, unless it is of communicator or stream scope. Errors: missing_resource (no plugin publishes it, or an
  // older version; it could not be made; it needs itself or something of a narrower scope), or out_of_memory and device_failed when that is
  // why.
  Result<ResourceSlot> bind(const std::shared_ptr<const RegistrySnapshot>& registry, const ResourceNeed& need, const ResourcePlace& place);
  // Returns the one of stream scope for `place.stream`, made on first use. REQUIRES: the table's holder is that of stream scope
  // (holder_of) for such a place. Errors: as bind.
  Result<std::shared_ptr<const Resource>> of_stream(const std::shared_ptr<const RegistrySnapshot>& registry, const ResourceNeed& need,
                                                    const ResourcePlace& place);
  // Makes an object of communicator scope, which is its caller's: no table holds it. What it needs is found here. Errors: as bind.
  Result<std::shared_ptr<const Resource>> make_communicator(const std::shared_ptr<const RegistrySnapshot>& registry,
                                                            const ResourceNeed& need, const ResourcePlace& place,
                                                            const CommunicatorRequest& request);
  // Forgets the resources of a plugin that is about to be unloaded; each is destroyed when it is no longer in use.
  void drop(const std::string& plugin);
  // Forgets all resources, likewise.
  void clear();

 private:
  struct Entry;
  struct State;
  Result<const heddle_resource*> find_definition(const Entry* asker, const RegistrySnapshot& registry, const ResourceNeed& need,
                                                 const ResourcePlace& place, std::shared_ptr<const LoadedPlugin>* owner) const;
  Result<std::shared_ptr<Entry>> find(Entry* asker, const std::shared_ptr<const RegistrySnapshot>& registry, const ResourceNeed& need,
                                      const ResourcePlace& place);
  const ResourceHolder holder_;
  const std::shared_ptr<ResourceTable> wider_;
  const std::unique_ptr<State> state_;
};

// The resources of a workspace's streams: a table for each session that uses the workspace. Destroy it before the streams. Not
// synchronised: of() is called while no run works in the workspace.
class StreamResources {
 public:
  // Returns the table of the session whose table is `session`, which may be null; it does not own `session`, and is valid as long as that.
  // Makes it on first use, and drops the tables of sessions that are closed.
  ResourceTable& of(const std::shared_ptr<ResourceTable>& session);

 private:
  struct OfSession {
    std::weak_ptr<ResourceTable> session;
    std::unique_ptr<ResourceTable> table;
  };
  std::vector<OfSession> tables_;
};

}  // namespace heddle
