// Operators whose inputs have other shapes and dtypes: rotary embedding, a scale for each column, bags of embeddings.
#include <cmath>
#include <string>

#include "gradient_emit.h"
#include "heddle/op.h"

using namespace heddle::plugin;

namespace {

Status infer_rotary(InferContext& c) {
  if (c.dims(0)[2] == 2 * c.dims(1)[1]) return {};
  return invalid("x has rows of " + std::to_string(c.dims(0)[2]) + " elements, angles are for " + std::to_string(2 * c.dims(1)[1]));
}

template <class T>
class Rotary {
 public:
  Status prepare(PrepareContext& c) {
    const heddle_tensor &x = *c.input(0), &angles = *c.input(1);
    length_ = x.dims[1];
    pairs_ = angles.dims[1];
    rows_ = Tiles::of(x.dims[0] * length_, pairs_ > 0 ? 4096 / pairs_ : 4096);
    c.set_tiles(rows_.count());
    return {};
  }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const In<T> x = input<T>(c, 0), angles = input<T>(c, 1);
    const Out<T> y = output<T>(c, 0);
    for (const int64_t row : rows_.elements(begin, end))
      for (int64_t k = 0; k < pairs_; ++k) {
        const double angle = static_cast<double>(angles[row % length_ * pairs_ + k]), cosine = std::cos(angle), sine = std::sin(angle);
        const int64_t at = 2 * (row * pairs_ + k);
        const double a = static_cast<double>(x[at]), b = static_cast<double>(x[at + 1]);
        y[at] = static_cast<T>(a * cosine - b * sine);
        y[at + 1] = static_cast<T>(a * sine + b * cosine);
      }
    return {};
  }

 private:
  int64_t length_ = 1, pairs_ = 0;
  Tiles rows_;
};

template <class T>
Status scale_shift(In<T> x, In<T> scale, OptionalIn<T> shift, Out<T> y) {
  const int64_t columns = scale.size;
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i] * scale[i % columns] + (shift ? shift[i % columns] : T{0});
  return {};
}

heddle_status scale_shift_gradient(const heddle_gradient_builder* b) {
  const heddle_value_handle x = b->inputs[0], scale = b->inputs[1], dy = b->output_gradients[0];
  const heddle_value_handle product[] = {dy, scale};
  heddle_status status = b->emit(b, "", "Mul", product, 2, &b->input_gradients[0], 1, nullptr, 0);
  if (status == HEDDLE_OK) status = emit_einsum(b, "nc,nc->c", {dy, x}, &b->input_gradients[1]);
  if (status == HEDDLE_OK && b->inputs[2]) status = emit_einsum(b, "nc->c", {dy}, &b->input_gradients[2]);
  return status;
}

Status infer_bags(InferContext& c) {
  const std::string mode = c.attributes.s("mode");
  if (mode != "sum" && mode != "mean") return invalid("mode is \"" + mode + "\", expected \"sum\" or \"mean\"");
  const uint32_t weights = c.op().input_count - 1;
  if (c.has_input(weights) && mode != "sum") return invalid("weights go with mode \"sum\" alone");
  return {};
}

// The part that both operators with bags share: bag b has the indices [offsets[b], offsets[b + 1]), the last one the rest.
template <class T, class I>
class Bags {
 public:
  Status create(const CreateContext& c) {
    is_mean_ = c.attributes.s("mode") == "mean";
    return {};
  }

 protected:
  struct Bag {
    int64_t first, last;
  };
  static Status find(In<I> indices, In<I> offsets, int64_t b, Bag* bag) {
    const int64_t first = static_cast<int64_t>(offsets[b]),
                  last = b + 1 < offsets.size ? static_cast<int64_t>(offsets[b + 1]) : indices.size;
    if (first < 0 || first > last || last > indices.size)
      return invalid("bag " + std::to_string(b) + " is of indices " + std::to_string(first) + " to " + std::to_string(last) + " of " +
                     std::to_string(indices.size));
    *bag = {first, last};
    return {};
  }
  static Status row(In<I> indices, int64_t i, int64_t rows, int64_t* row) {
    *row = static_cast<int64_t>(indices[i]);
    if (*row >= 0 && *row < rows) return {};
    return invalid("index " + std::to_string(*row) + " is not of a table of " + std::to_string(rows) + " rows");
  }
  T factor(In<T> weights, int64_t i, Bag bag) const {
    if (weights.tensor) return weights[i];
    return is_mean_ ? T{1} / static_cast<T>(bag.last - bag.first) : T{1};
  }

 private:
  bool is_mean_ = false;
};

