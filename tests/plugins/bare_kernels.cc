// Kernels for devices of kind "bare". run() takes what it needs from its views and enqueues the work on the stream it is given; it neither
// waits nor touches device memory.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine.h"
#include "heddle/op.h"
#include "heddle/op/philox.h"

using namespace heddle::plugin;

namespace bare {
namespace {

// A tensor as the stream's thread sees it: views are gone when the work is done.
struct Operand {
  void* address = nullptr;
  std::vector<int64_t> dims;
  int64_t size = 0;
  uint64_t bytes = 0;
  float* data = nullptr;  // in the shadow
};

Operand operand(const heddle_tensor& t) {
  if (t.space != HEDDLE_SPACE_DEVICE) throw std::logic_error("a kernel was told that the device's memory is the host's");
  return {t.data, std::vector<int64_t>(t.dims, t.dims + t.rank), t.element_count, t.byte_size, nullptr};
}

struct Work {
  std::vector<Operand> in;
  Operand out;
  Operand scratch;
  uint32_t random_stream = 0;
  double low = 0, range = 1;
};

using Compute = heddle_status (*)(Work& work, std::string& why);

struct Arguments {
  Compute compute = nullptr;
  Work work;
};

heddle_status call(void* arguments, const sim::Memory& memory, std::string* why) {
  Arguments& a = *static_cast<Arguments*>(arguments);
  const auto place = [&](Operand& o) {
    o.data = reinterpret_cast<float*>(memory.shadow(o.address, o.bytes));
    return o.data != nullptr || o.size == 0;
  };
  bool placed = place(a.work.out) && (a.work.scratch.size == 0 || place(a.work.scratch));
  for (Operand& o : a.work.in) placed = placed && place(o);
  if (!placed) return *why = "a kernel was given memory that is not the device's", HEDDLE_ERROR_DEVICE;
  return a.compute(a.work, *why);
}

Status enqueue(const RunContext& c, Compute compute, Work work) {
  auto& stream = *static_cast<sim::Stream*>(c.stream);
  const sim::Stream::Inside inside(stream);
  if (!inside.alone()) return {HEDDLE_ERROR_INTERNAL, sim::Stream::overlap};
  const auto engine = sim::Engine::current();
  sim::Job* const job = engine->take_job();
  job->kind = sim::Job::Kind::call;
  job->call = call;
  job->arguments = std::make_shared<Arguments>(Arguments{compute, std::move(work)});
  engine->enqueue(stream, job);
  return {};
}

Work work_of(const RunContext& c, uint32_t inputs) {
  Work work;
  for (uint32_t i = 0; i < inputs; ++i) work.in.push_back(operand(*c.inputs[i]));
  work.out = operand(*c.outputs[0]);
  return work;
}

heddle_status relu(Work& w, std::string&) {
  for (int64_t i = 0; i < w.out.size; ++i) {
    const float x = w.in[0].data[i];
    w.out.data[i] = x > 0 || std::isnan(x) ? x : 0;
  }
  return HEDDLE_OK;
}

// Index into `from` of element `i` of `to`, from broadcast to to.
int64_t source(int64_t i, const std::vector<int64_t>& to, const std::vector<int64_t>& from) {
  int64_t index = 0, stride = 1;
  for (size_t k = 0; k < to.size(); ++k) {
    const size_t d = to.size() - 1 - k;
    const int64_t at = i % to[d];
    i /= to[d];
    if (k >= from.size()) continue;
    const int64_t extent = from[from.size() - 1 - k];
    if (extent != 1) index += at * stride;
    stride *= extent;
  }
  return index;
}

heddle_status add(Work& w, std::string&) {
  for (int64_t i = 0; i < w.out.size; ++i)
    w.out.data[i] = w.in[0].data[source(i, w.out.dims, w.in[0].dims)] + w.in[1].data[source(i, w.out.dims, w.in[1].dims)];
  return HEDDLE_OK;
}

// For counters: one i64 and another.
heddle_status add_counts(Work& w, std::string&) {
  const auto i64_at = [](const Operand& o) { return reinterpret_cast<int64_t*>(o.data); };
  *i64_at(w.out) = *i64_at(w.in[0]) + *i64_at(w.in[1]);
  return HEDDLE_OK;
}

// [m, k] x [k, n]; b is transposed into scratch first, so that scratch has a user.
// HEDDLE_BARE_WRONG: a device that computes something else.
heddle_status matmul(Work& w, std::string&) {
  const float error = std::getenv("HEDDLE_BARE_WRONG") ? 0.5f : 0.0f;
  const int64_t m = w.out.dims[0], n = w.out.dims[1], k = w.in[0].dims[1];
  for (int64_t p = 0; p < k; ++p)
    for (int64_t j = 0; j < n; ++j) w.scratch.data[j * k + p] = w.in[1].data[p * n + j];
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += w.in[0].data[i * k + p] * w.scratch.data[j * k + p];
      w.out.data[i * n + j] = sum + error;
    }
  return HEDDLE_OK;
}

template <Compute compute, uint32_t inputs>
class Simple {
 public:
  // An update with `apply` is another.
  Status create(const CreateContext& c) { return c.input(inputs) ? unsupported("bare takes no further input") : Status(); }
  Status run(const RunContext& c, int64_t, int64_t) const { return enqueue(c, compute, work_of(c, inputs)); }
};

class MatMul {
 public:
  Status create(const CreateContext& c) {
    return c.input(0)->rank == 2 && c.input(1)->rank == 2 ? Status() : unsupported("bare multiplies matrices only");
  }
  Status prepare(PrepareContext& c) {
    c.set_scratch(c.input(1)->byte_size);
    for (const heddle_tensor* t : {c.input(0), c.input(1), c.output(0)})
      if (t->space != HEDDLE_SPACE_DEVICE) return invalid("prepare was told that the device's memory is the host's");
    return {};
  }
  Status run(const RunContext& c, int64_t, int64_t) const {
    Work work = work_of(c, 2);
    work.scratch = {c.scratch, {}, c.inputs[1]->element_count, c.inputs[1]->byte_size, nullptr};
    return enqueue(c, matmul, std::move(work));
  }
};

// w - rate * g in w's place; the rate lies on the device as everything else.
heddle_status sgd(Work& w, std::string&) {
  for (int64_t i = 0; i < w.out.size; ++i) w.out.data[i] = w.in[0].data[i] - w.in[2].data[0] * w.in[1].data[i];
  return HEDDLE_OK;
}

// Uniform numbers as the CPU's: seed, step and trip are read in the device's memory, when the stream comes to the step.
class Uniform {
 public:
  Status create(const CreateContext& c) {
    if (c.attributes.has("seed")) return unsupported("bare draws with the run's seed only");
    low_ = c.attributes.f("low");
    range_ = c.attributes.f("high") - c.attributes.f("low");
    return {};
  }
  Status run(const RunContext& c, int64_t, int64_t) const {
    Work work;
    work.out = operand(*c.outputs[0]);
    work.scratch = {const_cast<heddle_run_state*>(c.run_state), {}, 1, sizeof(heddle_run_state), nullptr};
    work.random_stream = c.random_stream;
    work.low = low_;
    work.range = range_;
    return enqueue(c, draw, std::move(work));
  }

