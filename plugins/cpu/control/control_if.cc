// If: one of two subnets. Where both give a value the same type the branch writes straight into the output; where they differ the
// output is dynamic and the branch's result is copied to memory of its own extents.
#include "control/subnet_calls.h"
#include "families.h"
#include "shared/dims.h"
#include "support/cpu_api.h"

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
    // A branch that does not fit its inputs fails only if a run takes it; the net is wrong where neither branch fits. Exporters write such
    // branches: Squeeze where the axis is 1, else the value as it is.
    const Status then_status = then_branch.infer(context, captures, context.output_count(), &types);
    const Status else_status = else_branch.infer(context, captures, context.output_count(), &others);
    if (!else_status.ok() && (!then_status.ok() || !may_be_left_out(else_status))) return else_status;
    if (!then_status.ok() && !may_be_left_out(then_status)) return then_status;
    if (!then_status.ok()) types = others;
    if (then_status.ok() && else_status.ok())
      for (uint32_t i = 0; i < context.output_count(); ++i) HEDDLE_PLUGIN_CHECK(merge(i, &types[i], others[i]));
  }
  for (uint32_t i = 0; i < context.output_count(); ++i) set_type(context, i, types[i]);
  return {};
}

// Declares both branches, or only the one taken if the condition is known: the other need not fit. If it is not known, one of the two need
// not fit.
Status if_subnets(const SubnetContext& context) {
  const bool known = context.known(0), taken = known && *static_cast<const uint8_t*>(context.input(0).data) != 0;
  if (known) return context.declare(taken ? "then_branch" : "else_branch", inputs_from(context, 1));
  // Both are declared before either failure counts, so that errors of both are reported at once.
  Status then_status = context.declare("then_branch", inputs_from(context, 1));
  Status else_status = context.declare("else_branch", inputs_from(context, 1));
  if (else_status.ok()) return may_be_left_out(then_status) ? Status() : then_status;
  return then_status.ok() && may_be_left_out(else_status) ? Status() : else_status;
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
                 .doc("Runs then_branch or else_branch, as cond says. The inputs after cond are what the branches take from outside.")
                 .shapes("outputs have the dims of the branch's outputs; where the two branches differ, the run knows them")
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
