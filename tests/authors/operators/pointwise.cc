// Pointwise texts, a rewrite rule to one of them, and operators whose attributes are lists, texts and tensors.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gradient_emit.h"
#include "heddle/op.h"

using namespace heddle::plugin;

namespace {

// A kernel with a text of the same bits: select(lt(x, low), low + leak * (x - low), x).
struct Floor {
  explicit Floor(const Attributes& attributes)
      : low(static_cast<float>(attributes.f("low"))), leak(static_cast<float>(attributes.f("leak"))) {}
  float low, leak;
};
Status leaky_floor(In<float> x, const Floor& floor, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i] < floor.low ? floor.low + floor.leak * (x[i] - floor.low) : x[i];
  return {};
}

struct Coefficients {
  explicit Coefficients(const Attributes& attributes) : values(attributes.floats("coefficients")) {}
  std::vector<double> values;
};
template <class T>
Status polynomial(In<T> x, const Coefficients& coefficients, Out<T> y) {
  for (int64_t i = 0; i < x.size; ++i) {
    double value = 0;
    for (size_t k = coefficients.values.size(); k-- > 0;) value = value * x[i] + coefficients.values[k];
    y[i] = static_cast<T>(value);
  }
  return {};
}

// dx = dy * Polynomial(x) with the derivative's coefficients.
heddle_status polynomial_gradient(const heddle_gradient_builder* b) {
  heddle_attribute attribute = *b->attributes[0];
  std::vector<double> derivative;
  for (uint64_t k = 1; k < attribute.count; ++k) derivative.push_back(static_cast<double>(k) * attribute.floats[k]);
  attribute.floats = derivative.data();
  attribute.count = derivative.size();
  const heddle_attribute* const attributes[] = {&attribute};
  heddle_value_handle slope = 0;
  const heddle_status status = b->emit(b, "authors", "Polynomial", b->inputs, 1, &slope, 1, attributes, 1);
  if (status != HEDDLE_OK) return status;
  const heddle_value_handle product[] = {b->output_gradients[0], slope};
  return b->emit(b, "", "Mul", product, 2, b->input_gradients, 1, nullptr, 0);
}

Status infer_rearrange(InferContext& c) {
  const std::vector<int64_t> order = c.attributes.ints("order");
  const int64_t columns = c.dims(0)[-1];
  if (static_cast<int64_t>(order.size()) != columns)
    return invalid("order has " + std::to_string(order.size()) + " numbers, x has rows of " + std::to_string(columns));
  std::vector<char> seen(order.size(), 0);
  for (const int64_t k : order) {
    if (k < 0 || k >= columns || seen[static_cast<size_t>(k)]) return invalid("order is no permutation: " + std::to_string(k));
    seen[static_cast<size_t>(k)] = 1;
  }
  return {};
}

struct Order {
  explicit Order(const Attributes& attributes) : columns(attributes.ints("order")) {}
  std::vector<int64_t> columns;
};
template <class T>
Status rearrange(In<T> x, const Order& order, Out<T> y) {
  const int64_t columns = static_cast<int64_t>(order.columns.size());
  for (int64_t at = 0; at < x.size; at += columns)
    for (int64_t k = 0; k < columns; ++k) y[at + k] = x[at + order.columns[static_cast<size_t>(k)]];
  return {};
}

heddle_status rearrange_gradient(const heddle_gradient_builder* b) {
  heddle_attribute attribute = *b->attributes[0];
  std::vector<int64_t> inverse(attribute.count);
  for (uint64_t k = 0; k < attribute.count; ++k) inverse[static_cast<size_t>(attribute.ints[k])] = static_cast<int64_t>(k);
  attribute.ints = inverse.data();
  const heddle_attribute* const attributes[] = {&attribute};
  return b->emit(b, "authors", "Rearrange", b->output_gradients, 1, b->input_gradients, 1, attributes, 1);
}

// The weights of an odd number of neighbours, as double.
struct Weights {
  Weights() = default;
  explicit Weights(const heddle_tensor& tensor) {
    for (int64_t k = 0; k < tensor.element_count; ++k)
      values.push_back(tensor.dtype == HEDDLE_F32 ? static_cast<const float*>(tensor.data)[k] : static_cast<const double*>(tensor.data)[k]);
  }
  std::vector<double> values;
};

Status infer_stencil(InferContext& c) {
  const std::string border = c.attributes.s("border");
  if (border != "zero" && border != "wrap") return invalid("border is \"" + border + "\", expected \"zero\" or \"wrap\"");
  const heddle_tensor* const weights = c.attributes.tensor("weights");
  if (weights->dtype != HEDDLE_F32 && weights->dtype != HEDDLE_F64) return invalid("weights are of another dtype than f32 and f64");
  if (weights->rank != 1 || weights->dims[0] % 2 == 0)
    return invalid("weights are " + dims_text({weights->dims, weights->rank}) + ", expected an odd number of them");
  return {};
}

