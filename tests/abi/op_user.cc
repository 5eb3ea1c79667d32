// Compiles op.h as an operator author's compiler does: as C++17, with g++, clang++ and nvcc. Instantiates every kind of parameter and
// epilogue op.
#include "heddle/op.h"
#include "heddle/op/philox.h"
using namespace heddle::plugin;

struct Factor {
  explicit Factor(const Attributes& attributes) : value(static_cast<float>(attributes.f("factor"))) {}
  Status status() const { return value > 0 ? Status() : invalid("factor is not positive"); }
  float value;
};

static Status everything(In<float> x, OptionalIn<double> maybe, Ins<float> rest, const Factor& factor, Out<float> y, Outs<float> more,
                         const RunContext& context) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = factor.value * x[i] + static_cast<float>(maybe ? maybe[i] : 0.0);
  for (uint32_t k = 0; k < rest.count && k < more.count; ++k) more[k][0] = rest[k][0];
  return is_cancelled(context) ? cancelled() : Status();
}

template <class T>
static Status doubled(In<T> x, Out<T> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = static_cast<T>(2 * static_cast<float>(x[i]));
  return {};
}

struct Staged {
  Tiles tiles;
  Needed<int> counter;
  static std::vector<heddle_format> formats(const CreateContext& c) { return std::vector<heddle_format>(c.input_count()); }
  static bool accepts_epilogue(const CreateContext& c) { return c.epilogue_op_count() == 0; }
  Status create(const CreateContext& c) { return c.input(0) ? counter.ask(c, "op_user.counter") : invalid("no input"); }
  Status prepare(PrepareContext& c) {
    tiles = Tiles::of(c.is_constant(0) ? 1 : 2, 1);
    c.set_tiles(tiles.count());
    c.set_scratch(64, 64);
    return c.prepack(0, "as it is", 8, [](void*) {}) ? Status() : invalid("no room");
  }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const Philox philox(*c.run_state, c.random_stream);
    for (const int64_t i : tiles.elements(begin, end)) output<float>(c, 0)[i] = unit_float(philox.block(static_cast<uint64_t>(i))[0]);
    return *counter(c) < 0 ? cancelled() : Status();
  }
  Status finish(const RunContext& c) const {
    HEDDLE_PLUGIN_CHECK(step_scratch<float>(c) && thread_scratch<float>(c) ? Status() : invalid("no scratch"));
    return {};
  }
};

struct Stacked {
  Subnet body;
  Status create(const CreateContext& c) {
    body = Subnet(c.attributes, "body");
    return {};
  }
  Status run(const RunContext& c, int64_t, int64_t) const {
    In<int64_t> count;
    HEDDLE_PLUGIN_CHECK(host_input(c, 0, &count));
    for (int64_t i = 0; i < count[0]; ++i) {
      const heddle_tensor trip = view_of(&i);
      heddle_tensor row = row_of(*c.outputs[0], i);
      HEDDLE_PLUGIN_CHECK(
          body.run(c, i, InputViews::joined(step_scratch<const heddle_tensor*>(c), {&trip}, inputs_from(c, 1)), {&row, nullptr}));
    }
    return {};
  }
};
static Status infer_stacked(InferContext& c) {
  std::vector<heddle_type> types;
  HEDDLE_PLUGIN_CHECK(Subnet(c.attributes, "body").infer(c, inputs_from(c, 1), 2, &types));
  c.set_type(0, types[0]);
  c.set_dims(0, std::vector<int64_t>(c.known(0) ? c.ints(0) : c.attributes.ints("dims")));
  return {};
}
static Status stacked_subnets(const SubnetContext& c) {
  const heddle_tensor trip = without_data(view_of<int64_t>(nullptr));
  return c.declare("body", {&trip});
}
static void stacked_cost(CostContext& c) {
  c.set_flops(c.output_elements(0));
}

struct Begun {
  Status start(const RunContext&, Completion done) const { return done(Status()) ? Status() : cancelled(); }
  void abort(const RunContext&) const {}
};

struct Counter {
  explicit Counter(const ResourceRequest& request) : value(request.option("first") ? 1 : 0) {}
  Status status() const { return value >= 0 ? Status() : invalid("no counter"); }
  Status poll_error() { return {}; }
  void abort(const char*) { value = 0; }
  int value;
};

HEDDLE_PLUGIN("op_user", "1.0", plugin) {
  plugin.resource<Counter>("op_user.counter", HEDDLE_SCOPE_COMMUNICATOR, 1);
  plugin.add(Op("Doubled", "op_user")
                 .doc("twice x")
                 .in("x", float_dtypes)
                 .out("y", same_as("x"), float_dtypes)
                 .in_place("y", "x")
                 .gradient("Doubled", {"dy"}, {"dx"})
                 .traits(HEDDLE_TRAIT_CHEAP)
                 .cpu<doubled<float>>()
                 .elementwise()
                 .cpu<doubled<f16>>()
                 .cpu<doubled<bf16>>()
                 .cpu<doubled<double>>()
                 .kernel_name("doubled")
                 .priority(1));
  plugin.add(Op("Stacked", "op_user")
                 .shape_operand("count")
                 .any_number("captures")
                 .out("rows", {}, any_dtype, nullptr)
                 .maybe("dims", HEDDLE_ATTRIBUTE_INTS)
                 .attribute("mode", "whole")
                 .subnet("body", SubnetPorts().own_inputs(1).inputs_from(1))
                 .subnets(stacked_subnets)
                 .infer(infer_stacked)
                 .cost<stacked_cost>()
                 .cpu<Stacked>());
  plugin.add(Op("Begun", "op_user").in("x").out("y", same_as("x")).cpu<Begun>());
  plugin.add(Op("Everything", "op_user")
                 .in("x", dtypes<float>())
                 .optional("maybe", dtypes<double>(), nullptr)
                 .out("y", same_as("x"), dtypes<float>())
                 .attribute("factor", 1.0)
                 .kernels_only()
                 .cpu<everything>());
  plugin.add(Op("Staged", "op_user").in("x").out("y", same_as("x")).cpu<Staged>({dtypes<float>()}, {dtypes<float>()}));
}
