// Operators that only copy x to y, and make the mistake that an attribute selects: one of kernel_mistakes.h. Functions have the ABI's own
// signatures, so that the mistake reaches the host directly. Mistakes in calls of the host's functions are in kernel_mistakes_host.cc,
// broken declarations in kernel_mistakes_declared.cc.
#include "kernel_mistakes.h"

#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include "kernel_mistakes_host.h"
using namespace heddle::plugin;

namespace mistaken {
namespace {

constexpr int64_t largest = std::numeric_limits<int64_t>::max(), smallest = std::numeric_limits<int64_t>::min();
constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

template <class T, size_t N>
T nth(const T (&list)[N], int64_t i) {
  return list[i];
}

enum Place : int64_t { in_run, in_finish, in_create, in_prepare };

void throw_one_of(int64_t which) {
  if (which == 0) throw std::runtime_error("the kernel gave up");
  if (which == 1) throw 7;
  throw std::bad_alloc();
}

// Makes the mistakes of the kinds under "What it answers" at this place.
heddle_status answer(const Mistake& m, Place here) {
  const int64_t v = m.variant;
  if (m.is("throws")) {
    if (v < 6 && v / 3 == here) throw_one_of(v % 3);
    if (v >= 6 && (v - 6) / 2 + 2 == here) throw_one_of((v - 6) % 2);
  }
  constexpr Place silent[] = {in_run, in_run, in_finish, in_create, in_prepare};
  if (m.is("fails-silently") && silent[v] == here) return v == 1 ? HEDDLE_ERROR_INVALID : HEDDLE_ERROR_INTERNAL;
  constexpr heddle_status unknown[] = {12345, -7, std::numeric_limits<int32_t>::min()};
  if (m.is("unknown-status") && v / 3 == here) return unknown[v % 3];
  if (v != here) return HEDDLE_OK;
  if (m.is("pending")) return HEDDLE_PENDING;
  if (m.is("cancelled")) return HEDDLE_ERROR_CANCELLED;
  if (m.is("unsupported")) return HEDDLE_ERROR_UNSUPPORTED;
  if (m.is("device-lost")) return HEDDLE_ERROR_DEVICE_LOST;
  return HEDDLE_OK;
}

// ---------------------------------------------------------------- before the run

heddle_status create(const heddle_create_context* c, void** state) {
  const Mistake m(c->attributes);
  if (m.is("fails-silently")) *state = reinterpret_cast<void*>(0x10);  // destroying it would be a fault
  if (const heddle_status status = answer(m, in_create)) return status;
  if (m.is("need") || m.is("needs-what-is-not-there"))
    if (const heddle_status status = asks_for_resources(m, c)) return status;
  leaves_behind(m);
  auto* const made = new Mistake(m);
  made->threads = c->max_threads;
  *state = made;
  return HEDDLE_OK;
}

void destroy(void* state) {
  const auto* const m = static_cast<Mistake*>(state);
  const bool throws = m->is("throws-in-destroy");
  delete m;
  if (throws) throw std::runtime_error("destroy");
}

heddle_status prepare(heddle_prepare_context* c) {
  const Mistake& m = *static_cast<const Mistake*>(c->state);
  if (const heddle_status status = answer(m, in_prepare)) return status;
  const int64_t v = m.variant;
  if (m.is("tiles")) c->tile_count = nth<int64_t>({-1, smallest, int64_t{1} << 31, largest}, v);
  if (m.is("tiles-of-one")) c->tile_count = 2;
  if (m.is("cost")) c->cost_ns = nth<double>({nan, infinity, -1, -infinity}, v);
  if (m.is("scratch")) {
    c->scratch_bytes = nth<uint64_t>({~uint64_t{0}, 0, uint64_t{1} << 62, uint64_t{1} << 63, 8}, v);
    c->thread_scratch_bytes = nth<uint64_t>({8, ~uint64_t{0}, 0, uint64_t{1} << 63, uint64_t{1} << 61}, v);
  }
  // Writes that a run does not detect then hit its own memory, and not the heap, where they may stop any thread.
  if (m.is("writes-far-after")) c->thread_scratch_bytes = 64 << 10;
  if (m.is("data-scratch")) c->data_scratch_bytes = v == 0 ? 64 : ~uint64_t{0};
  if (m.is("writes-after-scratch") || m.is("reads-first")) c->scratch_bytes = c->thread_scratch_bytes = 64;
  if (m.is("by-tiles")) c->tile_count = 4;
  if (m.is("by-thread")) c->tile_count = v == 0 ? 4 : m.threads;
  if (m.is("prepack") || m.is("packs-no-constant")) return packs(m, c);
  return HEDDLE_OK;
}

heddle_status formats(const heddle_create_context* c, heddle_format* const* choices, uint32_t capacity, uint32_t* count) {
  const Mistake m(c->attributes);
  *count = 0;
  if (!m.is("formats")) return HEDDLE_OK;
  *count = 1;
  heddle_format& f = *choices[0];
  heddle_layout& layout = m.variant % 2 == 0 ? f.inputs[0] : f.outputs[0];
  switch (m.variant) {
    case 0:  // ranks of other tensors: x and y have one dimension
    case 1:
      layout.rank = 2;
      layout.order[1] = 1;
      break;
    case 2:
    case 3:
      layout.rank = 255;
      break;
    case 4:  // a dimension that does not exist
    case 5:
      layout.rank = 1;
      layout.order[0] = 200;
      break;
    case 6:
    case 7:
      layout.block_count = 3;
      layout.block_dimension[0] = 7;
      break;
    case 8:
      layout.opaque_owner = 5;
      break;
    case 9:
      *count = capacity + 1;
      break;
    case 10:
      *count = std::numeric_limits<uint32_t>::max();
      break;
    default:
      f.cost_ns = nan;
  }
  return HEDDLE_OK;
}

// ---------------------------------------------------------------- in the run

void starts_a_thread() {
  std::thread([] {}).join();
}

// Computes tiles [begin, end) of 4.
void by_tiles(const heddle_run_context* c, const Mistake& m, int64_t begin, int64_t end) {
  const auto* const x = static_cast<const float*>(c->inputs[0]->data);
  auto* const y = static_cast<float*>(c->outputs[0]->data);
  const int64_t n = c->inputs[0]->element_count;
  float sum = 0;
  for (int64_t i = n * begin / 4; i < n * end / 4; ++i)
    y[i] = m.is("by-tiles") ? sum += x[i] : x[i] + static_cast<float>(c->host->thread_index(c->call));
}

void in_memory(const heddle_run_context* c, const Mistake& m) {
  const int64_t n = c->inputs[0]->element_count, v = m.variant;
  auto* const x = static_cast<float*>(c->inputs[0]->data);
  auto* const y = static_cast<float*>(c->outputs[0]->data);
  if (m.is("writes-after")) {
    if (v % 3 == 0) *reinterpret_cast<char*>(y + n) = 1;
    for (int64_t i = 0; v % 3 > 0 && i < (v % 3 == 1 ? 1 : 8); ++i) y[n + i] = 1;
  }
  if (m.is("writes-far-after")) y[n + 1000 * (v + 1)] = 1;
  if (m.is("writes-before")) v == 0 ? static_cast<void>(y[-1] = 1) : static_cast<void>(reinterpret_cast<char*>(y)[-1] = 1);
  if (m.is("writes-input"))
    for (int64_t i = 0; i < n; ++i)
      if (v == 3 || i == (v == 0 ? 0 : v == 1 ? n - 1 : n / 2)) x[i] = -x[i] - 1;
  auto* const scratch = static_cast<char*>(m.variant == 0 || m.is("reads-first") ? c->scratch : c->host->thread_scratch(c->call));
  if (m.is("writes-after-scratch")) scratch[64] = 1;
  if (m.is("reads-beyond")) y[0] = v == 0 ? x[n] : x[-1];
  if (m.is("reads-first") && v > 0) y[0] = *static_cast<float*>(v == 1 ? c->scratch : c->host->thread_scratch(c->call));
}

void changes_view(heddle_tensor& y, int64_t v) {
  static int64_t elsewhere[HEDDLE_MAX_RANK] = {};
  if (v == 0) y.data = nullptr;
  if (v == 1) y.rank = 7;
  if (v == 2) y.dims = elsewhere;
  if (v == 3) y.byte_size = 0;
  if (v == 4) y.dtype = HEDDLE_F64;
  if (v == 5) y.element_count = 1 << 30;
  if (v == 6) y.extent = elsewhere;
}

heddle_status run(const heddle_run_context* c, int64_t begin, int64_t end) {
  const Mistake& m = *static_cast<const Mistake*>(c->state);
  if (m.is("by-tiles") || (m.is("by-thread") && m.variant == 0)) return by_tiles(c, m, begin, end), HEDDLE_OK;
  const int64_t n = c->inputs[0]->element_count, v = m.variant;
  const auto* const x = static_cast<const float*>(c->inputs[0]->data);
  auto* const y = static_cast<float*>(c->outputs[0]->data);
  const auto left = [&](int64_t i) { return m.is("leaves-unwritten") && (v == 2 || i == (v == 0 ? 0 : n - 1)); };
  static std::atomic<int> runs{0};
  float added = 0;
  if (m.is("by-chance")) added = static_cast<float>(v == 0 ? std::rand() : ++runs);
  if (m.is("by-seed") && c->run_state) added = static_cast<float>(c->run_state->seed % 1000);
  if (m.is("reads-first") && v == 0) added = y[0];
  for (int64_t i = 0; i < n; ++i)
    if (!left(i)) y[i] = x[i] + added;
  if (const heddle_status status = answer(m, in_run)) return status;
  in_memory(c, m);
  if (m.is("changes-view")) changes_view(*c->outputs[0], v);
  if (m.is("allocates")) {
    void* volatile memory = v == 0 ? std::malloc(100) : ::operator new(100);
    v == 0 ? std::free(memory) : ::operator delete(memory);
  }
  if (m.is("starts-threads")) starts_a_thread();
  prints(m);
  if (m.is("waits")) ::usleep(v == 0 ? 1 : 1000);
  if (m.is("calls-the-runtime")) return calls_the_runtime(m, c);
  if (m.is("allocate")) return c->host->allocate_output(c->call, 0, c->outputs[0]->dims, 1) ? HEDDLE_OK : HEDDLE_ERROR_OUT_OF_MEMORY;
  if (m.is("completes-what-is-not-asynchronous")) c->host->complete(c->call, HEDDLE_OK, nullptr, 0);
  return HEDDLE_OK;
}

heddle_status finish(const heddle_run_context* c) {
  return answer(*static_cast<const Mistake*>(c->state), in_finish);
}

heddle_status run_bounded(const heddle_run_context* c, int64_t begin, int64_t end) {
  const Mistake& m = *static_cast<const Mistake*>(c->state);
  const int64_t n = c->inputs[0]->element_count;
  int64_t& extent = *c->outputs[0]->extent;
  if (m.is("extent")) extent = nth<int64_t>({-1, n + 1, largest, smallest}, m.variant % 4);
  if (!m.is("extent") && !m.is("extent-unwritten")) extent = n;
  return run(c, begin, end);
}

heddle_status run_bool(const heddle_run_context* c, int64_t, int64_t) {
  const Mistake& m = *static_cast<const Mistake*>(c->state);
  for (int64_t i = 0; i < c->inputs[0]->element_count; ++i)
    static_cast<uint8_t*>(c->outputs[0]->data)[i] = m.is("bool") ? (m.variant == 0 ? 2 : 255) : 1;
  return HEDDLE_OK;
}

// ---------------------------------------------------------------- infer

Status infer_same(InferContext& c) {
  const Mistake m(c.raw()->attributes);
  c.set_dims(0, c.dims(0));
  if (m.is("infers-too-much")) c.set_dims(0, {largest, 8});
  if (!m.is("infers")) return {};
  heddle_type& y = *c.raw()->outputs[0];
  switch (m.variant) {
    case 0:
      throw 7;
    case 1:
      y.dims[0] = -5;
      break;
    case 2:
      y.rank = 99;
      break;
    case 3:
      y.rank = -1;
      break;
    case 4:
      y.dtype = 77;
      break;
    default:
      y.bounded_axis = 5;
  }
  return {};
}

Status infer_bounded(InferContext& c) {
  if (c.dims(0).rank != 1) return invalid("x has one dimension");
  c.set_dims(0, c.dims(0));
  c.set_bounded(0, 0);
  return {};
}

heddle_status cost(const heddle_infer_context* c, heddle_cost* cost) {
  const Mistake m(c->attributes);
  if (!m.is("costs")) return HEDDLE_OK;
  if (m.variant == 0) throw 7;
  (m.variant == 1 ? cost->flops : cost->bytes) = nth<double>({0, -1, infinity, nan}, m.variant);
  return HEDDLE_OK;
}

}  // namespace

heddle_kernel plain_kernel() {
  heddle_kernel functions = {};
  functions.create = create;
  functions.prepare = prepare;
  functions.run = run;
  functions.finish = finish;
  functions.destroy = destroy;
  functions.formats = formats;
  return functions;
}

Op operator_of(const char* name) {
  Op op(name, "mistaken");
  op.in("x", dtypes<float>()).attribute("mistake", "none").attribute("variant", 0).attribute("callback", 0);
  return op;
}

namespace {

void add_own(Builder& plugin) {
  heddle_kernel functions = plain_kernel();
  plugin.add(operator_of("Plain").out("y", {}, dtypes<float>()).infer(infer_same).cost(cost).raw_kernel("cpu", functions));
  functions.formats = nullptr;
  plugin.add(
      operator_of("Resuming").out("y", same_as("x"), dtypes<float>()).raw_kernel("cpu", functions).kernel_flags(HEDDLE_KERNEL_RESUMES));
  plugin.add(operator_of("Reading")
                 .out("y", same_as("x"), dtypes<float>())
                 .raw_kernel("cpu", functions)
                 .kernel_flags(HEDDLE_KERNEL_READS_EXTENTS));
  functions.run = run_bounded;
  plugin.add(operator_of("Bounded").out("y", {}, dtypes<float>()).infer(infer_bounded).raw_kernel("cpu", functions));
  functions.run = run_bool;
  plugin.add(operator_of("Bool").out_as("y", HEDDLE_BOOL, same_as("x")).raw_kernel("cpu", functions));
}

}  // namespace
}  // namespace mistaken

HEDDLE_PLUGIN("kernel_mistakes", "1.0", plugin) {
  mistaken::add_own(plugin);
  mistaken::add_asking(plugin);
  mistaken::add_declaring(plugin);
}
