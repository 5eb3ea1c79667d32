// RNN, GRU and LSTM.
#include <algorithm>
#include <cmath>

#include "conformance/computations/recurrent_reference.h"

namespace heddle::conformance {

std::vector<Activation> activations_of(const Call& call, const std::vector<std::string>& defaults, int64_t directions) {
  static const std::map<std::string, std::vector<Number>> parameters = {
      {"Affine", {1, 0}},     {"LeakyRelu", {0.01L}},        {"ThresholdedRelu", {1}},
      {"ScaledTanh", {1, 1}}, {"HardSigmoid", {0.2L, 0.5L}}, {"Elu", {1}}};
  std::vector<std::string> names = call.strings("activations");
  for (int64_t d = 0; d < directions && call.strings("activations").empty(); ++d)
    names.insert(names.end(), defaults.begin(), defaults.end());
  const std::vector<double> alphas = call.floats("activation_alpha"), betas = call.floats("activation_beta");
  std::vector<Activation> all;
  size_t alpha = 0, beta = 0;
  for (const std::string& name : names) {
    Activation activation{name};
    if (const auto own = parameters.find(name); own != parameters.end()) {
      activation.alpha = alpha < alphas.size() ? static_cast<Number>(alphas[alpha++]) : own->second[0];
      if (own->second.size() > 1) activation.beta = beta < betas.size() ? static_cast<Number>(betas[beta++]) : own->second[1];
    }
    all.push_back(activation);
  }
  return all;
}

namespace reference_recurrent {
namespace {

using Vector = std::vector<Tracked>;

// ---------------------------------------------------------------- one direction

// Weights of a direction, and the functions that all cells share. Gates are in the order of W.
class Direction {
 public:
  Direction(const Call& call, int64_t direction, int64_t gates, std::vector<Activation> functions)
      : call_(call), direction_(direction), gates_(gates), functions_(std::move(functions)) {}

  int64_t hidden() const { return call_[2].shape[2]; }
  // X W' for gate g, element j; H R' likewise; their biases.
  Tracked of_input(int64_t g, int64_t j, const Vector& x) const { return product(call_[0].shape[2], 1, g, j, x); }
  Tracked of_state(int64_t g, int64_t j, const Vector& h) const { return product(hidden(), 2, g, j, h); }
  Tracked input_bias(int64_t g, int64_t j) const { return element(3, 2 * gates_, g, j); }
  Tracked state_bias(int64_t g, int64_t j) const { return element(3, 2 * gates_, gates_ + g, j); }
  Tracked peephole(int64_t g, int64_t j) const { return element(7, 3, g, j); }
  // Apply function k to x, clipped before or as it is. ONNX clips "the input of activations"; ONNX Runtime, whose reading this is, takes
  // this as the gates, and not the cell that LSTM's h is applied to.
  Tracked clipped_and_activated(size_t k, Tracked x) const {
    if (call_.given("clip")) {
      const auto most = static_cast<Number>(call_.f("clip", 0));
      x.value = std::clamp(x.value, -most, most);
    }
    return activated(k, x);
  }
  Tracked activated(size_t k, const Tracked& x) const {
    constexpr Number step = 1e-6L;
    const Number value = functions_[k](x.value), slope = (functions_[k](x.value + step) - functions_[k](x.value - step)) / (2 * step);
    return {value, std::fabs(slope) * x.error + std::fabs(value)};
  }

 private:
  Tracked element(size_t input, int64_t rows, int64_t row, int64_t j) const {
    if (!call_.has(input)) return {};
    return {call_[input].values[static_cast<size_t>((direction_ * rows + row) * hidden() + j)]};
  }
  Tracked product(int64_t width, size_t input, int64_t g, int64_t j, const Vector& with) const {
    Tracked sum;
    for (int64_t i = 0; i < width; ++i) {
      const auto at = static_cast<size_t>(((direction_ * gates_ + g) * hidden() + j) * width + i);
      sum = sum + Tracked{call_[input].values[at]} * with[static_cast<size_t>(i)];
    }
    return sum;
  }

