// Resources: objects that a plugin publishes for kernels of its own and of other plugins, and how kernels request them.
//
//   struct Table {                            // in a header that both plugins include; use only types that C has
//     int64_t (*next)(Table* self);
//   };
//   plugin.resource<OwnTable, Table>("mine.table", HEDDLE_SCOPE_SESSION, 1);   // OwnTable derives from Table; made from a ResourceRequest
//
//   Status create(const CreateContext& c) { return table_.ask(c, "mine.table", 1); }   // Needed<Table> table_;
//   Status run(const RunContext& c, int64_t, int64_t) const { return use(table_(c)->next(table_(c))); }
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "heddle/abi.h"
#include "heddle/op/contexts.h"
#include "heddle/op/guard.h"
#include "heddle/op/plugin_status.h"

namespace heddle {
namespace plugin {

namespace detail {

inline heddle_resource_need need_of(const char* name, uint32_t interface_version) {
  heddle_resource_need need = {};
  need.struct_size = sizeof(need);
  need.interface_version = interface_version;
  need.name = name;
  return need;
}

}  // namespace detail

// The request to make a resource. The object is valid while the resource is being made; its texts are valid as long as the resource.
class ResourceRequest {
 public:
  explicit ResourceRequest(const heddle_resource_request* r) : r_(r) {}
  const char* name() const { return r_->name; }
  // The following functions, up to cancelled(), are for communicator scope. rank, size, members, rendezvous and timeout_ns come from the
  // embedding program's CommunicatorOptions. The text of rendezvous() is valid only while the resource is being made.
  const char* communicator() const { return r_->communicator; }
  int32_t rank() const { return r_->rank; }
  int32_t size() const { return r_->size; }
  uint32_t attempt() const { return r_->attempt; }
  std::vector<std::string> members() const { return {r_->members, r_->members + r_->member_count}; }
  const char* rendezvous() const { return r_->rendezvous; }
  int64_t timeout_ns() const { return r_->timeout_ns; }
  int64_t deadline_ns() const { return r_->deadline_ns; }
  // Returns true if the run that needs the object has ended, or its deadline has passed: the constructor must then return soon.
  bool cancelled() const { return r_->host->cancelled(r_->call) != 0; }
  const char* device() const { return r_->device; }  // "cuda:0"; "" in wider scopes
  void* device_handle() const { return r_->device_handle; }
  void* stream() const { return r_->stream; }
  // Returns the option named `wanted` that the kernel gave in its request (Needed::ask); null if the kernel gave no such option.
  const heddle_attribute* option(const std::string& wanted) const {
    for (uint32_t i = 0; i < r_->option_count; ++i)
      if (wanted == r_->options[i]->name) return r_->options[i];
    return nullptr;
  }
  // Requests another resource, which then lives at least as long as this resource. Returns null if the other resource is not available; if
  // this resource can not be made then, the host adds the reason for the missing resource to the error.
  template <class T>
  T* need(const char* other, uint32_t interface_version = 1) const {
    const heddle_resource_need need = detail::need_of(other, interface_version);
    uint32_t slot = 0;
    if (r_->host->need(r_->call, &need, &slot) != HEDDLE_OK) return nullptr;
    return static_cast<T*>(r_->host->resource(r_->call, slot));
  }
  const heddle_resource_request* raw() const { return r_; }

 private:
  const heddle_resource_request* r_;
};

// A resource that a kernel requests in create and reads in run. T must be the type that the publishing plugin documents for the resource.
template <class T>
class Needed {
 public:
  // [in create] Requests the resource. `interface_version` is the lowest version that is accepted. `communicator` is the name of the
  // communicator, for a resource of communicator scope. A failing status has no text, because the host has the reason.
  Status ask(const CreateContext& context, const char* name, uint32_t interface_version = 1, const char* communicator = nullptr,
             const heddle_attribute* const* options = nullptr, uint32_t option_count = 0) {
    heddle_resource_need need = detail::need_of(name, interface_version);
    need.communicator = communicator;
    need.options = options;
    need.option_count = option_count;
    const heddle_create_context* raw = context.raw();
    const heddle_status status = raw->host->need(raw->call, &need, &slot_);
    if (status != HEDDLE_OK) return {status, ""};
    made_ = static_cast<T*>(raw->host->resource(raw->call, slot_));
    return {};
  }
  // [from create on, after ask()] Returns the resource. Returns null for a resource of stream scope, because each stream of a context has
  // its own object, and of communicator scope, because the object is made only when a run begins. In run, operator() returns these objects.
  T* made() const { return made_; }
  // [in run] Returns the resource of this context and run.
  T* operator()(const RunContext& context) const { return static_cast<T*>(context.resources[slot_]); }

 private:
  uint32_t slot_ = 0;
  T* made_ = nullptr;
};

namespace detail {

template <class R, class = void>
struct has_poll_error : std::false_type {};
template <class R>
struct has_poll_error<R, std::void_t<decltype(std::declval<R&>().poll_error())>> : std::true_type {};
template <class R, class = void>
struct has_resource_abort : std::false_type {};
template <class R>
struct has_resource_abort<R, std::void_t<decltype(std::declval<R&>().abort(std::declval<const char*>()))>> : std::true_type {};

template <class R, class = void>
struct has_exchange : std::false_type {};
template <class R>
struct has_exchange<R, std::void_t<decltype(std::declval<R&>().exchange(nullptr, uint64_t{}, nullptr, int64_t{}))>> : std::true_type {};

// The ABI functions of a resource of class R that is published as a T.
template <class R, class T>
struct PublishedResource {
  static heddle_status create(const heddle_resource_request* request, void** resource) {
    return guard(*request, [&]() -> Status {
      auto made = std::make_unique<R>(ResourceRequest(request));
      Status status = status_of(*made);
      if (!status.ok()) return status;
      *resource = static_cast<T*>(made.release());
      return {};
    });
  }
  static void destroy(void* resource) { delete of(resource); }
  static void abort(void* resource, const char* why) {
    if constexpr (has_resource_abort<R>::value) of(resource)->abort(why);
  }
  static heddle_status poll_error(void* resource, const heddle_call* call) {
    return guard(Caller{host, call}, [&]() -> Status {
      if constexpr (has_poll_error<R>::value)
        return of(resource)->poll_error();
      else
        return {};
    });
  }
  static heddle_status exchange(void* resource, const void* mine, uint64_t bytes, void* all, int64_t deadline_ns, const heddle_call* call) {
    return guard(Caller{host, call}, [&]() -> Status {
      if constexpr (has_exchange<R>::value)
        return of(resource)->exchange(mine, bytes, all, deadline_ns);
      else
        return {};
    });
  }
  static R* of(void* resource) { return static_cast<R*>(static_cast<T*>(resource)); }
  static inline const heddle_host* host = nullptr;  // the host that loaded the plugin
  static heddle_resource table(const heddle_host* plugin_host, const char* name, int32_t scope, uint32_t interface_version,
                               const char* device_kind) {
    host = plugin_host;
    heddle_resource t = {};
    t.struct_size = sizeof(t);
    t.scope = scope;
    t.interface_version = interface_version;
    t.name = name;
    t.device_kind = device_kind;
    t.create = create;
    t.destroy = destroy;
    if (has_resource_abort<R>::value) t.abort = abort;
    if (has_poll_error<R>::value) t.poll_error = poll_error;
    if (has_exchange<R>::value) t.exchange = exchange;
    return t;
  }
};

}  // namespace detail

}  // namespace plugin
}  // namespace heddle
