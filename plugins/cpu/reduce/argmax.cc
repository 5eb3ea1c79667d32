// ArgMax and ArgMin along one axis. The first NaN wins over every number, as in NumPy.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "families.h"
#include "reduce/extremum_rows.h"
#include "shared/axes.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "vector/convert.h"

namespace heddle::cpu {
namespace {

enum class Extremum { maximum, minimum };
enum class Ties { first, last };

// True when `x` replaces `best`; `ties` says which of two equal ones is taken.
template <Extremum extremum, Ties ties, class T>
bool beats(T x, T best) {
  constexpr bool maximum = extremum == Extremum::maximum, last = ties == Ties::last;
  if (x != x) return best == best || last;
  if (best != best) return false;
  if constexpr (last)
    return maximum ? x >= best : x <= best;
  else
    return maximum ? x > best : x < best;
}

constexpr int64_t run_length = 256, stretch = 1 << 20;

template <Extremum extremum, Ties ties, class T>
void scan_row(const T* x, int64_t count, int64_t* index, CancellationPoll& poll) {
  T best = x[0];
  int64_t at = 0;
  for (int64_t first = 1; first < count && !poll.stops(std::min(stretch, count - first)); first += stretch)
    for (int64_t i = first; i < std::min(first + stretch, count); ++i)
      if (beats<extremum, ties>(x[i], best)) best = x[i], at = i;
  *index = at;
}

// `columns` <= run_length neighbouring rows at once, elements of one `stride` apart.
template <Extremum extremum, Ties ties, class T>
void scan_columns(const T* x, int64_t count, int64_t stride, int64_t columns, int64_t* index, CancellationPoll& poll) {
  T best[run_length];
  std::copy(x, x + columns, best);
  std::fill(index, index + columns, 0);
  for (int64_t i = 1; i < count && !poll.stops(columns); ++i)
    for (int64_t c = 0; c < columns; ++c)
      if (beats<extremum, ties>(x[i * stride + c], best[c])) best[c] = x[i * stride + c], index[c] = i;
}

template <Extremum extremum>
class ArgExtremum {
 public:
  Status create(const CreateContext& context) {
    axis_ = context.attributes.i("axis");
    last_ = context.attributes.i("select_last_index") != 0;
    return {};
  }
  Status prepare(PrepareContext& context) {
    const heddle_tensor& x = *context.input(0);
    tiling_.plan(context, static_cast<int64_t>(x.byte_size), 8);
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor& x = *context.inputs[0];
    int axis = 0;
    if (!normalize_axis(axis_, x.rank, &axis)) return axis_outside("axis", axis_, x.rank);
    const Dims dims = dims_of(x);
    const int64_t count = dims[axis], inner = dims.count(axis + 1, dims.rank), outer = dims.count(0, axis);
    const auto [first, until] = tiling_.range(outer * inner, begin, end);
    int64_t* index = static_cast<int64_t*>(context.outputs[0]->data);
    CancellationPoll poll(context);
    with_dtype(x.dtype, [&, first = first, until = until](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t o = first; o < until && !poll.stopped();) {
        const int64_t column = o % inner, n = std::min({inner - column, until - o, run_length});
        const T* data = static_cast<const T*>(x.data) + o / inner * count * inner + column;
        scan(data, count, inner, n, index + o, poll);
        o += n;
      }
    });
    return poll.status();
  }

