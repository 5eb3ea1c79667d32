// Operators that write variables: SgdUpdate, and the small ones that counters, accumulators and tests need. Each output is the next version
// of the variable and uses its memory.
#include <algorithm>

#include "families.h"
#include "shared/dtype_dispatch.h"
#include "shared/input_shapes.h"
#include "shared/scalar.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "training/applied_update.h"

namespace heddle::cpu {
namespace {

template <uint32_t apply_port>
Status infer_update(InferContext& context) {
  HEDDLE_PLUGIN_CHECK(expect_shape(context, 1, context.dims(0), "that of w"));
  if constexpr (apply_port == 3) HEDDLE_PLUGIN_CHECK(expect_scalar(context, 2));
  HEDDLE_PLUGIN_CHECK(check_apply(context, apply_port));
  context.set_dims(0, context.dims(0));
  return {};
}

enum class Update { sgd, assign, accumulate };

template <Update update>
class VariableUpdate {
 public:
  Status prepare(PrepareContext& context) {
    tiling_.plan(context, 3 * static_cast<int64_t>(context.output(0)->byte_size));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const Tiling::Range range = tiling_.range(context.outputs[0]->element_count, begin, end);
    with_dtype(context.outputs[0]->dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T *variable = static_cast<const T*>(context.inputs[0]->data), *value = static_cast<const T*>(context.inputs[1]->data);
      T* next = static_cast<T*>(context.outputs[0]->data);
      if constexpr (update == Update::assign) {
        std::copy(value + range.first, value + range.last, next + range.first);
      } else if constexpr (update == Update::accumulate) {
        for (int64_t i = range.first; i < range.last; ++i)
          next[i] = from_arithmetic<T>(wrapping_add(to_arithmetic(variable[i]), to_arithmetic(value[i])));
      } else {
        const auto rate = static_cast<Arithmetic<T>>(number_at(*context.inputs[2], 0));
        for (int64_t i = range.first; i < range.last; ++i)
          next[i] = from_arithmetic<T>(to_arithmetic(variable[i]) - rate * to_arithmetic(value[i]));
      }
    });
    return {};
  }

 private:
  Tiling tiling_;
};

Status infer_step(InferContext& context) {
  if (context.input(0).element_count != 1) return invalid("step has shape " + dims_text(context.dims(0)) + ", expected one element");
  HEDDLE_PLUGIN_CHECK(check_apply(context, 1));
  context.set_dims(0, context.dims(0));
  return {};
}

class StepIncrement {
 public:
  Status run(const RunContext& context, int64_t, int64_t) const {
    *static_cast<int64_t*>(context.outputs[0]->data) = wrapping_add<int64_t>(*static_cast<const int64_t*>(context.inputs[0]->data), 1);
    return {};
  }
};

}  // namespace

void add_variable_updates(Builder& plugin) {
  plugin.add(Op("SgdUpdate", "heddle")
                 .doc("Makes a step of gradient descent, and writes it to w. With apply false nothing is changed.")
                 .formula("w -= lr g")
                 .in("w", float_dtypes)
                 .in("g", float_dtypes)
                 .in("lr", float_dtypes, nullptr)
                 .optional("apply", dtypes<bool>(), nullptr)
                 .out("updated", {}, float_dtypes)
                 .updates("updated", "w")
                 .infer(infer_update<3>)
                 .cpu<AppliedUpdate<VariableUpdate<Update::sgd>, 3>>()
                 .example("f32[3] = 1 2 3, f32[3] = 0.5 -1 2, f32[] = 0.5, bool[] = 0 -> f32[3] = 1 2 3", "by hand")
                 .example("f32[3] = 1 2 3, f32[3] = 0.5 -1 2, f32[] = 0.5 -> f32[3] = 0.75 2.5 2", "by hand")
                 .example("f32[2,2] = 1 2 3 4, f32[2,2] = 4 0 -4 8, bf16[1] = 0.25 -> f32[2,2] = 0 2 4 2", "by hand"));
  plugin.add(Op("Assign", "heddle")
                 .doc("Writes value to the variable. With apply false the variable stays as it is.")
                 .formula("variable = value")
                 .in("variable")
                 .in("value")
                 .optional("apply", dtypes<bool>(), nullptr)
                 .out("updated")
                 .updates("updated", "variable")
                 .infer(infer_update<2>)
                 .cpu<AppliedUpdate<VariableUpdate<Update::assign>, 2>>()
                 .example("i64[2] = 1 2, i64[2] = 7 0, bool[] = 0 -> i64[2] = 1 2", "by hand")
                 .example("f32[2,2] = 1 2 3 4, f32[2,2] = 5 -6 0 0.5 -> f32[2,2] = 5 -6 0 0.5", "by hand")
                 .example("i32[3] = 1 2 3, i32[3] = 7 0 5 -> i32[3] = 7 0 5", "by hand"));
  plugin.add(Op("AccumulateAdd", "heddle")
                 .doc("Adds value to the variable. With apply false the variable stays as it is.")
                 .formula("variable += value")
                 .in("variable", numeric_dtypes)
                 .in("value", numeric_dtypes)
                 .optional("apply", dtypes<bool>(), nullptr)
                 .out("updated", {}, numeric_dtypes)
                 .updates("updated", "variable")
                 .infer(infer_update<2>)
                 .cpu<AppliedUpdate<VariableUpdate<Update::accumulate>, 2>>()
                 .example("f32[2] = 1 2, f32[2] = 5 -6, bool[1] = 0 -> f32[2] = 1 2", "by hand")
                 .example("f32[2,2] = 1 2 3 4, f32[2,2] = 5 -6 0 0.5 -> f32[2,2] = 6 -4 3 4.5", "by hand")
                 .example("i32[3] = 1 2 3, i32[3] = 7 0 5 -> i32[3] = 8 2 8", "by hand"));
  plugin.add(Op("StepIncrement", "heddle")
                 .doc("Adds one to the variable step. With apply false the variable stays as it is.")
                 .formula("step += 1")
                 .in("step", dtypes<int64_t>())
                 .optional("apply", dtypes<bool>(), nullptr)
                 .out("updated", {}, dtypes<int64_t>())
                 .updates("updated", "step")
                 .infer(infer_step)
                 .cpu<AppliedUpdate<StepIncrement, 1>>()
                 .example("i64[] = 41, bool[] = 0 -> i64[] = 41", "by hand")
                 .example("i64[] = 41 -> i64[] = 42", "by hand")
                 .example("i64[1] = -1 -> i64[1] = 0", "by hand"));
}

}  // namespace heddle::cpu
