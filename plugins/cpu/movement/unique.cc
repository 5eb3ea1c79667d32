// Unique: the distinct elements, or slices along an axis, in ascending order or in that of first occurrence; where each occurs first,
// which one every input element is, and how often each occurs. NaN counts as one value, above all numbers.
#include <algorithm>
#include <cmath>
#include <utility>

#include "families.h"
#include "shared/axes.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/scalar.h"
#include "shared/tile_cap.h"
#include "support/cpu_api.h"
#include "support/ordered_key.h"

namespace heddle::cpu {
namespace {

Status infer_unique(InferContext& context) {
  const Dims x = context.dims(0);
  std::vector<int64_t> dims = {x.count(0, x.rank)};
  int axis = 0;
  if (context.attributes.has("axis")) {
    if (!normalize_axis(context.attributes.i("axis"), x.rank, &axis)) return axis_outside("axis", context.attributes.i("axis"), x.rank);
    dims = vector_of(x);
  }
  const int64_t extent = dims[static_cast<size_t>(axis)];
  context.set_dims(0, dims);
  context.set_bounded(0, axis);
  for (uint32_t i = 1; i < 4; ++i) {
    context.set_dtype(i, HEDDLE_I64);
    context.set_dims(i, std::vector<int64_t>{extent});
  }
  context.set_bounded(1, 0);
  context.set_bounded(3, 0);
  return {};
}

// x as [before, extent, after]; the slices x[:, i, :] are compared.
struct Slices {
  int64_t before, extent, after;
};

// Working memory in the step's scratch, one entry a slice.
struct Groups {
  int64_t* order;   // slices in ascending order, equal ones by position
  int64_t* first;   // of every group: its first slice
  int64_t* count;   // of every group
  int64_t* rank;    // of every group: its position in the output
  int64_t* member;  // of every slice: its group
};

// An element by its key and position.
struct Keyed {
  uint64_t key;
  int64_t index;
};

// Sorts n elements, equal ones by position, into `order`, digit by digit; digits that all share cost nothing. a, b: room for n each.
template <class T>
void sort_elements(const T* x, int64_t n, Keyed* a, Keyed* b, int64_t* order, CancellationPoll& poll) {
  constexpr int digits = sizeof(OrderedKey<T>), values = 256;
  int64_t counts[digits][values] = {};
  const auto digit = [](uint64_t key, int d) { return key >> (8 * d) & (values - 1); };
  if (poll.stops(n * digits)) return;
  for (int64_t i = 0; i < n; ++i) {
    a[i] = {ordered_key(x[i]), i};
    for (int d = 0; d < digits; ++d) ++counts[d][digit(a[i].key, d)];
  }
  for (int d = 0; d < digits; ++d) {
    if (n == 0 || counts[d][digit(a[0].key, d)] == n) continue;
    if (poll.stops(2 * n)) return;
    int64_t place = 0;
    for (int64_t& count : counts[d]) place += std::exchange(count, place);
    for (int64_t i = 0; i < n; ++i) b[counts[d][digit(a[i].key, d)]++] = a[i];
    std::swap(a, b);
  }
  for (int64_t i = 0; i < n; ++i) order[i] = a[i].index;
}

class Unique {
 public:
  Status create(const CreateContext& context) {
    flat_ = !context.attributes.has("axis");
    if (!flat_) normalize_axis(context.attributes.i("axis"), context.input(0)->rank, &axis_);
    sorted_ = context.attributes.i("sorted") != 0;
    return {};
  }
  Status prepare(PrepareContext& context) {
    const heddle_tensor& x = *context.input(0);
    const int64_t extent = slices(x).extent;
    context.set_scratch(static_cast<uint64_t>(extent) * 5 * sizeof(int64_t));
    context.set_cost_ns(200.0 + 30.0 * static_cast<double>(x.element_count));
    return {};
  }
  Status run(const RunContext& context, int64_t, int64_t) const {
    const heddle_tensor& x = *context.inputs[0];
    const Slices s = slices(x);
    auto* memory = step_scratch<int64_t>(context);
    const Groups groups{memory, memory + s.extent, memory + 2 * s.extent, memory + 3 * s.extent, memory + 4 * s.extent};
    CancellationPoll poll(context);
    with_dtype(x.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const int64_t count = group_slices(static_cast<const T*>(x.data), s, groups, poll);
      if (!poll.stopped()) write<T>(context, s, groups, count, poll);
    });
    return poll.status();
  }

 private:
  Slices slices(const heddle_tensor& x) const {
    const Dims dims = dims_of(x);
    if (flat_) return {1, x.element_count, 1};
    return {dims.count(0, axis_), dims[axis_], dims.count(axis_ + 1, dims.rank)};
  }

  template <class T>
  static int compare(const T* x, const Slices& s, int64_t i, int64_t j, CancellationPoll& poll) {
    for (int64_t b = 0; b < s.before && s.after > 0; ++b)
      for (int64_t a = 0; a < s.after; ++a) {
        if (poll.stops(4)) return 0;
        const Arithmetic<T> p = to_arithmetic(x[(b * s.extent + i) * s.after + a]), q = to_arithmetic(x[(b * s.extent + j) * s.after + a]);
        if (ordered_less(p, q)) return -1;
        if (ordered_less(q, p)) return 1;
      }
    return 0;
  }

