// Kernels that draw random numbers, or depend on seed or step, in another way than they declare or than is allowed. Each has this one
// mistake.
#include <algorithm>
#include <cstdlib>
#include <random>

#include "heddle/op.h"
#include "heddle/op/philox.h"
using namespace heddle::plugin;

namespace {

constexpr heddle_dtype_set f32 = dtypes<float>();

float drawn(const Philox& philox, int64_t element) {
  return unit_float(philox.block(static_cast<uint64_t>(element / 4))[static_cast<size_t>(element % 4)]);
}

// Noise from the runtime's seed, if there is one. The declaration does not say that the operator is random.
Status noise(In<float> x, const RunContext& c, Out<float> y) {
  const Philox philox = c.run_state ? Philox(*c.run_state, c.random_stream) : Philox(1, c.random_stream, 0);
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i] + drawn(philox, i);
  return {};
}

// Noise from the runtime's seed, without a check that there is one: without the trait there is none.
Status noise_at_once(In<float> x, const RunContext& c, Out<float> y) {
  const Philox philox(*c.run_state, c.random_stream);
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i] + drawn(philox, i);
  return {};
}

// No random numbers, and a factor that falls from step to step. Only random operators are given the step.
Status fading(In<float> x, const RunContext& c, Out<float> y) {
  const float factor = 1 / static_cast<float>(1 + (c.run_state ? c.run_state->step % 1000 : 0));
  for (int64_t i = 0; i < x.size; ++i) y[i] = factor * x[i];
  return {};
}

// Declares that it is random, but uses the C library's numbers.
Status noise_of_library(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i] + static_cast<float>(std::rand() % 1024) * 0x1p-10f;
  return {};
}

// Takes its seed from the runtime once, and continues from there in every run.
Status noise_of_engine(In<float> x, const RunContext& c, Out<float> y) {
  static thread_local std::mt19937_64 engine(c.run_state->seed);
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i] + static_cast<float>(engine() >> 40) * 0x1p-24f;
  return {};
}

// One tile for each 64 elements. The numbers depend on the place in the call instead of the element: they start again with each call.
class NoiseByCall {
 public:
  Status prepare(PrepareContext& c) { return c.set_tiles((c.input(0)->element_count + 63) / 64), Status(); }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const auto x = input<float>(c, 0);
    const Philox philox(*c.run_state, c.random_stream);
    int64_t place = 0;
    for (int64_t i = begin * 64; i < std::min(x.size, end * 64); ++i) output<float>(c, 0)[i] = x[i] + drawn(philox, place++);
    return {};
  }
};

// Each thread has numbers of its own.
class NoiseByThread {
 public:
  Status prepare(PrepareContext& c) { return c.set_tiles((c.input(0)->element_count + 63) / 64), Status(); }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const auto x = input<float>(c, 0);
    const Philox philox(c.run_state->seed + c.host->thread_index(c.call), c.random_stream, c.run_state->step, c.run_state->trip);
    for (int64_t i = begin * 64; i < std::min(x.size, end * 64); ++i) output<float>(c, 0)[i] = x[i] + drawn(philox, i);
    return {};
  }
};

}  // namespace

HEDDLE_PLUGIN("mistakes_random", "1.0", plugin) {
  const auto op = [](const char* name) { return Op(name, "mistakes").in("x", f32).out("y", same_as("x"), f32); };
  plugin.add(op("Noise").cpu<noise>());
  plugin.add(op("NoiseAtOnce").cpu<noise_at_once>());
  plugin.add(op("Fading").cpu<fading>());
  plugin.add(op("NoiseOfLibrary").traits(HEDDLE_TRAIT_RANDOM).cpu<noise_of_library>());
  plugin.add(op("NoiseOfEngine").traits(HEDDLE_TRAIT_RANDOM).cpu<noise_of_engine>());
  plugin.add(op("NoiseByCall").traits(HEDDLE_TRAIT_RANDOM).cpu<NoiseByCall>());
  plugin.add(op("NoiseByThread").traits(HEDDLE_TRAIT_RANDOM).cpu<NoiseByThread>());
}
