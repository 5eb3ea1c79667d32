// The operators that make up the gradients of RNN, GRU and LSTM: cells are recorded on a tape, which is then read in reverse.
#include <algorithm>
#include <cmath>
#include <utility>

#include "conformance/computations/recurrent_reference.h"

namespace heddle::conformance {
namespace reference_recurrent_gradient {
namespace {

enum Input : size_t { in_sums, in_r, in_lengths, in_h, in_dy, in_dy_h, in_arriving, in_c, in_dy_c, in_p };

// ---------------------------------------------------------------- the tape

// Each entry is a number that is computed from earlier entries; `slopes` are its derivatives by its operands.
class Tape {
 public:
  using Entry = size_t;

  Entry write(const Tracked& value) { return append({value, {}, 0, {}, {}}); }
  Entry add(Entry a, Entry b) { return append({at(a) + at(b), {}, 2, {a, b}, {{1}, {1}}}); }
  Entry multiply(Entry a, Entry b) { return append({at(a) * at(b), {}, 2, {a, b}, {at(b), at(a)}}); }
  // a + b, with a given value.
  Entry known(const Tracked& value, Entry a, Entry b) { return append({value, {}, 2, {a, b}, {{1}, {1}}}); }
  // 1 - a
  Entry rest(Entry a) { return append({Tracked{1} + Tracked{-at(a).value, at(a).error}, {}, 1, {a}, {{-1}}}); }
  // f of the entry, which is first clipped to [-most, most] if `most` is more than 0.
  Entry activate(const Activation& f, Number most, Entry a) {
    constexpr Number step = 1e-6L;
    Tracked x = at(a);
    const bool is_clipped = most > 0 && std::fabs(x.value) >= most;
    if (is_clipped) x.value = std::clamp(x.value, -most, most);
    const Number value = f(x.value), slope = is_clipped ? 0 : f.slope(x.value);
    const Number bend = is_clipped ? 0 : (f.slope(x.value + step) - f.slope(x.value - step)) / (2 * step);
    // The error that tanh has where it is subtracted from 1.
    const Number lost = f.name == "Tanh" ? 1 : f.name == "ScaledTanh" ? std::fabs(f.alpha * f.beta) : 3 * std::fabs(slope);
    return append({{value, std::fabs(f.slope(x.value)) * x.error + std::fabs(value)},
                   {},
                   1,
                   {a},
                   {{slope, is_clipped ? 0 : std::fabs(bend) * x.error + std::fabs(slope) + lost}}});
  }

  const Tracked& at(Entry entry) const { return entries_[entry].value; }
  const Tracked& gradient(Entry entry) const { return entries_[entry].gradient; }
  // Adds a gradient of the entry to those that come from later entries.
  void arrives(Entry entry, const Tracked& gradient) { accumulate(entry, gradient); }
  void read_back() {
    for (size_t i = entries_.size(); i-- > 0;)
      for (int k = 0; k < entries_[i].operands_count; ++k) {
        const Tracked& slope = entries_[i].slopes[k];
        const bool passes = std::fabs(slope.value) == 1 && slope.error == 0;  // passed on unchanged: nothing is rounded
        const Tracked& gradient = entries_[i].gradient;
        accumulate(entries_[i].operands[k], passes ? Tracked{slope.value * gradient.value, gradient.error} : slope * gradient);
      }
  }

 private:
  struct Line {
    Tracked value, gradient;
    int operands_count = 0;
    Entry operands[2] = {};
    Tracked slopes[2] = {};
  };
  Entry append(const Line& line) {
    entries_.push_back(line);
    return entries_.size() - 1;
  }
  void accumulate(Entry entry, const Tracked& gradient) {
    Tracked& sum = entries_[entry].gradient;
    if (gradient.value != 0 || gradient.error != 0) sum = sum + gradient;
  }
  std::vector<Line> entries_;
};
using Entry = Tape::Entry;
using Entries = std::vector<Entry>;

// ---------------------------------------------------------------- cells

// One direction of one batch entry.
class Unit {
 public:
  Unit(const Call& call, int64_t direction, int64_t gates, std::vector<Activation> functions)
      : call_(call), gates_(gates), hidden_(call[in_r].shape[2]), functions_(std::move(functions)), clip_(call.f("clip", 0)) {
    const auto weights = [&](size_t input, int64_t count) {
      Entries all;
      for (int64_t i = 0; i < count; ++i)
        all.push_back(tape.write(call.has(input) ? Tracked{call[input].values[static_cast<size_t>(direction * count + i)]} : Tracked{}));
      return all;
    };
    r_ = weights(in_r, gates * hidden_ * hidden_);
    peepholes = weights(in_p, 3 * hidden_);
  }

