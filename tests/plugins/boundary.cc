// Operators that use features of the boundary which plain operators do not use: calls from other threads, updates of many variables at
// once, outputs in place of several inputs, a budget of scratch, trips of a subnet in any order.
#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

// y = x, written by a thread of the plugin's own, which has a copy of the context and of its views. That thread refuses negative numbers.
Status foreign(const RunContext& context) {
  heddle_run_context copy = context;
  const heddle_tensor x = *context.inputs[0];
  heddle_tensor y = *context.outputs[0];
  heddle_tensor* const outputs[] = {&y};
  copy.outputs = outputs;
  heddle_status status = HEDDLE_OK;
  std::thread([&] {
    const heddle_host& host = *copy.host;
    const auto fail = [&](const char* text) {
      host.set_error(copy.call, HEDDLE_ERROR_INVALID, text, std::strlen(text));
      status = HEDDLE_ERROR_INVALID;
    };
    if (host.thread_scratch(copy.call)) return fail("a thread that does not execute the step was given scratch");
    if (host.thread_index(copy.call) != HEDDLE_NO_THREAD) return fail("a thread that does not execute the step was given a number");
    if (host.cancelled(copy.call)) return fail("cancelled");
    const auto* const from = static_cast<const float*>(x.data);
    if (std::any_of(from, from + x.element_count, [](float v) { return v < 0; })) return fail("a negative number, said the other thread");
    std::memcpy(outputs[0]->data, from, x.byte_size);
  }).join();
  if (status != HEDDLE_OK) return {status, ""};
  if (!context.host->thread_scratch(context.call)) return invalid("the executing thread was given no scratch");
  return {};
}
class Foreign {
 public:
  Status prepare(PrepareContext& context) {
    context.set_scratch(0, 64);
    return {};
  }
  Status run(const RunContext& context, int64_t, int64_t) const { return foreign(context); }
};

// w_k - rate * g_k for each k; `values` are all w, then all g.
Status infer_updates(InferContext& context) {
  if (context.input_count() != 1 + 2 * context.output_count()) return invalid("a gradient is wanted for each of the variables");
  for (uint32_t k = 0; k < context.output_count(); ++k) context.set_dims(k, context.dims(1 + k));
  return {};
}
Status sgd_updates(In<float> rate, Ins<float> values, Outs<float> next) {
  for (uint32_t k = 0; k < next.count; ++k)
    for (int64_t i = 0; i < next[k].size; ++i) next[k][i] = values[k][i] - rate[0] * values[next.count + k][i];
  return {};
}

// a + 1 and b + 1, each in place of its input.
Status both(In<float> a, In<float> b, Out<float> a1, Out<float> b1) {
  for (int64_t i = 0; i < a.size; ++i) a1[i] = a[i] + 1;
  for (int64_t i = 0; i < b.size; ++i) b1[i] = b[i] + 1;
  return {};
}

// x reversed; with scratch (and a 1 in front of it) where the budget allows, without it (and a 2) where not.
class Budgeted {
 public:
  Status prepare(PrepareContext& context) {
    const uint64_t wanted = context.input(0)->byte_size;
    with_scratch_ = wanted <= context.scratch_budget();
    context.set_scratch(with_scratch_ ? wanted : 0);
    return {};
  }
  Status run(const RunContext& context, int64_t, int64_t) const {
    const In<float> x = input<float>(context, 0);
    const Out<float> y = output<float>(context, 0);
    const float* from = x.data;
    if (with_scratch_) from = std::copy(x.data, x.data + x.size, step_scratch<float>(context)) - x.size;
    y[0] = with_scratch_ ? 1.0F : 2.0F;
    std::reverse_copy(from, from + x.size, y.data + 1);
    return {};
  }

 private:
  bool with_scratch_ = false;
};
Status infer_budgeted(InferContext& context) {
  context.set_dims(0, std::vector<int64_t>{context.input(0).element_count + 1});
  return {};
}

// Row i is the body's output for trip order[i].
class Trips {
 public:
  Status create(const CreateContext& context) {
    body_ = Subnet(context.attributes, "body");
    return {};
  }
  Status run(const RunContext& context, int64_t, int64_t) const {
    const In<int64_t> order = input<int64_t>(context, 0);
    for (int64_t i = 0; i < order.size; ++i) {
      heddle_tensor row = row_of(*context.outputs[0], i);
      HEDDLE_PLUGIN_CHECK(body_.run(context, order[i], inputs_from(context, 1), {&row}));
    }
    return {};
  }

 private:
  Subnet body_;
};
Status trips_subnets(const SubnetContext& context) {
  return context.declare("body", inputs_from(context, 1));
}
Status infer_trips(InferContext& context) {
  std::vector<heddle_type> rows;
  HEDDLE_PLUGIN_CHECK(Subnet(context.attributes, "body").infer(context, inputs_from(context, 1), 1, &rows));
  std::vector<int64_t> dims(rows[0].dims, rows[0].dims + rows[0].rank);
  dims.insert(dims.begin(), context.input(0).element_count);
  context.set_dtype(0, rows[0].dtype);
  context.set_dims(0, dims);
  return {};
}

}  // namespace

HEDDLE_PLUGIN("boundary", "1.0", plugin) {
  const heddle_dtype_set f32 = dtypes<float>();
  plugin.add(Op("Foreign", "boundary").in("x", f32).out("y", same_as("x"), f32).cpu<Foreign>());
  plugin.add(Op("SgdUpdates", "boundary")
                 .in("rate", f32)
                 .variadic("values", f32)
                 .variadic_out("next", f32)
                 .updates("next", "values")
                 .infer(infer_updates)
                 .cpu<sgd_updates>());
  plugin.add(Op("Both", "boundary")
                 .in("a", f32)
                 .in("b", f32)
                 .out("a1", same_as("a"), f32)
                 .out("b1", same_as("b"), f32)
                 .in_place("a1", "a")
                 .in_place("b1", "b")
                 .cpu<both>());
  plugin.add(Op("Budgeted", "boundary").in("x", f32).out("y", {}, f32).infer(infer_budgeted).cpu<Budgeted>());
  plugin.add(Op("Trips", "boundary")
                 .in("order", dtypes<int64_t>(), nullptr)
                 .any_number("captures")
                 .out("rows", {}, any_dtype, nullptr)
                 .subnet("body", SubnetPorts().inputs_from(1))
                 .subnets(trips_subnets)
                 .infer(infer_trips)
                 .cpu<Trips>());
}
