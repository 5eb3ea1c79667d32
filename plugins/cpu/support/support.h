// What the shape, movement and indexing operators share: axes, error sentences, how bytes are divided into tiles, strides of a view.
//
// Sizes are in bytes where the name says so, else in elements. Everything here is pure and may be called from any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <vector>

#include "heddle/op.h"
#include "support/tile_cap.h"

namespace heddle::cpu {

using namespace heddle::plugin;

// Leaves the enclosing function with the Status of `expression` when it failed.
#define HEDDLE_PLUGIN_CHECK(expression)                            \
  do {                                                             \
    ::heddle::plugin::Status heddle_plugin_status_ = (expression); \
    if (!heddle_plugin_status_.ok()) return heddle_plugin_status_; \
  } while (false)

// ---------------------------------------------------------------- axes and dims

// `axis` in [0, rank), negative ones counted from the end; false when it is outside [-rank, rank).
inline bool normalize_axis(int64_t axis, int rank, int* normalized) {
  if (axis < -rank || axis >= rank) return false;
  *normalized = static_cast<int>(axis < 0 ? axis + rank : axis);
  return true;
}
Status axis_outside(const char* what, int64_t axis, int rank);
// Normalises every axis; an axis given twice is an error.
Status normalize_axes(const char* what, const std::vector<int64_t>& axes, int rank, std::vector<int>* normalized);
// Outputs have at most HEDDLE_MAX_RANK dims.
Status check_rank(size_t rank);
Status not_one_dimensional(const char* operand, Dims dims);

inline int64_t count_of(const std::vector<int64_t>& dims) {
  int64_t n = 1;
  for (int64_t dim : dims) n *= dim;
  return n;
}
inline std::vector<int64_t> vector_of(Dims dims) {
  return {dims.begin(), dims.end()};
}
inline Dims dims_of(const heddle_tensor& tensor) {
  return {tensor.dims, tensor.rank};
}
inline Dims dims_of(const std::vector<int64_t>& dims) {
  return {dims.data(), static_cast<int>(dims.size())};
}

// Element `i` of an i32 or i64 tensor.
inline int64_t integer_at(const heddle_tensor& tensor, int64_t i) {
  return tensor.dtype == HEDDLE_I32 ? static_cast<const int32_t*>(tensor.data)[i] : static_cast<const int64_t*>(tensor.data)[i];
}
inline bool is_constant(const heddle_tensor* tensor) {
  return !tensor || ((tensor->flags & HEDDLE_TENSOR_CONSTANT) && (tensor->data || tensor->element_count == 0));
}

// ---------------------------------------------------------------- operands whose content decides extents

// Extents without heap memory: rules compute them while shapes are inferred, and kernels again while they run.
struct Extents {
  int64_t values[HEDDLE_MAX_RANK] = {};
  int rank = 0;
  void push(int64_t extent) { values[rank++] = extent; }
  Dims dims() const { return {values, rank}; }
};
// The axes that `axes` (null: none) names, as bits; one outside the rank or named twice is an error.
Status axis_set(const char* what, const heddle_tensor* axes, int rank, uint32_t* set);

// An input as messages show it: "axes [0, 2]".
struct Operand {
  const char* name;
  const heddle_tensor* content;  // null: absent
};
// Whether a run may see another content than the one that the plan was made for. Ask in prepare.
inline bool varies(const PrepareContext& context, std::initializer_list<uint32_t> ports) {
  return std::any_of(ports.begin(), ports.end(), [&](uint32_t port) { return !is_constant(context.input(port)); });
}
// The error of a run whose operands lead to other extents than the output has. `rule`: what the rule said to the content.
Status other_content(std::initializer_list<Operand> operands, const Status& rule, Dims given, Dims prepared);
// In run: whether the operands lead to the extents of `output`, by which the kernel bounds what it writes. `rule(Extents*)` computes them.
template <class Rule>
Status check_planned(std::initializer_list<Operand> operands, const heddle_tensor& output, Rule&& rule) {
  Extents given;
  const Status status = rule(&given);
  const Dims dims = given.dims(), planned = dims_of(output);
  if (status.ok() && std::equal(dims.begin(), dims.end(), planned.begin(), planned.end())) return {};
  return other_content(operands, status, dims, planned);
}

// "index 7 is outside [-5, 4] (axis 1 of "data")"
Status index_outside(int64_t index, int64_t bound, int axis);
// The position that an ONNX index stands for; false when it is outside [-bound, bound).
inline bool resolve_index(int64_t* index, int64_t bound) {
  if (*index < 0) *index += bound;
  return *index >= 0 && *index < bound;
}

// ---------------------------------------------------------------- tiles

constexpr int64_t tile_bytes = 256 * 1024;  // of a memory-bound copy: about 30 µs
constexpr int64_t most_tiles = 16;          // unless one of them would be above the marks of tile_cap.h
constexpr double bytes_per_ns = 8.0;        // read and written by one thread, a first guess

// Divides any number of work units evenly over the tiles that prepare decided on.
class Tiling {
 public:
  struct Range {
    int64_t first, last;
  };
  // For an operator that reads and writes `bytes` in total, at `cost` times the price of a copy.
  void plan(PrepareContext& context, int64_t bytes, double cost = 1.0) { plan(context, static_cast<double>(bytes), cost); }
  // For amounts that 64 bits may not count. `flops`: where they are more than the weighted bytes.
  void plan(PrepareContext& context, double bytes, double cost, double flops = 0) {
    const double weighted = bytes * cost;
    const double tuned = std::min(weighted / (2.0 * static_cast<double>(tile_bytes)), static_cast<double>(most_tiles));
    tiles_ = std::max({int64_t{1}, static_cast<int64_t>(tuned), least_tiles(std::max(weighted, flops), touched_bytes(context, bytes))});
    context.set_tiles(tiles_);
    context.set_cost_ns(30.0 + weighted / bytes_per_ns);
  }
  // The units of tiles [begin, end) out of `total`.
  Range range(int64_t total, int64_t begin, int64_t end) const { return {share(total, begin), share(total, end)}; }