template <class T, class I>
class EmbeddingBag : public Bags<T, I> {
  using Base = Bags<T, I>;

 public:
  Status prepare(PrepareContext& c) {
    c.set_tiles(c.input(2)->dims[0]);
    return {};
  }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const In<T> table = input<T>(c, 0), weights = input<T>(c, 3);
    const In<I> indices = input<I>(c, 1), offsets = input<I>(c, 2);
    const int64_t columns = table.dims[1];
    for (int64_t b = begin; b < end; ++b) {
      typename Base::Bag bag = {};
      HEDDLE_PLUGIN_CHECK(Base::find(indices, offsets, b, &bag));
      T* const y = output<T>(c, 0).data + b * columns;
      for (int64_t k = 0; k < columns; ++k) y[k] = 0;
      for (int64_t i = bag.first; i < bag.last; ++i) {
        int64_t row = 0;
        HEDDLE_PLUGIN_CHECK(Base::row(indices, i, table.dims[0], &row));
        const T factor = Base::factor(weights, i, bag);
        for (int64_t k = 0; k < columns; ++k) y[k] += factor * table[row * columns + k];
      }
    }
    return {};
  }
};

// There is one tile, because rows of the table are in several bags.
template <class T, class I>
class EmbeddingBagGrad : public Bags<T, I> {
  using Base = Bags<T, I>;

 public:
  Status run(const RunContext& c, int64_t, int64_t) const {
    const In<T> table = input<T>(c, 0), dy = input<T>(c, 3), weights = input<T>(c, 4);
    const In<I> indices = input<I>(c, 1), offsets = input<I>(c, 2);
    const Out<T> d_table = output<T>(c, 0), d_weights = output<T>(c, 1);
    const int64_t columns = table.dims[1];
    for (int64_t i = 0; i < d_table.size; ++i) d_table[i] = 0;
    for (int64_t i = 0; d_weights && i < d_weights.size; ++i) d_weights[i] = 0;
    for (int64_t b = 0; b < offsets.size; ++b) {
      if (is_cancelled(c)) return cancelled();
      typename Base::Bag bag = {};
      HEDDLE_PLUGIN_CHECK(Base::find(indices, offsets, b, &bag));
      for (int64_t i = bag.first; i < bag.last; ++i) {
        int64_t row = 0;
        HEDDLE_PLUGIN_CHECK(Base::row(indices, i, table.dims[0], &row));
        const T factor = Base::factor(weights, i, bag);
        T along = 0;
        for (int64_t k = 0; k < columns; ++k) {
          d_table[row * columns + k] += factor * dy[b * columns + k];
          along += table[row * columns + k] * dy[b * columns + k];
        }
        if (d_weights) d_weights[i] = along;
      }
    }
    return {};
  }
};

Op embedding_bag() {
  constexpr heddle_dtype_set real = dtypes<float, double>();
  return Op("EmbeddingBag", "authors")
      .doc("y[b] = sum or mean of the table's rows indices[offsets[b]] ... indices[offsets[b + 1] - 1], each times its weight")
      .in("table", real)
      .dims("V D")
      .in("indices", index_dtypes, "I")
      .dims("L")
      .indexes("table", 0)
      .in("offsets", index_dtypes, "I")
      .dims("B")
      .optional("weights", real)
      .dims("L")
      .out("y")
      .dims("B D")
      .attribute("mode", "sum")
      .infer(infer_bags)
      .gradient("EmbeddingBagGrad", {"table", "indices", "offsets", "dy", "weights"}, {"dtable", "dweights"})
      .example("f32[3,2] = 1 2 3 4 5 6, i64[4] = 0 2 2 1, i64[3] = 0 2 2 -> f32[3,2] = 6 8 0 0 8 10", "by hand")
      .example("f32[3,2] = 1 2 3 4 5 6, i32[4] = 0 2 2 1, i32[2] = 0 1; mode=\"mean\" -> f32[2,2] = 1 2 4.333333333 5.333333333", "by hand")
      .example("f64[3,2] = 1 2 3 4 5 6, i64[4] = 0 2 2 1, i64[2] = 0 3, f64[4] = 1 -1 0.5 2 -> f64[2,2] = -1.5 -1 6 8", "by hand")
      .example("f32[50,33], i32[200], i32[3] = 0 17 180, f32[200]")
      .example("f64[50,33], i64[200], i64[3] = 5 5 200; mode=\"mean\"")
      .cpu<EmbeddingBag<float, int32_t>>({dtypes<float>(), dtypes<int32_t>()})
      .cpu<EmbeddingBag<float, int64_t>>({dtypes<float>(), dtypes<int64_t>()})
      .cpu<EmbeddingBag<double, int32_t>>({dtypes<double>(), dtypes<int32_t>()})
      .cpu<EmbeddingBag<double, int64_t>>({dtypes<double>(), dtypes<int64_t>()});
}

