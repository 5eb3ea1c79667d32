// probe::Probe: y = x in as many tiles as there are elements, each of which calls back into the test.
#include "probe.h"

#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

class Kernel {
 public:
  Status create(const CreateContext& c) {
    probe_ = reinterpret_cast<Probe*>(c.attributes.i("probe"));
    return {};
  }
  Status prepare(PrepareContext& c) {
    c.set_tiles(c.input(0)->element_count);
    return {};
  }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const In<float> x = input<float>(c, 0);
    const Out<float> y = output<float>(c, 0);
    for (int64_t tile = begin; tile < end; ++tile) {
      probe_->at(probe_, tile);
      y[tile] = x[tile];
    }
    return {};
  }

 private:
  Probe* probe_ = nullptr;
};

}  // namespace

HEDDLE_PLUGIN("probe", "1.0", plugin) {
  plugin.add(Op("Probe", "probe")
                 .in("x", dtypes<float>())
                 .out("y", same_as("x"), dtypes<float>())
                 .attribute("probe", int64_t{0})
                 .traits(HEDDLE_TRAIT_IMPURE)
                 .cpu<Kernel>());
}
