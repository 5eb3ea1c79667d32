#include "device/resources.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <map>
#include <new>
#include <utility>

#include "base/device_name.h"
#include "base/exceptions.h"
#include "base/text/text.h"
#include "base/threads/clock.h"
#include "base/threads/mutex.h"
#include "plugin/abi_attributes.h"
#include "plugin/host.h"

namespace heddle {
namespace {

// Protects all tables, and the lists of which resource waits for which: needs go from a session's table to its runtime's. Never held while
// a plugin is called.
Mutex mutex;
Condition changed;

std::string_view scope_name(int32_t scope) {
  constexpr std::string_view names[] = {"runtime", "device", "session", "communicator", "stream"};
  return scope >= 0 && scope < static_cast<int32_t>(std::size(names)) ? names[scope] : "unknown";
}

// Returns the key that distinguishes resources of one name.
std::string key_of(const heddle_resource& resource, const ResourceNeed& need, const ResourcePlace& place) {
  const std::string on_device = place.device + '\n' + need.key();
  if (resource.scope == HEDDLE_SCOPE_STREAM) return fmt::format("{}\n{}", place.stream, on_device);
  return resource.scope == HEDDLE_SCOPE_DEVICE ? on_device : need.key();
}

}  // namespace

Result<ResourceNeed> need_from_abi(const heddle_resource_need& need) {
  ResourceNeed made;
  made.name = need.name ? need.name : "";
  made.communicator = need.communicator ? need.communicator : "";
  made.interface_version = need.interface_version;
  const auto wrong = [](std::string what, const char* hint) { return Status(Code::plugin_invalid, std::move(what), hint); };
  if (made.name.empty())
    return wrong("asks for a resource without a name", "name one that a plugin publishes: heddle inspect PLUGIN lists them");
  for (uint32_t i = 0; i < need.option_count; ++i) {
    const heddle_attribute* option = need.options ? need.options[i] : nullptr;
    if (!option || !option->name || !*option->name)
      return wrong(fmt::format("option {} of resource {} has no name", i, quoted(made.name)), "name each option");
    auto value = attribute_from_abi(*option);
    if (!value || exact_text(*value).empty())
      return wrong(fmt::format("option {} of resource {} is no number, text or list of them", quoted(option->name), quoted(made.name)),
                   "give it one of those");
    made.options.push_back({option->name, std::move(*value)});
  }
  std::sort(made.options.begin(), made.options.end(), [](const Attribute& a, const Attribute& b) { return a.name < b.name; });
  return made;
}

std::string ResourceNeed::key() const {
  std::string key = name + '\n' + communicator;
  for (const Attribute& option : options) key += fmt::format("\n{}={}", option.name, exact_text(option.value));
  return key;
}

Status Resource::poll() const {
  if (!definition_->poll_error) return {};
  HostCall call;
  heddle_status status = HEDDLE_ERROR_INTERNAL;
  try {
    status = definition_->poll_error(object_, &call);
  } catch (...) {
    call.error.text = "poll_error threw an exception across the plugin boundary";
  }
  if (status == HEDDLE_OK) return {};
  return {Code::device_failed, fmt::format("resource {} is broken: {}", quoted(name_), call.reason())};
}

Status Resource::exchange(const void* mine, uint64_t bytes, void* all, uint64_t deadline_ticks) const {
  HostCall call;
  heddle_status status = HEDDLE_ERROR_INTERNAL;
  try {
    status = definition_->exchange(object_, mine, bytes, all, steady_deadline_ns(deadline_ticks), &call);
  } catch (...) {
    call.error.text = "exchange threw an exception across the plugin boundary";
  }
  if (status == HEDDLE_OK) return {};
  return {Code::device_failed, fmt::format("resource {} compared nothing with its peers: {}", quoted(name_), call.reason())};
}

Result<std::vector<uint64_t>> Resource::exchange(uint64_t mine, size_t size, uint64_t deadline_ticks) const {
  std::vector<uint64_t> all;
  if (!definition_->exchange) return all;
  all.resize(size);
  HEDDLE_CHECK(exchange(&mine, sizeof(mine), all.data(), deadline_ticks));
  return all;
}

Result<std::string> Resource::exchange(const std::string& mine, size_t size, uint64_t deadline_ticks) const {
  std::string all;
  if (!definition_->exchange) return all;
  all.resize(size * mine.size());
  HEDDLE_CHECK(exchange(mine.data(), mine.size(), all.data(), deadline_ticks));
  return all;
}

void Resource::abort(const std::string& why) const noexcept {
  if (!definition_->abort || definition_->scope != HEDDLE_SCOPE_COMMUNICATOR) return;
  try {
    definition_->abort(object_, why.c_str());
  } catch (...) {
    without_exceptions([&] { log_line(HEDDLE_LOG_WARNING, fmt::format("resource {} threw an exception out of abort", quoted(name_))); });
  }
}

ResourceHolder holder_of(ResourceScope scope, bool on_device) {
  switch (scope) {
    case ResourceScope::runtime:
    case ResourceScope::device:
      return ResourceHolder::runtime;
    case ResourceScope::session:
    case ResourceScope::communicator:
      return ResourceHolder::session;
    case ResourceScope::stream:
      break;
  }
  return on_device ? ResourceHolder::workspace : ResourceHolder::context;
}

// ---------------------------------------------------------------- one resource

struct ResourceTable::Entry final : Resource {
  enum class State { making, made, failed };
  // The call that makes the resource: it may request others.
  class Call final : public HostCall {
   public:
    explicit Call(Entry& made) : entry(made) {}
    heddle_status need(const heddle_resource_need& asked, uint32_t* slot) noexcept override;
    void* resource(uint32_t slot) noexcept override { return slot < entry.needs.size() ? entry.needs[slot]->object() : nullptr; }
    bool cancelled() const noexcept override {
      return run && (run->cancelled->load() || (run->deadline_ticks != 0 && ticks() >= run->deadline_ticks));
    }
    // Finds what create needs, and keeps it. Errors: missing_resource, and what making it reports.
    Result<std::shared_ptr<const Resource>> find(ResourceNeed wanted) const;
    Entry& entry;
    const CommunicatorRequest* run = nullptr;  // of the run that needs a communicator
  };

