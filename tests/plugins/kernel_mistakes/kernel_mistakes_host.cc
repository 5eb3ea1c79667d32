// Operators that pass invalid arguments to the host's functions: see kernel_mistakes.cc.
#include "kernel_mistakes_host.h"

#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include "kernel_mistakes.h"
using namespace heddle::plugin;

namespace mistaken {
namespace {

// Memory in the place of a subnet.
alignas(64) char no_subnet[512];
const heddle_subnet* foreign() {
  return reinterpret_cast<const heddle_subnet*>(no_subnet);
}

heddle_attribute attribute_named(const char* name, heddle_attribute_type type) {
  heddle_attribute a = {};
  a.struct_size = sizeof(a);
  a.name = name;
  a.type = type;
  return a;
}

struct Counter {
  int64_t number = 0;
};
class OwnCounter : public Counter {
 public:
  explicit OwnCounter(const ResourceRequest&) {}
};

}  // namespace

// ---------------------------------------------------------------- resources

heddle_status asks_for_resources(const Mistake& m, const heddle_create_context* c) {
  heddle_attribute option = attribute_named("size", HEDDLE_ATTRIBUTE_INT);
  if (m.is("needs-what-is-not-there")) {
    heddle_resource_need nothing = {
        sizeof(nothing), 9, m.variant == 0 ? "kernel_mistakes.nowhere" : "kernel_mistakes.counter", nullptr, nullptr, 0, 0};
    uint32_t slot = 0;
    return c->host->need(c->call, &nothing, &slot);
  }
  const heddle_attribute* options[] = {&option};
  const char* const no_texts[] = {nullptr};
  heddle_resource_need need = {};
  need.struct_size = sizeof(need);
  need.interface_version = 1;
  need.name = "kernel_mistakes.counter";
  need.options = options;
  need.option_count = 1;
  uint32_t slot = 0;
  switch (m.variant) {
    case 0:
      return c->host->need(c->call, nullptr, &slot);
    case 1:
      return c->host->need(c->call, &need, nullptr);
    case 2:
      need.options = nullptr;
      break;
    case 3:
      options[0] = nullptr;
      break;
    case 4:
      option.name = nullptr;
      break;
    case 5:
      option.type = HEDDLE_ATTRIBUTE_TENSOR;
      break;
    case 6:
      option.type = HEDDLE_ATTRIBUTE_STRING;
      option.count = 4;
      break;
    case 7:
      option.type = HEDDLE_ATTRIBUTE_INTS;
      option.count = 3;
      break;
    case 8:
      need.name = nullptr;
      break;
    case 9:
      option.type = HEDDLE_ATTRIBUTE_SUBNET;
      break;
    case 10:
      option.type = 99;
      break;
    case 11:
      option.type = HEDDLE_ATTRIBUTE_STRINGS;
      option.count = 1;
      option.strings = no_texts;
      break;
    default:
      option.type = HEDDLE_ATTRIBUTE_FLOATS;
      option.count = 3;
  }
  return c->host->need(c->call, &need, &slot);
}

// ---------------------------------------------------------------- packed constants

namespace {

struct Fill {
  int64_t variant;
  heddle_prepare_context* context;
};

heddle_status fill(void* user, void* destination) {
  const Fill& f = *static_cast<const Fill*>(user);
  std::memset(destination, 0, 64);
  if (f.variant == 5) return HEDDLE_ERROR_INTERNAL;
  if (f.variant == 6) throw 7;
  if (f.variant == 7) throw std::bad_alloc();
  if (f.variant < 8) return HEDDLE_OK;
  const void* const own = f.context->host->prepack(f.context->call, 1, "key", 64, fill, user);
  return own || f.variant == 9 ? HEDDLE_OK : HEDDLE_ERROR_INTERNAL;
}

}  // namespace

heddle_status packs(const Mistake& m, heddle_prepare_context* c) {
  if (!c->inputs[1]->data) return HEDDLE_OK;  // no constant: there is nothing to pack
  Fill f = {m.variant, c};
  const uint32_t input = m.is("packs-no-constant") ? 0 : m.variant == 2 ? 9 : 1;
  const uint64_t bytes = m.variant == 4 ? ~uint64_t{0} : 64;
  const bool no_key = m.variant == 0 || m.variant == 3, no_function = m.variant == 1 || m.variant == 3;
  const bool wrong = m.is("prepack");
  const void* const packed =
      c->host->prepack(c->call, input, wrong && no_key ? nullptr : "key", bytes, wrong && no_function ? nullptr : fill, &f);
  return packed ? HEDDLE_OK : HEDDLE_ERROR_OUT_OF_MEMORY;
}

namespace {

// ---------------------------------------------------------------- outputs

// The output has one dimension, of unknown extent; in the last two variants it has two, of which the first is 3.
Status infer_found(InferContext& c) {
  const Mistake m(c.raw()->attributes);
  if (c.dims(0).rank != 1) return invalid("x has one dimension");
  c.set_dynamic(0, m.variant < 18 ? 1 : 2);
  if (m.variant >= 18) c.raw()->outputs[0]->dims[0] = 3;
  return {};
}

// Variants below 9, and 18, return an error when the allocation is refused; the others return success.
heddle_status run_found(const heddle_run_context* c, int64_t, int64_t) {
  const Mistake& m = *static_cast<const Mistake*>(c->state);
  const int64_t n = c->inputs[0]->element_count, which = m.variant % 9;
  int64_t dims[HEDDLE_MAX_RANK] = {n, 1, 1, 1, 1, 1, 1, 1};
  int32_t rank = 1;
  uint32_t output = 0;
  const int64_t* given = dims;
  if (m.is("allocate") && m.variant >= 18) {
    dims[0] = 4;
    rank = 2;
  } else if (m.is("allocate")) {
    if (which == 0) rank = 2;
    if (which == 1) rank = 0;
    if (which == 2) given = nullptr;
    if (which == 3) dims[0] = -2;
    if (which == 4) output = 7;
    if (which == 5) rank = 99;
    if (which == 6) rank = -1;
    if (which == 7) dims[0] = int64_t{1} << 60;
    if (which == 8) return HEDDLE_OK;  // requests no memory
  }
  const bool says_so = !m.is("allocate") || m.variant < 9 || m.variant == 18;
  auto* const y = static_cast<float*>(c->host->allocate_output(c->call, output, given, rank));
  if (!y) return says_so ? HEDDLE_ERROR_OUT_OF_MEMORY : HEDDLE_OK;
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<const float*>(c->inputs[0]->data)[i];
  return HEDDLE_OK;
}

// ---------------------------------------------------------------- subnets

// The arguments of a call about a subnet, and which of them are wrong.
struct SubnetCall {
  explicit SubnetCall(const heddle_subnet* own, const heddle_tensor& x) : subnet(own), view(x) { view.struct_size = sizeof(view); }
  SubnetCall(const SubnetCall&) = delete;
  SubnetCall& operator=(const SubnetCall&) = delete;
  enum Wrong { none, subnet_null, subnet_foreign, inputs_null, rank, dims, dtype, absent, too_few, too_many };
  void spoil(Wrong wrong) {
    if (wrong == subnet_null) subnet = nullptr;
    if (wrong == subnet_foreign) subnet = foreign();
    if (wrong == inputs_null) inputs = nullptr;
    if (wrong == rank) view.rank = 99;
    if (wrong == dims) view.dims = nullptr;
    if (wrong == dtype) view.dtype = 77;
    if (wrong == absent) pointers[0] = nullptr;
    if (wrong == too_few) input_count = 0;
    if (wrong == too_many) input_count = 2;
  }
  // For "subnet", and for "declares": in infer, then in subnets.
  static Wrong misuse(int64_t variant) { return variant < 6 ? static_cast<Wrong>(variant + 1) : none; }
  // For "subnet-of-other-ports": ports that do not fit that subnet.
  static Wrong other_ports(int64_t variant) { return variant < 3 ? static_cast<Wrong>(variant + absent) : none; }
  const heddle_subnet* subnet;
  heddle_tensor view;
  const heddle_tensor* pointers[2] = {&view, &view};
  const heddle_tensor* const* inputs = pointers;
  uint32_t input_count = 1;
};

const heddle_subnet* body_of(const heddle_attribute* const* attributes) {
  return attributes[3]->subnet;
}

Status infer_held(InferContext& c) {
  const heddle_infer_context& raw = *c.raw();
  const Mistake m(raw.attributes);
  SubnetCall call(body_of(raw.attributes), *raw.inputs[0]);
  heddle_type type = {};
  type.struct_size = sizeof(type);
  heddle_type* types[] = {&type, &type, &type};
  heddle_type** outputs = types;
  uint32_t count = 1;
  if (m.is("declares")) call.spoil(SubnetCall::misuse(m.variant));
  if (m.is("declares") && m.variant == 6) outputs = nullptr;
  if (m.is("subnet-of-other-ports") && m.variant >= 4) call.spoil(SubnetCall::other_ports(m.variant - 4));
  if (m.is("subnet-of-other-ports") && m.variant == 7) count = 3;
  const heddle_status status = raw.host->infer_subnet(raw.call, call.subnet, call.inputs, call.input_count, outputs, count);
  if (status != HEDDLE_OK) return {status, ""};
  return c.set_dims(0, c.dims(0)), Status();
}

Status held_subnets(const SubnetContext& c) {
  const heddle_infer_context& raw = *c.raw();
  const Mistake m(raw.attributes);
  SubnetCall call(body_of(raw.attributes), *raw.inputs[0]);
  if (m.is("declares") && m.variant >= 7) call.spoil(SubnetCall::misuse(m.variant - 7));
  return {raw.host->declare_subnet(raw.call, call.subnet, call.inputs, call.input_count), ""};
}

heddle_status create_held(const heddle_create_context* c, void** state) {
  auto* const made = new Mistake(c->attributes);
  made->callback = reinterpret_cast<int64_t>(body_of(c->attributes));
  *state = made;
  return HEDDLE_OK;
}

heddle_status run_held(const heddle_run_context* c, int64_t, int64_t) {
  const Mistake& m = *static_cast<const Mistake*>(c->state);
  SubnetCall call(reinterpret_cast<const heddle_subnet*>(m.callback), *c->inputs[0]);
  heddle_tensor y = *c->outputs[0];
  heddle_tensor* results[] = {&y, &y, &y};
  heddle_tensor** outputs = results;
  uint32_t count = 1;
  if (m.is("subnet")) call.spoil(SubnetCall::misuse(m.variant));
  if (m.is("subnet") && m.variant == 6) outputs = nullptr;
  if (m.is("subnet") && m.variant == 7) y.byte_size += 4;
  if (m.is("subnet") && m.variant == 8) call.view.data = nullptr;
  if (m.is("subnet-of-other-ports") && m.variant < 4) call.spoil(SubnetCall::other_ports(m.variant));
  if (m.is("subnet-of-other-ports") && m.variant == 3) count = 3;
  return c->host->run_subnet(c->call, call.subnet, 0, call.inputs, call.input_count, outputs, count);
}

// ---------------------------------------------------------------- moves

heddle_status run_mover(const heddle_run_context* c, int64_t, int64_t) {
  const Mistake& m = *static_cast<const Mistake*>(c->state);
  const char large[128] = {};
  void* const y = c->outputs[0]->data;
  const void* const x = c->inputs[0]->data;
  const uint64_t bytes = c->outputs[0]->byte_size;
  if (m.is("moves") && m.variant == 0) return c->host->move(c->call, 0, nullptr, x, bytes);
  if (m.is("moves") && m.variant == 1) return c->host->move(c->call, 0, y, nullptr, bytes);
  if (m.is("moves") && m.variant == 2) return c->host->move(c->call, HEDDLE_MOVE_VALUE, y, large, 65);
  if (m.is("moves") && m.variant == 3) return c->host->move(c->call, HEDDLE_MOVE_VALUE, y, nullptr, 4);
  return c->host->move(c->call, 0, y, x, bytes);
}

// ---------------------------------------------------------------- asynchronous steps

heddle_status fail(const heddle_run_context* c, const char* why) {
  c->host->set_error(c->call, HEDDLE_ERROR_INTERNAL, why, std::strlen(why));
  return HEDDLE_ERROR_INTERNAL;
}

const heddle_call* earlier = nullptr;  // the token of the run before

heddle_status start(const heddle_run_context* c, int64_t, int64_t) {
  const Mistake& m = *static_cast<const Mistake*>(c->state);
  const auto complete = [&](heddle_status status) { return c->host->complete(c->call, status, nullptr, 0); };
  for (int64_t i = 0; i < c->inputs[0]->element_count; ++i)
    static_cast<float*>(c->outputs[0]->data)[i] = static_cast<const float*>(c->inputs[0]->data)[i];
  if (m.is("completes-a-run-that-is-over")) {
    const heddle_call* const before = earlier;
    earlier = c->call;
    if (before && c->host->complete(before, HEDDLE_OK, nullptr, 0) == HEDDLE_OK) return fail(c, "the token of an earlier run was taken");
  }
  if (m.is("completes-and-fails") && m.variant == 2) std::thread([&] { complete(HEDDLE_OK); }).join();
  if (m.is("completes-and-fails") && m.variant == 2) return HEDDLE_ERROR_INTERNAL;
  if (m.is("completes-as-pending") && complete(HEDDLE_PENDING) == HEDDLE_OK) return fail(c, "pending was taken for an end");
  if (complete(HEDDLE_OK) != HEDDLE_OK) return fail(c, "the step was complete before");
  if (m.is("completes-twice") && complete(m.variant == 0 ? HEDDLE_OK : HEDDLE_ERROR_INVALID) == HEDDLE_OK)
    return fail(c, "the step was completed twice");
  if (m.is("completes-and-fails") && m.variant == 0) return HEDDLE_ERROR_INTERNAL;
  if (m.is("completes-and-fails")) throw std::runtime_error("after the end");
  return HEDDLE_OK;
}

}  // namespace

heddle_status calls_the_runtime(const Mistake& m, const heddle_run_context* c) {
  const auto* const runtime = reinterpret_cast<const RuntimeCall*>(m.callback);
  char why[512] = {};
  if (!runtime || runtime->call(runtime, m.variant == 1, why, sizeof(why))) return HEDDLE_OK;
  return fail(c, why);
}

void add_asking(Builder& plugin) {
  const heddle_dtype_set f32 = dtypes<float>();
  plugin.resource<OwnCounter, Counter>("kernel_mistakes.counter", HEDDLE_SCOPE_SESSION, 1);
  heddle_kernel functions = plain_kernel();
  functions.formats = nullptr;
  plugin.add(operator_of("Packing").in("w", f32).out("y", same_as("x"), f32).raw_kernel("cpu", functions));
  functions.run = run_found;
  plugin.add(
      operator_of("Dynamic").out("y", {}, f32).infer(infer_found).raw_kernel("cpu", functions).kernel_flags(HEDDLE_KERNEL_DYNAMIC_OUTPUTS));
  functions.run = start;
  plugin.add(operator_of("Started").out("y", same_as("x"), f32).raw_kernel("cpu", functions).kernel_flags(HEDDLE_KERNEL_ASYNC));
  functions.run = run_mover;
  plugin.add(operator_of("Mover").out("y", same_as("x"), f32).raw_kernel("cpu", functions).kernel_flags(HEDDLE_KERNEL_MOVES_ONLY));
  functions.run = run_held;
  functions.create = create_held;
  plugin.add(operator_of("Holder")
                 .subnet("body", SubnetPorts())
                 .out("y", {}, f32)
                 .infer(infer_held)
                 .subnets(held_subnets)
                 .raw_kernel("cpu", functions)
                 .kernel_flags(HEDDLE_KERNEL_MOVES_ONLY));
}

}  // namespace mistaken
