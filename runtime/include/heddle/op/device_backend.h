// Makes the table of a device backend (heddle/device_plugin.h) from a class, as heddle/op/class_kernel.h makes a kernel from a class:
//
//   struct Backend {
//     static heddle_status count(int32_t* count, const heddle_call* call);
//     static heddle_status open(int32_t index, void** device, const heddle_call* call);
//     ...
//   };
//   static const heddle_device_backend backend = make_device_backend<Backend>("mine");
//
// The class has a static function of the same name and type for each function in the table. A function that heddle_device_backend documents
// as optional may be missing in the class; its entry in the table is then null. A program in which another function is missing, or has
// another type, does not compile.
#pragma once

#include <type_traits>

#include "heddle/abi.h"
#include "heddle/device_plugin.h"

namespace heddle {
namespace plugin {
namespace detail {

#define HEDDLE_OPTIONAL_OF_BACKEND_(member)                                      \
  template <class B, class = void>                                               \
  struct member##_of {                                                           \
    static constexpr decltype(heddle_device_backend::member) value = nullptr;    \
  };                                                                             \
  template <class B>                                                             \
  struct member##_of<B, std::void_t<decltype(&B::member)>> {                     \
    static constexpr decltype(heddle_device_backend::member) value = &B::member; \
  };
HEDDLE_OPTIONAL_OF_BACKEND_(query)
HEDDLE_OPTIONAL_OF_BACKEND_(failed_label)
HEDDLE_OPTIONAL_OF_BACKEND_(abort_stream)
HEDDLE_OPTIONAL_OF_BACKEND_(allocate_host)
HEDDLE_OPTIONAL_OF_BACKEND_(release_host)
HEDDLE_OPTIONAL_OF_BACKEND_(register_host)
HEDDLE_OPTIONAL_OF_BACKEND_(unregister_host)
HEDDLE_OPTIONAL_OF_BACKEND_(reaches)
HEDDLE_OPTIONAL_OF_BACKEND_(describe)
HEDDLE_OPTIONAL_OF_BACKEND_(leave)
HEDDLE_OPTIONAL_OF_BACKEND_(enqueue_group)
#undef HEDDLE_OPTIONAL_OF_BACKEND_

}  // namespace detail

// `kind` must stay valid as long as the plugin is loaded. The caller may set `runs_kernels_of` in the result.
template <class B>
heddle_device_backend make_device_backend(const char* kind) {
  using namespace detail;
  static_assert((allocate_host_of<B>::value == nullptr) == (release_host_of<B>::value == nullptr),
                "allocate_host and release_host: both or neither");
  static_assert((register_host_of<B>::value == nullptr) == (unregister_host_of<B>::value == nullptr),
                "register_host and unregister_host: both or neither");
  heddle_device_backend b = {};
  b.struct_size = sizeof(b);
  b.kind = kind;
  b.count = &B::count;
  b.open = &B::open;
  b.close = &B::close;
  b.description = &B::description;
  b.memory_info = &B::memory_info;
  b.properties = &B::properties;
  b.allocate = &B::allocate;
  b.release = &B::release;
  b.create_stream = &B::create_stream;
  b.destroy_stream = &B::destroy_stream;
  b.create_event = &B::create_event;
  b.destroy_event = &B::destroy_event;
  b.enqueue = &B::enqueue;
  b.synchronize = &B::synchronize;
  b.query = query_of<B>::value;
  b.failed_label = failed_label_of<B>::value;
  b.abort_stream = abort_stream_of<B>::value;
  b.allocate_host = allocate_host_of<B>::value;
  b.release_host = release_host_of<B>::value;
  b.register_host = register_host_of<B>::value;
  b.unregister_host = unregister_host_of<B>::value;
  b.reaches = reaches_of<B>::value;
  b.describe = describe_of<B>::value;
  b.leave = leave_of<B>::value;
  b.enqueue_group = enqueue_group_of<B>::value;
  return b;
}

}  // namespace plugin
}  // namespace heddle
