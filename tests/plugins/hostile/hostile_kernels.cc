// One operator for every way in which infer, create, prepare, run, finish or destroy can go wrong. Functions named raw_* have the ABI's own
// signature and throw across the boundary; the others go through op.h.
#include <chrono>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

Status nothing(In<float>, Out<float>) {
  return {};
}

// ---- infer
Status infer_throws(InferContext&) {
  throw 7;
}
Status infer_negative(InferContext& c) {
  c.set_dims(0, {-5, 2});
  return {};
}
Status infer_huge(InferContext& c) {
  c.set_dims(0, {std::numeric_limits<int64_t>::max(), 8});
  return {};
}
Status infer_large(InferContext& c) {
  c.set_dims(0, {int64_t{1} << 50});
  return {};
}
Status infer_rank(InferContext& c) {
  c.raw()->outputs[0]->rank = 99;
  return {};
}
Status infer_dtype(InferContext& c) {
  c.raw()->outputs[0]->dtype = 77;
  return {};
}
Status infer_bounded_axis(InferContext& c) {
  c.set_dims(0, {4});
  c.set_bounded(0, 5);
  return {};
}
Status infer_absent(InferContext& c) {
  c.set_dims(0, c.dims(3));
  return {};
}
Status infer_unknown_attribute(InferContext& c) {
  c.set_dims(0, {c.attributes.i("nowhere")});
  return {};
}

// ---- cost
void cost_lies(CostContext& c) {
  c.set_flops(1e12);
}
void cost_negative(CostContext& c) {
  c.set_flops(-1);
}
void cost_infinite(CostContext& c) {
  c.set_bytes(std::numeric_limits<double>::infinity());
}
void cost_throws(CostContext&) {
  throw std::runtime_error("cannot count");
}
void cost_reads_absent(CostContext& c) {
  c.set_flops(c.elements(7));
}
heddle_status raw_cost_throws(const heddle_infer_context*, heddle_cost*) {
  throw 7;
}

// ---- create, prepare, run
struct ThrowsInCreate {
  std::vector<int> memory = std::vector<int>(1000, 1);
  Status create(const CreateContext&) { throw std::runtime_error("half-way through create"); }
  Status run(const RunContext&, int64_t, int64_t) const { return {}; }
};
struct FailsInCreate {
  std::vector<int> memory = std::vector<int>(1000, 1);
  Status create(const CreateContext&) { return invalid("create refuses"); }
  Status run(const RunContext&, int64_t, int64_t) const { return {}; }
};
struct Prepares : FailsInCreate {
  Status create(const CreateContext&) { return {}; }
};
struct NegativeTiles : Prepares {
  Status prepare(PrepareContext& c) { return c.set_tiles(-3), Status(); }
};
struct TwoTiles : Prepares {
  Status prepare(PrepareContext& c) { return c.set_tiles(2), Status(); }
};
struct TwoTilesStarted : TwoTiles {
  Status start(const RunContext&, Completion done) const { return done({}), Status(); }
};
struct PendsForNothing : Prepares {
  Status run(const RunContext&, int64_t, int64_t) const { return pending(); }
};
struct HugeScratch : Prepares {
  Status prepare(PrepareContext& c) { return c.set_scratch(~uint64_t{0}, 8), Status(); }
};
struct HugePack : Prepares {
  Status prepare(PrepareContext& c) {
    if (c.prepack(0, "huge", ~uint64_t{0}, [](void*) {})) return {};
    return {HEDDLE_ERROR_OUT_OF_MEMORY, "was given no memory to pack"};
  }
};
struct CostIsNan : Prepares {
  Status prepare(PrepareContext& c) { return c.set_cost_ns(std::numeric_limits<double>::quiet_NaN()), Status(); }
};
struct ThrowsInPrepare : Prepares {
  Status prepare(PrepareContext&) { throw std::bad_alloc(); }
};
struct ThrowsInFinish : Prepares {
  Status finish(const RunContext&) const { throw std::logic_error("nothing to combine"); }
};

Status throws_exception(In<float>, Out<float>) {
  throw std::runtime_error("the kernel gave up");
}
Status throws_int(In<float>, Out<float>) {
  throw 7;
}
Status fails_loudly(In<float>, Out<float>) {
  return invalid("\x1b[2J\n\r\x01" + std::string(1 << 20, 'A'));
}
Status fails_silently(In<float>, Out<float>) {
  return {HEDDLE_ERROR_INTERNAL, ""};
}
Status fails_unknown(In<float>, Out<float>) {
  return {12345, "a status nobody defined"};
}
Status bad_extent(In<float>, Out<int64_t> y) {
  *y.tensor->extent = 1 << 20;
  return {};
}
Status infer_bounded(InferContext& c) {
  c.set_dims(0, {c.input(0).element_count});
  c.set_bounded(0, 0);
  return {};
}
Status copies(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i];
  return {};
}
Status slow(In<float> x, Out<float> y) {
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i];
  return {};
}

