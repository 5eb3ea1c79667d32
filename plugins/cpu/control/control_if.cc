// If: one of two subnets. Where both give a value the same type the branch writes straight into the output; where they differ the
// output is dynamic and the branch's result is copied to memory of its own extents.
#include "control/subnet_calls.h"
#include "families.h"
#include "support/dims.h"

namespace heddle::cpu {
namespace {

Status merge(uint32_t output, heddle_type* a, const heddle_type& b) {
  if (a->dtype != b.dtype) return invalid("output " + std::to_string(output) + " differs in dtype between the branches");
  if (!is_static(*a) || !same_static(b, a->dtype, dims_of(*a))) a->flags |= HEDDLE_TYPE_DYNAMIC;
  return {};
}

Status infer_if(InferContext& context) {
  if (context.input(0).element_count != 1) return invalid("cond has shape " + dims_text(context.dims(0)) + ", expected a scalar");
  const InputViews captures = inputs_from(context, 1);
  const Subnet then_branch(context.attributes, "then_branch"), else_branch(context.attributes, "else_branch");
  std::vector<heddle_type> types, others;
  if (context.known(0)) {
    const bool taken = *static_cast<const uint8_t*>(context.input(0).data) != 0;
    HEDDLE_PLUGIN_CHECK((taken ? then_branch : else_branch).infer(context, captures, context.output_count(), &types));
  } else {
    // Both are asked before either failure counts: what is wrong with them is said at once.
    const Status then_status = then_branch.infer(context, captures, context.output_count(), &types);
    HEDDLE_PLUGIN_CHECK(else_branch.infer(context, captures, context.output_count(), &others));
    HEDDLE_PLUGIN_CHECK(then_status);
    for (uint32_t i = 0; i < context.output_count(); ++i) HEDDLE_PLUGIN_CHECK(merge(i, &types[i], others[i]));
  }
  for (uint32_t i = 0; i < context.output_count(); ++i) set_type(context, i, types[i]);
  return {};
}

// Both branches, or the one that is known to be taken: the other need not fit.
Status if_subnets(const SubnetContext& context) {
  const bool known = context.known(0), taken = known && *static_cast<const uint8_t*>(context.input(0).data) != 0;
  Status status;
  for (const bool branch : {true, false}) {
    if (known && branch != taken) continue;
    // Both are asked before either failure counts: what is wrong with them is said at once.
    Status declared = context.declare(branch ? "then_branch" : "else_branch", inputs_from(context, 1));
    if (status.ok()) status = std::move(declared);
  }
  return status;
}

class If {
 public:
  using moves_only = void;
  Status create(const CreateContext& context) {
    then_branch_ = Subnet(context.attributes, "then_branch");
    else_branch_ = Subnet(context.attributes, "else_branch");
    return {};
  }
  Status prepare(PrepareContext& context) {
    ScratchArea area;
    area.take<heddle_tensor>(context.output_count());
    area.take<heddle_tensor*>(context.output_count());
    context.set_scratch(area.used());
    return {};
  }
  Status run(const RunContext& context, int64_t, int64_t) const {
    const bool taken = *static_cast<const uint8_t*>(context.inputs[0]->data) != 0;
    const uint32_t count = context.output_count;
    ScratchArea area(context.scratch);
    auto* views = area.take<heddle_tensor>(count);
    auto** pointers = area.take<heddle_tensor*>(count);
    for (uint32_t i = 0; i < count; ++i) {
      pointers[i] = nullptr;
      if (!context.outputs[i]) continue;
      views[i] = *context.outputs[i];
      pointers[i] = &views[i];
    }
    HEDDLE_PLUGIN_CHECK((taken ? then_branch_ : else_branch_).run(context, 0, inputs_from(context, 1), {pointers, count}));
    for (uint32_t i = 0; i < count; ++i)
      if (context.outputs[i] && !is_planned(*context.outputs[i])) HEDDLE_PLUGIN_CHECK(give_output(context, i, views[i]));
    return {};
  }

 private:
  Subnet then_branch_, else_branch_;
};

}  // namespace

void add_if(Builder& plugin) {
  plugin.add(Op("If", "", 16)
                 .doc("the outputs of then_branch or else_branch; inputs after cond are what the branches take")
                 .in("cond", dtypes<bool>(), nullptr)
                 .on_host()
                 .any_number("captures")
                 .variadic_out("outputs", any_dtype, nullptr)
                 .may_update()
                 .subnet("then_branch", SubnetPorts().inputs_from(1))
                 .subnet("else_branch", SubnetPorts().inputs_from(1))
                 .subnets(if_subnets)
                 .infer(infer_if)
                 .cpu<If>()
                 .kernel_flags(HEDDLE_KERNEL_DYNAMIC_OUTPUTS | HEDDLE_KERNEL_RESUMES)
                 .example(R"(bool[] = 1, i32[2] = 1 -2;
    then_branch={"inputs": ["x"], "outputs": ["y"], "nodes": [{"type": "Identity", "inputs": ["x"], "outputs": ["y"]}]},
    else_branch={"inputs": ["x"], "outputs": ["y"], "nodes": [{"type": "Concat", "inputs": ["x", "x"], "outputs": ["y"], "attributes": {"axis": {"int": 0}}}]}
    -> i32[2] = 1 -2)",
                          "by hand")
                 .example(R"(bool[1] = 0, i32[2] = 1 -2;
    then_branch={"inputs": ["x"], "outputs": ["y"], "nodes": [{"type": "Identity", "inputs": ["x"], "outputs": ["y"]}]},
    else_branch={"inputs": ["x"], "outputs": ["y"], "nodes": [{"type": "Concat", "inputs": ["x", "x"], "outputs": ["y"], "attributes": {"axis": {"int": 0}}}]}
    -> i32[4] = 1 -2 1 -2)",
                          "by hand")
                 .example(R"(bool[] = 0, f32[2] = 1 -2;
    then_branch={"inputs": ["x"], "outputs": ["y"], "nodes": [{"type": "Abs", "inputs": ["x"], "outputs": ["y"]}]},
    else_branch={"inputs": ["x"], "outputs": ["y"], "nodes": [{"type": "Neg", "inputs": ["x"], "outputs": ["y"]}]}
    -> f32[2] = -1 2)",
                          "by hand"));
}

}  // namespace heddle::cpu
