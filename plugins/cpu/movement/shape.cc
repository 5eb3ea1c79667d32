// Shape and Size (which read dims alone), and values made from them or from scalars: ConstantOfShape, Range, EyeLike.
#include <cmath>

#include "families.h"
#include "support/onnx_dtype.h"
#include "support/support.h"

namespace heddle::cpu {
namespace {

// ---------------------------------------------------------------- Shape, Size

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

// ---------------------------------------------------------------- ConstantOfShape

Status constant_extents(const heddle_tensor& shape, Extents* to) {
  for (int64_t i = 0; i < shape.element_count; ++i) {
    const int64_t dim = integer_at(shape, i);
    if (dim < 0) return invalid("the shape has the extent " + std::to_string(dim) + ", expected 0 or more");
    to->push(dim);
  }
  return {};
}

Status infer_constant_of_shape(InferContext& context) {
  const heddle_tensor* value = context.attributes.tensor("value");
  if (value && value->element_count != 1) return invalid("value has " + std::to_string(value->element_count) + " elements, expected 1");
  context.set_dtype(0, value ? value->dtype : HEDDLE_F32);
  const Dims operand = context.dims(0);
  if (operand.rank != 1) return not_one_dimensional("input", operand);
  HEDDLE_PLUGIN_CHECK(check_rank(static_cast<size_t>(operand[0])));
  if (!context.known(0)) return context.set_dynamic(0, static_cast<int>(operand[0])), Status();
  Extents to;
  HEDDLE_PLUGIN_CHECK(constant_extents(context.input(0), &to));
  context.set_dims(0, to.dims());
  return {};
}

class ConstantOfShape {
 public:
  Status create(const CreateContext& context) {
    if (const heddle_tensor* value = context.attributes.tensor("value")) std::memcpy(&value_, value->data, value->byte_size);
    return {};
  }
  Status prepare(PrepareContext& context) {
    varies_ = varies(context, {0});
    tiling_.plan(context, static_cast<int64_t>(context.output(0)->byte_size));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor& y = *context.outputs[0];
    if (varies_)
      HEDDLE_PLUGIN_CHECK(
          check_planned({{"input", context.inputs[0]}}, y, [&](Extents* to) { return constant_extents(*context.inputs[0], to); }));
    const Tiling::Range range = tiling_.range(y.element_count, begin, end);
    with_width(byte_width(y.dtype), [&](auto tag) {
      using W = typename decltype(tag)::type;
      W value;
      std::memcpy(&value, &value_, sizeof(value));
      W* data = static_cast<W*>(y.data);
      std::fill(data + range.first, data + range.last, value);
    });
    return {};
  }

 private:
  bool varies_ = true;
  uint64_t value_ = 0;  // the bytes of one element
  Tiling tiling_;
};

// ---------------------------------------------------------------- Range

constexpr heddle_dtype_set range_dtypes = dtypes<float, double, int16_t, int32_t, int64_t>();

template <class T>
Status range_count(T start, T limit, T delta, int64_t* count) {
  if (delta == T(0)) return invalid("delta is 0");
  if constexpr (std::is_floating_point_v<T>) {
    const double steps = std::ceil((static_cast<double>(limit) - static_cast<double>(start)) / static_cast<double>(delta));
    if (!(steps < 4e18)) return invalid("the range has more elements than fit into memory, or no end");
    *count = steps > 0 ? static_cast<int64_t>(steps) : 0;
  } else {
    const bool empty = delta > 0 ? limit <= start : limit >= start;
    const auto low = static_cast<uint64_t>(delta > 0 ? start : limit), high = static_cast<uint64_t>(delta > 0 ? limit : start);
    const uint64_t stride = delta > 0 ? static_cast<uint64_t>(delta) : 0 - static_cast<uint64_t>(delta);
    const uint64_t steps = empty ? 0 : (high - low - 1) / stride + 1;
    if (steps > INT64_MAX / 8) return invalid("the range has more elements than fit into memory");
    *count = static_cast<int64_t>(steps);
  }
  return {};
}

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
    if constexpr (std::is_floating_point_v<T>) {
      for (int64_t i = range.first; i < range.last; ++i) y.data[i] = start + static_cast<T>(i) * delta;
    } else {
      // Unsigned, because an intermediate product may wrap where the sum does not.
      const auto first = static_cast<uint64_t>(start), step = static_cast<uint64_t>(delta);
      for (int64_t i = range.first; i < range.last; ++i) y.data[i] = static_cast<T>(first + static_cast<uint64_t>(i) * step);
    }
    return {};
  }

 private:
  Tiling tiling_;
};

// ---------------------------------------------------------------- EyeLike

