// Concat and Split: blocks of one tensor beside each other along an axis, copied between two sets of strides; in channels-last too.
#include <algorithm>

#include "families.h"
#include "shared/axes.h"
#include "shared/computed_extents.h"
#include "shared/dense_layouts.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/movement/boxes.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/gradients.h"
#include "support/strided_copy.h"

namespace heddle::cpu {
namespace {

// Copies between one whole tensor and its parts along an axis, numbered through all parts so that tiles are equally large.
class Parts {
 public:
  void clear() { parts_.clear(), units_ = 0; }
  int64_t units() const { return units_; }
  // Adds a part: `part` lies at `offset` of `whole` along `axis`; `into_whole` is the direction of the copy.
  void add(const heddle_tensor& whole, const heddle_tensor& part, int axis, int64_t offset, bool into_whole) {
    const Part p{StridedCopy(part_box(whole, part, axis, offset, into_whole)), units_};
    units_ += p.copy.units();
    parts_.push_back(p);
  }
  // Calls visit(part index, copy, first, last) for what lies in [first, last) of the units.
  template <class Visit>
  void visit(Tiling::Range range, Visit&& visit) const {
    for (size_t i = 0; i < parts_.size(); ++i) {
      const Part& p = parts_[i];
      const int64_t first = std::max(range.first, p.first_unit), last = std::min(range.last, p.first_unit + p.copy.units());
      if (first < last) visit(i, p.copy, first - p.first_unit, last - p.first_unit);
    }
  }

 private:
  struct Part {
    StridedCopy copy;
    int64_t first_unit;
  };
  std::vector<Part> parts_;
  int64_t units_ = 0;
};

// ---------------------------------------------------------------- Concat

Status infer_concat(InferContext& context) {
  const Dims first = context.dims(0);
  int axis = 0;
  if (!normalize_axis(context.attributes.i("axis"), first.rank, &axis))
    return axis_outside("axis", context.attributes.i("axis"), first.rank);
  std::vector<int64_t> dims = vector_of(first);
  for (uint32_t i = 1; i < context.input_count(); ++i) {
    const Dims next = context.dims(i);
    bool fits = next.rank == first.rank;
    for (int d = 0; fits && d < first.rank; ++d) fits = d == axis || next[d] == first[d];
    if (!fits)
      return invalid("input " + std::to_string(i) + " " + dims_text(next) + " does not fit input 0 " + dims_text(first) + ": only axis " +
                     std::to_string(axis) + " may differ");
    if (__builtin_add_overflow(dims[static_cast<size_t>(axis)], next[axis], &dims[static_cast<size_t>(axis)]))
      return invalid("the concatenated extent overflows");
  }
  context.set_dims(0, dims);
  return {};
}

class Concat {
 public:
  Status create(const CreateContext& context) {
    normalize_axis(context.attributes.i("axis"), context.output(0)->rank, &axis_);
    return {};
  }
  Status prepare(PrepareContext& context) {
    const heddle_tensor& y = *context.output(0);
    parts_.clear();
    int64_t offset = 0;
    for (uint32_t i = 0; i < context.input_count(); ++i) {
      parts_.add(y, *context.input(i), axis_, offset, true);
      offset += context.input(i)->dims[axis_];
    }
    tiling_.plan(context, 2 * static_cast<int64_t>(y.byte_size));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    char* whole = static_cast<char*>(context.outputs[0]->data);
    parts_.visit(tiling_.range(parts_.units(), begin, end), [&](size_t i, const StridedCopy& copy, int64_t first, int64_t last) {
      copy.run(context.inputs[i]->data, whole, first, last);
    });
    return {};
  }
  static std::vector<heddle_format> formats(const CreateContext& context) { return uniform_formats(context, context.input_count(), 1); }