  Entry(const heddle_resource& definition, ResourceNeed asked, ResourcePlace where)
      : Resource(definition, asked.name), need(std::move(asked)), place(std::move(where)) {}
  ~Entry() override {
    if (state == State::made) try {
        definition_->destroy(object_);
      } catch (...) {
        without_exceptions(
            [&] { log_line(HEDDLE_LOG_WARNING, fmt::format("resource {} threw an exception out of destroy", quoted(name_))); });
      }
  }
  int32_t scope() const { return definition_->scope; }
  // Calls the plugin; the caller must hold no lock. `communicator`: for communicator scope.
  Status make(const CommunicatorRequest* communicator = nullptr);

  const ResourceNeed need;
  const AttributeTable options{need.options};  // as the plugin sees them
  const ResourcePlace place;                   // keeps its device open as long as the resource
  std::shared_ptr<const LoadedPlugin> owner;
  std::shared_ptr<const RegistrySnapshot> registry;    // while it is being made
  ResourceTable* table = nullptr;                      // likewise
  std::vector<std::shared_ptr<const Resource>> needs;  // by slot; destroyed after the resource
  State state HEDDLE_GUARDED_BY(mutex) = State::making;
  Status failure HEDDLE_GUARDED_BY(mutex);
  std::vector<const Entry*> waits_for HEDDLE_GUARDED_BY(mutex);  // while it is being made
};

Status ResourceTable::Entry::make(const CommunicatorRequest* communicator) {
  heddle_resource_request request = {};
  request.struct_size = sizeof(request);
  request.scope = scope();
  request.host = host_table();
  Call call(*this);
  request.call = &call;
  request.name = need.name.c_str();
  request.communicator = need.communicator.c_str();
  const bool of_device = scope() == HEDDLE_SCOPE_DEVICE || scope() == HEDDLE_SCOPE_STREAM;
  request.device = of_device ? place.device.c_str() : "";
  request.device_handle = of_device && place.opened ? place.opened->handle() : nullptr;
  request.stream = place.stream;
  request.rendezvous = "";
  if (communicator) {
    call.run = communicator;
    request.rank = communicator->rank;
    request.size = communicator->size;
    request.attempt = communicator->attempt;
    request.members = communicator->members.data();
    request.member_count = static_cast<uint32_t>(communicator->members.size());
    request.rendezvous = communicator->rendezvous;
    request.timeout_ns = communicator->timeout_ns;
    request.deadline_ns = steady_deadline_ns(communicator->deadline_ticks);
  }
  request.options = options.data();
  request.option_count = options.size();
  void* object = nullptr;
  heddle_status status = HEDDLE_ERROR_INTERNAL;
  try {
    status = definition_->create(&request, &object);
  } catch (...) {
    call.error.text = "create threw an exception across the plugin boundary";
  }
  if (status == HEDDLE_OK && object) {
    object_ = object;
    return {};
  }
  if (status == HEDDLE_OK && call.error.text.empty()) call.error.text = "create said that it was made, and gave nothing";
  const Status why = plugin_error(Code::missing_resource, status, call.error);
  // "unsupported" would make the host look for another kernel.
  const Code code = why.code() == Code::unsupported ? Code::missing_resource : why.code();
  return {code,
          fmt::format("resource {} of plugin {} could not be made: {}", quoted(name_), quoted(owner->name), why.diagnostic().message)};
}

// Objects of a communicator are in no table: those that are made already are known to the run.
Result<std::shared_ptr<const Resource>> ResourceTable::Entry::Call::find(ResourceNeed wanted) const {
  if (!entry.table)
    return Status(Code::missing_resource,
                  fmt::format("resource {} asks for {} when it is made already", quoted(entry.name()), quoted(wanted.name)),
                  "ask for it in create");
  std::shared_ptr<const LoadedPlugin> publisher;
  HEDDLE_TRY(const heddle_resource* const definition,
             entry.table->find_definition(&entry, *entry.registry, wanted, entry.place, &publisher));
  if (definition->scope != HEDDLE_SCOPE_COMMUNICATOR) {
    HEDDLE_TRY(std::shared_ptr<Entry> made, entry.table->find(&entry, entry.registry, wanted, entry.place));
    return std::shared_ptr<const Resource>(std::move(made));
  }
  if (wanted.communicator.empty()) wanted.communicator = entry.need.communicator;
  const auto is_wanted = [&](const auto& made) { return static_cast<const Entry&>(*made).need.key() == wanted.key(); };
  const auto known = std::find_if(run->made.begin(), run->made.end(), is_wanted);
  if (known != run->made.end()) return *known;
  return Status(Code::missing_resource,
                fmt::format("resource {} needs {} of communicator {}, which is not made before it", quoted(entry.name()),
                            quoted(wanted.name), quoted(wanted.communicator)),
                "let the kernel that needs the one need the other, too: objects of a communicator are made in the order of names");
}

heddle_status ResourceTable::Entry::Call::need(const heddle_resource_need& asked, uint32_t* slot) noexcept {
  try {
    Status why;
    if (auto wanted = need_from_abi(asked); !wanted.ok()) {
      why = wanted.status();
    } else if (auto found = find(std::move(*wanted)); found.ok()) {
      const auto known = std::find(entry.needs.begin(), entry.needs.end(), *found);
      *slot = static_cast<uint32_t>(known - entry.needs.begin());
      if (known == entry.needs.end()) entry.needs.push_back(std::move(*found));
      return HEDDLE_OK;
    } else {
      why = found.status();
    }
    const MutexLock lock(mutex_);
    error.missing = std::move(why);
  } catch (...) {  // exceptions must not cross the plugin boundary
    const MutexLock lock(mutex_);
    error.missing = status_of_exception();
  }
  return HEDDLE_ERROR_INVALID;
}

// ---------------------------------------------------------------- the table

struct ResourceTable::State {
  std::map<std::string, std::shared_ptr<Entry>> entries HEDDLE_GUARDED_BY(mutex);  // by key; failed ones are not listed

