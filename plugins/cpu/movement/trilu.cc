// Trilu: the upper or lower triangle of matrices.
#include <algorithm>

#include "families.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

Status infer_trilu(InferContext& context) {
  if (context.dims(0).rank < 2) return invalid("input has shape " + dims_text(context.dims(0)) + ", expected a matrix or a batch of them");
  if (context.has_input(1) && context.input(1).element_count != 1)
    return invalid("k has shape " + dims_text(context.dims(1)) + ", expected a scalar");
  context.set_dims(0, context.dims(0));
  return {};
}

class Trilu {
 public:
  Status create(const CreateContext& context) {
    upper_ = context.attributes.i("upper") != 0;
    return {};
  }
  Status prepare(PrepareContext& context) {
    tiling_.plan(context, 2 * static_cast<int64_t>(context.output(0)->byte_size));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor &x = *context.inputs[0], &y = *context.outputs[0];
    const int64_t rows = dims_of(x)[-2], columns = dims_of(x)[-1];
    if (x.element_count == 0) return {};
    const int64_t diagonal = context.input_count > 1 && context.inputs[1] ? integer_at(*context.inputs[1], 0) : 0;
    const Tiling::Range range = tiling_.range(x.element_count / columns, begin, end);
    const auto width = static_cast<int64_t>(byte_width(x.dtype));
    CancellationPoll poll(context);
    for (int64_t line = range.first; line < range.last; ++line) {
      // Upper keeps columns from row + k on, lower those up to and including row + k.
      const int64_t edge =
          std::clamp<int64_t>(line % rows + std::clamp<int64_t>(diagonal, -rows - columns, rows + columns) + (upper_ ? 0 : 1), 0, columns);
      const int64_t first = upper_ ? edge : 0, last = upper_ ? columns : edge;
      const char* from = static_cast<const char*>(x.data) + line * columns * width;
      char* to = static_cast<char*>(y.data) + line * columns * width;
      if (from != to) copy_cancellable(to + first * width, from + first * width, (last - first) * width, poll);
      fill_cancellable(to, first * width, '\0', poll);
      fill_cancellable(to + last * width, (columns - last) * width, '\0', poll);
      if (poll.stopped()) break;
    }
    return poll.status();
  }

 private:
  bool upper_ = true;
  Tiling tiling_;
};

}  // namespace

void add_trilu(Builder& plugin) {
  plugin.add(
      Op("Trilu", "", 14)
          .doc("Keeps the upper triangle of matrices, or the lower with upper 0, from the k-th diagonal on, and puts zeros elsewhere.")
          .shapes("output has the dims of input")
          .in("input")
          .optional("k", dtypes<int64_t>(), nullptr)
          .out("output")
          .in_place("output", "input")
          .attribute("upper", 1)
          .infer(infer_trilu)
          .gradient("Trilu", {"doutput", "k"}, {"dinput"})
          .cpu<Trilu>()
          .example("f32[2,3] = 1 2 3 4 5 6 -> f32[2,3] = 1 2 3 0 5 6", "ONNX Runtime")
          .example("f32[3,3] = 1 2 3 4 5 6 7 8 9, i64[] = -1; upper=0 -> f32[3,3] = 0 0 0 4 0 0 7 8 0", "ONNX Runtime"));
}

}  // namespace heddle::cpu
