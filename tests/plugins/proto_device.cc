// The smallest whole device: memory that the host cannot touch, asynchronous streams, events, host callbacks, and a few kernels. The first
// user of device_plugin.h, what the tests in tests/device/ run on, and what docs/writing_a_device.md explains.
//
// Read when a device is counted or opened: HEDDLE_PROTO_DEVICES (2), HEDDLE_PROTO_MEMORY in bytes (64 MiB), HEDDLE_PROTO_SEED
// (0: no delays), HEDDLE_PROTO_BROKEN (set: open fails), HEDDLE_PROTO_FORGETFUL (set: the device does not know what failed),
// HEDDLE_PROTO_HOLD (the name of a file: while there is one, streams begin nothing).
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "heddle/device_plugin.h"
#include "heddle/op.h"
#include "proto_memory.h"
#include "proto_stream.h"

using namespace heddle::plugin;

namespace proto {
namespace {

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

struct Device {
  explicit Device(uint64_t bytes) : memory(bytes) {}
  Memory memory;
  uint64_t delay_seed = 0;
  std::string hold;
  std::atomic<uint64_t> streams_made{0};
  std::string description;
};

const heddle_host* host = nullptr;  // since the plugin was loaded

heddle_status fail(const heddle_call* call, heddle_status status, const std::string& text) {
  host->set_error(call, status, text.data(), text.size());
  return status;
}

Device& device_of(void* device) {
  return *static_cast<Device*>(device);
}
Stream& stream_of(void* stream) {
  return *static_cast<Stream*>(stream);
}

heddle_status count(int32_t* devices, const heddle_call* call) {
  *devices = static_cast<int32_t>(setting("HEDDLE_PROTO_DEVICES", 2));
  if (*devices == 0) fail(call, HEDDLE_OK, "HEDDLE_PROTO_DEVICES is 0");
  return HEDDLE_OK;
}

heddle_status open(int32_t index, void** device, const heddle_call* call) {
  if (std::getenv("HEDDLE_PROTO_BROKEN")) return fail(call, HEDDLE_ERROR_DEVICE, "HEDDLE_PROTO_BROKEN is set");
  auto made = std::make_unique<Device>(setting("HEDDLE_PROTO_MEMORY", uint64_t{64} << 20));
  if (!made->memory.ok()) return fail(call, HEDDLE_ERROR_OUT_OF_MEMORY, "no memory to simulate a device with");
  made->delay_seed = setting("HEDDLE_PROTO_SEED", 0);
  if (const char* hold = std::getenv("HEDDLE_PROTO_HOLD")) made->hold = hold;
  made->description = "proto device " + std::to_string(index) + ", a thread for each stream";
  *device = made.release();
  return HEDDLE_OK;
}

void close(void* device) {
  // Whoever leaves something behind finds out in the tests.
  if (const size_t left = device_of(device).memory.allocations()) std::fprintf(stderr, "proto: %zu allocations left at close\n", left);
  delete static_cast<Device*>(device);
}

const char* description(void* device) {
  return device_of(device).description.c_str();
}

heddle_status memory_info(void* device, uint64_t* free_bytes, uint64_t* total_bytes, const heddle_call*) {
  *free_bytes = device_of(device).memory.free();
  *total_bytes = device_of(device).memory.total();
  return HEDDLE_OK;
}

heddle_status allocate(void* device, uint64_t bytes, void** memory, const heddle_call* call) {
  Memory& all = device_of(device).memory;
  *memory = all.allocate(bytes);
  if (*memory) return HEDDLE_OK;
  return fail(call, HEDDLE_ERROR_OUT_OF_MEMORY,
              std::to_string(bytes) + " bytes asked for, " + std::to_string(all.free()) + " of " + std::to_string(all.total()) + " free");
}

void release(void* device, void* memory) {
  device_of(device).memory.release(memory);
}

heddle_status create_stream(void* device, void** stream, const heddle_call*) {
  Device& d = device_of(device);
  const uint64_t number = d.streams_made.fetch_add(1) + 1;
  *stream = new Stream(d.memory, d.delay_seed == 0 ? 0 : d.delay_seed * 7919 + number, d.hold);
  return HEDDLE_OK;
}

void destroy_stream(void*, void* stream) {
  delete static_cast<Stream*>(stream);
}

heddle_status copy(void*, void* stream, void* destination, const void* source, uint64_t bytes, int32_t kind, const heddle_call* call) {
  Stream& s = stream_of(stream);
  const Stream::Call entered(s);
  if (!entered.alone()) return fail(call, HEDDLE_ERROR_INTERNAL, Stream::overlap);
  s.enqueue([&memory = s.memory, destination, source, bytes, kind](std::string& why) -> heddle_status {
    void* to = kind == HEDDLE_COPY_DEVICE_TO_HOST ? destination : memory.shadow(destination, bytes);
    const void* from = kind == HEDDLE_COPY_HOST_TO_DEVICE ? source : memory.shadow(source, bytes);
    if (!to || !from) return why = "a copy touches memory that is not allocated", HEDDLE_ERROR_DEVICE;
    std::memmove(to, from, bytes);
    return HEDDLE_OK;
  });
  return HEDDLE_OK;
}

heddle_status fill(void*, void* stream, void* destination, int32_t value, uint64_t bytes, const heddle_call* call) {
  Stream& s = stream_of(stream);
  const Stream::Call entered(s);
  if (!entered.alone()) return fail(call, HEDDLE_ERROR_INTERNAL, Stream::overlap);
  s.enqueue([&memory = s.memory, destination, value, bytes](std::string& why) -> heddle_status {
    char* to = memory.shadow(destination, bytes);
    if (!to) return why = "a fill touches memory that is not allocated", HEDDLE_ERROR_DEVICE;
    std::memset(to, value, bytes);
    return HEDDLE_OK;
  });
  return HEDDLE_OK;
}

heddle_status synchronize(void*, void* stream, const heddle_call* call) {
  const Stream::Call entered(stream_of(stream));
  if (!entered.alone()) return fail(call, HEDDLE_ERROR_INTERNAL, Stream::overlap);
  const Failure failure = stream_of(stream).synchronize();
  return failure.status == HEDDLE_OK ? HEDDLE_OK : fail(call, failure.status, failure.text);
}

heddle_status create_event(void*, void** event, const heddle_call*) {
  *event = new Event();
  return HEDDLE_OK;
}

void destroy_event(void*, void* event) {
  delete static_cast<Event*>(event);
}

heddle_status record(void*, void* stream, void* event, const heddle_call* call) {
  const Stream::Call entered(stream_of(stream));
  if (!entered.alone()) return fail(call, HEDDLE_ERROR_INTERNAL, Stream::overlap);
  stream_of(stream).record(*static_cast<Event*>(event));
  return HEDDLE_OK;
}

heddle_status wait(void*, void* stream, void* event, const heddle_call* call) {
  const Stream::Call entered(stream_of(stream));
  if (!entered.alone()) return fail(call, HEDDLE_ERROR_INTERNAL, Stream::overlap);
  stream_of(stream).wait(*static_cast<Event*>(event));
  return HEDDLE_OK;
}

heddle_status notify(void*, void* stream, heddle_stream_callback callback, void* user, const heddle_call* call) {
  const Stream::Call entered(stream_of(stream));
  if (!entered.alone()) return fail(call, HEDDLE_ERROR_INTERNAL, Stream::overlap);
  stream_of(stream).notify(callback, user);
  return HEDDLE_OK;
}

void label(void*, void* stream, uint64_t number) {
  const Stream::Call call(stream_of(stream));  // an overlap is the next call's error
  stream_of(stream).label(number);
}

uint64_t failed_label(void*, void* stream) {
  return std::getenv("HEDDLE_PROTO_FORGETFUL") ? UINT64_MAX : stream_of(stream).failed_label();
}

const heddle_device_backend backend = {sizeof(heddle_device_backend),
                                       0,
                                       "proto",
                                       count,
                                       open,
                                       close,
                                       description,
                                       memory_info,
                                       allocate,
                                       release,
                                       create_stream,
                                       destroy_stream,
                                       copy,
                                       fill,
                                       synchronize,
                                       create_event,
                                       destroy_event,
                                       record,
                                       wait,
                                       notify,
                                       label,
                                       failed_label,
                                       nullptr,
                                       nullptr};

}  // namespace
}  // namespace proto

void add_proto_kernels(Builder& plugin);

HEDDLE_PLUGIN("proto", "1.0", plugin) {
  proto::host = plugin.host();
  plugin.add(&proto::backend);
  add_proto_kernels(plugin);
}
