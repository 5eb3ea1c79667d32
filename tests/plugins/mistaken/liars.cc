// Operators whose schemas or kernels promise something false, one for each check of `heddle plugin check`, and one that it can not run.
#include <stdexcept>

#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

// Reads elements that it has overwritten when y shares x's memory.
Status mirrored(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[x.size - 1 - i];
  return {};
}

// Adds each element's position in memory, whatever the layout is.
class Places {
 public:
  Status run(const RunContext& c, int64_t, int64_t) const {
    const auto x = input<float>(c, 0);
    for (int64_t i = 0; i < x.size; ++i) output<float>(c, 0)[i] = x[i] + static_cast<float>(i);
    return {};
  }
  static std::vector<heddle_format> formats(const CreateContext& c) {
    const int rank = c.input(0)->rank;
    heddle_format format = {};
    format.struct_size = sizeof(format);
    if (rank < 2) return {format};
    heddle_layout reversed = {};
    reversed.rank = static_cast<uint8_t>(rank);
    for (int i = 0; i < HEDDLE_MAX_RANK; ++i) reversed.order[i] = static_cast<uint8_t>(i < rank ? rank - 1 - i : 0);
    format.inputs[0] = format.outputs[0] = reversed;
    return {format};
  }
};
// Offers an order of more dimensions than the tensor has.
class NoOrder : public Places {
 public:
  static std::vector<heddle_format> formats(const CreateContext&) {
    heddle_format format = {};
    format.struct_size = sizeof(format);
    format.inputs[0].rank = 8;
    return {format};
  }
};

// These leave elements unwritten, write one element too many, or write past the end of their scratch.
Status holes(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i)
    if (i % 3 != 1) y[i] = x[i];
  return {};
}
Status overrun(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size + 1; ++i) y[i] = 1;
  return {};
}
class LongScratch {
 public:
  Status prepare(PrepareContext& c) { return c.set_scratch(8), Status(); }
  Status run(const RunContext& c, int64_t, int64_t) const {
    const auto x = input<float>(c, 0);
    static_cast<char*>(c.scratch)[8] = 1;
    for (int64_t i = 0; i < x.size; ++i) output<float>(c, 0)[i] = x[i];
    return {};
  }
};

// Fails on long inputs only.
Status short_only(In<float> x, Out<float> y) {
  if (x.size > 100) return {HEDDLE_ERROR_INTERNAL, "more than it can"};
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i];
  return {};
}
// Fails on other numbers than the first that it sees.
Status same_again(In<float> a, In<float> b, Out<float> y) {
  if (a.size == 0) return {};
  static const float seen = a[0];
  if (a[0] != seen) return {HEDDLE_ERROR_INTERNAL, "another number"};
  for (int64_t i = 0; i < a.size; ++i) y[i] = a[i] * b[i];
  return {};
}

Status product(In<float> a, In<float> b, Out<float> y) {
  for (int64_t i = 0; i < a.size; ++i) y[i] = a[i] * b[i];
  return {};
}

heddle_status emit_product(const heddle_gradient_builder* g, heddle_value_handle a, heddle_value_handle b, heddle_value_handle* y) {
  const heddle_value_handle inputs[] = {a, b};
  return g->emit(g, "liars", "Product", inputs, 2, y, 1, nullptr, 0);
}
// d(ab) = b da + a db
heddle_status right(const heddle_gradient_builder* g) {
  if (const heddle_status s = emit_product(g, g->output_gradients[0], g->inputs[1], &g->input_gradients[0])) return s;
  return emit_product(g, g->output_gradients[0], g->inputs[0], &g->input_gradients[1]);
}
// The second gradient uses the wrong factor.
heddle_status wrong(const heddle_gradient_builder* g) {
  if (const heddle_status s = emit_product(g, g->output_gradients[0], g->inputs[1], &g->input_gradients[0])) return s;
  return emit_product(g, g->output_gradients[0], g->inputs[1], &g->input_gradients[1]);
}
heddle_status emits_unknown(const heddle_gradient_builder* g) {
  return g->emit(g, "liars", "NoSuch", g->inputs, 2, g->input_gradients, 1, nullptr, 0);
}
heddle_status emits_nulls(const heddle_gradient_builder* g) {
  return g->emit(g, "liars", "Product", nullptr, 2, g->input_gradients, 1, nullptr, 0);
}
heddle_status adds_nulls(const heddle_gradient_builder* g) {
  heddle_type scalar = {};
  scalar.struct_size = sizeof(scalar);
  scalar.dtype = HEDDLE_F32;
  g->constant(g, nullptr, "", &g->input_gradients[0]);
  g->output(g, 0, nullptr);
  return g->constant(g, &scalar, nullptr, &g->input_gradients[0]);
}
heddle_status no_handle(const heddle_gradient_builder* g) {
  g->input_gradients[0] = 12345;
  return HEDDLE_OK;
}
heddle_status gives_nothing(const heddle_gradient_builder* g) {
  heddle_value_handle unused = 0;
  return emit_product(g, g->output_gradients[0], g->inputs[1], &unused);
}
heddle_status throws(const heddle_gradient_builder*) {
  throw std::runtime_error("no gradient");
}

