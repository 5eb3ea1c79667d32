// Optimizers that keep a state beside the weights: MomentumUpdate, AdagradUpdate, RmsPropUpdate and AdamUpdate, which is AdamW's too. Each
// output is the next version of the variable that it is named after, and uses its memory.
//
// Tiles are ranges of elements, each of which is computed alone.
#include <algorithm>

#include "families.h"
#include "shared/dims.h"
#include "shared/input_shapes.h"
#include "shared/scalar.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "training/applied_update.h"
#include "training/optimizer_rule.h"

namespace heddle::cpu {
namespace {

// The inputs are w, the states, g, lr and perhaps step.
template <const OptimizerSchema& schema>
class StateUpdate {
 public:
  Status create(const CreateContext& context) { return rule_.create(context.attributes, schema.rule); }
  Status prepare(PrepareContext& context) {
    tiling_.plan(context, (2 * (schema.state_count() + 1) + 1) * static_cast<int64_t>(context.output(0)->byte_size));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    return context.outputs[0]->dtype == HEDDLE_F64 ? run_as<double>(context, begin, end) : run_as<float>(context, begin, end);
  }

 private:
  template <class T>
  Status run_as(const RunContext& context, int64_t begin, int64_t end) const {
    constexpr uint32_t states = schema.state_count(), g = states + 1;
    UpdateNumbers<T> numbers;
    HEDDLE_PLUGIN_CHECK(
        rule_.numbers(number_at(*context.inputs[g + 1], 0), schema.has_step() ? context.inputs[g + 2] : nullptr, false, &numbers));
    const Tiling::Range range = tiling_.range(context.outputs[0]->element_count, begin, end);
    const T* before[max_update_states] = {};
    T* next[max_update_states] = {};
    for (uint32_t s = 0; s < states; ++s) {
      before[s] = static_cast<const T*>(context.inputs[s + 1]->data) + range.first;
      next[s] = static_cast<T*>(context.outputs[s + 1]->data) + range.first;
    }
    rule_.loop(T())(static_cast<const T*>(context.inputs[0]->data) + range.first, before,
                    static_cast<const T*>(context.inputs[g]->data) + range.first, static_cast<T*>(context.outputs[0]->data) + range.first,
                    next, range.last - range.first, numbers);
    return {};
  }