template <class T>
class Stencil {
 public:
  Status create(const CreateContext& c) {
    weights_ = Weights(*c.attributes.tensor("weights")).values;
    wraps_ = c.attributes.s("border") == "wrap";
    return {};
  }
  Status prepare(PrepareContext& c) {
    columns_ = c.input(0)->dims[c.input(0)->rank - 1];
    elements_ = Tiles::of(c.input(0)->element_count, 65536 / static_cast<int64_t>(weights_.size()));
    c.set_tiles(elements_.count());
    return {};
  }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const In<T> x = input<T>(c, 0);
    const Out<T> y = output<T>(c, 0);
    const int64_t half = static_cast<int64_t>(weights_.size()) / 2;
    for (const int64_t i : elements_.elements(begin, end)) {
      const int64_t column = i % columns_;
      double sum = 0;
      for (int64_t k = -half; k <= half; ++k) {
        int64_t from = column + k;
        if (wraps_) from = (from % columns_ + columns_) % columns_;
        if (from >= 0 && from < columns_) sum += weights_[static_cast<size_t>(k + half)] * x[i - column + from];
      }
      y[i] = static_cast<T>(sum);
    }
    return {};
  }

 private:
  std::vector<double> weights_;
  bool wraps_ = false;
  int64_t columns_ = 1;
  Tiles elements_;
};

// The gradient is the same operator with the weights reversed.
heddle_status stencil_gradient(const heddle_gradient_builder* b) {
  heddle_attribute turned = *b->attributes[0];
  std::vector<double> values = Weights(*turned.tensor).values;
  std::reverse(values.begin(), values.end());
  const heddle_tensor tensor = view_of(values.data(), {turned.tensor->dims, 1});
  turned.tensor = &tensor;
  const heddle_attribute* const attributes[] = {&turned, b->attributes[1]};
  return b->emit(b, "authors", "Stencil", b->output_gradients, 1, b->input_gradients, 1, attributes, 2);
}

template <class T>
Status limit(In<T> x, OptionalIn<T> low, OptionalIn<T> high, Out<T> y, Out<int64_t> changed) {
  int64_t count = 0;
  for (int64_t i = 0; i < x.size; ++i) {
    const bool is_low = low && x[i] < low[0], is_high = !is_low && high && x[i] > high[0];
    y[i] = is_low ? low[0] : is_high ? high[0] : x[i];
    count += is_low || is_high;
  }
  if (changed) changed[0] = count;
  return {};
}

template <class T>
Status limit_grad(In<T> x, In<T> dy, OptionalIn<T> low, OptionalIn<T> high, Out<T> dx) {
  for (int64_t i = 0; i < x.size; ++i) dx[i] = (low && x[i] < low[0]) || (high && x[i] > high[0]) ? T{0} : dy[i];
  return {};
}

void add_pointwise(Builder& plugin) {
  plugin.add(Op("Silu", "authors")
                 .doc("x * sigmoid(x)")
                 .in("x", float_dtypes)
                 .out("y", same_as("x"), float_dtypes)
                 .in_place("y", "x")
                 .pointwise("x * sigmoid(x)")
                 .gradient("SiluGrad", {"x", "dy"}, {"dx"})
                 .example("f32[3] = 0 1 -2 -> f32[3] = 0 0.731058579 -0.238405844", "NumPy: x / (1 + np.exp(-x))"));
  plugin.add(Op("SiluGrad", "authors")
                 .doc("the gradient of Silu")
                 .in("x", float_dtypes)
                 .in("dy", float_dtypes)
                 .out("dx", {}, float_dtypes)
                 .pointwise("s = sigmoid(x); dy * (s + x * s * (1 - s))")
                 .example("f32[3] = 0 1 -2, f32[3] = 2 1 1 -> f32[3] = 1 0.927670512 -0.090784249",
                          "NumPy: s = 1 / (1 + np.exp(-x)); dy * (s + x * s * (1 - s))"));
  plugin.rule("silu", R"({"heddle": 1, "inputs": ["x"], "outputs": ["y"],
    "values": [{"name": "x", "kind": "input"}],
    "nodes": [{"type": "Sigmoid", "name": "s", "inputs": ["x"], "outputs": ["s"]},
              {"type": "Mul", "name": "y", "inputs": ["x", "s"], "outputs": ["y"]}]})",
              R"({"heddle": 1, "inputs": ["x"], "outputs": ["y"],
    "values": [{"name": "x", "kind": "input"}],
    "nodes": [{"type": "Silu", "domain": "authors", "name": "y", "inputs": ["x"], "outputs": ["y"]}]})",
              {"f32[4,3]", "f64[7]", "f16[2,3,4] = -9..9"});
  plugin.add(Op("LeakyFloor", "authors")
                 .doc("x, and below low with the slope leak")
                 .in("x", float_dtypes)
                 .out("y", same_as("x"), float_dtypes)
                 .attribute("low", 0.0)
                 .attribute("leak", 0.0)
                 .pointwise("select(lt(x, low), low + leak * (x - low), x)")
                 .gradient("LeakyFloorGrad", {"x", "dy"}, {"dx"})
                 .example("f32[4] = -1 0 1 2; low=1, leak=0.5 -> f32[4] = 0 0.5 1 2", "by hand")
                 .cpu<leaky_floor>()
                 .equals_pointwise()
                 .elementwise());
  plugin.add(Op("LeakyFloorGrad", "authors")
                 .doc("the gradient of LeakyFloor")
                 .in("x", float_dtypes)
                 .in("dy", float_dtypes)
                 .out("dx", {}, float_dtypes)
                 .attribute("low", 0.0)
                 .attribute("leak", 0.0)
                 .pointwise("select(lt(x, low), leak * dy, dy)")
                 .example("f32[3] = -1 1 2, f32[3] = 4 5 6; low=1, leak=0.5 -> f32[3] = 2 5 6", "by hand"));
}