  const Call& call_;
  const int64_t direction_, gates_;
  const std::vector<Activation> functions_;
};

// Computes the next states from x, the state h and, for LSTM, c. `sums`: the arguments of the gates' functions and, for GRU, the operand of
// the hidden gate's R or, with linear_before_reset, that product; gate by gate.
using Cell = void (*)(const Call& call, const Direction& of, const Vector& x, Vector& h, Vector& c, Vector& sums);

void rnn_cell(const Call&, const Direction& of, const Vector& x, Vector& h, Vector&, Vector& sums) {
  const Vector before = h;
  for (int64_t j = 0; j < of.hidden(); ++j) {
    const auto at = static_cast<size_t>(j);
    sums[at] = of.of_input(0, j, x) + of.of_state(0, j, before) + of.input_bias(0, j) + of.state_bias(0, j);
    h[at] = of.clipped_and_activated(0, sums[at]);
  }
}

void gru_cell(const Call& call, const Direction& of, const Vector& x, Vector& h, Vector&, Vector& sums) {
  enum Gate { update, reset, next, hidden_part };
  const auto at = [&](Gate g, int64_t j) { return static_cast<size_t>(g * of.hidden() + j); };
  const auto gate = [&](Gate g, int64_t j) {
    sums[at(g, j)] = of.of_input(g, j, x) + of.of_state(g, j, h) + of.input_bias(g, j) + of.state_bias(g, j);
    return of.clipped_and_activated(0, sums[at(g, j)]);
  };
  const bool linear_before_reset = call.i("linear_before_reset", 0) != 0;
  Vector left = h, after = h;
  for (int64_t j = 0; j < of.hidden(); ++j) left[static_cast<size_t>(j)] = gate(reset, j) * h[static_cast<size_t>(j)];
  for (int64_t j = 0; j < of.hidden(); ++j) {
    const Tracked product = of.of_state(next, j, linear_before_reset ? h : left) + of.state_bias(next, j);
    const Tracked from_state = linear_before_reset ? gate(reset, j) * product : product;
    sums[at(hidden_part, j)] = linear_before_reset ? product : left[static_cast<size_t>(j)];
    sums[at(next, j)] = of.of_input(next, j, x) + from_state + of.input_bias(next, j);
    const Tracked proposed = of.clipped_and_activated(1, sums[at(next, j)]), z = gate(update, j);
    after[static_cast<size_t>(j)] = (Tracked{1} + Tracked{-1} * z) * proposed + z * h[static_cast<size_t>(j)];
  }
  h = after;
}

void lstm_cell(const Call& call, const Direction& of, const Vector& x, Vector& h, Vector& c, Vector& sums) {
  enum Gate { input, output, forget, cell };
  const Vector before = h;
  const auto activated = [&](size_t k, Gate g, int64_t j, const Tracked& seen) {
    Tracked& sum = sums[static_cast<size_t>(g * of.hidden() + j)];
    sum = of.of_input(g, j, x) + of.of_state(g, j, before) + of.input_bias(g, j) + of.state_bias(g, j) + seen;
    return of.clipped_and_activated(k, sum);
  };
  for (int64_t j = 0; j < of.hidden(); ++j) {
    Tracked& own = c[static_cast<size_t>(j)];
    const Tracked i = activated(0, input, j, of.peephole(input, j) * own), f = activated(0, forget, j, of.peephole(forget, j) * own);
    const Tracked kept = call.i("input_forget", 0) != 0 ? Tracked{1} + Tracked{-1} * i : f;
    own = kept * own + i * activated(1, cell, j, {});
    const Tracked o = activated(0, output, j, of.peephole(output, j) * own);
    h[static_cast<size_t>(j)] = o * of.activated(2, own);
  }
}

// ---------------------------------------------------------------- a layer

void write(const Vector& row, Numbers& to, int64_t position) {
  for (size_t j = 0; j < row.size(); ++j) {
    const size_t at = static_cast<size_t>(position) * row.size() + j;
    to.values[at] = row[j].value;
    to.scale[at] = row[j].error;
  }
}

std::vector<Numbers> layer(const Call& call, Cell cell, int64_t gates, const std::vector<std::string>& functions) {
  const Numbers& x = call[0];
  const bool batch_first = call.i("layout", 0) != 0;
  const std::string direction = call.s("direction", "forward");
  const int64_t time = x.shape[batch_first ? 1 : 0], batch = x.shape[batch_first ? 0 : 1], width = x.shape[2],
                directions = call[1].shape[0], hidden = call[2].shape[2];
  const auto state_at = [&](int64_t d, int64_t b) { return batch_first ? b * directions + d : d * batch + b; };
  const auto row = [&](const Numbers& from, int64_t position, int64_t extent) {
    Vector row;
    for (int64_t i = 0; i < extent; ++i) row.push_back({from.values[static_cast<size_t>(position * extent + i)]});
    return row;
  };
  Numbers y = zeros(x.dtype, batch_first ? Shape{batch, time, directions, hidden} : Shape{time, directions, batch, hidden});
  Numbers y_h = zeros(x.dtype, batch_first ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden});
  y.scale = y.values;
  y_h.scale = y_h.values;
  Numbers y_c = y_h;
  const int64_t kept = gates == 3 ? 4 : gates;
  Numbers all_sums = zeros(x.dtype, {x.shape[0], x.shape[1], directions * kept * hidden});
  all_sums.scale = all_sums.values;
  const std::vector<Activation> activations = activations_of(call, functions, directions);
  for (int64_t d = 0; d < directions; ++d) {
    const auto first = activations.begin() + d * static_cast<int64_t>(functions.size());
    const Direction of(call, d, gates, {first, first + static_cast<int64_t>(functions.size())});
    for (int64_t b = 0; b < batch; ++b) {
      Vector h(static_cast<size_t>(hidden)), c = h;
      if (call.has(5)) h = row(call[5], state_at(d, b), hidden);
      if (call.has(6)) c = row(call[6], state_at(d, b), hidden);
      const int64_t length = call.has(4) ? call.list(4)[static_cast<size_t>(b)] : time;
      for (int64_t step = 0; step < length; ++step) {
        const int64_t t = direction == "reverse" || d == 1 ? length - 1 - step : step;
        Vector sums(static_cast<size_t>(kept * hidden));
        const int64_t at = batch_first ? b * time + t : t * batch + b;
        cell(call, of, row(x, at, width), h, c, sums);
        write(sums, all_sums, at * directions + d);
        write(h, y, batch_first ? (b * time + t) * directions + d : (t * directions + d) * batch + b);
      }
      write(h, y_h, state_at(d, b));
      write(c, y_c, state_at(d, b));
    }
  }
  if (gates == 4) return {y, y_h, y_c, all_sums};
  return {y, y_h, all_sums};
}

// ---------------------------------------------------------------- calls

// The weights are so small that errors do not grow along the sequence.
std::string call_of(const std::string& dtype, int64_t time, int64_t batch, int64_t width, int64_t hidden, int64_t gates,
                    const std::string& direction, const std::string& optional, const std::string& attributes) {
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  const bool batch_first = attributes.find("layout=1") != std::string::npos;
  const auto list = [](const std::vector<int64_t>& dims) {
    std::string text;
    for (const int64_t dim : dims) text += (text.empty() ? "[" : ",") + std::to_string(dim);
    return text + "]";
  };
  const std::string state = list(batch_first ? Ints{batch, directions, hidden} : Ints{directions, batch, hidden});
  const std::string range = hidden > 16 ? "=-0.125..0.125" : "=-0.5..0.5";
  std::string call = dtype + list(batch_first ? Ints{batch, time, width} : Ints{time, batch, width});
  call += ", " + dtype + list({directions, gates * hidden, width}) + range;
  call += ", " + dtype + list({directions, gates * hidden, hidden}) + range;
  // Writes the inputs B, sequence_lens, initial_h, initial_c, P whose letter is present.
  const auto has = [&](char letter) { return optional.find(letter) != std::string::npos; };
  call += has('B') ? ", " + dtype + list({directions, 2 * gates * hidden}) : ", -";
  call += has('l') ? ", i32" + list({batch}) + "=1.." + std::to_string(time + 1) : ", -";
  call += has('h') ? ", " + dtype + state : ", -";
  if (gates == 4) {
    call += has('c') ? ", " + dtype + state : ", -";
    call += has('P') ? ", " + dtype + list({directions, 3 * hidden}) : ", -";
  }
  while (call.ends_with(", -")) call.resize(call.size() - 3);
  return call + "; direction=\"" + direction + "\"" + (attributes.empty() ? "" : ", " + attributes);
}

Row row(const char* type, Cell cell, int64_t gates, const std::vector<std::string>& functions, const std::string& variant,
        const std::vector<std::pair<std::string, std::string>>& activations) {
  std::vector<Case> cases;
  const auto add = [&](Kind kind, const std::string& dtype, Ints extents, const std::string& direction, const std::string& optional,
                       const std::string& attributes = "") {
    cases.push_back({kind, call_of(dtype, extents[0], extents[1], extents[2], extents[3], gates, direction, optional, attributes)});
  };
  add(Kind::odd, "T", {3, 2, 5, 7}, "forward", "");
  add(Kind::odd, "T", {4, 3, 2, 3}, "forward", "Blhc", "hidden_size=3");
  add(Kind::odd, "T", {3, 2, 5, 4}, "forward", "BlhcP", "clip=0.25");
  add(Kind::odd, "T", {1, 1, 1, 1}, "forward", "BhcP");
  add(Kind::odd, "f32", {3, 2, 8, 16}, "forward", "BP");
  add(Kind::odd, "f32", {2, 3, 17, 33}, "forward", "BhcP");
  add(Kind::odd, "f32", {2, 1, 65, 64}, "forward", "hc");
  add(Kind::empty, "T", {3, 0, 5, 4}, "forward", "Bl");
  add(Kind::empty, "T", {0, 2, 5, 4}, "forward", "Bhc");
  add(Kind::empty, "T", {3, 2, 0, 4}, "forward", "BhcP");
  for (const std::string more : {"layout=0", "layout=1"}) {
    add(Kind::strided, "T", {4, 3, 5, 3}, "forward", "BlhcP", more);
    add(Kind::strided, "T", {4, 3, 5, 3}, "reverse", "BlhcP", more);
    add(Kind::strided, "T", {4, 3, 5, 3}, "bidirectional", "BlhcP", more + ", clip=0.5");
    add(Kind::strided, "f32", {3, 2, 9, 17}, "bidirectional", "", more);
  }
  for (const auto& [names, parameters] : activations) {
    add(Kind::odd, "T", {3, 2, 4, 3}, "forward", "BhcP", "activations=[" + names + "]" + parameters);
    add(Kind::odd, "T", {3, 2, 4, 3}, "bidirectional", "BhcP", "activations=[" + names + "," + names + "]" + parameters);
  }
  if (!variant.empty()) {
    add(Kind::odd, "T", {3, 2, 5, 7}, "forward", "BlhcP", variant);
    add(Kind::odd, "f32", {3, 2, 9, 17}, "bidirectional", "", variant + ", clip=0.5");
  }
  add(Kind::large, "f32", {3, 67, 9, 16}, "bidirectional", "BlhcP");
  add(Kind::large, "f32", {7, 19, 70, 40}, "reverse", "B", "layout=1");
  // More steps than rows of X are multiplied at once, with as many batch entries as are processed together and with fewer.
  for (const int64_t batch : {1, 24, 26}) add(Kind::large, "f32", {batch == 1 ? 300 : 40, batch, 5, 9}, "bidirectional", "BlhcP");
  add(Kind::large, "f32", {3, 2, 300, 5}, "forward", "");
  return {.type = type,
          .reference = [=](const Call& call) { return layer(call, cell, gates, functions); },
          .cases = std::move(cases),
          .ulps = 1,
          .without = {{Kind::broadcast, "all inputs have shapes of their own"}, {Kind::rank, "all inputs have fixed ranks"}}};
}

}  // namespace
}  // namespace reference_recurrent