 private:
  static heddle_status draw(Work& w, std::string&) {
    heddle_run_state state;
    std::memcpy(&state, w.scratch.data, sizeof(state));
    const Philox philox(state, w.random_stream);
    for (int64_t i = 0; i < w.out.size; ++i) {
      const uint32_t word = philox.block(static_cast<uint64_t>(i / 4))[static_cast<size_t>(i % 4)];
      w.out.data[i] = static_cast<float>(w.low + w.range * static_cast<double>(unit_float(word)));
    }
    return HEDDLE_OK;
  }
  double low_ = 0, range_ = 1;
};

// x + k + table[0]: k lies on the host and is read when the step is enqueued; the table is a constant, read in prepare.
class Shift {
 public:
  Status prepare(PrepareContext& context) {
    const auto* const table = static_cast<const float*>(context.host_data(2));
    if (!table) return invalid("the table is no constant");
    if (context.input(2)->space != HEDDLE_SPACE_DEVICE) return invalid("prepare was told that the device's memory is the host's");
    first_ = table[0];
    context.reads_on_host({1});
    return {};
  }
  Status run(const RunContext& c, int64_t, int64_t) const {
    Work work = work_of(c, 1);
    work.low = static_cast<double>(first_ + host_input<float>(c, 1)[0]);
    return enqueue(c, shift, std::move(work));
  }

 private:
  static heddle_status shift(Work& w, std::string&) {
    for (int64_t i = 0; i < w.out.size; ++i) w.out.data[i] = w.in[0].data[i] + static_cast<float>(w.low);
    return HEDDLE_OK;
  }
  float first_ = 0;
};

// y = x, but fails: at once ("now"), or on the stream when the host has long gone on ("later"); `times`: how often, then it works.
class Fault {
 public:
  Status create(const CreateContext& c) {
    later_ = c.attributes.i("later") != 0;
    left_ = static_cast<int>(c.attributes.i("times"));
    return {};
  }
  Status run(const RunContext& c, int64_t, int64_t) const {
    const bool fails = left_.load() > 0 && left_.fetch_sub(1) > 0;
    if (fails && !later_) return {HEDDLE_ERROR_DEVICE, "the launch failed, as it was told to"};
    return enqueue(c, fails ? late : relu, work_of(c, 1));
  }

