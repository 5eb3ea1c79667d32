// Optimizers of whole tensors and, for tables, of the rows that indices name, as torch.optim defines them.
#include <cmath>
#include <functional>

#include "conformance/cases/rounding.h"

namespace heddle::conformance {
namespace reference_optimizer {
namespace {

enum class Rule : uint8_t { sgd, momentum, adagrad, rms_prop, adam };

size_t states_of(Rule rule) {
  return rule == Rule::sgd ? 0 : rule == Rule::adam ? 2 : 1;
}

// A number, and the magnitude that its error is relative to.
struct Value {
  Number value = 0, scale = 0;
};
Value exact(Number value) {
  return {value, std::fabs(value)};
}
Value operator+(const Value& a, const Value& b) {
  return {a.value + b.value, a.scale + b.scale};
}
Value operator*(Number factor, const Value& b) {
  return {factor * b.value, std::fabs(factor) * b.scale};
}
// Relative errors add up.
Value operator*(const Value& a, const Value& b) {
  return {a.value * b.value, a.scale * std::fabs(b.value) + b.scale * std::fabs(a.value)};
}

// One element's weight and states, updated in place.
struct Element {
  Value w, states[2];
};

class Optimizer {
 public:
  // `by_rows`: like torch.optim.SparseAdam.
  Optimizer(const Call& call, Rule rule, size_t rate_at, bool by_rows) : call_(call), rule_(rule), by_rows_(by_rows) {
    rate_ = call[rate_at].values[0];
    if (rule == Rule::adam) step_ = call[rate_at + 1].values[0];
  }
  Value with_decay(const Value& g, const Value& w) const {
    const Number decay = f("weight_decay", 0);
    return decay == 0 || call_.i("decoupled_weight_decay", 0) != 0 ? g : g + decay * w;
  }
  void update(Element& e, Value g) const {
    g = with_decay(g, e.w);
    if (rule_ == Rule::sgd) return move(e, g);
    if (rule_ == Rule::momentum) {
      const Number momentum = f("momentum", 0.9);
      e.states[0] = momentum * e.states[0] + g;
      return move(e, call_.i("nesterov", 0) != 0 ? g + momentum * e.states[0] : e.states[0]);
    }
    if (rule_ == Rule::adam) return adam(e, g);
    const Number keep = rule_ == Rule::adagrad ? 1 : f("alpha", 0.99), add = rule_ == Rule::adagrad ? 1 : 1 - keep;
    e.states[0] = keep * e.states[0] + add * (g * g);
    move(e, quotient(g, e.states[0], 1, f("epsilon", rule_ == Rule::adagrad ? 1e-10 : 1e-8)));
  }
  // Updates an element with one sum of squares, which is up to date.
  void update_rowwise(Element& e, const Value& g, const Value& squares) const {
    move(e, quotient(with_decay(g, e.w), squares, 1, f("epsilon", 1e-10)));
  }

 private:
  Number f(const char* name, double otherwise) const { return static_cast<Number>(call_.f(name, otherwise)); }
  void move(Element& e, const Value& by) const { e.w = e.w + (-rate_) * by; }
  // a / (sqrt(squares) / root + epsilon)
  static Value quotient(const Value& a, const Value& squares, Number root, Number epsilon) {
    const Number divisor = std::sqrt(squares.value) / root + epsilon, value = a.value / divisor;
    const Number of_squares = squares.value > 0 ? squares.scale / squares.value / 2 : 0;
    return {value, a.scale / divisor + std::fabs(value) * (1 + of_squares)};
  }
  void adam(Element& e, const Value& g) const {
    const Number one = f("beta1", 0.9), two = f("beta2", 0.999), decay = f("weight_decay", 0);
    const Number correction = 1 - std::pow(one, step_), root = std::sqrt(1 - std::pow(two, step_));
    if (call_.i("decoupled_weight_decay", 0) != 0) e.w = (1 - rate_ * decay) * e.w;
    e.states[0] = e.states[0] + (1 - one) * (g + Value{-e.states[0].value, e.states[0].scale});
    e.states[1] = two * e.states[1] + (1 - two) * (g * g);
    const Value by = quotient(e.states[0], e.states[1], by_rows_ ? 1 : root, f("epsilon", 1e-8));
    move(e, (by_rows_ ? root : 1) / correction * by);
  }

