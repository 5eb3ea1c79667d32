// TopK: the k largest or smallest elements along an axis, in that order, and where they were. Ties go to the lower index; NaN counts as
// larger than every number.
#include <algorithm>
#include <functional>

#include "families.h"
#include "shared/axes.h"
#include "shared/computed_extents.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/scalar.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/gradients.h"
#include "support/ordered_key.h"

namespace heddle::cpu {
namespace {

Status top_k_extents(Dims x, int axis, const heddle_tensor& operand, Extents* to) {
  const int64_t k = integer_at(operand, 0);
  if (k < 0 || k > x[axis])
    return invalid("K is " + std::to_string(k) + ", axis " + std::to_string(axis) + " has " + std::to_string(x[axis]) + " elements");
  for (int i = 0; i < x.rank; ++i) to->push(i == axis ? k : x[i]);
  return {};
}

Status infer_top_k(InferContext& context) {
  const Dims x = context.dims(0);
  int axis = 0;
  if (!normalize_axis(context.attributes.i("axis"), x.rank, &axis)) return axis_outside("axis", context.attributes.i("axis"), x.rank);
  if (context.input(1).element_count != 1) return invalid("K has shape " + dims_text(context.dims(1)) + ", expected one element");
  if (!context.known(1)) {
    for (uint32_t i = 0; i < 2; ++i) context.set_dynamic(i, x.rank);
    return {};
  }
  Extents to;
  HEDDLE_PLUGIN_CHECK(top_k_extents(x, axis, context.input(1), &to));
  for (uint32_t i = 0; i < 2; ++i) context.set_dims(i, to.dims());
  return {};
}

// An element by its key, which is large for those that come first, as an integer that is small for them; then by its index.
class NarrowEntry {
 public:
  NarrowEntry(uint32_t key, int64_t index) : bits_(uint64_t{~key} << 32 | static_cast<uint64_t>(index)) {}
  int64_t index() const { return static_cast<int64_t>(bits_ & UINT32_MAX); }
  bool operator<(const NarrowEntry& other) const { return bits_ < other.bits_; }

 private:
  uint64_t bits_;
};
class WideEntry {
 public:
  WideEntry(uint64_t key, int64_t index) : key_(~key), index_(index) {}
  int64_t index() const { return index_; }
  bool operator<(const WideEntry& other) const { return key_ != other.key_ ? key_ < other.key_ : index_ < other.index_; }

 private:
  uint64_t key_;
  int64_t index_;
};

class TopK {
 public:
  Status create(const CreateContext& context) {
    normalize_axis(context.attributes.i("axis"), context.input(0)->rank, &axis_);
    largest_ = context.attributes.i("largest") != 0;
    return {};
  }
  Status prepare(PrepareContext& context) {
    const heddle_tensor& x = *context.input(0);
    varies_ = varies(context, {1});
    tiling_.plan(context, static_cast<int64_t>(x.byte_size), 20.0);
    context.set_scratch(0, static_cast<uint64_t>(x.dims[axis_]) * sizeof(WideEntry));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor* any = context.outputs[0] ? context.outputs[0] : context.outputs[1];
    if (varies_)
      HEDDLE_PLUGIN_CHECK(check_planned({{"K", context.inputs[1]}}, *any, [&](Extents* to) {
        return top_k_extents(dims_of(*context.inputs[0]), axis_, *context.inputs[1], to);
      }));
    return with_dtype(context.inputs[0]->dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      CancellationPoll poll(context);
      select<T>(context, begin, end, poll);
      return poll.status();
    });
  }