 private:
  int axis_ = 0;
  Parts parts_;
  Tiling tiling_;
};

// ---------------------------------------------------------------- Split

// The extents of the parts: those of the operand, else equal ones of which only the last may be smaller.
Status split_sizes(const InferContext& context, int64_t extent, std::vector<int64_t>* sizes) {
  const auto outputs = static_cast<int64_t>(context.output_count());
  if (context.has_input(1)) {
    if (context.dims(1).rank != 1) return not_one_dimensional("split", context.dims(1));
    *sizes = context.ints(1);
    int64_t sum = 0;
    for (int64_t size : *sizes)
      if (size < 0 || __builtin_add_overflow(sum, size, &sum)) return invalid("split has the extent " + std::to_string(size));
    if (static_cast<int64_t>(sizes->size()) != outputs)
      return invalid("split has " + std::to_string(sizes->size()) + " extents for " + std::to_string(outputs) + " outputs");
    if (sum != extent) return invalid("the extents of split sum up to " + std::to_string(sum) + ", the axis has " + std::to_string(extent));
    return {};
  }
  const int64_t parts = context.attributes.i("num_outputs", outputs);
  if (parts != outputs || parts < 1)
    return invalid("num_outputs is " + std::to_string(parts) + " for " + std::to_string(outputs) + " outputs");
  const int64_t part = (extent + parts - 1) / parts;
  for (int64_t i = 0; i < parts; ++i) sizes->push_back(std::clamp<int64_t>(extent - i * part, 0, part));
  return {};
}

Status infer_split(InferContext& context) {
  const Dims from = context.dims(0);
  int axis = 0;
  if (!normalize_axis(context.attributes.i("axis"), from.rank, &axis)) return axis_outside("axis", context.attributes.i("axis"), from.rank);
  if (context.has_input(1) && !context.known(1)) {
    for (uint32_t i = 0; i < context.output_count(); ++i) context.set_dynamic(i, from.rank);
    return {};
  }
  std::vector<int64_t> sizes, dims = vector_of(from);
  HEDDLE_PLUGIN_CHECK(split_sizes(context, from[axis], &sizes));
  for (uint32_t i = 0; i < context.output_count(); ++i) {
    dims[static_cast<size_t>(axis)] = sizes[i];
    context.set_dims(i, dims);
  }
  return {};
}

class Split {
 public:
  Status create(const CreateContext& context) {
    normalize_axis(context.attributes.i("axis"), context.input(0)->rank, &axis_);
    return {};
  }
  Status prepare(PrepareContext& context) {
    const heddle_tensor& x = *context.input(0);
    parts_.clear();
    positions_.clear();
    // An output that the net leaves out is absent; without split sizes the extents of the parts before it give the begin of the next one.
    const uint32_t count = context.output_count();
    const int64_t part = (x.dims[axis_] + count - 1) / std::max<int64_t>(count, 1);
    const heddle_tensor* sizes = context.input(1);
    varies_ = varies(context, {1});
    int64_t offset = 0;
    for (uint32_t i = 0; i < count; ++i) {
      const heddle_tensor* y = context.output(i);
      if (y) {
        parts_.add(x, *y, axis_, offset, false);
        positions_.push_back(i);
        offset += y->dims[axis_];
      } else if (sizes && !sizes->data) {
        return unsupported("Split with sizes known only while running needs all of its outputs");
      } else {
        offset += sizes ? integer_at(*sizes, i) : std::clamp<int64_t>(x.dims[axis_] - offset, 0, part);
      }
    }
    tiling_.plan(context, 2 * static_cast<int64_t>(x.byte_size));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    if (varies_) HEDDLE_PLUGIN_CHECK(check_sizes(context));
    const char* whole = static_cast<const char*>(context.inputs[0]->data);
    parts_.visit(tiling_.range(parts_.units(), begin, end), [&](size_t i, const StridedCopy& copy, int64_t first, int64_t last) {
      copy.run(whole, context.outputs[positions_[i]]->data, first, last);
    });
    return {};
  }
  static std::vector<heddle_format> formats(const CreateContext& context) { return uniform_formats(context, 1, context.output_count()); }

