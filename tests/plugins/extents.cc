// Operators around extents that are known only while running: one that makes such a value, kernels that read true extents themselves, and
// one that asks for a resource.
#include "counter.h"
#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

// The positive elements of x, and `more` of them than there are.
template <int64_t more>
Status compact(In<float> x, Out<float> y) {
  int64_t n = 0;
  for (int64_t i = 0; i < x.size; ++i)
    if (x[i] > 0) y[n++] = x[i];
  *y.tensor->extent = n + more;
  return {};
}
Status infer_compact(InferContext& c) {
  c.set_dims(0, c.dims(0));
  c.set_bounded(0, 0);
  return {};
}

int64_t true_extent(const heddle_tensor& x) {
  return x.extent ? *x.extent : x.dims[0];
}

// The sum of x, and how often this kernel was prepared.
class Sum {
 public:
  Status prepare(PrepareContext&) { return ++prepared_, Status(); }
  Status run(const RunContext& c, int64_t, int64_t) const {
    const auto x = input<float>(c, 0);
    float sum = 0;
    for (int64_t i = 0; i < true_extent(*x.tensor); ++i) sum += x[i];
    output<float>(c, 0)[0] = sum;
    output<int64_t>(c, 1)[0] = prepared_;
    return {};
  }

 private:
  int64_t prepared_ = 0;
};
Status infer_sum(InferContext& c) {
  c.set_dims(0, std::vector<int64_t>{});
  c.set_dims(1, std::vector<int64_t>{});
  return {};
}
Op sum_operator(const char* name) {
  Op op(name, "extents");
  op.in("x", dtypes<float>()).out("y", {}, dtypes<float>()).out_as("prepared", HEDDLE_I64).infer(infer_sum);
  op.cpu<Sum>();
  return op;
}

// Twice x, as long as x.
Status twice(In<float> x, Out<float> y) {
  const int64_t n = true_extent(*x.tensor);
  for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i];
  if (y.tensor->extent) *y.tensor->extent = n;
  return {};
}
Status infer_twice(InferContext& c) {
  c.set_dims(0, c.dims(0));
  if (c.input(0).extent_axis >= 0) c.set_bounded(0, c.input(0).extent_axis);
  return {};
}

// x plus the next number of another plugin's counter.
class Ticketed {
 public:
  Status create(const CreateContext& c) { return counter_.ask(c, "awkward_provider.counter"); }
  Status run(const RunContext& c, int64_t, int64_t) const {
    const auto x = input<float>(c, 0);
    const auto number = static_cast<float>(counter_(c)->next(counter_(c)));
    for (int64_t i = 0; i < x.size; ++i) output<float>(c, 0)[i] = x[i] + number;
    return {};
  }

 private:
  Needed<Counter> counter_;
};

}  // namespace

HEDDLE_PLUGIN("extents", "1.0", plugin) {
  const heddle_dtype_set f32 = dtypes<float>();
  plugin.add(Op("Compact", "extents").in("x", f32).out("y", {}, f32).infer(infer_compact).cpu<compact<0>>());
  plugin.add(Op("CompactLies", "extents").in("x", f32).out("y", {}, f32).infer(infer_compact).cpu<compact<100>>());
  plugin.add(sum_operator("Sum"));
  plugin.add(sum_operator("SumReads").kernel_flags(HEDDLE_KERNEL_READS_EXTENTS));
  plugin.add(
      Op("TwiceReads", "extents").in("x", f32).out("y", {}, f32).infer(infer_twice).cpu<twice>().kernel_flags(HEDDLE_KERNEL_READS_EXTENTS));
  plugin.add(Op("Ticketed", "extents").in("x", f32).out("y", same_as("x"), f32).cpu<Ticketed>());
}
