// Operators that find the number of their results' elements, and statistics of rows and of all elements.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "heddle/op.h"

using namespace heddle::plugin;

namespace {

Status infer_peaks(InferContext& c) {
  c.set_dims(0, c.dims(0));
  c.set_bounded(0, 0);
  return {};
}

struct Threshold {
  explicit Threshold(const Attributes& attributes) : value(attributes.f("threshold", -HUGE_VAL)) {}
  double value;
};

// Reads extents at run time: x may be the result of such an operator.
template <class T>
Status peaks(In<T> x, const Threshold& threshold, Out<int64_t> positions) {
  const int64_t n = x.tensor->extent ? *x.tensor->extent : x.size;
  int64_t found = 0;
  for (int64_t i = 1; i + 1 < n; ++i)
    if (x[i] > x[i - 1] && x[i] > x[i + 1] && x[i] >= threshold.value) positions[found++] = i;
  *positions.tensor->extent = found;
  return {};
}

Status infer_unique_runs(InferContext& c) {
  for (uint32_t i = 0; i < 2; ++i) {
    c.set_dims(i, c.dims(0));
    c.set_bounded(i, 0);
  }
  return {};
}

template <class T>
Status unique_runs(In<T> x, Out<T> values, Out<int64_t> lengths) {
  int64_t found = 0;
  for (int64_t i = 0; i < x.size; ++i) {
    if (found == 0 || x[i] != values[found - 1]) {
      values[found] = x[i];
      lengths[found++] = 0;
    }
    ++lengths[found - 1];
  }
  *values.tensor->extent = *lengths.tensor->extent = found;
  return {};
}

Status infer_repeat_each(InferContext& c) {
  c.set_dynamic(0, c.dims(0).rank);
  return {};
}

// Sums the counts; fails if one is negative or the sum exceeds `most`.
Status sum_of(In<int64_t> counts, int64_t most, int64_t* sum) {
  *sum = 0;
  for (int64_t i = 0; i < counts.size; ++i) {
    if (counts[i] < 0) return invalid("count " + std::to_string(i) + " is " + std::to_string(counts[i]));
    if (counts[i] > most - *sum) return invalid("the counts are more than " + std::to_string(most) + " together");
    *sum += counts[i];
  }
  return {};
}

template <class T>
Status repeat_each(const RunContext& c, In<T> x, In<int64_t> counts, Out<T>) {
  int64_t dims[HEDDLE_MAX_RANK] = {};
  std::copy(x.dims.begin(), x.dims.end(), dims);
  const int64_t columns = x.dims.count(1, x.dims.rank);
  HEDDLE_PLUGIN_CHECK(sum_of(counts, (int64_t{1} << 40) / std::max<int64_t>(columns, 1), dims));
  T* y = static_cast<T*>(allocate_output(c, 0, {dims, x.dims.rank}));
  if (dims[0] * columns == 0) return {};
  if (!y) return {HEDDLE_ERROR_OUT_OF_MEMORY, "no memory for " + std::to_string(dims[0]) + " rows"};
  for (int64_t i = 0; i < counts.size; ++i)
    for (int64_t k = 0; k < counts[i]; ++k) y = std::copy(x.data + i * columns, x.data + (i + 1) * columns, y);
  return {};
}

template <class T>
Status sum_each(In<T> x, In<int64_t> counts, Out<T> y) {
  const int64_t rows = x.dims[0], columns = x.dims.count(1, x.dims.rank);
  int64_t sum = 0;
  HEDDLE_PLUGIN_CHECK(sum_of(counts, INT64_MAX, &sum));
  if (sum != rows) return invalid("the counts are " + std::to_string(sum) + " together, x has " + std::to_string(rows) + " rows");
  std::fill(y.data, y.data + y.size, T{0});
  const T* row = x.data;
  for (int64_t i = 0; i < counts.size; ++i)
    for (int64_t k = 0; k < counts[i]; ++k, row += columns)
      for (int64_t j = 0; j < columns; ++j) y[i * columns + j] += row[j];
  return {};
}

Status infer_median(InferContext& c) {
  return c.dims(0)[-1] > 0 ? Status() : invalid("rows without elements have no median");
}

template <class T>
class MedianRows {
 public:
  Status prepare(PrepareContext& c) {
    const Dims x = {c.input(0)->dims, c.input(0)->rank};
    columns_ = x[-1];
    rows_ = Tiles::of(x.count(0, x.rank - 1), std::max<int64_t>(1, 8192 / columns_));
    c.set_tiles(rows_.count());
    c.set_scratch(0, static_cast<uint64_t>(columns_) * sizeof(T));
    return {};
  }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const In<T> x = input<T>(c, 0);
    const Out<T> y = output<T>(c, 0);
    T* const sorted = thread_scratch<T>(c);
    for (const int64_t row : rows_.elements(begin, end)) {
      const T *first = x.data + row * columns_, *last = first + columns_;
      const T* const nan = std::find_if(first, last, [](T value) { return value != value; });
      if (nan != last) {
        y[row] = *nan;
        continue;
      }
      T* const middle = sorted + (columns_ - 1) / 2;
      std::nth_element(sorted, middle, std::copy(first, last, sorted));
      y[row] = *middle;
    }
    return {};
  }

