// What docs/operator_guide.md shows of layouts: a kernel that takes two of them.
#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

class ChannelScale {
 public:
  // Row-major, or channels last where there are any; it is as fast in both.
  static std::vector<heddle_format> formats(const CreateContext& c) {
    heddle_format row_major = {}, last = {};
    if (c.input(0)->rank < 3) return {row_major};
    last.inputs[0] = last.outputs[0] = channels_last(c.input(0)->rank);
    return {row_major, last};
  }
  Status prepare(PrepareContext& c) {
    int64_t strides[HEDDLE_MAX_RANK] = {};
    strides_of(*c.input(0), strides);
    stride_ = strides[1];
    tiles_ = Tiles::of(c.input(0)->element_count, 16384);
    c.set_tiles(tiles_.count());
    return {};
  }
  // Element i, as they lie in memory, is of channel i / stride.
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const In<float> x = input<float>(c, 0), w = input<float>(c, 1);
    const Out<float> y = output<float>(c, 0);
    for (const int64_t i : tiles_.elements(begin, end)) y[i] = w[i / stride_ % w.size] * x[i];
    return {};
  }

 private:
  Tiles tiles_;
  int64_t stride_ = 1;
};

}  // namespace

HEDDLE_PLUGIN("guide_layouts", "1.0", plugin) {
  plugin.add(Op("ChannelScale", "guide")
                 .doc("x[n, c, ...] * w[c]")
                 .in("x", dtypes<float>())
                 .dims("N C ...")
                 .in("w", dtypes<float>())
                 .dims("C")
                 .out("y", same_as("x"), dtypes<float>())
                 .in_place("y", "x")
                 .cpu<ChannelScale>()
                 .example("f32[1,2,1,2] = 1 2 3 4, f32[2] = 10 -1 -> f32[1,2,1,2] = 10 20 -3 -4", "by hand")
                 .example("f32[3,5,7,9], f32[5]")
                 .example("f32[2,3] = 1 2 3 4 5 6, f32[3] = 1 0 2 -> f32[2,3] = 1 0 6 4 0 12", "by hand"));
}