// Not quite max(x, 0): it turns a NaN into a number.
Status rectified(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i] > 0 ? x[i] : 0;
  return {};
}
// Not quite a + b, and wrong only where b is large.
Status sum(In<float> a, In<float> b, Out<float> y) {
  for (int64_t i = 0; i < a.size; ++i) y[i] = b[i] > 1e30f ? b[i] : a[i] + b[i];
  return {};
}

Status infer_choosy(InferContext& c) {
  if (c.dims(0).rank != 7) return invalid("x has rank " + std::to_string(c.dims(0).rank) + ", expected 7");
  c.set_dims(0, c.dims(0));
  return {};
}

// Its port declares the same dims as the input's.
Status infer_transposed(InferContext& c) {
  c.set_dims(0, {c.dims(0)[1], c.dims(0)[0]});
  return {};
}

Status infer_found(InferContext& c) {
  c.set_dynamic(0, 1);
  return {};
}

// Computes another result where it may have two threads.
struct TwoThreads {
  Status create(const CreateContext& c) {
    parts_ = c.max_threads() == 2 ? 2 : 1;
    return {};
  }
  Status run(const RunContext& c, int64_t, int64_t) const {
    const heddle_tensor& x = *c.inputs[0];
    const auto* const from = static_cast<const float*>(x.data);
    auto* const to = static_cast<float*>(c.outputs[0]->data);
    for (int64_t i = 0; i < x.element_count; ++i) to[i] = parts_ == 2 ? from[i] * 1.5f : from[i];
    return {};
  }
  int parts_ = 1;
};

Op product_operator(const char* name) {
  Op op(name, "liars");
  op.in("a", dtypes<float>()).in("b", dtypes<float>()).out("y", same_as("a"), dtypes<float>());
  op.cpu<product>().elementwise();
  return op;
}

}  // namespace

HEDDLE_PLUGIN("liars", "1.0", plugin) {
  const heddle_dtype_set f32 = dtypes<float>();
  plugin.add(Op("Mirrored", "liars").in("x", f32).out("y", same_as("x"), f32).cpu<mirrored>());
  plugin.add(Op("MirroredInPlace", "liars").in("x", f32).out("y", same_as("x"), f32).in_place("y", "x").cpu<mirrored>());
  plugin.add(Op("Places", "liars").in("x", f32).out("y", same_as("x"), f32).cpu<Places>());
  plugin.add(Op("NoOrder", "liars").in("x", f32).out("y", same_as("x"), f32).cpu<NoOrder>());
  plugin.add(Op("BreaksOnSome", "liars").in("x", f32).out("y", same_as("x"), f32).cpu<short_only>());
  plugin.add(Op("Holes", "liars").in("x", f32).out("y", same_as("x"), f32).cpu<holes>());
  plugin.add(Op("Overrun", "liars").in("x", f32).out("y", same_as("x"), f32).cpu<overrun>());
  plugin.add(Op("LongScratch", "liars").in("x", f32).out("y", same_as("x"), f32).cpu<LongScratch>());
  Op moved("BreaksMoved", "liars");
  moved.in("a", f32).in("b", f32).out("y", same_as("a"), f32).cpu<same_again>().gradient(right);
  plugin.add(moved);
  plugin.add(product_operator("Product").gradient(right));
  plugin.add(product_operator("GradientWrong").gradient(wrong));
  plugin.add(product_operator("GradientUnknown").gradient(emits_unknown));
  plugin.add(product_operator("GradientNulls").gradient(emits_nulls));
  plugin.add(product_operator("GradientNullConstant").gradient(adds_nulls));
  plugin.add(product_operator("GradientNoHandle").gradient(no_handle));
  plugin.add(product_operator("GradientGivesNothing").gradient(gives_nothing));
  plugin.add(product_operator("GradientThrows").gradient(throws));
  plugin.add(product_operator("NodesWrong").gradient("Product", {"dy", "b"}, {"da"}).gradient("Product", {"dy", "b"}, {"db"}));
  plugin.add(product_operator("NodesMisspelt").gradient("Product", {"dy", "b"}, {"dA"}).gradient("Product", {"dy", "a"}, {"db"}));
  plugin.add(Op("Rectified", "liars").in("x", f32).out("y", same_as("x"), f32).pointwise("max(x, 0)").cpu<rectified>().equals_pointwise());
  plugin.add(Op("Sum", "liars").in("a", f32).in("b", f32).out("y", same_as("a"), f32).pointwise("a + b").cpu<sum>().equals_pointwise());
  plugin.add(
      Op("Equal", "liars").in("a", f32).in("b", f32).out("y", same_as("a"), f32).pointwise("a * b").cpu<product>().equals_pointwise());
  plugin.add(Op("Transposed", "liars").in("x", f32).dims("N C").out("y", {}, f32).dims("N C").infer(infer_transposed).cpu<mirrored>());
  plugin.add(Op("OneForAll", "liars").in("x", f32).dims("N").out("y", scalar(), f32).dims("N").cpu<mirrored>());
  plugin.add(Op("Found", "liars").in("x", f32).dims("N").out("y", {}, f32).dims("N").infer(infer_found).cpu<mirrored>());
  plugin.add(Op("TwoThreads", "liars").in("x", f32).out("y", same_as("x"), f32).cpu<TwoThreads>());
  plugin.add(Op("Choosy", "liars").in("x", f32).out("y", {}, f32).infer(infer_choosy).cpu<mirrored>());
}
