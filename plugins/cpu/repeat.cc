// Expand and Tile: one tensor repeated along its dimensions.
#include "families.h"
#include "strided_copy.h"
#include "support.h"

namespace heddle::cpu {
namespace {

Status infer_expand(InferContext& context) {
  const Dims from = context.dims(0), operand = context.dims(1);
  if (operand.rank != 1) return not_one_dimensional("shape", operand);
  const int rank = std::max(from.rank, static_cast<int>(std::min<int64_t>(operand[0], INT32_MAX)));
  HEDDLE_PLUGIN_CHECK(check_rank(static_cast<size_t>(rank)));
  if (!context.known(1)) return context.set_dynamic(0, rank), Status();
  std::vector<int64_t> dims = vector_of(from);
  const std::vector<int64_t> shape = context.ints(1);
  for (int64_t extent : shape)
    if (extent < 0) return invalid("shape has the extent " + std::to_string(extent) + ", expected 0 or more");
  if (!broadcast_dims(dims, dims_of(shape)))
    return invalid("input " + dims_text(from) + " does not broadcast to " + dims_text(dims_of(shape)));
  context.set_dims(0, dims);
  return {};
}

Status infer_tile(InferContext& context) {
  const Dims from = context.dims(0), operand = context.dims(1);
  if (operand.rank != 1 || operand[0] != from.rank)
    return invalid("repeats has shape " + dims_text(operand) + ", expected [" + std::to_string(from.rank) + "]");
  if (!context.known(1)) return context.set_dynamic(0, from.rank), Status();
  std::vector<int64_t> dims = context.ints(1);
  for (int i = 0; i < from.rank; ++i) {
    int64_t& dim = dims[static_cast<size_t>(i)];
    if (dim < 0) return invalid("repeats has " + std::to_string(dim) + " for axis " + std::to_string(i) + ", expected 0 or more");
    if (__builtin_mul_overflow(dim, from[i], &dim)) return invalid("the extent of axis " + std::to_string(i) + " overflows");
  }
  context.set_dims(0, dims);
  return {};
}

// Every dimension of the output is repetitions of a dimension of the input; what is missing in front counts as 1.
class Repeat {
 public:
  Status prepare(PrepareContext& context) {
    const heddle_tensor &x = *context.input(0), &y = *context.output(0);
    const auto width = static_cast<int64_t>(byte_width(x.dtype));
    copy_ = StridedCopy(width);
    int64_t source = width, target = width;
    for (int i = y.rank - 1, j = x.rank - 1; i >= 0; --i, --j) {
      const int64_t extent = j >= 0 ? x.dims[j] : 1;
      copy_.add(extent, source, target);
      if (extent > 0) copy_.add(y.dims[i] / extent, 0, target * extent);
      source *= extent;
      target *= y.dims[i];
    }
    copy_.finish();
    tiling_.plan(context, 2 * static_cast<int64_t>(y.byte_size));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const Tiling::Range range = tiling_.range(copy_.units(), begin, end);
    copy_.run(context.inputs[0]->data, context.outputs[0]->data, range.first, range.last);
    return {};
  }

 private:
  StridedCopy copy_;
  Tiling tiling_;
};

}  // namespace

void add_repeat(Builder& plugin) {
  plugin.add(Op("Expand", "", 13)
                 .doc("the input broadcast together with shape")
                 .in("input")
                 .shape_operand("shape")
                 .out("output")
                 .infer(infer_expand)
                 .cpu<Repeat>());
  plugin.add(Op("Tile", "", 13)
                 .doc("the input repeated along every axis")
                 .in("input")
                 .shape_operand("repeats")
                 .out("output")
                 .infer(infer_tile)
                 .cpu<Repeat>());
}

}  // namespace heddle::cpu