 private:
  static heddle_status late(Work&, std::string& why) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return why = "an address was out of range, as it was told to be", HEDDLE_ERROR_DEVICE;
  }
  bool later_ = false;
  mutable std::atomic<int> left_{0};
};

// A stream that waits at Gate until the host has run Open: what the host is to do while a stream is busy.
class Bolt {
 public:
  void open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++opened_;
    changed_.notify_all();
  }
  // False: it was not opened in time.
  bool pass() {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return opened_ > passed_; }) && ++passed_ != 0;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t opened_ = 0, passed_ = 0;
};
Bolt bolt;

heddle_status gate(Work& w, std::string& why) {
  if (!bolt.pass()) return why = "the gate was not opened while the stream waited there", HEDDLE_ERROR_DEVICE;
  return relu(w, why);
}

Status open_gate(In<float> x, Out<float> y) {
  std::copy(x.data, x.data + x.size, y.data);
  bolt.open();
  return {};
}

class Count {
 public:
  Status create(const CreateContext& c) {
    return c.input(0)->rank == 0 && !c.input(2) ? Status() : unsupported("bare counts with scalars only, and always");
  }
  Status run(const RunContext& c, int64_t, int64_t) const { return enqueue(c, add_counts, work_of(c, 2)); }
};

constexpr heddle_dtype_set f32 = dtypes<float>(), i64 = dtypes<int64_t>();

}  // namespace
}  // namespace bare

void add_bare_kernels(Builder& plugin) {
  using namespace bare;
  plugin.add(Op("Relu", "", 14).kernels_only().kernel<Simple<relu, 1>>("bare", {f32}, {f32}).kernel_name("bare:relu").equals_pointwise());
  plugin.add(Op("Add", "", 14).kernels_only().kernel<Simple<add, 2>>("bare", {f32, f32}, {f32}).kernel_name("bare:add").equals_pointwise());
  plugin.add(Op("MatMul", "", 13).kernels_only().kernel<MatMul>("bare", {f32, f32}, {f32}).kernel_name("bare:matmul"));
  plugin.add(Op("SgdUpdate", "heddle").kernels_only().kernel<Simple<sgd, 3>>("bare", {f32, f32, f32}, {f32}).kernel_name("bare:sgd"));
  plugin.add(Op("AccumulateAdd", "heddle").kernels_only().kernel<Simple<add, 2>>("bare", {f32, f32}, {f32}).kernel_name("bare:accumulate"));
  plugin.add(Op("AccumulateAdd", "heddle").kernels_only().kernel<Count>("bare", {i64, i64}, {i64}).kernel_name("bare:count"));
  plugin.add(Op("RandomUniformLike").kernels_only().kernel<Uniform>("bare", {any_dtype}, {f32}).kernel_name("bare:uniform"));
  plugin.add(Op("Fault", "bare")
                 .doc("x, or a failure now or later")
                 .in("x", f32)
                 .out("y", same_as("x"), f32)
                 .attribute("later", 0)
                 .attribute("times", 1)
                 .traits(HEDDLE_TRAIT_IMPURE)
                 .kernel<Fault>("bare", {f32}, {f32})
                 .kernel_name("bare:fault"));
  plugin.add(Op("Shift", "bare")
                 .doc("x + k + table[0]")
                 .in("x", f32)
                 .in("k", f32)
                 .on_host()
                 .in("table", f32)
                 .out("y", same_as("x"), f32)
                 .kernel<Shift>("bare")
                 .kernel_name("bare:shift"));
  plugin.add(Op("Gate", "bare")
                 .doc("max(x, 0) on a stream, once the host has run Open")
                 .in("x", f32)
                 .out("y", same_as("x"), f32)
                 .traits(HEDDLE_TRAIT_IMPURE)
                 .kernel<Simple<gate, 1>>("bare", {f32}, {f32})
                 .kernel_name("bare:gate"));
  plugin.add(Op("Open", "bare")
                 .doc("x, and opens the gate")
                 .in("x", f32)
                 .out("y", same_as("x"), f32)
                 .traits(HEDDLE_TRAIT_IMPURE)
                 .cpu<open_gate>());
}
