// bench::Work: uses the processor for the number of iterations that an input gives at run time, and depends on any number of values. Built
// separately from the runtime, so that no compiler sees how much work a net is.
#include "heddle/op.h"

using namespace heddle::plugin;

static Status work(In<int64_t> iterations, Ins<float>, Out<float> y) {
  uint64_t state = 1;
  for (int64_t i = 0; i < iterations[0]; ++i) state = state * 6364136223846793005u + 1442695040888963407u;
  y[0] = static_cast<float>(state >> 40);
  return {};
}

// Like Work, with a cost that its net declares, true or not.
struct DeclaredWork {
  double cost_ns = 0;
  Status create(const CreateContext& c) {
    cost_ns = c.attributes.f("cost_ns");
    return {};
  }
  Status prepare(PrepareContext& c) {
    c.set_cost_ns(cost_ns);
    return {};
  }
  Status run(const RunContext& c, int64_t, int64_t) const {
    return work(input<int64_t>(c, 0), {c.inputs + 1, c.input_count - 1}, output<float>(c, 0));
  }
};

static Op op(const char* name) {
  return Op(name, "bench")
      .doc("y[0] = a number that takes `iterations` steps to find; x only orders")
      .in("iterations", dtypes<int64_t>(), "I")
      .on_host()
      .any_number("x")
      .out_as("y", HEDDLE_F32, same_as("iterations"));
}

HEDDLE_PLUGIN("bench", "1.0", plugin) {
  plugin.add(op("Work").cpu<work>());
  plugin.add(op("DeclaredWork").attribute("cost_ns", 0.0).cpu<DeclaredWork>({dtypes<int64_t>(), dtypes<float>()}, {dtypes<float>()}));
}
