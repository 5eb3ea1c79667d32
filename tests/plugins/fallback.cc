// An operator with two kernels: the first accepts an epilogue but answers "unsupported" for an odd number of elements, the second is plain.
// The factor of the result shows which one ran: 2 or 2.5.
#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

template <int tenths, bool picky>
struct Times {
  Status prepare(PrepareContext& c) {
    int64_t count = 1;
    for (int32_t i = 0; i < c.input(0)->rank; ++i) count *= c.input(0)->dims[i];
    if (picky && count % 2 != 0) return unsupported("an odd number of elements");
    return {};
  }
  Status run(const RunContext& c, int64_t, int64_t) const {
    const In<float> x = input<float>(c, 0);
    const Out<float> y = output<float>(c, 0);
    for (int64_t i = 0; i < x.size; ++i) {
      y[i] = x[i] * static_cast<float>(tenths) / 10;
      if (fused && y[i] < 0) y[i] = 0;
    }
    return {};
  }
  Status create(const CreateContext& c) {
    fused = c.epilogue_op_count() > 0;
    return {};
  }
  bool fused = false;
};

struct Picky : Times<20, true> {
  static bool accepts_epilogue(const CreateContext& c) {
    return c.epilogue_op_count() == 1 && std::string(c.epilogue_op(0).expression) == "max(acc, 0)";
  }
};
using Plain = Times<25, false>;

}  // namespace

HEDDLE_PLUGIN("fallback", "1.0", plugin) {
  Op op("Times", "fallback");
  op.doc("2 x or 2.5 x").in("x").out("y", same_as("x"));
  op.cpu<Picky>({dtypes<float>()}).priority(10);
  op.cpu<Plain>({dtypes<float>()});
  plugin.add(op);
}