 private:
  int64_t columns_ = 1;
  Tiles rows_;
};

Status infer_histogram(InferContext& c) {
  const std::vector<double> edges = c.attributes.floats("edges");
  if (edges.size() < 2) return invalid("edges has " + std::to_string(edges.size()) + " numbers, expected 2 or more");
  for (size_t i = 1; i < edges.size(); ++i)
    if (!(edges[i - 1] < edges[i])) return invalid("edges do not ascend at " + std::to_string(i));
  c.set_dims(0, {static_cast<int64_t>(edges.size()) - 1});
  return {};
}

// Each tile counts in the thread's scratch and copies its counts to the step's scratch, where finish sums them.
template <class T>
class Histogram {
 public:
  Status create(const CreateContext& c) {
    edges_ = c.attributes.floats("edges");
    bins_ = edges_.size() - 1;
    return {};
  }
  Status prepare(PrepareContext& c) {
    const int64_t grain = std::max<int64_t>(32768, 16 * static_cast<int64_t>(bins_));  // so the scratch is no more than half of x
    tiles_ = Tiles::of(c.input(0)->element_count, grain);
    c.set_tiles(tiles_.count());
    c.set_scratch(static_cast<uint64_t>(tiles_.count()) * bins_ * sizeof(int64_t), bins_ * sizeof(int64_t));
    return {};
  }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const In<T> x = input<T>(c, 0);
    int64_t* const counts = thread_scratch<int64_t>(c);
    for (int64_t tile = begin; tile < end; ++tile) {
      std::fill(counts, counts + bins_, 0);
      for (const int64_t i : tiles_.elements(tile)) {
        const double value = static_cast<double>(x[i]);
        if (!(value >= edges_.front() && value <= edges_.back())) continue;
        const auto above = std::upper_bound(edges_.begin(), edges_.end(), value);
        ++counts[std::min(static_cast<size_t>(above - edges_.begin()) - 1, bins_ - 1)];
      }
      std::copy(counts, counts + bins_, step_scratch<int64_t>(c) + static_cast<size_t>(tile) * bins_);
    }
    return {};
  }
  Status finish(const RunContext& c) const {
    const Out<int64_t> total = output<int64_t>(c, 0);
    const int64_t* counts = step_scratch<int64_t>(c);
    std::fill(total.data, total.data + total.size, 0);
    for (int64_t tile = 0; tile < tiles_.count(); ++tile)
      for (size_t bin = 0; bin < bins_; ++bin) total.data[bin] += *counts++;
    return {};
  }

 private:
  std::vector<double> edges_;
  size_t bins_ = 0;
  Tiles tiles_;
};

Op repeat_each() {
  return Op("RepeatEach", "authors")
      .doc("row i of x, counts[i] times")
      .in("x", dtypes<float, double, int64_t>())
      .dims("N ...")
      .in("counts", dtypes<int64_t>(), nullptr)
      .dims("N")
      .out("y")
      .infer(infer_repeat_each)
      .gradient("SumEach", {"dy", "counts"}, {"dx"})
      .example("f32[3,2] = 1 2 3 4 5 6, i64[3] = 2 0 1 -> f32[3,2] = 1 2 1 2 5 6", "by hand")
      .example("i64[2] = 7 8, i64[2] = 0 3 -> i64[3] = 8", "by hand")
      .example("f64[4,3], i64[4] = 0..5")
      .cpu<repeat_each<float>>()
      .kernel_flags(HEDDLE_KERNEL_DYNAMIC_OUTPUTS)
      .cpu<repeat_each<double>>()
      .kernel_flags(HEDDLE_KERNEL_DYNAMIC_OUTPUTS)
      .cpu<repeat_each<int64_t>>()
      .kernel_flags(HEDDLE_KERNEL_DYNAMIC_OUTPUTS);
}

