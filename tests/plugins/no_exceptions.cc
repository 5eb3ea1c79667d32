// A plugin that is built with -fno-exceptions -fno-rtti, with what operators usually have: attributes, tiles, scratch, a constant packed, a
// resource.
#include <cmath>
#include <cstring>

#include "heddle/op.h"
using namespace heddle::plugin;

#if HEDDLE_PLUGIN_EXCEPTIONS
#error "this file is to be built with -fno-exceptions"
#endif

namespace {

// factor * x; a factor that is no number is refused when the node is made.
struct Factor {
  explicit Factor(const Attributes& attributes) : value(attributes.f("factor")) {}
  Status status() const { return std::isfinite(value) ? Status() : invalid("factor is not finite"); }
  double value;
};
template <class T>
Status scale(In<T> x, const Factor& factor, Out<T> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = static_cast<T>(factor.value * static_cast<double>(x[i]));
  return {};
}

// What a table is called is its only content.
class Labels {
 public:
  explicit Labels(const ResourceRequest& request) : length_(std::strlen(request.name())) {}
  Status status() const { return length_ > 0 ? Status() : invalid("labels without a name"); }
  size_t length() const { return length_; }

 private:
  size_t length_;
};

// The sum of x * w by tiles, w packed as f64.
class Dot {
 public:
  Status create(const CreateContext& c) { return labels_.ask(c, "no_exceptions.labels"); }
  Status prepare(PrepareContext& c) {
    const heddle_tensor &x = *c.input(0), &w = *c.input(1);
    tiles_ = Tiles::of(x.element_count, 1000);
    c.set_tiles(tiles_.count());
    c.set_scratch(static_cast<uint64_t>(tiles_.count()) * sizeof(double));
    packed_ = nullptr;
    if (!c.is_constant(1) || w.element_count == 0) return {};
    packed_ = static_cast<const double*>(c.prepack(1, "f64", static_cast<uint64_t>(w.element_count) * sizeof(double), [&](void* to) {
      for (int64_t i = 0; i < w.element_count; ++i) static_cast<double*>(to)[i] = static_cast<const float*>(w.data)[i];
    }));
    return packed_ ? Status() : Status(HEDDLE_ERROR_OUT_OF_MEMORY, "");
  }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const In<float> x = input<float>(c, 0), w = input<float>(c, 1);
    for (int64_t tile = begin; tile < end; ++tile) {
      double sum = 0;
      for (const int64_t i : tiles_.elements(tile)) sum += static_cast<double>(x[i]) * (packed_ ? packed_[i] : static_cast<double>(w[i]));
      step_scratch<double>(c)[tile] = sum;
    }
    return {};
  }
  Status finish(const RunContext& c) const {
    double sum = 0;
    for (int64_t tile = 0; tile < tiles_.count(); ++tile) sum += step_scratch<double>(c)[tile];
    output<float>(c, 0)[0] = static_cast<float>(sum);
    return labels_(c)->length() == 20 ? Status() : invalid("the labels have another name");
  }

 private:
  Needed<Labels> labels_;
  Tiles tiles_;
  const double* packed_ = nullptr;
};
Status infer_dot(InferContext& c) {
  if (dims_text(c.dims(0)) != dims_text(c.dims(1))) return invalid("x is " + dims_text(c.dims(0)) + ", w is " + dims_text(c.dims(1)));
  return {};
}

}  // namespace

HEDDLE_PLUGIN("no_exceptions", "1.0", plugin) {
  plugin.resource<Labels>("no_exceptions.labels", HEDDLE_SCOPE_SESSION, 1);
  plugin.add(Op("Scale", "no_exceptions")
                 .in("x", float_dtypes)
                 .out("y", same_as("x"), float_dtypes)
                 .attribute("factor", 1.0)
                 .in_place("y", "x")
                 .gradient("Scale", {"dy"}, {"dx"})
                 .cpu<scale<float>>()
                 .elementwise()
                 .cpu<scale<double>>()
                 .elementwise()
                 .cpu<scale<f16>>()
                 .elementwise()
                 .cpu<scale<bf16>>()
                 .elementwise()
                 .example("f32[4] = 1 -2 0.5 0; factor=-4 -> f32[4] = -4 8 -2 0", "by hand"));
  plugin.add(Op("Dot", "no_exceptions")
                 .in("x", dtypes<float>())
                 .in("w", dtypes<float>())
                 .out("y", scalar(), dtypes<float>())
                 .infer(infer_dot)
                 .cpu<Dot>()
                 .example("f32[3] = 1 2 3, f32[3] = 1 -1 2 -> f32[] = 5", "by hand")
                 .example("f32[0], f32[0] -> f32[] = 0", "by hand"));
}
