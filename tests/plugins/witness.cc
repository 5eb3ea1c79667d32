// witness::Witness: y = x, in tiles that take a while and output which thread computed them.
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

constexpr int64_t tiles = 64;

struct Witness {
  Status prepare(PrepareContext& c) {
    c.set_tiles(tiles);
    c.set_cost_ns(tiles * 15e3);
    return {};
  }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const In<float> x = input<float>(c, 0);
    const Out<float> y = output<float>(c, 0);
    const Out<int64_t> who = output<int64_t>(c, 1);
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t first = x.size * tile / tiles, last = x.size * (tile + 1) / tiles;
      // Takes some time in which other threads may start, also where there are more of them than processors.
      for (int i = 0; i < 10; ++i) {
        volatile uint64_t state = 1;
        for (int k = 0; k < 300; ++k) state = state * 6364136223846793005u + 1;
        sched_yield();
      }
      std::copy(x.data + first, x.data + last, y.data + first);
      who[tile] = syscall(SYS_gettid);
    }
    return {};
  }
};

Status infer(InferContext& c) {
  c.set_dims(0, c.dims(0));
  c.set_dims(1, std::vector<int64_t>{tiles});
  return {};
}

}  // namespace

HEDDLE_PLUGIN("witness", "1.0", plugin) {
  plugin.add(Op("Witness", "witness")
                 .in("x", dtypes<float>())
                 .out("y", {}, dtypes<float>())
                 .out_as("who", HEDDLE_I64)
                 .infer(infer)
                 .cpu<Witness>());
}