  Tape tape;
  Entries peepholes, h, c;
  // For the next step: the given values of its gates and its hidden part.
  std::vector<Tracked> sums;
  // From the last step: the contribution of X to the gates.
  Entries xw, gates, hidden_part;

  int64_t hidden() const { return hidden_; }
  Entry product(int64_t g, int64_t j, const Entries& state) {
    const int64_t row = g * hidden_ + j;
    Entry sum = tape.write({});
    for (int64_t i = 0; i < hidden_; ++i)
      sum = tape.add(sum, tape.multiply(r_[static_cast<size_t>(row * hidden_ + i)], state[static_cast<size_t>(i)]));
    return sum;
  }
  // Returns the argument of the gate's function: it has the given value, and depends on X and `others`.
  Entry gate(int64_t g, int64_t j, Entry others) {
    const auto row = static_cast<size_t>(g * hidden_ + j);
    return gates[row] = tape.known(sums[row], xw[row], others);
  }
  Entry part(int64_t j, Entry of) { return tape.known(sums[static_cast<size_t>(gates_ * hidden_ + j)], of, of_nothing_); }
  // Returns `sum` plus the contribution of element j of `state` through peephole p.
  Entry seen(Entry sum, int64_t p, int64_t j, Entry state) {
    return tape.add(sum, tape.multiply(peepholes[static_cast<size_t>(p * hidden_ + j)], state));
  }
  Entry activated(size_t k, Entry sum) { return tape.activate(functions_[k], clip_, sum); }
  Entry activated_unclipped(size_t k, Entry sum) { return tape.activate(functions_[k], 0, sum); }
  bool is(const char* attribute) const { return call_.i(attribute, 0) != 0; }

 private:
  const Call& call_;
  const int64_t gates_, hidden_;
  const std::vector<Activation> functions_;
  const Number clip_;
  Entries r_;
  const Entry of_nothing_ = tape.write({});
};

using Cell = void (*)(Unit& unit);

void rnn_cell(Unit& unit) {
  Entries next;
  for (int64_t j = 0; j < unit.hidden(); ++j) next.push_back(unit.activated(0, unit.gate(0, j, unit.product(0, j, unit.h))));
  unit.h = next;
}

void gru_cell(Unit& unit) {
  enum Gate { update, reset, hidden };
  Tape& tape = unit.tape;
  Entries scaled, next;
  unit.hidden_part.clear();
  for (int64_t j = 0; j < unit.hidden(); ++j) {
    const Entry r = unit.activated(0, unit.gate(reset, j, unit.product(reset, j, unit.h)));
    if (unit.is("linear_before_reset")) {
      unit.hidden_part.push_back(unit.part(j, unit.product(hidden, j, unit.h)));
      scaled.push_back(tape.multiply(r, unit.hidden_part.back()));
    } else {
      unit.hidden_part.push_back(unit.part(j, tape.multiply(r, unit.h[static_cast<size_t>(j)])));
    }
  }
  for (int64_t j = 0; j < unit.hidden(); ++j) {
    const auto at = static_cast<size_t>(j);
    const Entry product = unit.is("linear_before_reset") ? scaled[at] : unit.product(hidden, j, unit.hidden_part);
    const Entry proposed = unit.activated(1, unit.gate(hidden, j, product));
    const Entry z = unit.activated(0, unit.gate(update, j, unit.product(update, j, unit.h)));
    next.push_back(tape.add(tape.multiply(tape.rest(z), proposed), tape.multiply(z, unit.h[at])));
  }
  unit.h = next;
}

void lstm_cell(Unit& unit) {
  enum Gate { input, output, forget, cell };
  enum Peephole { to_input, to_output, to_forget };
  Tape& tape = unit.tape;
  Entries next;
  for (int64_t j = 0; j < unit.hidden(); ++j) {
    Entry& own = unit.c[static_cast<size_t>(j)];
    const auto of_state = [&](int64_t gate) { return unit.product(gate, j, unit.h); };
    const Entry i = unit.activated(0, unit.gate(input, j, unit.seen(of_state(input), to_input, j, own)));
    const Entry of_forget = unit.gate(forget, j, unit.seen(of_state(forget), to_forget, j, own));
    const Entry f = unit.is("input_forget") ? tape.rest(i) : unit.activated(0, of_forget);
    own = tape.add(tape.multiply(f, own), tape.multiply(i, unit.activated(1, unit.gate(cell, j, of_state(cell)))));
    const Entry o = unit.activated(0, unit.gate(output, j, unit.seen(of_state(output), to_output, j, own)));
    next.push_back(tape.multiply(o, unit.activated_unclipped(2, own)));
  }
  unit.h = next;
}

// ---------------------------------------------------------------- a layer

void put(const Tracked& number, Numbers& to, int64_t at) {
  to.values[static_cast<size_t>(at)] = number.value;
  to.scale[static_cast<size_t>(at)] = number.error;
}

struct Step {
  Entries xw, before, hidden_part;
  int64_t row;
};

class Layer {
 public:
  Layer(const Call& call, Cell cell, int64_t gates, const std::vector<std::string>& functions)
      : call_(call), cell_(cell), gates_(gates), batch_first_(call.i("layout", 0) != 0) {
    const Shape& sums = call[in_sums].shape;
    directions_ = call[in_r].shape[0];
    times_ = sums[batch_first_ ? 1 : 0];
    batches_ = sums[batch_first_ ? 0 : 1];
    hidden_ = call[in_r].shape[2];
    of_each_ = static_cast<int64_t>(functions.size());
    functions_ = activations_of(call, functions, directions_);
    const Shape rows = {sums[0], sums[1], directions_ * hidden_};
    const Shape state = batch_first_ ? Shape{batches_, directions_, hidden_} : Shape{directions_, batches_, hidden_};
    dsums_ = scaled({sums[0], sums[1], directions_ * gates_ * hidden_});
    states_ = hidden_part_ = scaled(rows);
    dh_ = dc_ = scaled(state);
    dp_ = scaled({directions_, batches_, 3 * hidden_});
  }