  OptimizerRule rule_;
  Tiling tiling_;
};

// After w, the states, g, lr and perhaps step.
constexpr uint32_t apply_port(const OptimizerSchema& schema) {
  return schema.state_count() + 3 + (schema.has_step() ? 1 : 0);
}

template <const OptimizerSchema& schema>
Status infer_state_update(InferContext& context) {
  const Dims w = context.dims(0);
  HEDDLE_PLUGIN_CHECK(check_apply(context, apply_port(schema)));
  for (uint32_t i = 1; i < schema.state_count() + 2; ++i) HEDDLE_PLUGIN_CHECK(expect_shape(context, i, w, "that of w"));
  HEDDLE_PLUGIN_CHECK(check_rule(context, schema.state_count() + 2, schema));
  for (uint32_t o = 0; o < schema.state_count() + 1; ++o) context.set_dims(o, w);
  return {};
}

template <const OptimizerSchema& schema>
Op state_update_operator(const char* name) {
  constexpr heddle_dtype_set floats = dtypes<float, double>();
  Op op(name, "heddle");
  op.in("w", floats);
  for (uint32_t s = 0; s < schema.state_count(); ++s) op.in(schema.states[s], floats);
  op.in("g", floats).in("lr", float_dtypes, nullptr);
  if (schema.has_step()) op.in("step", dtypes<int64_t>(), nullptr);
  op.optional("apply", dtypes<bool>(), nullptr);
  op.out("new_w", {}, floats).updates("new_w", "w");
  for (uint32_t s = 0; s < schema.state_count(); ++s)
    op.out(schema.next_states[s], {}, floats).updates(schema.next_states[s], schema.states[s]);
  declare_attributes(op, schema);
  op.infer(infer_state_update<schema>).template cpu<AppliedUpdate<StateUpdate<schema>, apply_port(schema)>>();
  return op;
}

}  // namespace

void add_optimizer_state(Builder& plugin) {
  plugin.add(
      state_update_operator<momentum_rule>("MomentumUpdate")
          .doc("Makes a step of gradient descent with momentum, plain or Nesterov's, as torch.optim.SGD does. With apply false nothing is "
               "changed.")
          .formula("velocity = momentum velocity + g; w -= lr velocity, or with nesterov lr (g + momentum velocity), where weight_decay w "
                   "is added to g first")
          .example("f32[2] = 1 2, f32[2] = 4 -2, f32[2] = 1 3, f32[] = 0.5; momentum=0.5 -> f32[2] = -0.5 1, f32[2] = 3 2", "by hand")
          .example("f32[2] = 1 2, f32[2] = 4 -2, f32[2] = 1 3, f32[] = 0.5, bool[] = 0; momentum=0.5 -> f32[2] = 1 2, f32[2] = 4 -2",
                   "by hand")
          .example("f32[2] = 1 2, f32[2] = 4 -2, f32[2] = 1 3, f32[] = 0.5; momentum=0.5, nesterov=1, weight_decay=0.5 -> f32[2] = "
                   "-0.625 -0.75, f32[2] = 3.5 3",
                   "by hand"));
  plugin.add(
      state_update_operator<adagrad_rule>("AdagradUpdate")
          .doc("Makes a step of Adagrad (Duchi et al. 2011), as torch.optim.Adagrad does. With apply false nothing is changed.")
          .formula("squares += g^2; w -= lr g / (sqrt(squares) + epsilon), where weight_decay w is added to g first")
          .example("f32[2] = 1 2, f32[2] = 7 0, f32[2] = 3 -2, f32[] = 0.5, bool[] = 0 -> f32[2] = 1 2, f32[2] = 7 0", "by hand")
          .example("f32[2] = 1 2, f32[2] = 7 0, f32[2] = 3 -2, f32[] = 0.5; epsilon=1 -> f32[2] = 0.7 2.333333, f32[2] = 16 4", "by hand")
          .example("f64[1] = 2, f64[1] = 0, f64[1] = 1, f32[1] = 0.5; weight_decay=0.5 -> f64[1] = 1.500000000025, f64[1] = 4", "by hand"));
  plugin.add(
      state_update_operator<rms_prop_rule>("RmsPropUpdate")
          .doc("Makes a step of RMSprop (Hinton 2012), as torch.optim.RMSprop does. With apply false nothing is changed.")
          .formula(
              "squares = alpha squares + (1 - alpha) g^2; w -= lr g / (sqrt(squares) + epsilon), where weight_decay w is added to g first")
          .example("f32[2] = 1 2, f32[2] = 7 0, f32[2] = 3 -2, f32[] = 0.5, bool[] = 0 -> f32[2] = 1 2, f32[2] = 7 0", "by hand")
          .example("f32[2] = 1 2, f32[2] = 7 0, f32[2] = 5 -2, f32[] = 0.5; alpha=0.5, epsilon=1 -> f32[2] = 0.5 2.414214, f32[2] = 16 "
                   "2",
                   "by hand")
          .example("f32[1] = 2, f32[1] = 4, f32[1] = 1, f32[] = 0.5; alpha=0, weight_decay=0.5, epsilon=0 -> f32[1] = 1.5, f32[1] = 4",
                   "by hand"));
  plugin.add(
      state_update_operator<adam_rule>("AdamUpdate")
          .doc("Makes a step of Adam (Kingma and Ba 2015), as torch.optim.Adam does or, with decoupled_weight_decay 1, which multiplies w "
               "by 1 - lr weight_decay instead, AdamW. step counts from 1. With apply false nothing is changed.")
          .formula("mean = beta1 mean + (1 - beta1) g; squares = beta2 squares + (1 - beta2) g^2; w -= lr / (1 - beta1^step) mean / "
                   "(sqrt(squares / (1 - beta2^step)) + epsilon), where weight_decay w is added to g first")
          .example(
              "f32[1] = 2, f32[1] = 1, f32[1] = 12, f32[1] = 2, f32[] = 0.5, i64[] = 1, bool[] = 0 -> f32[1] = 2, f32[1] = 1, f32[1] = 12",
              "by hand")
          .example("f32[2] = 1 2, f32[2] = 0 0, f32[2] = 0 0, f32[2] = 4 -2, f32[] = 0.5, i64[] = 1; epsilon=0 -> f32[2] = 0.5 2.5, "
                   "f32[2] = 0.4 -0.2, f32[2] = 0.016 0.004",
                   "by hand")
          .example("f32[1] = 2, f32[1] = 1, f32[1] = 12, f32[1] = 2, f32[] = 0.5, i64[1] = 2; beta1=0.5, beta2=0.5, epsilon=1, "
                   "weight_decay=0.5, decoupled_weight_decay=1 -> f32[1] = 1.265588, f32[1] = 1.5, f32[1] = 8",
                   "by hand"));
}

}  // namespace heddle::cpu