 private:
  template <class T>
  void select(const RunContext& context, int64_t begin, int64_t end, CancellationPoll& poll) const {
    if (sizeof(OrderedKey<T>) <= 4 && context.inputs[0]->dims[axis_] < int64_t{UINT32_MAX})
      select_lines<T, NarrowEntry>(context, begin, end, poll);
    else
      select_lines<T, WideEntry>(context, begin, end, poll);
  }
  template <class T, class Entry>
  void select_lines(const RunContext& context, int64_t begin, int64_t end, CancellationPoll& poll) const {
    const heddle_tensor& x = *context.inputs[0];
    const heddle_tensor *values = context.outputs[0], *indices = context.output_count > 1 ? context.outputs[1] : nullptr;
    const Dims dims = dims_of(x);
    const heddle_tensor& any = values ? *values : *indices;
    const int64_t n = dims[axis_], k = any.dims[axis_], after = dims.count(axis_ + 1, dims.rank);
    auto* entries = thread_scratch<Entry>(context);
    const Tiling::Range range = tiling_.range(dims.count(0, axis_) * after, begin, end);
    for (int64_t line = range.first; line < range.last && k > 0; ++line) {
      if (poll.stops(n)) return;
      const int64_t base = line / after * n * after + line % after, target = line / after * k * after + line % after;
      const T* const from = static_cast<const T*>(x.data) + base;
      find_first<T>(from, after, n, k, entries, poll);
      if (poll.stopped()) return;
      for (int64_t i = 0; i < k; ++i) {
        const int64_t index = entries[i].index();
        if (values) static_cast<T*>(values->data)[target + i * after] = from[index * after];
        if (indices) static_cast<int64_t*>(indices->data)[target + i * after] = index;
      }
    }
  }
  // Puts the k first of n elements, in order, to the front of `entries`.
  template <class T, class Entry>
  void find_first(const T* x, int64_t stride, int64_t n, int64_t k, Entry* entries, CancellationPoll& poll) const {
    const auto turn = static_cast<OrderedKey<T>>(largest_ ? 0 : -1);
    const auto entry = [&](int64_t i) { return Entry(static_cast<OrderedKey<T>>(ordered_key(x[i * stride]) ^ turn), i); };
    if (static_cast<double>(n) * 20 > max_sort_operations) {
      for (int64_t i = 0; i < n; ++i) entries[i] = entry(i);
      return heap_sort_cancellable(entries, entries + k, entries + n, std::less<Entry>(), 4, poll);
    }
    if (k <= max_inserted)
      insert_first(entry, n, k, entries);
    else
      gather_first(entry, n, k, entries);
  }
  // Keeps the first ones in order.
  template <class Entry, class F>
  static void insert_first(const F& entry, int64_t n, int64_t k, Entry* entries) {
    for (int64_t i = 0; i < n; ++i) {
      const Entry e = entry(i);
      int64_t at = std::min(i, k);
      if (at == k && !(e < entries[--at])) continue;
      for (; at > 0 && e < entries[at - 1]; --at) entries[at] = entries[at - 1];
      entries[at] = e;
    }
  }
  // Whenever there are twice as many as wanted, the worse half goes; what is no better than the worst of the others need not come in.
  template <class Entry, class F>
  static void gather_first(const F& entry, int64_t n, int64_t k, Entry* entries) {
    const int64_t room = std::min(n, 2 * k);
    int64_t i = 0, count = room;
    for (; i < room; ++i) entries[i] = entry(i);
    while (true) {
      if (count > k) std::nth_element(entries, entries + k - 1, entries + count);
      if (i == n) break;
      const Entry worst = entries[k - 1];
      for (count = k; i < n && count < room; ++i) {
        entries[count] = entry(i);
        count += entries[count] < worst ? 1 : 0;
      }
    }
    std::sort(entries, entries + k);
  }
  static constexpr int64_t max_inserted = 16;
  int axis_ = 0;
  bool largest_ = true, varies_ = true;
  Tiling tiling_;
};

// Writes each gradient back to where its value was; each place is used at most once.
Status top_k_gradient(GradientContext& g) {
  g.give(0, g.emit("ScatterElements", {zeros_like(g, g.x(0)), g.needed_y(1), g.dy(0)}, {g.same("axis")}));
  return {};
}

}  // namespace

void add_topk(Builder& plugin) {
  plugin.add(Op("TopK", "", 11)
                 .doc("Finds the K largest elements along an axis, or the smallest with largest 0, in order, and where they are. Of equal "
                      "ones the first comes first, and NaN counts as the largest number. The result is in order with sorted 0, too.")
                 .shapes("Values and Indices have the dims of X, with extent K on the axis")
                 .in("X", numeric_dtypes)
                 .shape_operand("K")
                 .out("Values", {}, numeric_dtypes)
                 .out_as("Indices", HEDDLE_I64)
                 .attribute("axis", -1)
                 .attribute("largest", 1)
                 .attribute("sorted", 1)
                 .infer(infer_top_k)
                 .gradient<top_k_gradient>()
                 .cpu<TopK>()
                 .example("f32[2,3] = 1 3 2 6 4 5, i64[1] = 2 -> f32[2,2] = 3 2 6 5, i64[2,2] = 1 2 0 2", "ONNX Runtime")
                 .example("f32[3,2] = 1 3 2 6 4 5, i64[1] = 2; axis=0, largest=0, sorted=1 -> f32[2,2] = 1 3 2 5, i64[2,2] = 0 0 1 2",
                          "ONNX Runtime")
                 .example("f32[1] = 4, i64[1] = 1; sorted=0 -> f32[1] = 4, i64[1] = 0", "by hand"));
}

}  // namespace heddle::cpu
