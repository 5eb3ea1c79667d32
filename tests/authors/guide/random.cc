// What docs/operator_guide.md shows of random numbers: they follow from the element, not from the tile or the thread.
#include "heddle/op.h"
#include "heddle/op/philox.h"
using namespace heddle::plugin;

namespace {

class Noise {
 public:
  Status create(const CreateContext& c) {
    amplitude_ = c.attributes.f("amplitude");
    return {};
  }
  Status prepare(PrepareContext& c) {
    tiles_ = Tiles::of(c.output(0)->element_count, 4096);
    c.set_tiles(tiles_.count());
    return {};
  }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const In<float> x = input<float>(c, 0);
    const Out<float> y = output<float>(c, 0);
    const Philox philox(*c.run_state, c.random_stream);
    for (const int64_t i : tiles_.elements(begin, end)) {
      const Philox::Block words = philox.block(static_cast<uint64_t>(i));
      const double normal = normal_pair(unit_double(words[0], words[1]), unit_double(words[2], words[3]))[0];
      y[i] = static_cast<float>(static_cast<double>(x[i]) + amplitude_ * normal);
    }
    return {};
  }

 private:
  Tiles tiles_;
  double amplitude_ = 0;
};

}  // namespace

HEDDLE_PLUGIN("guide_random", "1.0", plugin) {
  plugin.add(Op("Noise", "guide")
                 .doc("x and normal numbers of this deviation")
                 .in("x", dtypes<float>())
                 .out("y", same_as("x"), dtypes<float>())
                 .attribute("amplitude", 1.0)
                 .traits(HEDDLE_TRAIT_RANDOM)
                 .cpu<Noise>()
                 .example("f32[3] = 1 -2 0; amplitude=0 -> f32[3] = 1 -2 0", "by hand")
                 .example("f32[100,50]; amplitude=0.5"));
}
