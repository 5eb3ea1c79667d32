// CumSum: the sums of all elements up to each one.
#include <algorithm>

#include "families.h"
#include "reduce/running_sums.h"
#include "shared/axes.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/gradients.h"
#include "vector/convert.h"

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

// [before, n, after]: a unit is up to 64 neighbouring columns, summed along n from one end to the other, or a row of n where after is 1.
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
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor& x = *context.inputs[0];
    if (x.element_count == 0) return {};
    int axis = 0;
    if (!normalize_axis(integer_at(*context.inputs[1], 0), x.rank, &axis))
      return axis_outside("axis", integer_at(*context.inputs[1], 0), x.rank);
    const Dims dims = dims_of(x);
    const int64_t n = dims[axis], after = dims.count(axis + 1, dims.rank), groups = (after + group - 1) / group;
    const Tiling::Range range = tiling_.range(dims.count(0, axis) * groups, begin, end);
    CancellationPoll poll(context);
    for (int64_t unit = range.first, units = 0; unit < range.last && !poll.stopped(); unit += units) {
      const int64_t column = unit % groups * group, first = unit / groups * n * after + column + (reverse_ ? (n - 1) * after : 0);
      const int64_t left = range.last - unit;
      units = after > 1 ? std::min({max_lines / group, left, groups - unit % groups}) : std::min(max_lines, left);
      const int64_t lines = after > 1 ? std::min(units * group, after - column) : units;
      add_up(x, *context.outputs[0], first, {nullptr, nullptr, n, reverse_ ? -after : after, lines, after > 1 ? 1 : n, exclusive_}, poll);
    }
    return poll.status();
  }

 private:
  static constexpr int64_t group = 64, max_lines = 512;

  // Sums `lines`, which begin with element `first`, in parts after which the run may end.
  static void add_up(const heddle_tensor& x, const heddle_tensor& y, int64_t first, RunningSums lines, CancellationPoll& poll) {
    const auto width = static_cast<int64_t>(byte_width(x.dtype));
    const auto add_up = isa_running_sums().add_up[x.dtype];
    const int64_t length = lines.length, part = std::max<int64_t>(1, CancellationPoll::between / 4 / lines.lines);
    alignas(64) double sums[max_lines] = {};  // zeros of any type
    for (int64_t i = 0; i < length; i += part) {
      lines.length = std::min(part, length - i);
      if (poll.stops(lines.length * lines.lines)) return;
      lines.x = static_cast<const char*>(x.data) + (first + i * lines.step) * width;
      lines.y = static_cast<char*>(y.data) + (first + i * lines.step) * width;
      if (add_up)
        add_up(lines, sums);
      else
        add_up_narrow(lines, x.dtype, reinterpret_cast<float*>(sums));
    }
  }
  // 16-bit floats are added up in f32, a block of some lines and steps at a time, in rows of what is next to each other.
  static void add_up_narrow(const RunningSums& lines, heddle_dtype dtype, float* sums) {
    constexpr int64_t row = 64, rows = 8;
    const bool are_neighbours = lines.distance == 1, ascends = are_neighbours || lines.step > 0;
    const int64_t line_block = are_neighbours ? row : rows, step_block = are_neighbours ? rows : row;
    const int64_t row_distance = are_neighbours ? lines.step : lines.distance;
    float wide[row * rows];
    for (int64_t line = 0; line < lines.lines; line += line_block)
      for (int64_t i = 0; i < lines.length; i += step_block) {
        const int64_t of_lines = std::min(line_block, lines.lines - line), steps = std::min(step_block, lines.length - i);
        const int64_t lowest = line * lines.distance + (ascends ? i : i + steps - 1) * lines.step;
        const auto each_row = [&](auto&& f) {
          for (int64_t r = 0; r < (are_neighbours ? steps : of_lines); ++r)
            f((lowest + r * row_distance) * 2, wide + r * row, are_neighbours ? of_lines : steps);
        };
        each_row([&](int64_t at, float* to, int64_t n) { convert(dtype, static_cast<const char*>(lines.x) + at, HEDDLE_F32, to, n); });
        float* const first = wide + (ascends ? 0 : steps - 1);
        isa_running_sums().add_up[HEDDLE_F32](
            {first, first, steps, are_neighbours ? row : lines.step, of_lines, are_neighbours ? 1 : row, lines.exclusive}, sums + line);
        each_row([&](int64_t at, const float* from, int64_t n) { convert(HEDDLE_F32, from, dtype, static_cast<char*>(lines.y) + at, n); });
      }
  }
  bool exclusive_ = false, reverse_ = false;
  Tiling tiling_;
};

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