  std::vector<Numbers> outputs() {
    for (int64_t d = 0; d < directions_; ++d)
      for (int64_t b = 0; b < batches_; ++b) differentiate(d, b);
    if (gates_ == 4) return {dsums_, states_, dh_, dc_, dp_};
    if (gates_ == 3) return {dsums_, states_, dh_, hidden_part_};
    return {dsums_, states_, dh_};
  }

 private:
  Numbers scaled(const Shape& shape) const {
    Numbers numbers = zeros(call_[in_sums].dtype, shape);
    numbers.scale = numbers.values;
    return numbers;
  }
  Tracked element(size_t input, int64_t at) const {
    return call_.has(input) ? Tracked{call_[input].values[static_cast<size_t>(at)]} : Tracked{};
  }
  void differentiate(int64_t d, int64_t b) {
    const auto first = functions_.begin() + d * of_each_;
    Unit unit(call_, d, gates_, {first, first + of_each_});
    const int64_t state = (batch_first_ ? b * directions_ + d : d * batches_ + b) * hidden_;
    for (int64_t j = 0; j < hidden_; ++j) {
      unit.h.push_back(unit.tape.write(element(in_h, state + j)));
      unit.c.push_back(unit.tape.write(element(in_c, state + j)));
    }
    const Entries h = unit.h, c = unit.c;
    const int64_t length = call_.has(in_lengths) ? call_.list(in_lengths)[static_cast<size_t>(b)] : times_;
    std::vector<Step> steps;
    for (int64_t step = 0; step < length; ++step) {
      const int64_t t = call_.s("direction", "forward") == "reverse" || d == 1 ? length - 1 - step : step;
      const int64_t row = (batch_first_ ? b * times_ + t : t * batches_ + b) * directions_ + d;
      const int64_t kept = (gates_ == 3 ? 4 : gates_) * hidden_;
      unit.xw.clear();
      unit.sums.clear();
      unit.gates.assign(static_cast<size_t>(gates_ * hidden_), 0);
      for (int64_t g = 0; g < gates_ * hidden_; ++g) unit.xw.push_back(unit.tape.write({}));
      for (int64_t g = 0; g < kept; ++g) unit.sums.push_back(element(in_sums, row * kept + g));
      steps.push_back({unit.xw, unit.h, {}, row});
      cell_(unit);
      steps.back().hidden_part = unit.hidden_part;
      Entries said = unit.gates;
      said.insert(said.end(), unit.hidden_part.begin(), unit.hidden_part.end());
      for (size_t g = 0; g < said.size(); ++g) unit.tape.arrives(said[g], element(in_arriving, row * kept + static_cast<int64_t>(g)));
      const int64_t y = (batch_first_ ? (b * times_ + t) * directions_ + d : (t * directions_ + d) * batches_ + b) * hidden_;
      for (int64_t j = 0; j < hidden_; ++j) unit.tape.arrives(unit.h[static_cast<size_t>(j)], element(in_dy, y + j));
    }
    for (int64_t j = 0; j < hidden_; ++j) {
      unit.tape.arrives(unit.h[static_cast<size_t>(j)], element(in_dy_h, state + j));
      unit.tape.arrives(unit.c[static_cast<size_t>(j)], element(in_dy_c, state + j));
    }
    unit.tape.read_back();
    for (const Step& step : steps) write(unit.tape, step);
    for (int64_t j = 0; j < hidden_; ++j) {
      put(unit.tape.gradient(h[static_cast<size_t>(j)]), dh_, state + j);
      put(unit.tape.gradient(c[static_cast<size_t>(j)]), dc_, state + j);
    }
    for (int64_t j = 0; j < 3 * hidden_; ++j)
      put(unit.tape.gradient(unit.peepholes[static_cast<size_t>(j)]), dp_, (d * batches_ + b) * 3 * hidden_ + j);
  }
  void write(const Tape& tape, const Step& step) {
    for (size_t g = 0; g < step.xw.size(); ++g)
      put(tape.gradient(step.xw[g]), dsums_, step.row * gates_ * hidden_ + static_cast<int64_t>(g));
    for (int64_t j = 0; j < hidden_; ++j) put(tape.at(step.before[static_cast<size_t>(j)]), states_, step.row * hidden_ + j);
    for (size_t j = 0; j < step.hidden_part.size(); ++j) {
      const Entry part = step.hidden_part[j];
      put(call_.i("linear_before_reset", 0) != 0 ? tape.gradient(part) : tape.at(part), hidden_part_,
          step.row * hidden_ + static_cast<int64_t>(j));
    }
  }

