// The backend of simulated devices, function by function as heddle/device_plugin.h lists them.
//
// Read when a device is counted or opened, of kind "sim": HEDDLE_SIM_DEVICES (2), HEDDLE_SIM_MEMORY in bytes (4 GiB), HEDDLE_SIM_SEED (0:
// work takes no time), HEDDLE_SIM_COST (NAME=NS,...), HEDDLE_SIM_PEERS (0: copies between devices go by the host), HEDDLE_SIM_UNIFIED (0),
// HEDDLE_SIM_GUARDS (64: bytes after values that must not be written), HEDDLE_SIM_CUDA_LIKE (0), HEDDLE_SIM_REFUSAL (0: microseconds that a
// lost device takes to refuse work), HEDDLE_SIM_GROUP_TIMEOUT (30000: milliseconds that a stream waits for the other launches of a group
// before it fails), HEDDLE_SIM_BROKEN (set: open fails), HEDDLE_SIM_FORGETFUL (set: a device does not know what failed),
// HEDDLE_SIM_WRONG (an operator whose kernels compute something else), HEDDLE_SIM_HOLD (the name of a file: while it exists, no work
// begins), HEDDLE_SIM_FAULTS (faults.h).
#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "engine.h"
#include "heddle/device_plugin.h"
#include "heddle/op.h"
#include "heddle/op/device_backend.h"
#include "simulated_device.h"

namespace sim {
namespace {

const heddle_host* host = nullptr;  // set when the plugin is loaded
const sim_native_table* native_functions = nullptr;
std::string kind_name, prefix;  // "sim", "HEDDLE_SIM_"

std::string text_setting(const char* name) {
  const char* text = std::getenv((prefix + name).c_str());
  return text ? text : "";
}
bool is_set(const char* name) {
  return std::getenv((prefix + name).c_str()) != nullptr;
}
uint64_t setting(const char* name, uint64_t otherwise) {
  const std::string text = text_setting(name);
  return text.empty() ? otherwise : std::strtoull(text.c_str(), nullptr, 10);
}

std::mutex open_mutex;
std::map<int32_t, Device*>& open_devices() {
  static std::map<int32_t, Device*> devices;
  return devices;
}

// Pinned memory of the host by its begin, for all devices.
std::mutex pinned_mutex;
std::map<const char*, uint64_t>& pinned() {
  static std::map<const char*, uint64_t> ranges;
  return ranges;
}
bool is_pinned(const void* memory, uint64_t bytes) {
  const auto* const at = static_cast<const char*>(memory);
  const std::lock_guard<std::mutex> lock(pinned_mutex);
  auto it = pinned().upper_bound(at);
  if (it == pinned().begin()) return false;
  --it;
  return at + bytes <= it->first + it->second;
}

Device& device_of(void* device) {
  return *static_cast<Device*>(device);
}

// As in vendors' libraries: the device for which calls of this thread are, unless they name one.
thread_local const void* current_device = nullptr;

// A stream that the host has adopted from its owner is the owner's pointer with a mark: when the host releases it, it may no longer exist.
constexpr uintptr_t adopted_mark = 1;
static_assert(alignof(Stream) > adopted_mark);

bool is_adopted(void* stream) {
  return (reinterpret_cast<uintptr_t>(stream) & adopted_mark) != 0;
}
Stream& stream_of(void* stream) {
  return *reinterpret_cast<Stream*>(reinterpret_cast<uintptr_t>(stream) & ~adopted_mark);
}
Event& event_of(void* event) {
  return *static_cast<Event*>(event);
}

heddle_status fail(const heddle_call* call, heddle_status status, const std::string& text) {
  host->set_error(call, status, text.data(), text.size());
  return status;
}

heddle_status refuse_lost(const heddle_call* call) {
  return fail(call, HEDDLE_ERROR_DEVICE_LOST, "the device is lost");
}

// A kernel on the device's thread requests memory or work of the device, and would wait for itself.
heddle_status refuse_inside(const heddle_call* call) {
  return fail(call, HEDDLE_ERROR_DEVICE,
              "a kernel that runs on the device asks the device for memory or work, which would wait for its end");
}

// Makes a call for a stream.
template <class Function>
heddle_status entered(void* device, void* stream, const heddle_call* call, const Function& function) {
  const Stream::Inside inside(stream_of(stream));
  device_of(device).settings.counts.calls.fetch_add(1, std::memory_order_relaxed);
  if (inside.alone()) device_of(device).engine->linger();
  return inside.alone() ? function(stream_of(stream)) : fail(call, HEDDLE_ERROR_INTERNAL, Stream::overlap);
}

struct Backend {
  static heddle_status count(int32_t* devices, const heddle_call* call) {
    *devices = static_cast<int32_t>(setting("DEVICES", 2));
    if (*devices == 0) fail(call, HEDDLE_OK, prefix + "DEVICES is 0");
    return HEDDLE_OK;
  }

