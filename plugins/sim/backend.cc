// The simulated accelerator: what a device is to the runtime (memory that the host cannot touch, streams, events, callbacks, failures that
// come late), without one. It has no kernels of its own and runs those of the host's.
//
// Read when a device is counted or opened: HEDDLE_SIM_DEVICES (2), HEDDLE_SIM_MEMORY in bytes (4 GiB), HEDDLE_SIM_SEED (0: no delays, and
// no other order than that of enqueueing), HEDDLE_SIM_BROKEN (set: open fails), HEDDLE_SIM_FORGETFUL (set: a device does not know what
// failed), HEDDLE_SIM_WRONG (an operator whose kernels compute something else), HEDDLE_SIM_HOLD (the name of a file: while there is one,
// nothing begins), HEDDLE_SIM_FAULTS (faults.h).
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "engine.h"
#include "heddle/device_plugin.h"
#include "heddle/op.h"

namespace sim {
namespace {

const heddle_host* host = nullptr;  // since the plugin was loaded

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

struct Device {
  Device(uint64_t bytes, std::shared_ptr<Engine> made) : memory(bytes), engine(std::move(made)) {}
  Memory memory;
  const std::shared_ptr<Engine> engine;
  Manners manners;
  std::string description;
};

Device& device_of(void* device) {
  return *static_cast<Device*>(device);
}
Stream& stream_of(void* stream) {
  return *static_cast<Stream*>(stream);
}
Event& event_of(void* event) {
  return *static_cast<Event*>(event);
}

heddle_status fail(const heddle_call* call, heddle_status status, const std::string& text) {
  host->set_error(call, status, text.data(), text.size());
  return status;
}

// A call for a stream.
template <class Function>
heddle_status entered(void* stream, const heddle_call* call, const Function& function) {
  const Stream::Call inside(stream_of(stream));
  return inside.alone() ? function(stream_of(stream)) : fail(call, HEDDLE_ERROR_INTERNAL, Stream::overlap);
}

// Before a kernel or a copy is enqueued.
heddle_status may_enqueue(Stream& stream, const char* operator_name, const heddle_call* call) {
  if (stream.manners.lost) return fail(call, HEDDLE_ERROR_DEVICE, "the device is lost, as it was told to be");
  const bool fails = stream.manners.faults.strikes(Faults::Kind::enqueue, {operator_name, stream.label()});
  return fails ? fail(call, HEDDLE_ERROR_DEVICE, "the launch failed, as it was told to") : HEDDLE_OK;
}

heddle_status count(int32_t* devices, const heddle_call* call) {
  *devices = static_cast<int32_t>(setting("HEDDLE_SIM_DEVICES", 2));
  if (*devices == 0) fail(call, HEDDLE_OK, "HEDDLE_SIM_DEVICES is 0");
  return HEDDLE_OK;
}

heddle_status open(int32_t index, void** device, const heddle_call* call) {
  if (std::getenv("HEDDLE_SIM_BROKEN")) return fail(call, HEDDLE_ERROR_DEVICE, "HEDDLE_SIM_BROKEN is set");
  const uint64_t seed = setting("HEDDLE_SIM_SEED", 0);
  auto made = std::make_unique<Device>(setting("HEDDLE_SIM_MEMORY", uint64_t{4} << 30), Engine::shared(seed));
  if (!made->memory.ok()) return fail(call, HEDDLE_ERROR_OUT_OF_MEMORY, "no memory to simulate a device with");
  if (const char* hold = std::getenv("HEDDLE_SIM_HOLD")) made->manners.hold = hold;
  if (const char* wrong = std::getenv("HEDDLE_SIM_WRONG")) made->manners.wrong = wrong;
  std::string error;
  if (const char* faults = std::getenv("HEDDLE_SIM_FAULTS"); faults && !made->manners.faults.parse(faults, &error))
    return fail(call, HEDDLE_ERROR_DEVICE, "HEDDLE_SIM_FAULTS: " + error);
  made->description = "simulated device " + std::to_string(index);
  if (seed != 0) made->description += ", delays and orders of seed " + std::to_string(seed);
  *device = made.release();
  return HEDDLE_OK;
}

void close(void* device) {
  // Whoever leaves something behind finds out.
  if (const size_t left = device_of(device).memory.allocations()) {
    const std::string text = "sim: " + std::to_string(left) + " allocations left at close";
    host->log(HEDDLE_LOG_WARNING, text.data(), text.size());
  }
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
  Manners& manners = device_of(device).manners;
  if (manners.lost) return fail(call, HEDDLE_ERROR_DEVICE, "the device is lost, as it was told to be");
  if (manners.faults.strikes(Faults::Kind::memory, {})) return fail(call, HEDDLE_ERROR_OUT_OF_MEMORY, "no memory, as it was told to have");
  *memory = all.allocate(bytes);
  if (*memory) return HEDDLE_OK;
  return fail(call, HEDDLE_ERROR_OUT_OF_MEMORY,
              std::to_string(bytes) + " bytes asked for, " + std::to_string(all.free()) + " of " + std::to_string(all.total()) + " free");
}

void release(void* device, void* memory) {
  device_of(device).memory.release(memory);
}

heddle_status create_stream(void* device, void** stream, const heddle_call*) {
  *stream = device_of(device).engine->add_stream(device_of(device).memory, device_of(device).manners);
  return HEDDLE_OK;
}

void destroy_stream(void* device, void* stream) {
  device_of(device).engine->remove(&stream_of(stream));
}

heddle_status move(void* device, void* stream, Job::Kind kind, void* destination, const void* source, uint64_t bytes, int32_t value,
                   const heddle_call* call) {
  return entered(stream, call, [&](Stream& s) -> heddle_status {
    if (const heddle_status status = may_enqueue(s, nullptr, call); status != HEDDLE_OK) return status;
    Engine& engine = *device_of(device).engine;
    Job* const job = engine.take_job();
    job->kind = kind;
    job->destination = destination;
    job->source = source;
    job->bytes = bytes;
    job->value = value;
    engine.enqueue(s, job);
    return HEDDLE_OK;
  });
}

heddle_status copy(void* device, void* stream, void* destination, const void* source, uint64_t bytes, int32_t kind,
                   const heddle_call* call) {
  return move(device, stream, Job::Kind::copy, destination, source, bytes, kind, call);
}

heddle_status fill(void* device, void* stream, void* memory, int32_t value, uint64_t bytes, const heddle_call* call) {
  return move(device, stream, Job::Kind::fill, memory, nullptr, bytes, value, call);
}

heddle_status synchronize(void* device, void* stream, const heddle_call* call) {
  return entered(stream, call, [&](Stream& s) -> heddle_status {
    const Failure failure = device_of(device).engine->synchronize(s);
    return failure.status == HEDDLE_OK ? HEDDLE_OK : fail(call, failure.status, failure.text);
  });
}

heddle_status create_event(void*, void** event, const heddle_call*) {
  *event = new Event();
  return HEDDLE_OK;
}

void destroy_event(void*, void* event) {
  delete &event_of(event);
}

heddle_status record(void* device, void* stream, void* event, const heddle_call* call) {
  return entered(stream, call, [&](Stream& s) -> heddle_status { return device_of(device).engine->record(s, event_of(event)), HEDDLE_OK; });
}

heddle_status wait(void* device, void* stream, void* event, const heddle_call* call) {
  return entered(stream, call, [&](Stream& s) -> heddle_status { return device_of(device).engine->wait(s, event_of(event)), HEDDLE_OK; });
}

heddle_status notify(void* device, void* stream, heddle_stream_callback callback, void* user, const heddle_call* call) {
  return entered(stream, call, [&](Stream& s) -> heddle_status {
    Engine& engine = *device_of(device).engine;
    Job* const job = engine.take_job();
    job->kind = Job::Kind::notify;
    job->callback = callback;
    job->user = user;
    engine.enqueue(s, job);
    return HEDDLE_OK;
  });
}

void label(void*, void* stream, uint64_t number) {
  const Stream::Call inside(stream_of(stream));  // an overlap is the next call's error
  stream_of(stream).label(number);
}

uint64_t failed_label(void*, void* stream) {
  return std::getenv("HEDDLE_SIM_FORGETFUL") ? UINT64_MAX : stream_of(stream).failed_label();
}

heddle_status launch(void* device, void* stream, const heddle_launch* asked, const heddle_call* call) {
  return entered(stream, call, [&](Stream& s) -> heddle_status {
    if (const heddle_status status = may_enqueue(s, asked->kernel->operator_name, call); status != HEDDLE_OK) return status;
    Engine& engine = *device_of(device).engine;
    Job* const job = engine.take_job();
    std::string why;
    if (!job->launch.capture(*asked, s.memory, &why)) {
      engine.give_back(job);
      return fail(call, HEDDLE_ERROR_DEVICE, why);
    }
    job->kind = Job::Kind::launch;
    engine.enqueue(s, job);
    return HEDDLE_OK;
  });
}

const heddle_device_backend backend = {sizeof(heddle_device_backend),
                                       0,
                                       "sim",
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
                                       "cpu",
                                       launch};

}  // namespace
}  // namespace sim

HEDDLE_PLUGIN("sim", "1.0", plugin) {
  sim::host = plugin.host();
  sim::set_host(*plugin.host());
  plugin.add(&sim::backend);
}