  const Call& call_;
  const Cell cell_;
  const int64_t gates_;
  const bool batch_first_;
  int64_t directions_ = 0, times_ = 0, batches_ = 0, hidden_ = 0, of_each_ = 0;
  std::vector<Activation> functions_;
  Numbers dsums_, states_, hidden_part_, dh_, dc_, dp_;
};

// ---------------------------------------------------------------- calls

// Writes the inputs sequence_lens, initial_h, dY, dY_h (n), dsums, initial_c, dY_c (m), P whose letter is present.
std::string call_of(const std::string& dtype, int64_t time, int64_t batch, int64_t hidden, int64_t gates, const std::string& direction,
                    const std::string& optional, const std::string& attributes) {
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  const bool batch_first = attributes.find("layout=1") != std::string::npos;
  const auto list = [](const std::vector<int64_t>& dims) {
    std::string text;
    for (const int64_t dim : dims) text += (text.empty() ? "[" : ",") + std::to_string(dim);
    return text + "]";
  };
  const std::string state = list(batch_first ? Ints{batch, directions, hidden} : Ints{directions, batch, hidden});
  const int64_t kept = directions * (gates == 3 ? 4 : gates) * hidden;
  std::string call = dtype + list(batch_first ? Ints{batch, time, kept} : Ints{time, batch, kept});
  call += ", " + dtype + list({directions, gates * hidden, hidden}) + (hidden > 16 ? "=-0.125..0.125" : "=-0.5..0.5");
  const auto add = [&](char letter, const std::string& operand) {
    call += ", " + (optional.find(letter) == std::string::npos ? "-" : operand);
  };
  add('l', "i32" + list({batch}) + "=0.." + std::to_string(time + 1));
  add('h', dtype + state);
  add('y', dtype + list(batch_first ? Ints{batch, time, directions, hidden} : Ints{time, directions, batch, hidden}));
  add('n', dtype + state);
  add('s', dtype + list(batch_first ? Ints{batch, time, kept} : Ints{time, batch, kept}));
  if (gates == 4) {
    add('c', dtype + state);
    add('m', dtype + state);
    add('P', dtype + list({directions, 3 * hidden}));
  }
  while (call.ends_with(", -")) call.resize(call.size() - 3);
  return call + "; direction=\"" + direction + "\"" + (attributes.empty() ? "" : ", " + attributes);
}

Row row(const char* type, Cell cell, int64_t gates, const std::vector<std::string>& functions, const std::string& variant,
        const std::vector<std::pair<std::string, std::string>>& activations) {
  std::vector<Case> cases;
  const auto add = [&](Kind kind, const std::string& dtype, Ints extents, const std::string& direction, const std::string& optional,
                       const std::string& attributes = "") {
    cases.push_back({kind, call_of(dtype, extents[0], extents[1], extents[2], gates, direction, optional, attributes)});
  };
  const std::string all = "lhynscmP", whole = "hynscmP";
  add(Kind::odd, "T", {3, 2, 7}, "forward", "y");
  for (const char* arriving : {"n", "m", "", "yn", "s"}) add(Kind::odd, "T", {3, 2, 3}, "forward", std::string("hc") + arriving);
  add(Kind::odd, "T", {4, 3, 3}, "forward", all);
  add(Kind::odd, "T", {3, 2, 4}, "forward", all, "clip=0.25");
  add(Kind::odd, "T", {1, 1, 1}, "forward", whole);
  add(Kind::odd, "f32", {3, 2, 16}, "forward", "yP");
  add(Kind::odd, "f32", {2, 3, 33}, "forward", whole);
  add(Kind::empty, "T", {3, 0, 4}, "forward", all);
  add(Kind::empty, "T", {0, 2, 4}, "forward", whole);
  add(Kind::empty, "T", {2, 2, 0}, "forward", whole);
  for (const std::string more : {"layout=0", "layout=1"}) {
    add(Kind::strided, "T", {4, 3, 3}, "forward", all, more);
    add(Kind::strided, "T", {4, 3, 3}, "reverse", all, more);
    add(Kind::strided, "T", {4, 3, 3}, "bidirectional", all, more + ", clip=0.5");
    add(Kind::strided, "f32", {3, 2, 17}, "bidirectional", "y", more);
  }
  for (const auto& [names, parameters] : activations) {
    add(Kind::odd, "T", {3, 2, 3}, "forward", whole, "activations=[" + names + "]" + parameters);
    add(Kind::odd, "T", {3, 2, 3}, "bidirectional", whole, "activations=[" + names + "," + names + "]" + parameters);
  }
  if (!variant.empty()) {
    add(Kind::odd, "T", {3, 2, 7}, "forward", all, variant);
    add(Kind::odd, "f32", {3, 2, 17}, "bidirectional", "y", variant + ", clip=0.5");
  }
  add(Kind::large, "f32", {5, 67, 24}, "bidirectional", all);
  add(Kind::large, "f32", {5, 19, 40}, "reverse", "y", "layout=1");
  add(Kind::large, "f32", {40, 26, 5}, "bidirectional", all);
  return {.type = type,
          .reference = [=](const Call& call) { return Layer(call, cell, gates, functions).outputs(); },
          .cases = std::move(cases),
          .ulps = 1,
          .domain = "heddle",
          .without = {{Kind::broadcast, "all inputs have shapes of their own"}, {Kind::rank, "all inputs have fixed ranks"}},
          .never_one_element = gates > 1,
          .never_same_size = gates == 3};
}

}  // namespace
}  // namespace reference_recurrent_gradient

std::vector<Row> recurrent_gradient_rows() {
  using namespace reference_recurrent_gradient;
  return {row("RnnGradient", rnn_cell, 1, {"Tanh"}, "",
              {{R"("Relu")", ""},
               {R"("Sigmoid")", ""},
               {R"("Affine")", ", activation_alpha=[0.5,0.25], activation_beta=[0.125,-0.5]"},
               {R"("LeakyRelu")", ", activation_alpha=[0.25]"},
               {R"("ThresholdedRelu")", ", activation_alpha=[0.375,0.125]"},
               {R"("ScaledTanh")", ", activation_alpha=[0.75,1.5], activation_beta=[0.5,2.0]"},
               {R"("HardSigmoid")", ", activation_alpha=[0.5], activation_beta=[0.25]"},
               {R"("Elu")", ", activation_alpha=[0.5]"},
               {R"("Softsign")", ""},
               {R"("Softplus")", ""}}),
          row("GruGradient", gru_cell, 3, {"Sigmoid", "Tanh"}, "linear_before_reset=1",
              {{R"("HardSigmoid","ScaledTanh")", ", activation_alpha=[0.5,0.75], activation_beta=[0.25,1.5]"},
               {R"("Softsign","Affine")", ", activation_alpha=[0.5], activation_beta=[0.125]"}}),
          row("LstmGradient", lstm_cell, 4, {"Sigmoid", "Tanh", "Tanh"}, "input_forget=1",
              {{R"("HardSigmoid","Affine","LeakyRelu")", ", activation_alpha=[0.25,0.5,0.125], activation_beta=[0.5,0.125]"},
               {R"("Sigmoid","Softsign","Elu")", ", activation_alpha=[0.5]"}})};
}

}  // namespace heddle::conformance
