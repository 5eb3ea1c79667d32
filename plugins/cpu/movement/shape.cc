// Shape and Size, which read extents alone.
#include <algorithm>

#include "families.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

// The half-open range [start, end) of axes, clamped to the rank.
struct AxisRange {
  explicit AxisRange(const Attributes& attributes)
      : start(attributes.i("start")), has_end(attributes.has("end")), end(attributes.i("end")) {}
  static int64_t clamp(int64_t axis, int rank) { return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank); }
  int first(int rank) const { return static_cast<int>(clamp(start, rank)); }
  int last(int rank) const { return has_end ? std::max(first(rank), static_cast<int>(clamp(end, rank))) : rank; }
  int64_t start;
  bool has_end;
  int64_t end;
};

Status infer_shape(InferContext& context) {
  const AxisRange range(context.attributes);
  const int rank = context.dims(0).rank;
  context.set_dims(0, std::vector<int64_t>{range.last(rank) - range.first(rank)});
  return {};
}

Status shape(In<void> data, const AxisRange& range, Out<int64_t> dims) {
  const int first = range.first(data.dims.rank);
  for (int64_t i = 0; i < dims.size; ++i) dims[i] = data.dims[first + static_cast<int>(i)];
  return {};
}

Status infer_scalar(InferContext& context) {
  context.set_dims(0, std::vector<int64_t>());
  return {};
}

Status size(In<void> data, Out<int64_t> count) {
  count[0] = data.size;
  return {};
}

}  // namespace

void add_shape(Builder& plugin) {
  plugin.add(Op("Shape", "", 15)
                 .doc("Gives the extents of the axes from start up to but without end. The host knows them before the run.")
                 .shapes("shape is [end - start]")
                 .in("data", any_dtype, nullptr)
                 .out_as("shape", HEDDLE_I64)
                 .attribute("start", 0)
                 .maybe("end", HEDDLE_ATTRIBUTE_INT)
                 .traits(HEDDLE_TRAIT_SHAPE_ONLY | HEDDLE_TRAIT_CHEAP)
                 .infer(infer_shape)
                 .cpu<shape>()
                 .example("f32[2,3] = 0 -> i64[2] = 2 3", "ONNX Runtime")
                 .example("f32[2,3,4] = 0; start=-2, end=2 -> i64[1] = 3", "ONNX Runtime"));
  plugin.add(Op("Size", "", 13)
                 .doc("Gives the number of elements. The host knows it before the run.")
                 .shapes("size has no dims: it is one number")
                 .in("data", any_dtype, nullptr)
                 .out_as("size", HEDDLE_I64)
                 .traits(HEDDLE_TRAIT_SHAPE_ONLY | HEDDLE_TRAIT_CHEAP)
                 .infer(infer_scalar)
                 .cpu<size>()
                 .example("f32[2,3] = 0 -> i64[] = 6", "ONNX Runtime"));
}

}  // namespace heddle::cpu