  template <class T>
  static void sort_slices(const T* x, const Slices& s, int64_t* order, CancellationPoll& poll) {
    for (int64_t i = 0; i < s.extent; ++i) order[i] = i;
    const auto before = [&](int64_t i, int64_t j) {
      const int difference = compare(x, s, i, j, poll);
      return difference < 0 || (difference == 0 && i < j);
    };
    // A comparison that is cancelled halfway has an arbitrary result, which std::sort does not tolerate.
    const double comparisons = static_cast<double>(s.extent) * std::log2(static_cast<double>(s.extent) + 1);
    if (comparisons * 4 * static_cast<double>(s.before * s.after) > max_sort_operations)
      heap_sort_cancellable(order, order + s.extent, order + s.extent, before, 1, poll);
    else
      std::sort(order, order + s.extent, before);
  }

  // Fills `groups`; returns how many there are.
  template <class T>
  int64_t group_slices(const T* x, const Slices& s, const Groups& groups, CancellationPoll& poll) const {
    const bool are_elements = s.before * s.after == 1;
    // The members of groups that come after `order` are free until it is known.
    auto* const keyed = reinterpret_cast<Keyed*>(groups.first);
    if (are_elements && s.extent >= 64)
      sort_elements(x, s.extent, keyed, keyed + s.extent, groups.order, poll);
    else
      sort_slices(x, s, groups.order, poll);
    int64_t count = 0;
    for (int64_t i = 0; i < s.extent && !poll.stopped(); ++i) {
      const int64_t slice = groups.order[i];
      const int64_t last = i == 0 ? slice : groups.order[i - 1];
      const bool is_new = i == 0 || (are_elements ? ordered_key(x[last]) != ordered_key(x[slice]) : compare(x, s, last, slice, poll) != 0);
      if (is_new) {
        groups.first[count] = slice;
        groups.count[count++] = 0;
      }
      ++groups.count[count - 1];
      groups.member[slice] = count - 1;
    }
    // The order of the output; `order` is free for it now.
    for (int64_t g = 0; g < count; ++g) groups.order[g] = g;
    const auto earlier = [&](int64_t g, int64_t h) { return groups.first[g] < groups.first[h]; };
    if (!sorted_ && static_cast<double>(count) * 20 > max_sort_operations)
      heap_sort_cancellable(groups.order, groups.order + count, groups.order + count, earlier, 2, poll);
    else if (!sorted_)
      std::sort(groups.order, groups.order + count, earlier);
    if (poll.stopped()) return 0;
    for (int64_t g = 0; g < count; ++g) groups.rank[groups.order[g]] = g;
    return count;
  }

  template <class T>
  static void write(const RunContext& context, const Slices& s, const Groups& groups, int64_t count, CancellationPoll& poll) {
    const auto integers = [&](uint32_t i) {
      return i < context.output_count && context.outputs[i] ? static_cast<int64_t*>(context.outputs[i]->data) : nullptr;
    };
    const auto set_extent = [&](uint32_t i) {
      if (i < context.output_count && context.outputs[i] && context.outputs[i]->extent) *context.outputs[i]->extent = count;
    };
    const T* x = static_cast<const T*>(context.inputs[0]->data);
    if (context.outputs[0]) {
      T* y = static_cast<T*>(context.outputs[0]->data);
      for (int64_t b = 0; b < s.before && s.after > 0; ++b)
        for (int64_t g = 0; g < count; ++g, y += s.after) {
          if (poll.stops(s.after)) return;
          const T* from = x + (b * s.extent + groups.first[groups.order[g]]) * s.after;
          std::copy(from, from + s.after, y);
        }
    }
    if (int64_t* indices = integers(1))
      for (int64_t g = 0; g < count; ++g) indices[g] = groups.first[groups.order[g]];
    if (int64_t* inverse = integers(2))
      for (int64_t i = 0; i < s.extent; ++i) inverse[i] = groups.rank[groups.member[i]];
    if (int64_t* counts = integers(3))
      for (int64_t g = 0; g < count; ++g) counts[g] = groups.count[groups.order[g]];
    for (uint32_t i : {0u, 1u, 3u}) set_extent(i);
  }

  bool flat_ = true, sorted_ = true;
  int axis_ = 0;
};

}  // namespace

void add_unique(Builder& plugin) {
  plugin.add(Op("Unique", "", 11)
                 .doc("Finds the elements that differ, or the slices along an axis, where each is first, which one each element is, and "
                      "how often it occurs. With sorted 0 they stay in the order of their first occurrence.")
                 .shapes("Y is [count]; with an axis Y has the dims of X, and count on the axis; indices and counts are [count], "
                         "inverse_indices is [extent of the axis, or number of elements]")
                 .in("X")
                 .out("Y")
                 .optional_out("indices", {}, dtypes<int64_t>(), nullptr)
                 .optional_out("inverse_indices", {}, dtypes<int64_t>(), nullptr)
                 .optional_out("counts", {}, dtypes<int64_t>(), nullptr)
                 .maybe("axis", HEDDLE_ATTRIBUTE_INT)
                 .attribute("sorted", 1)
                 .infer(infer_unique)
                 .cpu<Unique>()
                 .example("f32[5] = 2 1 1 3 2 -> f32[3] = 1 2 3, i64[3] = 1 0 3, i64[5] = 1 0 0 2 1, i64[3] = 2 2 1", "ONNX Runtime")
                 .example("f32[3,2] = 2 1 2 1 0 3; axis=0, sorted=0 -> f32[2,2] = 2 1 0 3, i64[2] = 0 2, i64[3] = 0 0 1, i64[2] = 2 1",
                          "ONNX Runtime")
                 .example("i32[4] = 1 0 1 0; sorted=0 -> i32[2] = 1 0", "by hand"));
}

}  // namespace heddle::cpu
