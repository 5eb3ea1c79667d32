// Operators that run subnets, and operators that update variables.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "heddle/op.h"

using namespace heddle::plugin;

namespace {

// MapRows: y[i] = body(x[i], captures...).
Status infer_map_rows(InferContext& c) {
  const heddle_tensor& x = c.input(0);
  if (x.rank < 1) return invalid("x has no rows");
  const heddle_tensor row = without_data(row_of(x, 0));
  std::vector<const heddle_tensor*> inputs = {&row};
  inputs.insert(inputs.end(), c.inputs() + 1, c.inputs() + c.input_count());
  std::vector<heddle_type> types;
  HEDDLE_PLUGIN_CHECK(Subnet(c.attributes, "body").infer(c, inputs, 1, &types));
  const heddle_type& result = types[0];
  if (result.bounded_axis >= 0 || (result.flags & HEDDLE_TYPE_DYNAMIC))
    return unsupported("results of body have extents that are not known");
  if (result.rank >= HEDDLE_MAX_RANK) return invalid("results of body have rank " + std::to_string(result.rank));
  std::vector<int64_t> dims = {x.dims[0]};
  dims.insert(dims.end(), result.dims, result.dims + result.rank);
  c.set_dims(0, dims);
  c.set_dtype(0, result.dtype);
  return {};
}

Status map_rows_subnets(const SubnetContext& c) {
  const heddle_tensor row = without_data(row_of(c.input(0), 0));
  std::vector<const heddle_tensor*> inputs = {&row};
  inputs.insert(inputs.end(), c.inputs() + 1, c.inputs() + c.input_count());
  return c.declare("body", inputs);
}

// The kernel accesses no bytes of its tensors, so it runs on every device.
class MapRows {
 public:
  using moves_only = void;
  Status create(const CreateContext& c) {
    body_ = Subnet(c.attributes, "body");
    return {};
  }
  Status prepare(PrepareContext& c) {
    c.set_scratch(c.input_count() * sizeof(const heddle_tensor*));
    return {};
  }
  Status run(const RunContext& c, int64_t, int64_t) const {
    for (int64_t i = 0; i < c.outputs[0]->dims[0]; ++i) {
      const heddle_tensor row = row_of(*c.inputs[0], i);
      heddle_tensor y = row_of(*c.outputs[0], i);
      HEDDLE_PLUGIN_CHECK(body_.run(c, i, InputViews::joined(step_scratch<const heddle_tensor*>(c), {&row}, inputs_from(c, 1)), {&y}));
    }
    return {};
  }

 private:
  Subnet body_;
};

// Iterate: x = body(x), `times` times.
Status infer_iterate(InferContext& c) {
  if (c.attributes.i("times") < 0) return invalid("times is " + std::to_string(c.attributes.i("times")));
  const heddle_tensor x = without_data(c.input(0));
  std::vector<heddle_type> types;
  HEDDLE_PLUGIN_CHECK(Subnet(c.attributes, "body").infer(c, {&x}, 1, &types));
  const Dims dims = c.dims(0), result = {types[0].dims, types[0].rank};
  if (types[0].dtype != x.dtype || dims.rank != result.rank || !std::equal(dims.begin(), dims.end(), result.begin()))
    return invalid("body makes " + dims_text(result) + " of " + dims_text(dims) + ", which it can't be given again");
  c.set_dims(0, dims);
  return {};
}

Status iterate_subnets(const SubnetContext& c) {
  if (c.attributes.i("times") < 1) return {};
  const heddle_tensor x = without_data(c.input(0));
  return c.declare("body", {&x});
}

class Iterate {
 public:
  using moves_only = void;
  Status create(const CreateContext& c) {
    body_ = Subnet(c.attributes, "body");
    times_ = c.attributes.i("times");
    return {};
  }
  Status prepare(PrepareContext& c) {
    c.set_data_scratch(c.output(0)->byte_size);
    return {};
  }
  // The last result is y; earlier ones are alternately in the scratch and in y.
  Status run(const RunContext& c, int64_t, int64_t) const {
    heddle_tensor& y = *c.outputs[0];
    if (times_ < 1) return move(c, y.data, c.inputs[0]->data, y.byte_size);
    heddle_tensor between = y;
    between.data = c.data_scratch;
    const heddle_tensor* from = c.inputs[0];
    for (int64_t i = 0; i < times_; ++i) {
      heddle_tensor* const to = (times_ - i) % 2 == 1 ? &y : &between;
      HEDDLE_PLUGIN_CHECK(body_.run(c, i, {from}, {to}));
      from = to;
    }
    return {};
  }

 private:
  Subnet body_;
  int64_t times_ = 0;
};

template <class T>
Status running_maximum(In<T> maximum, In<T> x, Out<T> next) {
  const int64_t columns = maximum.size;
  for (int64_t k = 0; k < columns; ++k) {
    T largest = maximum[k];
    for (int64_t i = k; i < x.size; i += columns) largest = std::max(largest, x[i]);
    next[k] = largest;
  }
  return {};
}

struct Step {
  explicit Step(const Attributes& attributes) : value(attributes.i("step")) {}
  int64_t value;
};

Status count_up(In<int64_t> counter, const Step& step, Out<int64_t> next, Out<int64_t> before) {
  const uint64_t value = static_cast<uint64_t>(counter[0]);
  if (before) before[0] = counter[0];
  next[0] = static_cast<int64_t>(value + static_cast<uint64_t>(step.value));
  return {};
}

}  // namespace