Op embedding_bag_grad() {
  constexpr heddle_dtype_set real = dtypes<float, double>();
  return Op("EmbeddingBagGrad", "authors")
      .doc("the gradients of EmbeddingBag's table and weights")
      .in("table", real)
      .dims("V D")
      .in("indices", index_dtypes, "I")
      .dims("L")
      .indexes("table", 0)
      .in("offsets", index_dtypes, "I")
      .dims("B")
      .in("dy", real)
      .dims("B D")
      .optional("weights", real)
      .dims("L")
      .out("dtable", same_as("table"))
      .optional_out("dweights")
      .dims("L")
      .attribute("mode", "sum")
      .infer(infer_bags)
      .example(
          "f32[3,2] = 1 2 3 4 5 6, i64[3] = 0 2 2, i64[2] = 0 1, f32[2,2] = 1 10 2 20 -> f32[3,2] = 1 10 0 0 4 40, f32[3] = 21 130 130",
          "by hand")
      .example("f32[2,1] = 1 2, i32[4] = 0 1 1 1, i32[1] = 0, f32[1,1] = 4; mode=\"mean\" -> f32[2,1] = 1 3", "by hand")
      .example("f32[2,1] = 1 2, i32[3] = 0 1 1, i32[1] = 0, f32[1,1] = 4, f32[3] = 2 3 4 -> f32[2,1] = 8 28, f32[3] = 4 8 8", "by hand")
      .example("f64[50,33], i64[200], i64[3] = 0 17 180, f64[3,33], f64[200]")
      .cpu<EmbeddingBagGrad<float, int32_t>>({dtypes<float>(), dtypes<int32_t>()})
      .cpu<EmbeddingBagGrad<float, int64_t>>({dtypes<float>(), dtypes<int64_t>()})
      .cpu<EmbeddingBagGrad<double, int32_t>>({dtypes<double>(), dtypes<int32_t>()})
      .cpu<EmbeddingBagGrad<double, int64_t>>({dtypes<double>(), dtypes<int64_t>()});
}

}  // namespace

HEDDLE_PLUGIN("authors_sequence", "1.0", plugin) {
  plugin.add(Op("Rotary", "authors")
                 .doc("turns the pairs (x[b, s, 2k], x[b, s, 2k + 1]) by angles[s, k]")
                 .in("x", float_dtypes)
                 .dims("B S D")
                 .in("angles", float_dtypes)
                 .dims("S H")
                 .not_differentiable()
                 .out("y", same_as("x"))
                 .in_place("y", "x")
                 .infer(infer_rotary)
                 .gradient("Neg", {"angles"}, {"t0"}, "")
                 .gradient("Rotary", {"dy", "t0"}, {"dx"})
                 .example("f32[1,2,4] = 1 0 0 2 3 4 5 6, f32[2,2] = 0.5 1 0 -1.5"
                          " -> f32[1,2,4] = 0.877582562 0.479425539 -1.682941970 1.080604612 3 4 6.338655929 -4.563051923",
                          "NumPy: (a + bj) * exp(angle * j)")
                 .example("f64[3,5,6], f64[5,3]")
                 .cpu<Rotary<float>>({dtypes<float>()})
                 .cpu<Rotary<double>>({dtypes<double>()})
                 .cpu<Rotary<f16>>({dtypes<f16>()})
                 .cpu<Rotary<bf16>>({dtypes<bf16>()}));
  plugin.add(Op("ScaleShift", "authors")
                 .doc("y = x * scale + shift, with one scale and shift for each column")
                 .in("x", dtypes<float, double>())
                 .dims("N C")
                 .in("scale", dtypes<float, double>())
                 .dims("C")
                 .optional("shift", dtypes<float, double>())
                 .dims("C")
                 .out("y", same_as("x"))
                 .in_place("y", "x")
                 .gradient(scale_shift_gradient)
                 .example("f32[2,3] = 1 2 3 4 5 6, f32[3] = 1 10 -1 -> f32[2,3] = 1 20 -3 4 50 -6", "by hand")
                 .example("f64[2,2] = 1 2 3 4, f64[2] = 2 0.5, f64[2] = 0 1 -> f64[2,2] = 2 2 6 3", "by hand")
                 .cpu<scale_shift<float>>()
                 .cpu<scale_shift<double>>());
  plugin.add(embedding_bag());
  plugin.add(embedding_bag_grad());
}
