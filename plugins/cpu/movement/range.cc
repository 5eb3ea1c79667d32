// Range: numbers at equal distances.
#include <type_traits>

#include "families.h"
#include "movement/index_loops.h"
#include "shared/computed_extents.h"
#include "shared/dtype_dispatch.h"
#include "shared/extent_rules.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

constexpr heddle_dtype_set range_dtypes = dtypes<float, double, int16_t, int32_t, int64_t>();

Status infer_range(InferContext& context) {
  const heddle_dtype dtype = context.input(0).dtype;
  static constexpr const char* names[] = {"start", "limit", "delta"};
  for (uint32_t i = 0; i < 3; ++i) {
    if (context.input(i).element_count != 1)
      return invalid(std::string(names[i]) + " has shape " + dims_text(context.dims(i)) + ", expected a scalar");
    if (context.input(i).dtype != dtype) return invalid(std::string(names[i]) + " differs in dtype from start");
  }
  context.set_dtype(0, dtype);
  if (!context.known(0) || !context.known(1) || !context.known(2)) return context.set_dynamic(0, 1), Status();
  int64_t count = 0;
  HEDDLE_PLUGIN_CHECK(with_dtype(dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    const auto scalar = [&](uint32_t i) { return *static_cast<const T*>(context.input(i).data); };
    if constexpr (std::is_arithmetic_v<T>)
      return range_count<T>(scalar(0), scalar(1), scalar(2), &count);
    else
      return invalid("Range needs numbers");
  }));
  context.set_dims(0, std::vector<int64_t>{count});
  return {};
}

template <class T>
class Range {
 public:
  Status prepare(PrepareContext& context) {
    tiling_.plan(context, static_cast<int64_t>(context.output(0)->byte_size));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    HEDDLE_PLUGIN_CHECK(check_planned(
        {{"start", context.inputs[0]}, {"limit", context.inputs[1]}, {"delta", context.inputs[2]}}, *context.outputs[0], [&](Extents* to) {
          to->push(0);
          return range_count<T>(input<T>(context, 0)[0], input<T>(context, 1)[0], input<T>(context, 2)[0], &to->values[0]);
        }));
    const T start = input<T>(context, 0)[0], delta = input<T>(context, 2)[0];
    const Out<T> y = output<T>(context, 0);
    const Tiling::Range range = tiling_.range(y.size, begin, end);
    isa_index_loops().count_up[context.outputs[0]->dtype](&start, &delta, range.first, range.last, y.data + range.first);
    return {};
  }

 private:
  Tiling tiling_;
};

}  // namespace

void add_range(Builder& plugin) {
  plugin.add(Op("Range", "", 11)
                 .doc("Counts from start in steps of delta, up to but without limit.")
                 .formula("output[i] = start + i delta")
                 .shapes("output is [max(0, ceil((limit - start) / delta))]")
                 .shape_operand("start", range_dtypes)
                 .shape_operand("limit", range_dtypes)
                 .shape_operand("delta", range_dtypes)
                 .out("output", {}, range_dtypes, nullptr)
                 .infer(infer_range)
                 .cpu<Range<float>>(std::vector<heddle_dtype_set>(3, dtypes<float>()), {dtypes<float>()})
                 .cpu<Range<double>>(std::vector<heddle_dtype_set>(3, dtypes<double>()), {dtypes<double>()})
                 .cpu<Range<int16_t>>(std::vector<heddle_dtype_set>(3, dtypes<int16_t>()), {dtypes<int16_t>()})
                 .cpu<Range<int32_t>>(std::vector<heddle_dtype_set>(3, dtypes<int32_t>()), {dtypes<int32_t>()})
                 .cpu<Range<int64_t>>(std::vector<heddle_dtype_set>(3, dtypes<int64_t>()), {dtypes<int64_t>()})
                 .example_of_each(range_dtypes, "$[] = 1, $[] = 8, $[] = 3 -> $[3] = 1 4 7", "ONNX Runtime")
                 .example_of_each(range_dtypes, "$[] = 5, $[] = -1, $[] = -2 -> $[3] = 5 3 1", "ONNX Runtime"));
}

}  // namespace heddle::cpu