heddle_status raw_run_throws(const heddle_run_context*, int64_t, int64_t) {
  throw 7;
}
heddle_status raw_run(const heddle_run_context* c, int64_t, int64_t) {
  const heddle_tensor& x = *c->inputs[0];
  for (int64_t i = 0; i < x.element_count; ++i) static_cast<float*>(c->outputs[0]->data)[i] = static_cast<const float*>(x.data)[i];
  return HEDDLE_OK;
}
heddle_status raw_create_throws(const heddle_create_context*, void** state) {
  *state = reinterpret_cast<void*>(0x10);  // must never be destroyed
  throw std::runtime_error("create");
}
heddle_status raw_create_fails(const heddle_create_context*, void** state) {
  *state = reinterpret_cast<void*>(0x10);
  return HEDDLE_ERROR_INVALID;
}
heddle_status raw_prepare_throws(heddle_prepare_context*) {
  throw 8;
}
void raw_destroy(void* state) {
  *static_cast<int*>(state) = 1;  // faults for 0x10
}
heddle_status raw_create(const heddle_create_context*, void** state) {
  static int somewhere;
  *state = &somewhere;
  return HEDDLE_OK;
}
void raw_destroy_throws(void*) {
  throw std::runtime_error("destroy");
}

Op operator_of(const char* name) {
  Op op(name, "hostile");
  op.in("x", dtypes<float>()).out("y", same_as("x"), dtypes<float>());
  return op;
}
void add_raw(Builder& plugin, const char* name, const heddle_kernel& functions) {
  Op op = operator_of(name);
  op.raw_kernel("cpu", functions);
  plugin.add(op);
}
Op refusing(const char* name, Status (*infer)(InferContext&)) {
  Op op(name, "hostile");
  op.in("x", dtypes<float>()).out("y", {}, dtypes<float>()).infer(infer).cpu<nothing>();
  return op;
}

}  // namespace

HEDDLE_PLUGIN("hostile_kernels", "1.0", plugin) {
  plugin.add(refusing("InferThrows", infer_throws));
  plugin.add(refusing("InferNegative", infer_negative));
  plugin.add(refusing("InferHuge", infer_huge));
  plugin.add(refusing("InferLarge", infer_large));
  plugin.add(refusing("InferRank", infer_rank));
  plugin.add(refusing("InferDtype", infer_dtype));
  plugin.add(refusing("InferBoundedAxis", infer_bounded_axis));
  plugin.add(refusing("InferAbsent", infer_absent));
  plugin.add(refusing("InferUnknownAttribute", infer_unknown_attribute));
  plugin.add(operator_of("CostLies").cost<cost_lies>().cpu<copies>());
  plugin.add(operator_of("CostNegative").cost<cost_negative>().cpu<nothing>());
  plugin.add(operator_of("CostInfinite").cost<cost_infinite>().cpu<nothing>());
  plugin.add(operator_of("CostThrows").cost<cost_throws>().cpu<nothing>());
  plugin.add(operator_of("CostReadsAbsent").cost<cost_reads_absent>().cpu<nothing>());
  plugin.add(operator_of("RawCostThrows").cost(raw_cost_throws).cpu<nothing>());
  plugin.add(operator_of("ThrowsInCreate").cpu<ThrowsInCreate>());
  plugin.add(operator_of("FailsInCreate").cpu<FailsInCreate>());
  plugin.add(operator_of("NegativeTiles").cpu<NegativeTiles>());
  plugin.add(operator_of("TwoTilesResumed").cpu<TwoTiles>().kernel_flags(HEDDLE_KERNEL_RESUMES));
  plugin.add(operator_of("TwoTilesStarted").cpu<TwoTilesStarted>());
  plugin.add(operator_of("PendsForNothing").cpu<PendsForNothing>());
  plugin.add(operator_of("HugeScratch").cpu<HugeScratch>());
  plugin.add(operator_of("HugePack").cpu<HugePack>());
  plugin.add(operator_of("CostIsNan").cpu<CostIsNan>());
  plugin.add(operator_of("ThrowsInPrepare").cpu<ThrowsInPrepare>());
  plugin.add(operator_of("ThrowsInFinish").cpu<ThrowsInFinish>());
  plugin.add(operator_of("ThrowsException").cpu<throws_exception>());
  plugin.add(operator_of("ThrowsInt").cpu<throws_int>());
  plugin.add(operator_of("FailsLoudly").cpu<fails_loudly>());
  plugin.add(operator_of("FailsSilently").cpu<fails_silently>());
  plugin.add(operator_of("FailsUnknown").cpu<fails_unknown>());
  plugin.add(operator_of("Slow").cpu<slow>());
  plugin.add(Op("BadExtent", "hostile").in("x", dtypes<float>()).out_as("y", HEDDLE_I64).infer(infer_bounded).cpu<bad_extent>());
  heddle_kernel functions = {};
  functions.run = raw_run_throws;
  add_raw(plugin, "RawRunThrows", functions);
  functions.run = raw_run;
  functions.create = raw_create_throws;
  functions.destroy = raw_destroy;
  add_raw(plugin, "RawCreateThrows", functions);
  functions.create = raw_create_fails;
  add_raw(plugin, "RawCreateFails", functions);
  functions.create = raw_create;
  functions.destroy = raw_destroy_throws;
  add_raw(plugin, "RawDestroyThrows", functions);
  functions.create = nullptr;
  functions.destroy = nullptr;
  functions.prepare = raw_prepare_throws;
  add_raw(plugin, "RawPrepareThrows", functions);
}
