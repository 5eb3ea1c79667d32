#include "native.h"

#include <memory>

#include "simulated_device.h"

namespace sim::native {
namespace {

void* allocate(int32_t device, uint64_t bytes) {
  Device* const d = open_device(device);
  return d ? d->allocate(bytes) : nullptr;
}

void release(int32_t device, void* memory) {
  if (Device* const d = open_device(device)) d->release(memory);
}

void* create_stream(int32_t device) {
  Device* const d = open_device(device);
  return d ? d->engine->add_stream(d->memory, d->settings, HEDDLE_STREAM_COMPUTE, 0) : nullptr;
}

void destroy_stream(int32_t device, void* stream) {
  if (Device* const d = open_device(device)) d->engine->remove(static_cast<Stream*>(stream));
}

void copy(int32_t device, void* stream, void* destination, const void* source, uint64_t bytes, int32_t kind) {
  Device* const d = open_device(device);
  if (!d) return;
  Job* const job = d->engine->take_job();
  job->kind = Job::Kind::copy;
  job->copy_kind = kind;
  job->destination = destination;
  job->source = source;
  job->source_memory = &d->memory;
  job->bytes = bytes;
  d->engine->enqueue(*static_cast<Stream*>(stream), job);
}

void synchronize(int32_t device, void* stream) {
  if (Device* const d = open_device(device)) d->engine->synchronize(*static_cast<Stream*>(stream));
}

void hold_clock() {
  if (const auto engine = Engine::current()) engine->hold();
}
void advance_clock(uint64_t ns) {
  if (const auto engine = Engine::current()) engine->advance(ns);
}
void release_clock() {
  if (const auto engine = Engine::current()) engine->let_go();
}
uint64_t now() {
  const auto engine = Engine::current();
  return engine ? engine->now() : 0;
}
uint64_t spans(sim_span* spans, uint64_t capacity) {
  const auto engine = Engine::current();
  return engine ? engine->spans(spans, capacity) : 0;
}
void forget_spans() {
  if (const auto engine = Engine::current()) engine->forget_spans();
}

void counts(int32_t device, sim_counts* counts) {
  *counts = {};
  const Device* const d = open_device(device);
  if (!d) return;
  const Counts& c = d->settings.counts;
  *counts = {c.calls,   c.works,   c.launches,  c.copies,       c.pageable_copies, c.peer_copies,
             c.waits,   c.records, c.callbacks, c.synchronizes, c.queries,         c.allocations,
             c.streams, c.events,  c.silences,  c.entries,      c.departures,      c.inner_allocations};
}

const sim_native_table table = {sizeof(sim_native_table),
                                0,
                                allocate,
                                release,
                                create_stream,
                                destroy_stream,
                                copy,
                                synchronize,
                                hold_clock,
                                advance_clock,
                                release_clock,
                                now,
                                spans,
                                forget_spans,
                                counts};

}  // namespace

const sim_native_table& functions() {
  return table;
}

}  // namespace sim::native
