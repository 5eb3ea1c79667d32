// op.h as an operator author's compiler sees it: C++17, g++, clang++ and nvcc. Instantiates every kind of parameter and stage.
#include "heddle/op.h"
using namespace heddle::plugin;

struct Factor {
  explicit Factor(const Attributes& attributes) : value(static_cast<float>(attributes.f("factor"))) {}
  float value;
};

static Status everything(In<float> x, OptionalIn<double> maybe, Ins<float> rest, const Factor& factor, Out<float> y, Outs<float> more,
                         const RunContext& context) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = factor.value * x[i] + static_cast<float>(maybe ? maybe[i] : 0.0);
  for (uint32_t k = 0; k < rest.count && k < more.count; ++k) more[k][0] = rest[k][0];
  return is_cancelled(context) ? cancelled() : Status();
}

struct Staged {
  int64_t tiles = 1;
  static std::vector<heddle_format> formats(const CreateContext&) { return {}; }
  static bool accepts_epilogue(const CreateContext& c) { return c.stage_count() == 0; }
  Status create(const CreateContext& c) { return c.input(0) ? Status() : invalid("no input"); }
  Status prepare(PrepareContext& c) {
    c.set_tiles(tiles = c.is_constant(0) ? 1 : 2);
    c.set_scratch(64, 64);
    return {};
  }
  Status run(const RunContext& c, int64_t begin, int64_t end) const { return begin < end && output<float>(c, 0) ? Status() : cancelled(); }
  Status finish(const RunContext& c) const {
    HEDDLE_PLUGIN_CHECK(step_scratch<float>(c) && thread_scratch<float>(c) ? Status() : invalid("no scratch"));
    return {};
  }
};

HEDDLE_PLUGIN("op_user", "1.0", plugin) {
  plugin.add(Op("Everything", "op_user")
                 .in("x", dtypes<float>())
                 .optional("maybe", dtypes<double>(), nullptr)
                 .out("y", same_as("x"), dtypes<float>())
                 .attribute("factor", 1.0)
                 .kernels_only()
                 .cpu<everything>());
  plugin.add(Op("Staged", "op_user").in("x").out("y", same_as("x")).cpu<Staged>({dtypes<float>()}, {dtypes<float>()}));
}
