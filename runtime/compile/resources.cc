#include "compile/resources.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "base/device_name.h"
#include "base/text.h"
#include "plugin/host.h"

namespace heddle {

struct ResourceTable::State {
  struct Entry;
  // What a resource is made with: it may ask for others.
  struct Call final : HostCall {
    void* resource(const char* name) noexcept override;
    State* table = nullptr;
    Entry* entry = nullptr;
  };
  struct Entry {
    enum class Stage { making, made, failed };
    std::string name, device_name;
    std::shared_ptr<const LoadedPlugin> owner;
    std::shared_ptr<Device> device;  // stays open as long as the resource
    const heddle_resource* resource = nullptr;
    Call call;
    Stage stage = Stage::making;
    void* object = nullptr;
    Status failure;
    std::vector<const Entry*> waits_for;  // while it is being made

    Result<void*> answer() const {
      if (stage == Stage::made) return object;
      return failure;
    }
    // Calls the plugin; under no lock.
    Status make();
  };

  explicit State(std::shared_ptr<const RegistrySnapshot> snapshot) : registry(std::move(snapshot)) {}
  ~State();
  // `asker`: the resource whose create asks; null: a kernel.
  Result<void*> find(Entry* asker, const std::string& name, const std::string& device, const std::shared_ptr<Device>& opened);
  Result<Entry*> begin(const std::string& name, const std::string& device, const std::shared_ptr<Device>& opened);
  void finish(Entry& entry, Status status);
  static std::vector<const Entry*> way(const Entry* from, const Entry* to);

  const std::shared_ptr<const RegistrySnapshot> registry;
  std::mutex mutex;  // of all that follows, and of what entries say of themselves
  std::condition_variable changed;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Entry>> entries;
  std::vector<Entry*> made;  // in the order in which they were ready: what a resource needs stands before it
};

ResourceTable::ResourceTable(std::shared_ptr<const RegistrySnapshot> registry) : state_(std::make_unique<State>(std::move(registry))) {}
ResourceTable::~ResourceTable() = default;

ResourceTable::State::~State() {
  for (auto entry = made.rbegin(); entry != made.rend(); ++entry) try {
      (*entry)->resource->destroy((*entry)->object);
    } catch (...) {
      log_line(HEDDLE_LOG_WARNING, fmt::format("resource {} threw an exception out of destroy", quoted((*entry)->name)));
    }
}

Status ResourceTable::State::Entry::make() {
  heddle_status status = HEDDLE_ERROR_INTERNAL;
  try {
    status = resource->create(host_table(), &call, device_name.c_str(), device ? device->handle() : nullptr, &object);
  } catch (...) {
    call.error.text = "create threw an exception across the plugin boundary";
  }
  if (status == HEDDLE_OK && object) return {};
  object = nullptr;
  if (status == HEDDLE_OK && call.error.text.empty()) call.error.text = "create said that it was made, and gave nothing";
  const Status why = plugin_error(Code::missing_resource, status, call.error);
  // "unsupported" would send the host to look for another kernel.
  const Code code = why.code() == Code::unsupported ? Code::missing_resource : why.code();
  return {code, fmt::format("resource {} of plugin {} could not be made: {}", quoted(name), quoted(owner->name), why.diagnostic().message)};
}

// From `from` to `to` by what each is waiting for, both included; empty: there is no way.
std::vector<const ResourceTable::State::Entry*> ResourceTable::State::way(const Entry* from, const Entry* to) {
  if (from == to) return {from};
  for (const Entry* next : from->waits_for)
    if (std::vector<const Entry*> rest = way(next, to); !rest.empty()) {
      rest.insert(rest.begin(), from);
      return rest;
    }
  return {};
}

void* ResourceTable::State::Call::resource(const char* name) noexcept {
  try {
    Result<void*> found = table->find(entry, name ? name : "", entry->device_name, entry->device);
    const std::lock_guard lock(mutex_);
    if (found.ok()) return *found;
    error.missing = found.status();
  } catch (const std::bad_alloc&) {
    const std::lock_guard lock(mutex_);
    say("no memory");
  }
  return nullptr;
}

// A new entry, which the caller must make.
Result<ResourceTable::State::Entry*> ResourceTable::State::begin(const std::string& name, const std::string& device,
                                                                 const std::shared_ptr<Device>& opened) {
  auto fresh = std::make_unique<Entry>();
  fresh->resource = registry->find_resource(name, device_kind(device), &fresh->owner);
  if (!fresh->resource)
    return Status(Code::missing_resource,
                  fmt::format("no loaded plugin publishes resource {} for {}", quoted(name), quoted(device_kind(device))),
                  "load the plugin that does");
  fresh->name = name;
  fresh->device_name = device;
  fresh->device = opened;
  fresh->call.table = this;
  fresh->call.entry = fresh.get();
  made.reserve(entries.size() + 1);
  return entries.emplace(std::make_pair(name, device), std::move(fresh)).first->second.get();
}

void ResourceTable::State::finish(Entry& entry, Status status) {
  entry.stage = status.ok() ? Entry::Stage::made : Entry::Stage::failed;
  if (status.ok()) made.push_back(&entry);
  entry.failure = std::move(status);
  changed.notify_all();
}

Result<void*> ResourceTable::State::find(Entry* asker, const std::string& name, const std::string& device,
                                         const std::shared_ptr<Device>& opened) {
  std::unique_lock lock(mutex);
  if (asker && asker->stage != Entry::Stage::making)
    return Status(Code::missing_resource, fmt::format("resource {} asks for {} when it is made already", quoted(asker->name), quoted(name)),
                  "ask for it in create");
  if (asker) asker->waits_for.reserve(asker->waits_for.size() + 1);
  const auto known = entries.find({name, device});
  const bool first = known == entries.end();
  Entry* entry = first ? nullptr : known->second.get();
  if (first) {
    HEDDLE_TRY(entry, begin(name, device, opened));
  }
  if (entry->stage != Entry::Stage::making) return entry->answer();
  if (asker && !first)
    if (const std::vector<const Entry*> cycle = way(entry, asker); !cycle.empty()) {
      std::vector<std::string> names;
      for (const Entry* needed : cycle) names.push_back(quoted(needed->name));
      return Status(Code::missing_resource,
                    fmt::format("resource {} needs {}, so that none can be made first", quoted(asker->name), join(names, ", which needs ")),
                    "break the circle in the plugins");
    }
  if (asker) asker->waits_for.push_back(entry);
  if (first) {
    Status status(Code::out_of_memory, fmt::format("no memory to make resource {}", quoted(name)));
    lock.unlock();
    try {
      status = entry->make();
    } catch (const std::bad_alloc&) {
      // Threads that wait for the entry must be woken in this case too.
    }
    lock.lock();
    finish(*entry, std::move(status));
  } else {
    changed.wait(lock, [&] { return entry->stage != Entry::Stage::making; });
  }
  if (asker) asker->waits_for.erase(std::find(asker->waits_for.begin(), asker->waits_for.end(), entry));
  return entry->answer();
}

Result<void*> ResourceTable::find(const std::string& name, const std::string& device, const std::shared_ptr<Device>& opened) {
  return state_->find(nullptr, name, device, opened);
}

}  // namespace heddle