  static heddle_status open(int32_t index, void** device, const heddle_call* call) {
    if (is_set("BROKEN")) return fail(call, HEDDLE_ERROR_DEVICE, prefix + "BROKEN is set");
    const uint64_t seed = setting("SEED", 0);
    const bool unified = setting("UNIFIED", 0) != 0;
    auto made = std::make_unique<Device>(setting("MEMORY", uint64_t{4} << 30), unified, Engine::shared(seed));
    if (!made->memory.ok()) return fail(call, HEDDLE_ERROR_OUT_OF_MEMORY, "no memory to simulate a device with");
    made->native = native_functions;
    made->unified = unified;
    made->peers = setting("PEERS", 0) != 0;
    made->guard_bytes = static_cast<uint32_t>(std::min<uint64_t>(setting("GUARDS", 64), 4096) / 64 * 64);
    Settings& settings = made->settings;
    settings.device = index;
    settings.hold = text_setting("HOLD");
    settings.wrong = text_setting("WRONG");
    settings.cuda_like = setting("CUDA_LIKE", 0) != 0;
    settings.refusal_us = setting("REFUSAL", 0);
    settings.group_timeout_ms = setting("GROUP_TIMEOUT", 30'000);
    std::string error;
    if (!settings.faults.parse(text_setting("FAULTS"), &error)) return fail(call, HEDDLE_ERROR_DEVICE, prefix + "FAULTS: " + error);
    if (!settings.parse_costs(text_setting("COST"), &error)) return fail(call, HEDDLE_ERROR_DEVICE, prefix + "COST: " + error);
    made->description = "simulated device " + std::to_string(index);
    if (seed != 0) made->description += ", delays and orders of seed " + std::to_string(seed);
    const std::lock_guard<std::mutex> lock(open_mutex);
    open_devices()[index] = made.get();
    *device = made.release();
    return HEDDLE_OK;
  }

  static void close(void* device) {
    {
      const std::lock_guard<std::mutex> lock(open_mutex);
      auto& all = open_devices();
      for (auto it = all.begin(); it != all.end();) it = it->second == device ? all.erase(it) : std::next(it);
    }
    // Warns about memory that was not released.
    if (const size_t left = device_of(device).memory.allocations()) {
      const std::string text = kind_name + ": " + std::to_string(left) + " allocations left at close";
      host->log(HEDDLE_LOG_WARNING, text.data(), text.size());
    }
    delete static_cast<Device*>(device);
  }

  static const char* description(void* device) { return device_of(device).description.c_str(); }

  static heddle_status memory_info(void* device, uint64_t* free_bytes, uint64_t* total_bytes, const heddle_call*) {
    *free_bytes = device_of(device).memory.free();
    *total_bytes = device_of(device).memory.total();
    return HEDDLE_OK;
  }

  static heddle_status properties(void* device, heddle_device_properties* p, const heddle_call*) {
    const Device& d = device_of(device);
    p->flags = HEDDLE_DEVICE_SHARED_EVENTS | (d.unified ? uint32_t{HEDDLE_DEVICE_UNIFIED} : 0u) |
               (d.settings.cuda_like ? uint32_t{HEDDLE_DEVICE_DROPS_CALLBACKS} : 0u);
    p->alignment = 256;
    p->guard_bytes = d.guard_bytes;
    p->stream_classes =
        1u << HEDDLE_STREAM_COMPUTE | 1u << HEDDLE_STREAM_TO_DEVICE | 1u << HEDDLE_STREAM_FROM_DEVICE | 1u << HEDDLE_STREAM_COMMUNICATION;
    p->lowest_priority = 0;
    p->highest_priority = 1;
    return HEDDLE_OK;
  }

  static heddle_status allocate(void* device, uint64_t bytes, void** memory, const heddle_call* call) {
    const Memory& all = device_of(device).memory;
    Settings& settings = device_of(device).settings;
    current_device = device;
    if (Launch::is_here()) return refuse_inside(call);
    if (settings.lost) return refuse_lost(call);
    if (settings.faults.strikes(Faults::Kind::memory, {}))
      return fail(call, HEDDLE_ERROR_OUT_OF_MEMORY, "no memory, as it was told to have");
    settings.counts.allocations.fetch_add(1, std::memory_order_relaxed);
    *memory = device_of(device).allocate(bytes);
    if (*memory) return HEDDLE_OK;
    return fail(call, HEDDLE_ERROR_OUT_OF_MEMORY,
                std::to_string(bytes) + " bytes asked for, " + std::to_string(all.free()) + " of " + std::to_string(all.total()) + " free");
  }

  static void release(void* device, void* memory) { device_of(device).release(memory); }

  static heddle_status create_stream(void* device, const heddle_stream_request* request, void** stream, const heddle_call* call) {
    Device& d = device_of(device);
    current_device = device;
    if (d.settings.lost) return refuse_lost(call);
    if (request->adopted) {
      *stream = static_cast<char*>(request->adopted) + adopted_mark;
      return HEDDLE_OK;
    }
    *stream = d.engine->add_stream(d.memory, d.settings, request->stream_class, request->priority);
    return HEDDLE_OK;
  }

  static void destroy_stream(void* device, void* stream) {
    if (!is_adopted(stream)) device_of(device).engine->remove(&stream_of(stream));
  }

  static heddle_status create_event(void* device, void** event, const heddle_call*) {
    current_device = device;
    *event = new Event();
    device_of(device).settings.counts.events.fetch_add(1, std::memory_order_relaxed);
    return HEDDLE_OK;
  }

  static void destroy_event(void* device, void* event) {
    device_of(device).settings.counts.events.fetch_sub(1, std::memory_order_relaxed);
    delete &event_of(event);
  }

  static void enqueue_copy(Device& d, Stream& stream, const heddle_copy& asked) {
    Job* const job = d.engine->take_job();
    job->kind = Job::Kind::copy;
    job->copy_kind = asked.kind;
    job->destination = asked.destination;
    job->source = asked.source;
    job->source_memory = asked.source_device ? &device_of(asked.source_device).memory : &stream.memory;
    job->bytes = asked.bytes;
    if (asked.kind == HEDDLE_COPY_VALUE_TO_DEVICE)
      std::memcpy(job->value, asked.source, std::min<uint64_t>(asked.bytes, sizeof(job->value)));
    Counts& counts = d.settings.counts;
    counts.copies.fetch_add(1, std::memory_order_relaxed);
    if (asked.source_device) counts.peer_copies.fetch_add(1, std::memory_order_relaxed);
    const void* const on_host = asked.kind == HEDDLE_COPY_HOST_TO_DEVICE   ? asked.source
                                : asked.kind == HEDDLE_COPY_DEVICE_TO_HOST ? asked.destination
                                                                           : nullptr;
    if (on_host && !is_pinned(on_host, asked.bytes)) counts.pageable_copies.fetch_add(1, std::memory_order_relaxed);
    d.engine->enqueue(stream, job);
  }

  // Returns a job with the launch; null: it is refused.
  static Job* capture(Device& d, const Stream& stream, const heddle_launch& asked, const heddle_call* call) {
    Job* const job = d.engine->take_job();
    std::string why;
    bool captured = false;
    try {
      captured = job->launch.capture(asked, stream.memory, d.guard_bytes > 0, &why);
    } catch (...) {  // std::bad_alloc: the job is used again later
      d.engine->give_back(job);
      throw;
    }
    if (!captured) {
      d.engine->give_back(job);
      fail(call, HEDDLE_ERROR_DEVICE, why);
      return nullptr;
    }
    d.settings.counts.launches.fetch_add(1, std::memory_order_relaxed);
    return job;
  }

  static heddle_status enqueue_launch(Device& d, Stream& stream, const heddle_launch& asked, const heddle_call* call) {
    Job* const job = capture(d, stream, asked, call);
    if (!job) return HEDDLE_ERROR_DEVICE;
    job->kind = Job::Kind::launch;
    d.engine->enqueue(stream, job);
    return HEDDLE_OK;
  }

  // Enqueues what comes after a launch or copy.
  static void enqueue_end(Device& d, Stream& s, const heddle_work& work) {
    if (work.record) {
      d.settings.counts.records.fetch_add(1, std::memory_order_relaxed);
      d.engine->record(s, event_of(work.record));
    }
    if (!work.callback) return;
    Job* const job = d.engine->take_job();
    job->kind = Job::Kind::notify;
    job->callback = work.callback;
    job->user = work.user;
    d.engine->enqueue(s, job);
  }

  // Returns why work for a stream is refused, whatever it is.
  static heddle_status refuse(Device& d, const heddle_work& work, const heddle_call* call) {
    if (Launch::is_here()) return refuse_inside(call);
    if (d.settings.lost) {
      std::this_thread::sleep_for(std::chrono::microseconds(d.settings.refusal_us));
      return refuse_lost(call);
    }
    if ((work.flags & HEDDLE_WORK_ENTERS) != 0) {
      d.settings.counts.entries.fetch_add(1, std::memory_order_relaxed);
      current_device = &d;
    }
    if (current_device != &d) return fail(call, HEDDLE_ERROR_INTERNAL, "the thread did not enter the device");
    if (!work.copy && !work.launch) return HEDDLE_OK;
    const Faults::Site site = {work.launch ? work.launch->kernel->operator_name : nullptr, work.label};
    return d.settings.faults.strikes(Faults::Kind::enqueue, site) ? fail(call, HEDDLE_ERROR_DEVICE, "the launch failed, as it was told to")
                                                                  : HEDDLE_OK;
  }

  // Captures the launches of a group, so that no failure is possible once the first is enqueued.
  static heddle_status capture_group(void* const* devices, void* const* streams, const heddle_work* works, uint32_t count, Job** jobs) {
    for (uint32_t i = 0; i < count; ++i) {
      Device& d = device_of(devices[i]);
      const heddle_call* const of_part = works[i].launch->context->call;
      stream_of(streams[i]).label = works[i].label;
      if (const heddle_status refused = refuse(d, works[i], of_part); refused != HEDDLE_OK) return refused;
      jobs[i] = capture(d, stream_of(streams[i]), *works[i].launch, of_part);
      if (!jobs[i]) return HEDDLE_ERROR_DEVICE;
      jobs[i]->kind = Job::Kind::group;
    }
    return HEDDLE_OK;
  }

  static heddle_status enqueue_group(void* const* devices, void* const* streams, const heddle_work* works, uint32_t count,
                                     const heddle_call* call) {
    std::array<std::optional<Stream::Inside>, UINT8_MAX> inside;
    std::array<Job*, UINT8_MAX> jobs = {};
    for (uint32_t i = 0; i < count; ++i) {
      device_of(devices[i]).settings.counts.calls.fetch_add(1, std::memory_order_relaxed);
      if (!inside.at(i).emplace(stream_of(streams[i])).alone()) return fail(call, HEDDLE_ERROR_INTERNAL, Stream::overlap);
    }
    Engine& engine = *device_of(devices[0]).engine;
    if (const heddle_status status = capture_group(devices, streams, works, count, jobs.data()); status != HEDDLE_OK) {
      for (Job* const job : jobs)
        if (job) engine.give_back(job);
      return status;
    }
    const auto site = [&](uint32_t i) { return Faults::Site{works[i].launch->kernel->operator_name, works[i].label}; };
    for (uint32_t i = 0; i < count; ++i)
      if (device_of(devices[i]).settings.faults.strikes(Faults::Kind::missing, site(i))) engine.give_back(std::exchange(jobs[i], nullptr));
    if (std::none_of(jobs.begin(), jobs.begin() + count, [](const Job* job) { return job; }))
      return fail(call, HEDDLE_ERROR_DEVICE, "no launch of the group is left, as it was told to be");
    Group* const group = engine.take_group();
    for (uint32_t i = 0; i < count; ++i) {
      Device& d = device_of(devices[i]);
      engine.linger();
      if (jobs[i]) jobs[i]->awaits_next = d.settings.faults.strikes(Faults::Kind::swapped, site(i));
      d.settings.counts.works.fetch_add(1, std::memory_order_relaxed);
      engine.enqueue(*group, stream_of(streams[i]), jobs[i], i + 1 == count);
      if (d.settings.faults.strikes(Faults::Kind::allocation, site(i))) d.release(d.allocate(1));
    }
    for (uint32_t i = 0; i < count; ++i) enqueue_end(device_of(devices[i]), stream_of(streams[i]), works[i]);
    return HEDDLE_OK;
  }

  static heddle_status enqueue(void* device, void* stream, const heddle_work* work, const heddle_call* call) {
    return entered(device, stream, call, [&](Stream& s) -> heddle_status {
      Device& d = device_of(device);
      Counts& counts = d.settings.counts;
      s.label = work->label;
      if (const heddle_status refused = refuse(d, *work, call); refused != HEDDLE_OK) return refused;
      counts.works.fetch_add(1, std::memory_order_relaxed);
      counts.waits.fetch_add(work->wait_count, std::memory_order_relaxed);
      for (uint32_t i = 0; i < work->wait_count; ++i) d.engine->wait(s, event_of(work->waits[i]));
      if (work->copy && work->copy->kind == HEDDLE_COPY_VALUE_TO_DEVICE && work->copy->bytes > sizeof(Job::value))
        return fail(call, HEDDLE_ERROR_INVALID, "a value of more than 64 bytes");
      if (work->copy) enqueue_copy(d, s, *work->copy);
      if (work->launch) {
        const heddle_status status = enqueue_launch(d, s, *work->launch, call);
        if (status != HEDDLE_OK) return status;
      }
      enqueue_end(d, s, *work);
      return HEDDLE_OK;
    });
  }

  static void leave(void* device) {
    device_of(device).settings.counts.departures.fetch_add(1, std::memory_order_relaxed);
    current_device = nullptr;
  }

  // Waits even after calls overlapped: the device still does the work enqueued before.
  static heddle_status synchronize(void* device, void* stream, const heddle_call* call) {
    Device& d = device_of(device);
    const Stream::Inside inside(stream_of(stream));
    d.settings.counts.calls.fetch_add(1, std::memory_order_relaxed);
    d.settings.counts.synchronizes.fetch_add(1, std::memory_order_relaxed);
    if (Launch::is_here()) return refuse_inside(call);
    const Failure failure = d.engine->synchronize(stream_of(stream));
    if (!inside.alone()) return fail(call, HEDDLE_ERROR_INTERNAL, Stream::overlap);
    return failure.status == HEDDLE_OK ? HEDDLE_OK : fail(call, failure.status, failure.text);
  }

  static heddle_status query(void* device, void* stream, const heddle_call*) {
    Device& d = device_of(device);
    d.settings.counts.queries.fetch_add(1, std::memory_order_relaxed);
    return d.engine->query(stream_of(stream));
  }

  static uint64_t failed_label(void*, void* stream) { return is_set("FORGETFUL") ? UINT64_MAX : stream_of(stream).failed_label; }

  static heddle_status abort_stream(void* device, void* stream, const heddle_call*) {
    device_of(device).engine->abort(stream_of(stream));
    return HEDDLE_OK;
  }

  static constexpr std::align_val_t host_alignment{4096};

  static heddle_status register_host(void* device, void* memory, uint64_t bytes, const heddle_call* call) {
    current_device = device;
    if (device_of(device).settings.lost) return refuse_lost(call);
    const std::lock_guard<std::mutex> lock(pinned_mutex);
    pinned()[static_cast<const char*>(memory)] = bytes;
    return HEDDLE_OK;
  }

  static void unregister_host(void*, void* memory) {
    const std::lock_guard<std::mutex> lock(pinned_mutex);
    pinned().erase(static_cast<const char*>(memory));
  }

  static heddle_status allocate_host(void* device, uint64_t bytes, void** memory, const heddle_call* call) {
    *memory = ::operator new(bytes, host_alignment, std::nothrow);
    if (!*memory) return fail(call, HEDDLE_ERROR_OUT_OF_MEMORY, "the host has none");
    heddle_status status = HEDDLE_ERROR_OUT_OF_MEMORY;
    try {
      status = register_host(device, *memory, bytes, call);
    } catch (const std::bad_alloc&) {
      // The memory is freed below.
    }
    if (status != HEDDLE_OK) ::operator delete(*memory, host_alignment);
    return status;
  }

  static void release_host(void* device, void* memory) {
    unregister_host(device, memory);
    ::operator delete(memory, host_alignment);
  }

  static int32_t reaches(void* device, void* source) { return device_of(device).peers && device_of(source).peers ? 1 : 0; }
};

}  // namespace

Device* open_device(int32_t index) {
  const std::lock_guard<std::mutex> lock(open_mutex);
  const auto found = open_devices().find(index);
  if (found != open_devices().end()) current_device = found->second;
  return found == open_devices().end() ? nullptr : found->second;
}

heddle_device_backend simulated_backend(const char* kind, const heddle_host* plugins_host, const sim_native_table* native) {
  host = plugins_host;
  native_functions = native;
  kind_name = kind;
  prefix = "HEDDLE_";
  for (const char* c = kind; *c; ++c) prefix += static_cast<char>(std::toupper(static_cast<unsigned char>(*c)));
  prefix += '_';
  heddle_device_backend b = heddle::plugin::make_device_backend<Backend>(kind);
  b.runs_kernels_of = "cpu";
  return b;
}

}  // namespace sim
