// Operators whose kernels are called in each way that the runtime has (runtime/run/step_entries.h). All but the first two give x.
#include <algorithm>

#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

void copy(const RunContext& context) {
  const In<float> x = input<float>(context, 0);
  const heddle_tensor& y = *context.outputs[0];
  const int64_t* const extent = x.tensor->extent;
  std::copy_n(x.data, extent ? *extent : x.size, static_cast<float*>(y.data));
  if (extent && y.extent) *y.extent = *extent;
}

// The positive elements of x, as many as there are.
class Bounded {
 public:
  Status run(const RunContext& context, int64_t, int64_t) const {
    const In<float> x = input<float>(context, 0);
    auto* const y = static_cast<float*>(context.outputs[0]->data);
    *context.outputs[0]->extent = std::copy_if(x.data, x.data + x.size, y, [](float v) { return v > 0; }) - y;
    return {};
  }
};
Status infer_bounded(InferContext& context) {
  context.set_dims(0, context.dims(0));
  context.set_bounded(0, 0);
  return {};
}

// Gives them in a dynamic output: no bound is known before.
class Dynamic {
 public:
  Status run(const RunContext& context, int64_t, int64_t) const {
    const In<float> x = input<float>(context, 0);
    const auto positive = [](float v) { return v > 0; };
    const int64_t count = std::count_if(x.data, x.data + x.size, positive);
    auto* const y = static_cast<float*>(allocate_output(context, 0, {&count, 1}));
    if (count > 0 && !y) return {HEDDLE_ERROR_OUT_OF_MEMORY, "no memory for what was found"};
    std::copy_if(x.data, x.data + x.size, y, positive);
    return {};
  }
};
Status infer_dynamic(InferContext& context) {
  context.set_dynamic(0, 1);
  return {};
}

// No elements are no tiles.
Status prepare_one(PrepareContext& context) {
  context.set_tiles(context.output(0)->element_count == 0 ? 0 : 1);
  return {};
}

class Whole {
 public:
  static Status prepare(PrepareContext& context) { return prepare_one(context); }
  Status run(const RunContext& context, int64_t, int64_t) const { return copy(context), Status(); }
};

// Tiles of unknown cost; the last one copies.
class Tiled {
 public:
  static Status prepare(PrepareContext& context) { return context.set_tiles(3), Status(); }
  Status run(const RunContext& context, int64_t, int64_t end) const {
    if (end == 3) copy(context);
    return {};
  }
};

class Started {
 public:
  static Status prepare(PrepareContext& context) { return prepare_one(context); }
  Status start(const RunContext& context, Completion done) const {
    copy(context);
    done({});
    return {};
  }
};

// Runs its body for its last input, and suspends when that does.
class Around {
 public:
  Status create(const CreateContext& context) {
    body_ = Subnet(context.attributes, "body");
    return {};
  }
  Status run(const RunContext& context, int64_t, int64_t) const {
    return body_.run(context, 0, inputs_from(context, context.input_count - 1), {context.outputs, 1});
  }

 private:
  Subnet body_;
};
Status around_subnets(const SubnetContext& context) {
  return context.declare("body", inputs_from(context, 0));
}
Status beside_subnets(const SubnetContext& context) {
  return context.declare("body", inputs_from(context, 1));
}

Op op(const char* name) {
  Op made(name, "steps");
  made.in("x", dtypes<float>());
  return made;
}
// An operator whose output is as long as x, also where that is bounded.
Op same(const char* name) {
  Op made = op(name);
  made.out("y", {}, dtypes<float>()).infer([](InferContext& context) {
    context.set_dims(0, context.dims(0));
    if (context.input(0).extent_axis >= 0) context.set_bounded(0, context.input(0).extent_axis);
    return Status();
  });
  return made;
}

}  // namespace

HEDDLE_PLUGIN("steps", "1.0", plugin) {
  const heddle_dtype_set f32 = dtypes<float>();
  plugin.add(op("Bounded").out("y", {}, f32).infer(infer_bounded).cpu<Bounded>());
  plugin.add(op("Dynamic").out("y", {}, f32).infer(infer_dynamic).cpu<Dynamic>().kernel_flags(HEDDLE_KERNEL_DYNAMIC_OUTPUTS));
  plugin.add(op("Whole").out("y", same_as("x"), f32).cpu<Whole>());
  plugin.add(op("Tiled").out("y", same_as("x"), f32).cpu<Tiled>());
  plugin.add(op("Started").out("y", same_as("x"), f32).cpu<Started>());
  plugin.add(same("WholeReads").cpu<Whole>().kernel_flags(HEDDLE_KERNEL_READS_EXTENTS));
  plugin.add(same("TiledReads").cpu<Tiled>().kernel_flags(HEDDLE_KERNEL_READS_EXTENTS));
  plugin.add(same("StartedReads").cpu<Started>().kernel_flags(HEDDLE_KERNEL_READS_EXTENTS));
  plugin.add(op("Around")
                 .out("y", same_as("x"), f32)
                 .subnet("body", SubnetPorts())
                 .subnets(around_subnets)
                 .cpu<Around>()
                 .kernel_flags(HEDDLE_KERNEL_RESUMES));
  // x is read for its extent alone; y is the body's result for z.
  plugin.add(op("AroundReads")
                 .in("z", f32)
                 .out("y", same_as("z"), f32)
                 .subnet("body", SubnetPorts().inputs_from(1))
                 .subnets(beside_subnets)
                 .cpu<Around>()
                 .kernel_flags(HEDDLE_KERNEL_RESUMES | HEDDLE_KERNEL_READS_EXTENTS));
}
