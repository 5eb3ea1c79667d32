// What docs/writing_an_operator.md shows of attributes: one operator with some of each kind.
#include <algorithm>

#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

// Read once per node, and checked there.
struct Buckets {
  explicit Buckets(const Attributes& attributes)
      : bounds(attributes.floats("bounds")), side(attributes.s("side")), first(attributes.i("first")) {
    if (const heddle_tensor* given = attributes.tensor("labels")) {
      fits = given->dtype == HEDDLE_I64 && given->element_count == static_cast<int64_t>(bounds.size()) + 1;
      if (fits) labels.assign(static_cast<const int64_t*>(given->data), static_cast<const int64_t*>(given->data) + given->element_count);
    }
  }
  Status status() const {
    if (!std::is_sorted(bounds.begin(), bounds.end())) return invalid("bounds do not ascend");
    if (side != "left" && side != "right") return invalid("side is \"" + side + "\", expected \"left\" or \"right\"");
    if (!fits) return invalid("labels are to be i64, one more than the bounds");
    return {};
  }
  std::vector<double> bounds;
  std::string side;
  int64_t first;
  std::vector<int64_t> labels;
  bool fits = true;
};

// Between which bounds each x lies, counted from `first`, or the label of that place.
Status bucket(In<float> x, const Buckets& buckets, Out<int64_t> y) {
  for (int64_t i = 0; i < x.size; ++i) {
    const double value = static_cast<double>(x[i]);
    const auto begin = buckets.bounds.begin(), end = buckets.bounds.end();
    const auto place = (buckets.side == "left" ? std::lower_bound(begin, end, value) : std::upper_bound(begin, end, value)) - begin;
    y[i] = buckets.labels.empty() ? buckets.first + place : buckets.labels[static_cast<size_t>(place)];
  }
  return {};
}

}  // namespace

HEDDLE_PLUGIN("guide_attributes", "1.0", plugin) {
  plugin.add(
      Op("Bucket", "guide")
          .doc("between which bounds each x lies, or the label of that place")
          .in("x", dtypes<float>())
          .out_as("y", HEDDLE_I64, same_as("x"))
          .required("bounds", HEDDLE_ATTRIBUTE_FLOATS)
          .attribute("side", "left")
          .attribute("first", 0)
          .maybe("labels", HEDDLE_ATTRIBUTE_TENSOR)
          .cpu<bucket>()
          .elementwise()
          .example("f32[4] = -1 0 0.5 2; bounds=[0.0,1.0] -> i64[4] = 0 0 1 2", "NumPy: np.searchsorted")
          .example("f32[4] = -1 0 0.5 2; bounds=[0.0,1.0], side=\"right\", first=10 -> i64[4] = 10 11 11 12", "NumPy: np.searchsorted")
          .example("f32[3] = 7 -7 0.5; bounds=[0.0,1.0], labels=i64[3] = -1 0 1 -> i64[3] = 1 -1 0", "by hand"));
}
