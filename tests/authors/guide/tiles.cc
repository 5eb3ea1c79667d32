// What docs/writing_an_operator.md shows of tiles: partial results in scratch, combined in their order.
#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

class SumOfSquares {
 public:
  Status prepare(PrepareContext& c) {
    tiles_ = Tiles::of(c.input(0)->element_count, 16384);
    c.set_tiles(tiles_.count());
    c.set_scratch(static_cast<uint64_t>(tiles_.count()) * sizeof(double));
    return {};
  }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const In<float> x = input<float>(c, 0);
    for (int64_t tile = begin; tile < end; ++tile) {
      double sum = 0;
      for (const int64_t i : tiles_.elements(tile)) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
      step_scratch<double>(c)[tile] = sum;
    }
    return {};
  }
  Status finish(const RunContext& c) const {
    double sum = 0;
    for (int64_t tile = 0; tile < tiles_.count(); ++tile) sum += step_scratch<double>(c)[tile];
    output<float>(c, 0)[0] = static_cast<float>(sum);
    return {};
  }

 private:
  Tiles tiles_;
};

}  // namespace

HEDDLE_PLUGIN("guide_tiles", "1.0", plugin) {
  plugin.add(Op("SumOfSquares", "guide")
                 .doc("the sum of x * x over all elements")
                 .in("x", dtypes<float>())
                 .out("y", scalar(), dtypes<float>())
                 .cpu<SumOfSquares>()
                 .example("f32[4] = 1 -2 3 0.5 -> f32[] = 14.25", "by hand")
                 .example("f32[0] -> f32[] = 0", "by hand")
                 .example("f32[300,200] = 2 -> f32[] = 240000", "by hand"));
}
