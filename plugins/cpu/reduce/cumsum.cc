// CumSum: the sums of all elements up to each one.
#include <algorithm>

#include "families.h"
#include "shared/axes.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/scalar.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/gradients.h"

namespace heddle::cpu {
namespace {

Status infer_cumsum(InferContext& context) {
  const Dims x = context.dims(0);
  if (context.input(1).element_count != 1) return invalid("axis has shape " + dims_text(context.dims(1)) + ", expected a scalar");
  int axis = 0;
  if (context.known(1) && !normalize_axis(context.ints(1)[0], x.rank, &axis)) return axis_outside("axis", context.ints(1)[0], x.rank);
  context.set_dims(0, x);
  return {};
}

// [before, n, after]: a unit is up to 64 neighbouring columns, summed along n from one end to the other.
class CumSum {
 public:
  Status create(const CreateContext& context) {
    exclusive_ = context.attributes.i("exclusive") != 0;
    reverse_ = context.attributes.i("reverse") != 0;
    return {};
  }
  Status prepare(PrepareContext& context) {
    tiling_.plan(context, 2 * static_cast<int64_t>(context.output(0)->byte_size), 4.0);
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const;

 private:
  static constexpr int64_t group = 64;
  template <class T>
  void sum(Dims dims, int axis, const T* x, T* y, int64_t begin, int64_t end, CancellationPoll& poll) const {
    const int64_t n = dims[axis], after = dims.count(axis + 1, dims.rank), groups = (after + group - 1) / group;
    const Tiling::Range range = tiling_.range(dims.count(0, axis) * groups, begin, end);
    for (int64_t unit = range.first; unit < range.last; ++unit) {
      const int64_t column = unit % groups * group, columns = std::min(group, after - column);
      const int64_t base = unit / groups * n * after + column;
      Arithmetic<T> sums[group] = {};
      for (int64_t i = 0; i < n; ++i) {
        if (poll.stops(columns)) return;
        const int64_t at = base + (reverse_ ? n - 1 - i : i) * after;
        if (columns == group) {
          add_group(x + at, y + at, sums);
          continue;
        }
        for (int64_t c = 0; c < columns; ++c) {
          const Arithmetic<T> previous = sums[c];
          sums[c] = wrapping_add(previous, to_arithmetic(x[at + c]));
          y[at + c] = from_arithmetic<T>(exclusive_ ? previous : sums[c]);
        }
      }
    }
  }
  // A row of a whole group. y may be x: each loop has one array of the caller's, so that the compiler makes vectors nevertheless.
  template <class T>
  void add_group(const T* x, T* y, Arithmetic<T>* sums) const {
    Arithmetic<T> values[group];
    for (int64_t c = 0; c < group; ++c) values[c] = to_arithmetic(x[c]);
    if (exclusive_)
      for (int64_t c = 0; c < group; ++c) y[c] = from_arithmetic<T>(sums[c]);
    for (int64_t c = 0; c < group; ++c) sums[c] = wrapping_add(sums[c], values[c]);
    if (!exclusive_)
      for (int64_t c = 0; c < group; ++c) y[c] = from_arithmetic<T>(sums[c]);
  }
  bool exclusive_ = false, reverse_ = false;
  Tiling tiling_;
};

// Defined after the class: clang 14 drops a template of the class that an earlier generic lambda uses.
Status CumSum::run(const RunContext& context, int64_t begin, int64_t end) const {
  const heddle_tensor& x = *context.inputs[0];
  if (x.element_count == 0) return {};
  int axis = 0;
  if (!normalize_axis(integer_at(*context.inputs[1], 0), x.rank, &axis))
    return axis_outside("axis", integer_at(*context.inputs[1], 0), x.rank);
  return with_dtype(x.dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    CancellationPoll poll(context);
    sum<T>(dims_of(x), axis, static_cast<const T*>(x.data), static_cast<T*>(context.outputs[0]->data), begin, end, poll);
    return poll.status();
  });
}

// Each element is in the sums from its position on: dY is added up from the other end.
Status cumsum_gradient(GradientContext& g) {
  g.give(0, g.emit("CumSum", {g.dy(0), g.x(1)}, {g.same("exclusive"), {"reverse", g.attributes().i("reverse") == 0 ? 1 : 0}}));
  return {};
}

}  // namespace

void add_cumsum(Builder& plugin) {
  plugin.add(Op("CumSum", "", 14)
                 .doc("Adds up the elements along an axis up to each one: without the element itself with exclusive 1, from the end with "
                      "reverse 1.")
                 .formula("y[i] = x[0] + ... + x[i]")
                 .shapes("y has the dims of x")
                 .in("x", numeric_dtypes)
                 .in("axis", index_dtypes, nullptr)
                 .on_host()
                 .out("y", {}, numeric_dtypes)
                 .attribute("exclusive", 0)
                 .attribute("reverse", 0)
                 .in_place("y", "x")
                 .infer(infer_cumsum)
                 .gradient<cumsum_gradient>()
                 .cpu<CumSum>()
                 .example("f32[2,3] = -4 -3 3 -4 3 -3, i64[] = 1 -> f32[2,3] = -4 -7 -4 -4 -1 -4", "ONNX Runtime")
                 .example("f32[3] = -4 -3 3, i32[] = 0; exclusive=1, reverse=1 -> f32[3] = 0 3 0", "ONNX Runtime")
                 .example("i32[2,2] = 1 0 1 1, i64[] = -2 -> i32[2,2] = 1 0 2 1", "ONNX Runtime"));
}

}  // namespace heddle::cpu