std::vector<Row> recurrent_rows() {
  using namespace reference_recurrent;
  return {row("RNN", rnn_cell, 1, {"Tanh"}, "",
              {{R"("Relu")", ""},
               {R"("Sigmoid")", ""},
               {R"("Affine")", ", activation_alpha=[0.5,0.25], activation_beta=[0.125,-0.5]"},
               {R"("LeakyRelu")", ", activation_alpha=[0.25]"},
               {R"("LeakyRelu")", ""},
               {R"("ThresholdedRelu")", ", activation_alpha=[0.375,0.125]"},
               {R"("ScaledTanh")", ", activation_alpha=[0.75,1.5], activation_beta=[0.5,2.0]"},
               {R"("HardSigmoid")", ""},
               {R"("HardSigmoid")", ", activation_alpha=[0.5], activation_beta=[0.25]"},
               {R"("Elu")", ", activation_alpha=[0.5]"},
               {R"("Softsign")", ""},
               {R"("Softplus")", ""}}),
          row("GRU", gru_cell, 3, {"Sigmoid", "Tanh"}, "linear_before_reset=1",
              {{R"("HardSigmoid","ScaledTanh")", ", activation_alpha=[0.5,0.75], activation_beta=[0.25,1.5]"},
               {R"("Softsign","Affine")", ", activation_alpha=[0.5], activation_beta=[0.125]"}}),
          row("LSTM", lstm_cell, 4, {"Sigmoid", "Tanh", "Tanh"}, "input_forget=1",
              {{R"("HardSigmoid","Affine","LeakyRelu")", ", activation_alpha=[0.25,0.5,0.125], activation_beta=[0.5,0.125]"},
               {R"("Sigmoid","Softsign","Elu")", ", activation_alpha=[0.5]"}})};
}

}  // namespace heddle::conformance