HEDDLE_PLUGIN("authors_control", "1.0", plugin) {
  plugin.add(
      Op("MapRows", "authors")
          .doc("y[i] = body(x[i], captures...)")
          .in("x")
          .any_number("captures")
          .out("y", {}, any_dtype, nullptr)
          .subnet("body", SubnetPorts())
          .infer(infer_map_rows)
          .subnets(map_rows_subnets)
          .example("f32[2,3] = 1 2 3 -4 5 6; body={\"inputs\": [\"row\"], \"outputs\": [\"y\"], \"nodes\": ["
                   "{\"type\": \"Neg\", \"name\": \"n\", \"inputs\": [\"row\"], \"outputs\": [\"y\"]}]}"
                   " -> f32[2,3] = -1 -2 -3 4 -5 -6",
                   "by hand")
          .example("f32[3,2] = 1 2 3 4 5 6, f32[2] = 10 20; body={\"inputs\": [\"row\", \"c\"], \"outputs\": [\"y\"], \"nodes\": ["
                   "{\"type\": \"Add\", \"name\": \"a\", \"inputs\": [\"row\", \"c\"], \"outputs\": [\"t\"]}, "
                   "{\"type\": \"ArgMax\", \"name\": \"m\", \"inputs\": [\"t\"], \"outputs\": [\"y\"]}]}"
                   " -> i64[3,1] = 1 1 1",
                   "by hand")
          .example(
              "f32[2,2] = 1 0 1 1, f16[1], bf16[1], f32[1], f64[1], i8[1], i16[1], i32[1], i64[1], u8[1], u16[1], u32[1], u64[1], bool[1]; "
              "body={\"inputs\": [\"row\", \"a\", \"b\", \"c\", \"d\", \"e\", \"f\", \"g\", \"h\", \"i\", \"j\", \"k\", \"l\", \"m\"], "
              "\"outputs\": [\"y\"], "
              "\"nodes\": [{\"type\": \"Identity\", \"name\": \"same\", \"inputs\": [\"row\"], \"outputs\": [\"y\"]}]}"
              " -> f32[2,2] = 1 0 1 1",
              "by hand")
          .cpu<MapRows>());
  plugin.add(Op("Iterate", "authors")
                 .doc("x = body(x), so many times")
                 .in("x")
                 .out("y")
                 .attribute("times", 1)
                 .subnet("body", SubnetPorts())
                 .infer(infer_iterate)
                 .subnets(iterate_subnets)
                 .example("f32[2] = 1 -3; times=4, body={\"inputs\": [\"x\"], \"outputs\": [\"y\"], \"nodes\": ["
                          "{\"type\": \"Add\", \"name\": \"a\", \"inputs\": [\"x\", \"x\"], \"outputs\": [\"y\"]}]}"
                          " -> f32[2] = 16 -48",
                          "by hand")
                 .example("i64[2,2] = 1 2 3 4; times=0, body={\"inputs\": [\"x\"], \"outputs\": [\"y\"], \"nodes\": ["
                          "{\"type\": \"Neg\", \"name\": \"n\", \"inputs\": [\"x\"], \"outputs\": [\"y\"]}]}"
                          " -> i64[2,2] = 1 2 3 4",
                          "by hand")
                 .example("f32[3] = 1 0 1; times=3, body={\"inputs\": [\"x\"], \"outputs\": [\"y\"], \"nodes\": ["
                          "{\"type\": \"Identity\", \"name\": \"same\", \"inputs\": [\"x\"], \"outputs\": [\"y\"]}]}"
                          " -> f32[3] = 1 0 1",
                          "by hand")
                 .cpu<Iterate>());
  plugin.add(Op("RunningMaximum", "authors")
                 .doc("the largest number of each column so far, a variable")
                 .in("maximum", dtypes<float, double, int32_t, int64_t>())
                 .dims("C")
                 .in("x", dtypes<float, double, int32_t, int64_t>())
                 .dims("N C")
                 .out("next", same_as("maximum"))
                 .updates("next", "maximum")
                 .example("f32[2] = 1 5, f32[3,2] = 0 6 2 7 -1 -2 -> f32[2] = 2 7", "by hand")
                 .example("i64[3] = 1 2 3, i64[0,3] -> i64[3] = 1 2 3", "by hand")
                 .cpu<running_maximum<float>>()
                 .cpu<running_maximum<double>>()
                 .cpu<running_maximum<int32_t>>()
                 .cpu<running_maximum<int64_t>>());
  plugin.add(Op("Counter", "authors")
                 .doc("adds to a variable, and says what it was before")
                 .in("counter", dtypes<int64_t>())
                 .dims("")
                 .out("next", same_as("counter"))
                 .updates("next", "counter")
                 .optional_out("before", same_as("counter"))
                 .attribute("step", 1)
                 .example("i64[] = 41 -> i64[] = 42, i64[] = 41", "by hand")
                 .example("i64[] = 5; step=-7 -> i64[] = -2", "by hand")
                 .cpu<count_up>());
}