Op sum_each() {
  return Op("SumEach", "authors")
      .doc("y[i] is the sum of the next counts[i] rows of x")
      .in("x", dtypes<float, double, int64_t>())
      .dims("M ...")
      .in("counts", dtypes<int64_t>(), nullptr)
      .dims("N")
      .out("y")
      .dims("N ...")
      .gradient("RepeatEach", {"dy", "counts"}, {"dx"})
      .example("f32[3,2] = 1 2 3 4 5 6, i64[3] = 2 0 1 -> f32[3,2] = 4 6 0 0 5 6", "by hand")
      .example("f64[5,4], i64[2] = 3 2")
      .cpu<sum_each<float>>()
      .cpu<sum_each<double>>()
      .cpu<sum_each<int64_t>>();
}

}  // namespace

HEDDLE_PLUGIN("authors_runs", "1.0", plugin) {
  plugin.add(Op("Peaks", "authors")
                 .doc("where x is greater than both neighbours, and not less than the threshold")
                 .in("x", dtypes<float, double>())
                 .dims("N")
                 .out_as("positions", HEDDLE_I64)
                 .maybe("threshold", HEDDLE_ATTRIBUTE_FLOAT)
                 .infer(infer_peaks)
                 .example("f32[7] = 0 2 1 1 5 -1 3 -> i64[2] = 1 4", "by hand")
                 .example("f64[7] = 0 2 1 1 5 -1 3; threshold=2.5 -> i64[1] = 4", "by hand")
                 .example("f32[3] = 1 1 1 -> i64[0]", "by hand")
                 .cpu<peaks<float>>()
                 .kernel_flags(HEDDLE_KERNEL_READS_EXTENTS)
                 .cpu<peaks<double>>()
                 .kernel_flags(HEDDLE_KERNEL_READS_EXTENTS));
  plugin.add(Op("UniqueRuns", "authors")
                 .doc("the value and the length of each run of equal elements")
                 .in("x", dtypes<uint8_t, int32_t, int64_t>())
                 .dims("N")
                 .out("values")
                 .out_as("lengths", HEDDLE_I64)
                 .infer(infer_unique_runs)
                 .example("i32[6] = 4 4 7 4 4 4 -> i32[3] = 4 7 4, i64[3] = 2 1 3", "by hand")
                 .example("u8[0] -> u8[0], i64[0]", "by hand")
                 .example("i64[1000] = 0..2")
                 .cpu<unique_runs<uint8_t>>()
                 .cpu<unique_runs<int32_t>>()
                 .cpu<unique_runs<int64_t>>());
  plugin.add(repeat_each());
  plugin.add(sum_each());
  plugin.add(Op("MedianRows", "authors")
                 .doc("the lower median of each row; NaN where there is one")
                 .in("x", dtypes<float, double, int32_t, int64_t>())
                 .dims("... D")
                 .out("y")
                 .dims("...")
                 .infer(infer_median)
                 .example("f32[2,4] = 4 1 3 2 0 0 -1 9 -> f32[2] = 2 0", "by hand")
                 .example("i32[5] = 5 -4 3 2 1 -> i32[] = 2", "by hand")
                 .example("f64[2,3] = 1 nan 3 -inf inf 2 -> f64[2] = nan 2", "by hand")
                 .example("i64[40,9] = 0..5")
                 .cpu<MedianRows<float>>({dtypes<float>()})
                 .cpu<MedianRows<double>>({dtypes<double>()})
                 .cpu<MedianRows<int32_t>>({dtypes<int32_t>()})
                 .cpu<MedianRows<int64_t>>({dtypes<int64_t>()}));
  plugin.add(Op("Histogram", "authors")
                 .doc("how many elements are in [edges[i], edges[i + 1]); the last bin has its upper edge too")
                 .in("x", dtypes<float, double>())
                 .out_as("counts", HEDDLE_I64)
                 .required("edges", HEDDLE_ATTRIBUTE_FLOATS)
                 .infer(infer_histogram)
                 .example("f32[2,3] = 0 0.5 1 1.5 2 3; edges=[0,1,2] -> i64[2] = 2 3", "NumPy: np.histogram")
                 .example("f64[4] = -1 nan inf 0.25; edges=[-1,0,0.5,10] -> i64[3] = 1 1 0", "by hand")
                 .example("f32[70000]; edges=[-1,-0.5,0,0.25,1]")
                 .cpu<Histogram<float>>({dtypes<float>()})
                 .cpu<Histogram<double>>({dtypes<double>()}));
}