void add_with_attributes(Builder& plugin) {
  plugin.add(Op("Polynomial", "authors")
                 .doc("y = coefficients[0] + coefficients[1] * x + coefficients[2] * x * x ...")
                 .in("x")
                 .out("y", same_as("x"))
                 .in_place("y", "x")
                 .required("coefficients", HEDDLE_ATTRIBUTE_FLOATS)
                 .gradient(polynomial_gradient)
                 .example("f32[3] = 0 1 -2; coefficients=[1,2,3] -> f32[3] = 1 6 9", "by hand")
                 .example("f64[2] = 5 7; coefficients=[] -> f64[2] = 0 0", "by hand")
                 .cpu<polynomial<float>>()
                 .elementwise()
                 .cpu<polynomial<double>>()
                 .elementwise());
  plugin.add(Op("Rearrange", "authors")
                 .doc("y[..., k] = x[..., order[k]]")
                 .in("x", dtypes<float, double, int32_t>())
                 .dims("... D")
                 .out("y", same_as("x"))
                 .required("order", HEDDLE_ATTRIBUTE_INTS)
                 .infer(infer_rearrange)
                 .gradient(rearrange_gradient)
                 .example("f32[2,3] = 1 2 3 4 5 6; order=[2,0,1] -> f32[2,3] = 3 1 2 6 4 5", "by hand")
                 .example("f32[0]; order=[]")
                 .cpu<rearrange<float>>()
                 .cpu<rearrange<double>>()
                 .cpu<rearrange<int32_t>>());
  plugin.add(Op("Stencil", "authors")
                 .doc("weighted sum of neighbours along the last axis")
                 .in("x", dtypes<float, double>())
                 .dims("... D")
                 .out("y", same_as("x"))
                 .required("weights", HEDDLE_ATTRIBUTE_TENSOR)
                 .attribute("border", "zero")
                 .infer(infer_stencil)
                 .gradient(stencil_gradient)
                 .example("f32[4] = 1 2 3 4; weights=f32[3] = 10 0 1 -> f32[4] = 2 13 24 30", "by hand")
                 .example("f64[2,3] = 1 2 3 4 5 6; weights=f64[3] = 10 0 1, border=\"wrap\" -> f64[2,3] = 32 13 21 65 46 54", "by hand")
                 .cpu<Stencil<float>>({dtypes<float>()})
                 .cpu<Stencil<double>>({dtypes<double>()}));
  plugin.add(Op("Limit", "authors")
                 .doc("y = x between low and high, where they are given, and how many elements that changed")
                 .in("x", dtypes<float, double>())
                 .dims("...")
                 .optional("low", dtypes<float, double>())
                 .dims("")
                 .not_differentiable()
                 .optional("high", dtypes<float, double>())
                 .dims("")
                 .not_differentiable()
                 .out("y", same_as("x"))
                 .optional_out("changed", scalar(), dtypes<int64_t>(), nullptr)
                 .gradient("LimitGrad", {"x", "dy", "low", "high"}, {"dx"})
                 .example("f32[4] = -3 0 2 9, f32[] = -1, f32[] = 2 -> f32[4] = -1 0 2 2, i64[] = 2", "by hand")
                 .example("f32[4] = -3 0 2 9, -, f32[] = 2 -> f32[4] = -3 0 2 2", "by hand")
                 .example("f64[4] = -3 0 2 9 -> f64[4] = -3 0 2 9, i64[] = 0", "by hand")
                 .cpu<limit<float>>()
                 .cpu<limit<double>>());
  plugin.add(Op("LimitGrad", "authors")
                 .doc("the gradient of Limit's x")
                 .in("x", dtypes<float, double>())
                 .dims("...")
                 .in("dy", dtypes<float, double>())
                 .dims("...")
                 .optional("low", dtypes<float, double>())
                 .dims("")
                 .optional("high", dtypes<float, double>())
                 .dims("")
                 .out("dx", same_as("x"))
                 .example("f32[4] = -3 0 2 9, f32[4] = 1 2 3 4, f32[] = -1, f32[] = 2 -> f32[4] = 0 2 3 0", "by hand")
                 .example("f32[2] = -3 9, f32[2] = 1 2, -, f32[] = 2 -> f32[2] = 1 0", "by hand")
                 .cpu<limit_grad<float>>()
                 .cpu<limit_grad<double>>());
}

}  // namespace

HEDDLE_PLUGIN("authors_pointwise", "1.0", plugin) {
  add_pointwise(plugin);
  add_with_attributes(plugin);
}