 private:
  template <class T>
  void scan(const T* x, int64_t count, int64_t stride, int64_t columns, int64_t* index, CancellationPoll& poll) const {
    if constexpr (std::is_same_v<T, float>) {
      if (count <= std::numeric_limits<int32_t>::max()) return scan_floats(x, count, stride, columns, index, poll);
    }
    if constexpr (std::is_same_v<Arithmetic<T>, T>) {
      if (stride == 1)
        last_ ? scan_row<extremum, Ties::last>(x, count, index, poll) : scan_row<extremum, Ties::first>(x, count, index, poll);
      else
        last_ ? scan_columns<extremum, Ties::last>(x, count, stride, columns, index, poll)
              : scan_columns<extremum, Ties::first>(x, count, stride, columns, index, poll);
    } else {
      for (int64_t c = 0; c < columns; ++c) scan_halves(x + c, count, stride, index + c, poll);
    }
  }
  void scan_floats(const float* x, int64_t count, int64_t stride, int64_t columns, int64_t* index, CancellationPoll& poll) const {
    const ExtremumTable& table = isa_extrema();
    const ExtremumFunctions& functions = extremum == Extremum::maximum ? table.largest[last_] : table.smallest[last_];
    if (poll.stops(count * columns)) return;
    if (stride == 1)
      index[0] = functions.row(x, count);
    else
      functions.columns(x, count, stride, columns, index);
  }
  // The loop of 16-bit floats, one element at a time.
  template <class T>
  void scan_halves(const T* x, int64_t count, int64_t stride, int64_t* index, CancellationPoll& poll) const {
    float best = 0, value = 0;
    for (int64_t i = 0; i < count && !poll.stops(4); ++i) {
      convert(dtype_of<T>::id, x + i * stride, HEDDLE_F32, &value, 1);
      const bool better = i == 0 || (last_ ? beats<extremum, Ties::last>(value, best) : beats<extremum, Ties::first>(value, best));
      if (better) best = value, *index = i;
    }
  }

  int64_t axis_ = 0;
  bool last_ = false;
  Tiling tiling_;
};

Status infer_arg(InferContext& context) {
  const Dims dims = context.dims(0);
  int axis = 0;
  if (!normalize_axis(context.attributes.i("axis"), dims.rank, &axis)) return axis_outside("axis", context.attributes.i("axis"), dims.rank);
  if (dims[axis] == 0) return invalid("axis " + std::to_string(axis) + " has no elements to choose from");
  std::vector<int64_t> result = vector_of(dims);
  if (context.attributes.i("keepdims") != 0)
    result[static_cast<size_t>(axis)] = 1;
  else
    result.erase(result.begin() + axis);
  context.set_dims(0, result);
  return {};
}

template <Extremum extremum>
Op extremum_operator(const char* name, std::initializer_list<const char*> examples) {
  Op op(name, "", 13);
  op.in("data", numeric_dtypes)
      .out_as("reduced", HEDDLE_I64)
      .attribute("axis", 0)
      .attribute("keepdims", 1)
      .attribute("select_last_index", 0)
      .infer(infer_arg)
      .cpu<ArgExtremum<extremum>>();
  for (const char* text : examples) op.example(text, "ONNX Runtime");
  return op;
}

}  // namespace

void add_argmax(Builder& plugin) {
  plugin.add(
      extremum_operator<Extremum::maximum>(
          "ArgMax", {"f32[2,3] = -4 -3 3 -4 3 -3 -> i64[1,3] = 0 1 0",
                     "f32[2,3] = 1 3 3 0 0 2; axis=-1, keepdims=0, select_last_index=1 -> i64[2] = 2", "i32[3] = 1 0 1 -> i64[1] = 0"})
          .doc("Finds where the largest element along an axis is. Of equal ones it is the first or, with select_last_index 1, the last.")
          .shapes("reduced has the dims of data; the axis has extent 1, or is left out with keepdims 0"));
  plugin.add(
      extremum_operator<Extremum::minimum>(
          "ArgMin", {"f32[2,3] = -4 -3 3 -4 3 -3 -> i64[1,3] = 0 0 1",
                     "f32[2,3] = 1 3 3 0 0 2; axis=-1, keepdims=0, select_last_index=1 -> i64[2] = 0 1", "i32[3] = 1 0 1 -> i64[1] = 1"})
          .doc("Finds where the smallest element along an axis is. Of equal ones it is the first or, with select_last_index 1, the last.")
          .shapes("reduced has the dims of data; the axis has extent 1, or is left out with keepdims 0"));
}

}  // namespace heddle::cpu
