// Operators whose ports say how their dims go together, and that have no other shape rule.
#include <algorithm>

#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

// y[n, c] = x[n, c] * scale[c] + shift[c]
Status affine(In<float> x, In<float> scale, OptionalIn<float> shift, Out<float> y) {
  const int64_t channels = scale.size;
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i] * scale[i % channels] + (shift ? shift[i % channels] : 0.0f);
  return {};
}

// Of x alone. The handles are three, though a node may leave the shift out.
heddle_status affine_gradient(const heddle_gradient_builder* g) {
  if (g->input_count != 3) return HEDDLE_ERROR_INVALID;
  const heddle_value_handle product[] = {g->output_gradients[0], g->inputs[1]};
  return g->emit(g, "", "Mul", product, 2, g->input_gradients, 1, nullptr, 0);
}

// The matrix product of every pair.
Status product(In<float> a, In<float> b, Out<float> c) {
  const int64_t m = a.dims[a.dims.rank - 2], k = a.dims[a.dims.rank - 1], n = b.dims[b.dims.rank - 1];
  for (int64_t i = 0; i < c.size; ++i) {
    const int64_t pair = i / (m * n), row = i / n % m, column = i % n;
    float sum = 0;
    for (int64_t t = 0; t < k; ++t) sum += a[(pair * m + row) * k + t] * b[(pair * k + t) * n + column];
    c[i] = sum;
  }
  return {};
}

// The area of each box of [left, top, right, bottom].
Status area(In<float> boxes, Out<float> areas) {
  for (int64_t i = 0; i < areas.size; ++i) areas[i] = (boxes[4 * i + 2] - boxes[4 * i]) * (boxes[4 * i + 3] - boxes[4 * i + 1]);
  return {};
}

}  // namespace

HEDDLE_PLUGIN("dims", "1.0", plugin) {
  plugin.add(Op("Affine", "dims")
                 .in("x")
                 .dims("N C")
                 .in("scale")
                 .dims("C")
                 .not_differentiable()
                 .optional("shift")
                 .dims("C")
                 .not_differentiable()
                 .out("y")
                 .dims("N C")
                 .cpu<affine>()
                 .gradient(affine_gradient));
  plugin.add(Op("Product", "dims").in("a").dims("... M K").in("b").dims("... K N").out("c").dims("... M N").cpu<product>());
  plugin.add(Op("Area", "dims").in("boxes").dims("B 4").out("areas").dims("B").cpu<area>());
}
