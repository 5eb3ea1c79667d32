// TopK: the k largest or smallest elements along an axis, in that order, and where they were. Ties go to the lower index; NaN counts as
// larger than every number.
#include <algorithm>

#include "families.h"
#include "shared/axes.h"
#include "shared/computed_extents.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/scalar.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/gradients.h"

namespace heddle::cpu {
namespace {

Status top_k_extents(Dims x, int axis, const heddle_tensor& operand, Extents* to) {
  const int64_t k = integer_at(operand, 0);
  if (k < 0 || k > x[axis])
    return invalid("K is " + std::to_string(k) + ", axis " + std::to_string(axis) + " has " + std::to_string(x[axis]) + " elements");
  for (int i = 0; i < x.rank; ++i) to->push(i == axis ? k : x[i]);
  return {};
}

Status infer_top_k(InferContext& context) {
  const Dims x = context.dims(0);
  int axis = 0;
  if (!normalize_axis(context.attributes.i("axis"), x.rank, &axis)) return axis_outside("axis", context.attributes.i("axis"), x.rank);
  if (context.input(1).element_count != 1) return invalid("K has shape " + dims_text(context.dims(1)) + ", expected one element");
  if (!context.known(1)) {
    for (uint32_t i = 0; i < 2; ++i) context.set_dynamic(i, x.rank);
    return {};
  }
  Extents to;
  HEDDLE_PLUGIN_CHECK(top_k_extents(x, axis, context.input(1), &to));
  for (uint32_t i = 0; i < 2; ++i) context.set_dims(i, to.dims());
  return {};
}

class TopK {
 public:
  Status create(const CreateContext& context) {
    normalize_axis(context.attributes.i("axis"), context.input(0)->rank, &axis_);
    largest_ = context.attributes.i("largest") != 0;
    return {};
  }
  Status prepare(PrepareContext& context) {
    const heddle_tensor& x = *context.input(0);
    varies_ = varies(context, {1});
    tiling_.plan(context, static_cast<int64_t>(x.byte_size), 20.0);
    context.set_scratch(0, static_cast<uint64_t>(x.dims[axis_]) * sizeof(Entry<int64_t>));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor* any = context.outputs[0] ? context.outputs[0] : context.outputs[1];
    if (varies_)
      HEDDLE_PLUGIN_CHECK(check_planned({{"K", context.inputs[1]}}, *any, [&](Extents* to) {
        return top_k_extents(dims_of(*context.inputs[0]), axis_, *context.inputs[1], to);
      }));
    return with_dtype(context.inputs[0]->dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      CancellationPoll poll(context);
      select<T>(context, begin, end, poll);
      return poll.status();
    });
  }

 private:
  template <class A>
  struct Entry {
    A key;
    int64_t index;
  };
  template <class T>
  void select(const RunContext& context, int64_t begin, int64_t end, CancellationPoll& poll) const {
    using A = Arithmetic<T>;
    const heddle_tensor& x = *context.inputs[0];
    const heddle_tensor *values = context.outputs[0], *indices = context.output_count > 1 ? context.outputs[1] : nullptr;
    const Dims dims = dims_of(x);
    const heddle_tensor& any = values ? *values : *indices;
    const int64_t n = dims[axis_], k = any.dims[axis_], after = dims.count(axis_ + 1, dims.rank);
    auto* entries = thread_scratch<Entry<A>>(context);
    const auto first_in_order = [this](const Entry<A>& a, const Entry<A>& b) {
      if (ordered_less(a.key, b.key)) return !largest_;
      if (ordered_less(b.key, a.key)) return largest_;
      return a.index < b.index;
    };
    const Tiling::Range range = tiling_.range(dims.count(0, axis_) * after, begin, end);
    const bool many = static_cast<double>(n) * 20 > max_sort_operations;
    for (int64_t line = range.first; line < range.last; ++line) {
      if (poll.stops(n)) return;
      const int64_t base = line / after * n * after + line % after, target = line / after * k * after + line % after;
      for (int64_t i = 0; i < n; ++i) entries[i] = {to_arithmetic(static_cast<const T*>(x.data)[base + i * after]), i};
      if (many)
        heap_sort_cancellable(entries, entries + k, entries + n, first_in_order, 4, poll);
      else
        std::partial_sort(entries, entries + k, entries + n, first_in_order);
      if (poll.stopped()) return;
      for (int64_t i = 0; i < k; ++i) {
        if (values) static_cast<T*>(values->data)[target + i * after] = static_cast<const T*>(x.data)[base + entries[i].index * after];
        if (indices) static_cast<int64_t*>(indices->data)[target + i * after] = entries[i].index;
      }
    }
  }
  int axis_ = 0;
  bool largest_ = true, varies_ = true;
  Tiling tiling_;
};

// Writes each gradient back to where its value was; each place is used at most once.
Status top_k_gradient(GradientContext& g) {
  g.give(0, g.emit("ScatterElements", {zeros_like(g, g.x(0)), g.needed_y(1), g.dy(0)}, {g.same("axis")}));
  return {};
}

}  // namespace

void add_topk(Builder& plugin) {
  plugin.add(Op("TopK", "", 11)
                 .doc("Finds the K largest elements along an axis, or the smallest with largest 0, in order, and where they are. Of equal "
                      "ones the first comes first, and NaN counts as the largest number. The result is in order with sorted 0, too.")
                 .shapes("Values and Indices have the dims of X, with extent K on the axis")
                 .in("X", numeric_dtypes)
                 .shape_operand("K")
                 .out("Values", {}, numeric_dtypes)
                 .out_as("Indices", HEDDLE_I64)
                 .attribute("axis", -1)
                 .attribute("largest", 1)
                 .attribute("sorted", 1)
                 .infer(infer_top_k)
                 .gradient<top_k_gradient>()
                 .cpu<TopK>()
                 .example("f32[2,3] = 1 3 2 6 4 5, i64[1] = 2 -> f32[2,2] = 3 2 6 5, i64[2,2] = 1 2 0 2", "ONNX Runtime")
                 .example("f32[3,2] = 1 3 2 6 4 5, i64[1] = 2; axis=0, largest=0, sorted=1 -> f32[2,2] = 1 3 2 5, i64[2,2] = 0 0 1 2",
                          "ONNX Runtime")
                 .example("f32[1] = 4, i64[1] = 1; sorted=0 -> f32[1] = 4, i64[1] = 0", "by hand"));
}

}  // namespace heddle::cpu