  const Call& call_;
  const Rule rule_;
  const bool by_rows_;
  Number rate_ = 0, step_ = 0;
};

// Returns the weights and states to update, with their values before the update.
std::vector<Numbers> variables(const Call& call, Rule rule) {
  std::vector<Numbers> all;
  for (size_t i = 0; i <= states_of(rule); ++i) {
    all.push_back(call[i]);
    for (const Number n : call[i].values) all.back().scale.push_back(std::fabs(n));
  }
  return all;
}
Element element(const std::vector<Numbers>& all, size_t i) {
  Element e;
  for (size_t k = 0; k < all.size(); ++k) (k == 0 ? e.w : e.states[k - 1]) = exact(all[k].values[i]);
  return e;
}
void store(std::vector<Numbers>& all, size_t i, const Element& e) {
  for (size_t k = 0; k < all.size(); ++k) {
    all[k].values[i] = (k == 0 ? e.w : e.states[k - 1]).value;
    all[k].scale[i] = (k == 0 ? e.w : e.states[k - 1]).scale;
  }
}

// Whether input `apply`, if there is one, says that nothing is to be changed.
bool stays(const Call& call, size_t apply) {
  return call.has(apply) && call[apply].values[0] == 0;
}

std::vector<Numbers> whole(const Call& call, Rule rule) {
  const size_t g = states_of(rule) + 1;
  if (stays(call, g + (rule == Rule::adam ? 3 : 2))) return variables(call, rule);
  const Optimizer optimizer(call, rule, g + 1, false);
  std::vector<Numbers> all = variables(call, rule);
  for (size_t i = 0; i < all[0].values.size(); ++i) {
    Element e = element(all, i);
    optimizer.update(e, exact(call[g].values[i]));
    store(all, i, e);
  }
  return all;
}

std::vector<Numbers> by_rows(const Call& call, Rule rule) {
  const size_t indices = states_of(rule) + 1, values = indices + 1, bags = values + (rule == Rule::adam ? 3 : 2), weights = bags + 1;
  if (stays(call, weights + 1)) return variables(call, rule);
  const Optimizer optimizer(call, rule, values + 1, true);
  std::vector<Numbers> all = variables(call, rule);
  const auto rows = static_cast<size_t>(call[0].shape[0]), length = rows > 0 ? call[0].values.size() / rows : 0;
  std::map<size_t, std::vector<Value>> sums;  // by row
  for (size_t i = 0; i < call[indices].values.size(); ++i) {
    const Number index = call[indices].values[i];
    std::vector<Value>& sum = sums[static_cast<size_t>(index < 0 ? index + static_cast<Number>(rows) : index)];
    sum.resize(length);
    const size_t from = call.has(bags) ? static_cast<size_t>(call[bags].values[i]) : i;
    const Number weight = call.has(weights) ? call[weights].values[i] : 1;
    for (size_t k = 0; k < length; ++k) sum[k] = sum[k] + weight * exact(call[values].values[from * length + k]);
  }
  for (const auto& [row, sum] : sums) {
    if (call.i("rowwise", 0) != 0) {
      Value squares;
      for (size_t k = 0; k < length; ++k) {
        const Value g = optimizer.with_decay(sum[k], exact(all[0].values[row * length + k]));
        squares = squares + 1 / static_cast<Number>(length) * (g * g);
      }
      squares = squares + exact(all[1].values[row]);
      all[1].values[row] = squares.value;
      all[1].scale[row] = squares.scale;
      for (size_t k = 0; k < length; ++k) {
        Element e = {exact(all[0].values[row * length + k]), {}};
        optimizer.update_rowwise(e, sum[k], squares);
        all[0].values[row * length + k] = e.w.value;
        all[0].scale[row * length + k] = e.w.scale;
      }
      continue;
    }
    for (size_t k = 0; k < length; ++k) {
      Element e = element(all, row * length + k);
      optimizer.update(e, sum[k]);
      store(all, row * length + k, e);
    }
  }
  return all;
}

// ---------------------------------------------------------------- cases

// Squares must not be negative.
std::string states(Rule rule, const std::string& dtype, const std::string& shape) {
  const std::string plain = ", " + dtype + shape;
  return rule == Rule::sgd ? "" : rule == Rule::momentum ? plain : rule == Rule::adam ? plain + plain + " = 0..2" : plain + " = 0..2";
}
std::string step(Rule rule, const char* number) {
  return rule == Rule::adam ? ", i64[] = " + std::string(number) : "";
}
std::vector<std::string> attributes(Rule rule) {
  std::vector<std::string> all = {"", "; weight_decay=0.25"};
  if (rule == Rule::momentum) all.insert(all.end(), {"; momentum=0.5, nesterov=1", "; momentum=0, nesterov=1, weight_decay=0.25"});
  if (rule == Rule::adagrad || rule == Rule::adam) all.push_back("; epsilon=0.5");
  if (rule == Rule::rms_prop) all.insert(all.end(), {"; alpha=0.5, epsilon=0.25", "; alpha=0"});
  if (rule == Rule::adam)
    all.insert(all.end(),
               {"; beta1=0.5, beta2=0.75", "; weight_decay=0.25, decoupled_weight_decay=1, beta1=0", "; decoupled_weight_decay=1"});
  return all;
}

Row whole_row(const char* type, Rule rule) {
  std::vector<Case> cases;
  const auto add = [&](Kind kind, const std::string& dtype, const std::string& shape, const std::string& more) {
    cases.push_back({kind, dtype + shape + states(rule, dtype, shape) + ", " + dtype + shape + more});
  };
  for (const std::string& with : attributes(rule)) {
    for (const char* shape : {"[]", "[1]", "[7]", "[8]", "[16]", "[33]", "[3,5,17]"})
      add(Kind::odd, "T", shape, ", U[] = 0.3125" + step(rule, "3") + with);
    add(Kind::empty, "T", "[3,0]", ", f32[] = 0.5" + step(rule, "1") + with);
    add(Kind::rank, "T", "[1,2,1,3,2,1,2,3]", ", f32[1] = 0.5" + step(rule, "1") + with);
    add(Kind::large, "T", "[301,257]", ", f32[] = 0.001" + step(rule, "100000") + with);
  }
  for (const char* apply : {", bool[] = 0", ", bool[1] = 1"}) add(Kind::odd, "T", "[7]", ", U[] = 0.5" + step(rule, "3") + apply);
  const char *special = "[5] = nan inf 1 0 -0", *others = "[5] = 1 1 inf nan 0";
  for (const char* dtype : {"f32", "f64"})
    cases.push_back(
        {Kind::odd, dtype + std::string(special) + states(rule, dtype, "[5]") + ", " + dtype + others + ", f32[] = 0.5" + step(rule, "2")});
  return {.type = type,
          .reference = [rule](const Call& call) { return whole(call, rule); },
          .cases = cases,
          .ulps = 2,
          .domain = "heddle",
          .without = {{Kind::broadcast, "a variable and its gradient have one shape"}, {Kind::strided, "it takes whole tensors"}},
          .signed_zeros = false};
}

Row rows_row(const char* type, Rule rule, bool has_rowwise = false) {
  std::vector<Case> cases;
  const auto add = [&](Kind kind, const std::string& dtype, const std::string& rows, const std::string& behind, const std::string& indices,
                       const std::string& count, const std::string& more, bool rowwise) {
    const std::string shape = "[" + rows + behind + "]";
    cases.push_back({kind, dtype + shape + states(rule, dtype, rowwise ? "[" + rows + "]" : shape) + ", " + indices + ", " + dtype + "[" +
                               count + behind + "]" + more});
  };
  std::vector<std::string> with = attributes(rule);
  if (has_rowwise) with.insert(with.end(), {"; rowwise=1", "; rowwise=1, weight_decay=0.25, epsilon=0.5"});
  for (const std::string& attribute : with) {
    const bool rowwise = attribute.find("rowwise") != std::string::npos;
    const std::string behind = ", f32[] = 0.5" + step(rule, "3") + attribute;
    add(Kind::odd, "T", "1", "", "U[1] = 0", "1", behind, rowwise);
    add(Kind::odd, "T", "5", "", "U[4] = 3 -1 0 3", "4", behind, rowwise);
    add(Kind::odd, "T", "5", "", "i64[4] = 3 -1 0 3", "4", ", U[] = 0.5" + step(rule, "3") + attribute, rowwise);
    add(Kind::odd, "T", "5", ",7", "U[6] = 3 -1 0 3 4 -2", "6", behind, rowwise);
    add(Kind::odd, "T", "4", ",3,11", "U[65] = 0..4", "65", behind, rowwise);
    add(Kind::strided, "T", "3", ",16", "i64[3] = -1 -2 -3", "3", behind, rowwise);
    add(Kind::empty, "T", "3", ",5", "i64[0]", "0", behind, rowwise);
    add(Kind::empty, "T", "0", ",5", "i64[0]", "0", behind, rowwise);
    add(Kind::empty, "T", "3", ",0", "i32[2] = 1 1", "2", behind, rowwise);
    add(Kind::rank, "T", "3", ",2,1,3,2,1,2,3", "i64[4] = 2 0 2 2", "4", behind, rowwise);
    add(Kind::large, "T", "801", ",33", "i64[3001] = 0..801", "3001", ", f32[1] = 0.001" + step(rule, "100000") + attribute, rowwise);
  }
  // Values for bags.
  const std::string number = step(rule, "3"), with_bags = ", U[] = 0.5" + number + ", i32[6] = 0 2 0 1 1 2";
  add(Kind::odd, "T", "5", ",7", "i64[6] = 3 -1 0 3 4 -2", "3", with_bags, false);
  add(Kind::odd, "T", "5", ",7", "i64[6] = 3 -1 0 3 4 -2", "3", with_bags + ", T[6] = -1..1", false);
  add(Kind::odd, "T", "5", ",3,11", "i32[6] = 3", "3", ", f32[] = 0.5" + number + ", i64[6] = 2, T[6] = -1..1", false);
  add(Kind::odd, "T", "5", "", "i32[6] = 3", "6", ", f32[] = 0.5" + number + ", -, T[6] = -1..1", false);
  add(Kind::empty, "T", "3", ",5", "i64[0]", "4", ", f32[] = 0.5" + number + ", i32[0], T[0]", false);
  add(Kind::large, "T", "801", ",33", "i64[3001] = 0..801", "200", ", f32[1] = 0.001" + number + ", i32[3001] = 0..200, T[3001] = -1..1",
      false);
  for (const char* apply : {", bool[] = 0", ", bool[1] = 1"})
    add(Kind::odd, "T", "5", ",7", "i64[6] = 3 -1 0 3 4 -2", "3", with_bags + ", -" + apply, false);
  // Only one row, and a few rows, each of which is a neighbour of all others.
  for (const char* indices : {"i64[5003] = 7", "i32[5003] = 0..9"})
    add(Kind::large, "f32", "9", ",17", indices, "5003", ", f32[] = 0.001" + step(rule, "7"), false);
  // As many indices as rows.
  add(Kind::odd, "T", "2", ",3", "i32[2] = 1 0", "2", ", f32[] = 0.5" + step(rule, "1"), false);
  return {.type = type,
          .reference = [rule](const Call& call) { return by_rows(call, rule); },
          .cases = cases,
          .ulps = 2,
          .domain = "heddle",
          .without = {{Kind::broadcast, "a row of values for each index or bag"}},
          // Sums of thousands of gradients are computed in the dtype itself.
          .ulps_of = {{DType::f32, 8}, {DType::f64, 8}},
          .signed_zeros = false};
}

}  // namespace
}  // namespace reference_optimizer

std::vector<Row> optimizer_rows() {
  using namespace reference_optimizer;
  return {whole_row("MomentumUpdate", Rule::momentum),
          whole_row("AdagradUpdate", Rule::adagrad),
          whole_row("RmsPropUpdate", Rule::rms_prop),
          whole_row("AdamUpdate", Rule::adam),
          rows_row("SgdUpdateRows", Rule::sgd),
          rows_row("MomentumUpdateRows", Rule::momentum),
          rows_row("AdagradUpdateRows", Rule::adagrad, true),
          rows_row("RmsPropUpdateRows", Rule::rms_prop),
          rows_row("AdamUpdateRows", Rule::adam)};
}

}  // namespace heddle::conformance