 private:
  int64_t share(int64_t total, int64_t tile) const { return total / tiles_ * tile + total % tiles_ * tile / tiles_; }
  // Outputs are written whole. Of the inputs as much may be read as the operator says that it moves: not all of a table that is looked up.
  static double touched_bytes(PrepareContext& context, double moved) {
    double read = 0, written = 0;
    for (uint32_t i = 0; i < context.raw()->input_count; ++i)
      if (context.input(i)) read += static_cast<double>(context.input(i)->byte_size);
    for (uint32_t i = 0; i < context.raw()->output_count; ++i)
      if (context.output(i)) written += static_cast<double>(context.output(i)->byte_size);
    return std::max(moved, written + std::min(read, std::max(moved, written)));
  }
  int64_t tiles_ = 1;
};

// ---------------------------------------------------------------- layouts and strides

// Row-major strides, in elements.
inline void dense_strides(Dims dims, int64_t* strides) {
  int64_t stride = 1;
  for (int i = dims.rank - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= dims.data[i];
  }
}
// Strides in elements of a dense view in its own layout (dimension orders only).
void strides_of(const heddle_tensor& tensor, int64_t* strides);
// {0, 2, ..., rank - 1, 1}
heddle_layout channels_last(int rank);
// The choices of an operator whose ports can all be row-major or all channels-last: both for rank 3 to 5 and up to HEDDLE_FORMAT_PORTS
// ports, else row-major alone.
std::vector<heddle_format> uniform_formats(const CreateContext& context, uint32_t inputs, uint32_t outputs);

// ---------------------------------------------------------------- dispatch

// A value moved without regard to its meaning.
struct Bytes16 {
  uint64_t low, high;
};
template <class T>
struct Tag {
  using type = T;
};
// Calls f(Tag<uint8_t, uint16_t, uint32_t or uint64_t>) for the width of a dtype.
template <class F>
auto with_width(size_t width, F&& f) {
  switch (width) {
    case 1:
      return f(Tag<uint8_t>());
    case 2:
      return f(Tag<uint16_t>());
    case 4:
      return f(Tag<uint32_t>());
    default:
      return f(Tag<uint64_t>());
  }
}
// Calls f(Tag<T>) for the element type of a dtype; bool comes as uint8_t.
template <class F>
auto with_dtype(heddle_dtype dtype, F&& f) {
  switch (dtype) {
    case HEDDLE_F16:
      return f(Tag<f16>());
    case HEDDLE_BF16:
      return f(Tag<bf16>());
    case HEDDLE_F32:
      return f(Tag<float>());
    case HEDDLE_F64:
      return f(Tag<double>());
    case HEDDLE_I8:
      return f(Tag<int8_t>());
    case HEDDLE_I16:
      return f(Tag<int16_t>());
    case HEDDLE_I32:
      return f(Tag<int32_t>());
    case HEDDLE_I64:
      return f(Tag<int64_t>());
    case HEDDLE_U16:
      return f(Tag<uint16_t>());
    case HEDDLE_U32:
      return f(Tag<uint32_t>());
    case HEDDLE_U64:
      return f(Tag<uint64_t>());
    default:
      return f(Tag<uint8_t>());
  }
}
// The type in which elements of T are computed with: float for the 16-bit ones, else T.
template <class T>
using Arithmetic = std::conditional_t<std::is_same_v<T, f16> || std::is_same_v<T, bf16>, float, T>;

}  // namespace heddle::cpu