  // Returns a path from `from` to `to` through what each is waiting for, both included; empty: there is no path.
  static std::vector<const Entry*> way(const Entry* from, const Entry* to) HEDDLE_REQUIRES(mutex) {
    if (from == to) return {from};
    for (const Entry* next : from->waits_for)
      if (std::vector<const Entry*> rest = way(next, to); !rest.empty()) {
        rest.insert(rest.begin(), from);
        return rest;
      }
    return {};
  }
  static Status circle(const Entry& asker, const std::vector<const Entry*>& cycle) {
    std::vector<std::string> names;
    for (const Entry* needed : cycle) names.push_back(quoted(needed->name()));
    return {Code::missing_resource,
            fmt::format("resource {} needs {}, so that none can be made first", quoted(asker.name()), join(names, ", which needs ")),
            "break the circle in the plugins"};
  }
};

ResourceTable::ResourceTable(ResourceHolder holder, std::shared_ptr<ResourceTable> wider)
    : holder_(holder), wider_(std::move(wider)), state_(std::make_unique<State>()) {}
ResourceTable::~ResourceTable() = default;

// Finds who publishes the resource. `asker`: the resource whose create makes the request; null: a kernel.
Result<const heddle_resource*> ResourceTable::find_definition(const Entry* asker, const RegistrySnapshot& registry,
                                                              const ResourceNeed& need, const ResourcePlace& place,
                                                              std::shared_ptr<const LoadedPlugin>* owner) const {
  const std::string kind(device_kind(place.device));
  const heddle_resource* const definition = registry.find_resource(need.name, kind, owner);
  if (!definition)
    return Status(Code::missing_resource, fmt::format("no loaded plugin publishes resource {} for {}", quoted(need.name), quoted(kind)),
                  "load the plugin that does");
  if (definition->interface_version < need.interface_version)
    return Status(Code::missing_resource,
                  fmt::format("plugin {} publishes resource {} with interface {}, {} is needed", quoted((*owner)->name), quoted(need.name),
                              definition->interface_version, need.interface_version),
                  "load a newer one");
  const bool of_communicator = definition->scope == HEDDLE_SCOPE_COMMUNICATOR;
  if (asker && (asker->scope() < definition->scope || definition->scope == HEDDLE_SCOPE_STREAM ||
                (of_communicator && asker->scope() != HEDDLE_SCOPE_COMMUNICATOR)))
    return Status(Code::missing_resource,
                  fmt::format("resource {} of scope {} needs {} of scope {}", quoted(asker->name()), scope_name(asker->scope()),
                              quoted(need.name), scope_name(definition->scope)),
                  "ask for what has a wider scope, or the same unless that is a stream");
  return definition;
}

Result<std::shared_ptr<ResourceTable::Entry>> ResourceTable::find(Entry* asker, const std::shared_ptr<const RegistrySnapshot>& registry,
                                                                  const ResourceNeed& need, const ResourcePlace& place) {
  std::shared_ptr<const LoadedPlugin> owner;
  HEDDLE_TRY(const heddle_resource* const definition, find_definition(asker, *registry, need, place, &owner));
  if (wider_ && holder_of(static_cast<ResourceScope>(definition->scope), place.opened != nullptr) < holder_)
    return wider_->find(asker, registry, need, place);
  const std::string key = key_of(*definition, need, place);
  MutexLock lock(mutex);
  const auto known = state_->entries.find(key);
  const bool first = known == state_->entries.end();
  std::shared_ptr<Entry> entry = first ? std::make_shared<Entry>(*definition, need, place) : known->second;
  if (asker) asker->waits_for.reserve(asker->waits_for.size() + 1);  // once the entry is known nothing may throw before it is made
  if (first) {
    entry->owner = std::move(owner);
    entry->registry = registry;
    entry->table = this;
    state_->entries.emplace(key, entry);
  }
  if (entry->state == Entry::State::made) return entry;
  if (asker && !first)
    if (const std::vector<const Entry*> cycle = State::way(entry.get(), asker); !cycle.empty()) return State::circle(*asker, cycle);
  if (asker) asker->waits_for.push_back(entry.get());
  if (first) {
    lock.unlock();
    Status status;
    try {
      status = entry->make();
    } catch (...) {  // threads that wait for the entry are woken in this case too
      status = status_of_exception();
    }
    lock.lock();
    entry->table = nullptr;
    entry->registry = nullptr;
    entry->state = status.ok() ? Entry::State::made : Entry::State::failed;
    if (!status.ok()) state_->entries.erase(key);
    entry->failure = std::move(status);
    changed.notify_all();
  } else {
    while (entry->state == Entry::State::making) changed.wait(mutex);
  }
  if (asker) asker->waits_for.erase(std::find(asker->waits_for.begin(), asker->waits_for.end(), entry.get()));
  if (entry->state == Entry::State::made) return entry;
  Status failure = entry->failure;
  lock.unlock();  // the last holder of a failed entry releases what it needed
  return failure;
}

Result<ResourceSlot> ResourceTable::bind(const std::shared_ptr<const RegistrySnapshot>& registry, const ResourceNeed& need,
                                         const ResourcePlace& place) {
  std::shared_ptr<const LoadedPlugin> owner;
  HEDDLE_TRY(const heddle_resource* const definition, find_definition(nullptr, *registry, need, place, &owner));
  const auto scope = static_cast<ResourceScope>(definition->scope);
  if (scope == ResourceScope::communicator || scope == ResourceScope::stream)
    return ResourceSlot{scope, nullptr, std::make_shared<const ResourceNeed>(need)};
  HEDDLE_TRY(std::shared_ptr<Entry> entry, find(nullptr, registry, need, place));
  return ResourceSlot{scope, std::move(entry), nullptr};
}

Result<std::shared_ptr<const Resource>> ResourceTable::make_communicator(const std::shared_ptr<const RegistrySnapshot>& registry,
                                                                         const ResourceNeed& need, const ResourcePlace& place,
                                                                         const CommunicatorRequest& request) {
  std::shared_ptr<const LoadedPlugin> owner;
  HEDDLE_TRY(const heddle_resource* const definition, find_definition(nullptr, *registry, need, place, &owner));
  assert(definition->scope == HEDDLE_SCOPE_COMMUNICATOR);
  const auto entry = std::make_shared<Entry>(*definition, need, place);
  entry->owner = std::move(owner);
  entry->registry = registry;
  entry->table = this;
  Status status = entry->make(&request);
  entry->table = nullptr;
  entry->registry = nullptr;
  {
    const MutexLock lock(mutex);
    entry->state = status.ok() ? Entry::State::made : Entry::State::failed;
  }
  if (!status.ok()) return status;
  return std::shared_ptr<const Resource>(entry);
}

Result<uint32_t> BoundResources::bind(ResourceTable& table, const std::shared_ptr<const RegistrySnapshot>& registry,
                                      const ResourceNeed& need, const ResourcePlace& place) {
  const std::string key = need.key();
  const auto known = std::find(keys.begin(), keys.end(), key);
  const auto slot = static_cast<uint32_t>(known - keys.begin());
  if (known != keys.end()) return slot;
  HEDDLE_TRY(ResourceSlot bound, table.bind(registry, need, place));
  slots.push_back(std::move(bound));
  keys.push_back(key);
  return slot;
}

Result<std::shared_ptr<const Resource>> ResourceTable::of_stream(const std::shared_ptr<const RegistrySnapshot>& registry,
                                                                 const ResourceNeed& need, const ResourcePlace& place) {
  assert(holder_of(ResourceScope::stream, place.opened != nullptr) == holder_);
  HEDDLE_TRY(std::shared_ptr<Entry> entry, find(nullptr, registry, need, place));
  return std::shared_ptr<const Resource>(std::move(entry));
}

void ResourceTable::clear() {
  std::map<std::string, std::shared_ptr<Entry>> all;  // destroyed after the lock is released
  const MutexLock lock(mutex);
  all.swap(state_->entries);
}

void ResourceTable::drop(const std::string& plugin) {
  std::map<std::string, std::shared_ptr<Entry>> dropped;  // destroyed after the lock is released; nodes move, which needs no memory
  const MutexLock lock(mutex);
  for (auto at = state_->entries.begin(); at != state_->entries.end();) {
    const auto entry = at++;
    const bool goes = entry->second->state == Entry::State::made && entry->second->owner->name == plugin;
    if (goes) dropped.insert(state_->entries.extract(entry));
  }
}

ResourceTable& StreamResources::of(const std::shared_ptr<ResourceTable>& session) {
  std::erase_if(tables_, [](const OfSession& one) { return one.table->wider() && one.session.expired(); });
  for (const OfSession& one : tables_)
    if (one.table->wider() == session) return *one.table;
  const std::shared_ptr<ResourceTable> not_owned(std::shared_ptr<void>(), session.get());
  return *tables_.emplace_back(OfSession{session, std::make_unique<ResourceTable>(ResourceHolder::workspace, not_owned)}).table;
}

}  // namespace heddle