 private:
  // Errors: `split` gives the outputs other extents than planned. No output is absent if `split` may change.
  Status check_sizes(const RunContext& context) const {
    const heddle_tensor& sizes = *context.inputs[1];
    for (uint32_t i = 0; i < context.output_count; ++i) {
      const heddle_tensor& y = *context.outputs[i];
      HEDDLE_PLUGIN_CHECK(check_planned({{"split", &sizes}}, y, [&](Extents* to) -> Status {
        if (sizes.element_count != context.output_count) return invalid("there are " + std::to_string(context.output_count) + " outputs");
        for (int d = 0; d < y.rank; ++d) to->push(d == axis_ ? integer_at(sizes, i) : context.inputs[0]->dims[d]);
        return {};
      }));
    }
    return {};
  }
  int axis_ = 0;
  bool varies_ = true;
  Parts parts_;
  std::vector<uint32_t> positions_;
  Tiling tiling_;
};

// Splits dY into parts with the extents of the inputs.
Status concat_gradient(GradientContext& g) {
  const auto rank = static_cast<int64_t>(g.output_type(0).rank);
  int64_t axis = g.attributes().i("axis");
  if (axis < 0) axis += rank;
  std::vector<GradientValue> extents;
  for (uint32_t i = 0; i < g.input_count(); ++i) extents.push_back(g.emit("Shape", {g.x(i)}, {{"start", axis}, {"end", axis + 1}}));
  const GradientValue split = g.emit("Concat", extents, {{"axis", 0}});
  const std::vector<GradientValue> parts = g.emit_all("Split", {g.dy(0), split}, g.input_count(), {{"axis", axis}});
  for (uint32_t i = 0; i < g.input_count(); ++i) g.give(i, parts[i]);
  return {};
}

// Parts that nothing reads have a gradient of zeros.
Status split_gradient(GradientContext& g) {
  std::vector<GradientValue> parts;
  for (uint32_t i = 0; i < g.output_count(); ++i) parts.push_back(g.dy(i) ? g.dy(i) : zeros_like(g, g.needed_y(i)));
  g.give(0, g.emit("Concat", parts, {GradientAttribute("axis", g.attributes().i("axis"))}));
  return {};
}

}  // namespace

void add_concat_split(Builder& plugin) {
  plugin.add(Op("Concat", "", 13)
                 .doc("Puts tensors one after the other along an axis.")
                 .shapes("concat_result has the dims of the inputs, which are equal but for the axis; there the extents add up")
                 .variadic("inputs")
                 .out("concat_result")
                 .required("axis", HEDDLE_ATTRIBUTE_INT)
                 .infer(infer_concat)
                 .gradient<concat_gradient>()
                 .cpu<Concat>()
                 .example("f32[2,1] = 1 2, f32[2,2] = 3 4 5 6; axis=1 -> f32[2,3] = 1 3 4 2 5 6", "ONNX Runtime")
                 .example("i32[1,3] = 1 0 1, i32[2,3] = 0 0 1 1 1 0; axis=-2 -> i32[3,3] = 1 0 1 0 0 1 1 1 0", "ONNX Runtime"));
  plugin.add(Op("Split", "", 18)
                 .doc("Divides a tensor along an axis into parts with the extents that split holds, or into equal ones. The last of these "
                      "may be smaller.")
                 .shapes("each output has the dims of input, and on the axis its element of split")
                 .in("input")
                 .shape_operand("split", dtypes<int64_t>(), true)
                 .variadic_out("outputs")
                 .attribute("axis", 0)
                 .maybe("num_outputs", HEDDLE_ATTRIBUTE_INT)
                 .infer(infer_split)
                 .gradient<split_gradient>()
                 .cpu<Split>()
                 .example("f32[5] = 1 2 3 4 5, i64[2] = 2 3 -> f32[2] = 1 2, f32[3] = 3 4 5", "ONNX Runtime")
                 .example("f32[2,3] = 1 2 3 4 5 6; axis=1, num_outputs=2 -> f32[2,2] = 1 2 4 5, f32[2,1] = 3 6", "ONNX Runtime")
                 .example("i32[4,1] = 1 0 0 1; axis=-2, num_outputs=2 -> i32[2,1] = 1 0, i32[2,1] = 0 1", "ONNX Runtime"));
}

}  // namespace heddle::cpu