Status infer_eye_like(InferContext& context) {
  const Dims dims = context.dims(0);
  if (dims.rank != 2) return invalid("input has shape " + dims_text(dims) + ", expected a matrix");
  heddle_dtype dtype = context.input(0).dtype;
  HEDDLE_PLUGIN_CHECK(dtype_attribute(context.attributes, "dtype", &dtype));
  context.set_dtype(0, dtype);
  context.set_dims(0, dims);
  return {};
}

// One, as bytes of a dtype.
uint64_t one_of(heddle_dtype dtype) {
  switch (dtype) {
    case HEDDLE_F16:
      return 0x3C00;
    case HEDDLE_BF16:
      return 0x3F80;
    case HEDDLE_F32:
      return 0x3F800000;
    case HEDDLE_F64:
      return 0x3FF0000000000000;
    default:
      return 1;
  }
}

class EyeLike {
 public:
  Status create(const CreateContext& context) {
    k_ = context.attributes.i("k");
    return {};
  }
  Status prepare(PrepareContext& context) {
    tiling_.plan(context, static_cast<double>(context.output(0)->byte_size), 1.0);
    return {};
  }
  // Tiles are ranges of elements.
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor& y = *context.outputs[0];
    const Tiling::Range range = tiling_.range(y.element_count, begin, end);
    if (range.first == range.last) return {};
    with_width(byte_width(y.dtype), [&](auto tag) {
      using W = typename decltype(tag)::type;
      W* data = static_cast<W*>(y.data);
      std::fill(data + range.first, data + range.last, W(0));
      const int64_t rows = y.dims[0], columns = y.dims[1];
      const int64_t first = k_ < 0 ? (k_ < -rows ? rows : -k_) : 0;
      for (int64_t r = std::max(first, range.first / columns); r < rows && r < columns - k_; ++r) {
        const int64_t at = r * columns + r + k_;
        if (at >= range.last) break;
        if (at >= range.first) data[at] = static_cast<W>(one_of(y.dtype));
      }
    });
    return {};
  }

 private:
  int64_t k_ = 0;
  Tiling tiling_;
};

}  // namespace

void add_shape(Builder& plugin) {
  plugin.add(Op("Shape", "", 15)
                 .doc("the extents of axes [start, end)")
                 .in("data", any_dtype, nullptr)
                 .out_as("shape", HEDDLE_I64)
                 .attribute("start", 0)
                 .maybe("end", HEDDLE_ATTRIBUTE_INT)
                 .traits(HEDDLE_TRAIT_SHAPE_ONLY | HEDDLE_TRAIT_CHEAP)
                 .infer(infer_shape)
                 .cpu<shape>());
  plugin.add(Op("Size", "", 13)
                 .doc("the number of elements")
                 .in("data", any_dtype, nullptr)
                 .out_as("size", HEDDLE_I64)
                 .traits(HEDDLE_TRAIT_SHAPE_ONLY | HEDDLE_TRAIT_CHEAP)
                 .infer(infer_scalar)
                 .cpu<size>());
  plugin.add(Op("ConstantOfShape", "", 9)
                 .doc("a tensor of one repeated value")
                 .shape_operand("input")
                 .out("output", {}, any_dtype, nullptr)
                 .maybe("value", HEDDLE_ATTRIBUTE_TENSOR)
                 .traits(HEDDLE_TRAIT_CHEAP)
                 .infer(infer_constant_of_shape)
                 .cpu<ConstantOfShape>());
  plugin.add(Op("Range", "", 11)
                 .doc("start, start + delta, ... before limit")
                 .shape_operand("start", range_dtypes)
                 .shape_operand("limit", range_dtypes)
                 .shape_operand("delta", range_dtypes)
                 .out("output", {}, range_dtypes, nullptr)
                 .infer(infer_range)
                 .cpu<Range<float>>(std::vector<heddle_dtype_set>(3, dtypes<float>()), {dtypes<float>()})
                 .cpu<Range<double>>(std::vector<heddle_dtype_set>(3, dtypes<double>()), {dtypes<double>()})
                 .cpu<Range<int16_t>>(std::vector<heddle_dtype_set>(3, dtypes<int16_t>()), {dtypes<int16_t>()})
                 .cpu<Range<int32_t>>(std::vector<heddle_dtype_set>(3, dtypes<int32_t>()), {dtypes<int32_t>()})
                 .cpu<Range<int64_t>>(std::vector<heddle_dtype_set>(3, dtypes<int64_t>()), {dtypes<int64_t>()}));
  plugin.add(Op("EyeLike", "", 9)
                 .doc("ones on the k-th diagonal, zeros elsewhere")
                 .in("input", any_dtype, nullptr)
                 .out("output", {}, any_dtype, nullptr)
                 .maybe("dtype", HEDDLE_ATTRIBUTE_INT)
                 .attribute("k", 0)
                 .infer(infer_eye_like)
                 .cpu<EyeLike>());
}

}  // namespace heddle::cpu
