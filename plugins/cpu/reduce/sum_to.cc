// SumTo: a tensor summed over broadcast dimensions.
#include "families.h"
#include "reduce/reduce_kernel.h"
#include "shared/axes.h"
#include "shared/computed_extents.h"
#include "shared/extent_rules.h"
#include "support/cost.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

// Sums over the dimensions along which the input's shape was broadcast: the inverse of Expand.
class SumTo : public Reduce {
 public:
  Status create(const CreateContext& context) { return Reduce::create(context, reduce_sum); }
  Status prepare(PrepareContext& context) {
    uint32_t set = 0;
    const Dims from = dims_of(*context.input(0)), to = dims_of(*context.output(0));
    HEDDLE_PLUGIN_CHECK(spread_set(from, to, &set));
    return plan(context, set);
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    HEDDLE_PLUGIN_CHECK(check_planned({{"shape", context.inputs[1]}}, *context.outputs[0],
                                      [&](Extents* to) { return extents_in(*context.inputs[1], to); }));
    return Reduce::run(context, begin, end);
  }
  static Status extents_in(const heddle_tensor& shape, Extents* to) {
    for (int64_t i = 0; i < shape.element_count; ++i) to->push(static_cast<const int64_t*>(shape.data)[i]);
    return {};
  }
  // Sets the dimensions of `from` that are 1 in `to`, or missing there.
  static Status spread_set(Dims from, Dims to, uint32_t* set) {
    const int missing = from.rank - to.rank;
    for (int i = 0; i < from.rank; ++i) {
      const int64_t extent = i < missing ? 1 : to[i - missing];
      if (extent != from[i] || i < missing) *set |= 1u << i;
      if (extent != from[i] && extent != 1) return invalid("dims " + dims_text(to) + " do not broadcast to " + dims_text(from));
    }
    return missing < 0 ? invalid("dims " + dims_text(to) + " do not broadcast to " + dims_text(from)) : Status();
  }
};

Status infer_sum_to(InferContext& context) {
  if (context.dims(1).rank != 1) return not_one_dimensional("shape", context.dims(1));
  HEDDLE_PLUGIN_CHECK(check_rank(static_cast<size_t>(context.dims(1)[0])));
  if (!context.known(1)) return context.set_dynamic(0, static_cast<int>(context.dims(1)[0])), Status();
  Extents to;
  HEDDLE_PLUGIN_CHECK(SumTo::extents_in(context.input(1), &to));
  uint32_t set = 0;
  HEDDLE_PLUGIN_CHECK(SumTo::spread_set(context.dims(0), to.dims(), &set));
  context.set_dims(0, to.dims());
  return {};
}

}  // namespace

void add_sum_to(Builder& plugin) {
  plugin.add(Op("SumTo", "heddle")
                 .doc("Sums data over the axes along which a tensor of dims `shape` was broadcast. It is the gradient of Expand.")
                 .shapes("summed has the dims that shape holds")
                 .in("data", numeric_dtypes)
                 .shape_operand("shape", dtypes<int64_t>())
                 .out("summed", {}, numeric_dtypes)
                 .precision(HEDDLE_PRECISION_FULL)
                 .infer(infer_sum_to)
                 .gradient("Shape", {"data"}, {"t0"}, "")
                 .gradient("Expand", {"dsummed", "t0"}, {"ddata"}, "")
                 .cost<per_input_element<1>>()
                 .cpu<SumTo>()
                 .example("f32[2,3] = 1 2 3 4 5 6, i64[2] = 2 1 -> f32[2,1] = 6 15", "by hand")
                 .example("f32[2,3] = 1 2 3 4 5 6, i64[1] = 3 -> f32[3] = 5 7 9", "by hand")
                 .example("i32[2,1,2] = 1 2 3 4, i64[0] -> i32[] = 10", "by hand"));
}

}  // namespace heddle::cpu
