// Nets whose operators run subnets, in f64, for the tests of their gradients.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "derive/derived_run.h"

namespace heddle::testing_derive {

// An input of a subnet, whose type is that of the operand.
inline ValueId taken(NetBuilder& b, const std::string& name) {
  return b.input(name, DeclaredType());
}

inline ValueId number(NetBuilder& b, const std::string& name, double value) {
  return b.constant(name, blob(Shape{}, {value}));
}

inline ValueId whole(NetBuilder& b, const std::string& name, int64_t value) {
  return b.constant(name, Blob::copy_of(DType::i64, Shape{}, &value));
}

inline ValueId sum_of(NetBuilder& b, const std::string& name, ValueId value) {
  return b.add1("ReduceSum", name, {value}, {{"keepdims", int64_t{0}}});
}

// Returns options that request the gradients of the value "loss" by all inputs of a net, as tensors of their shapes.
inline DifferentiateOptions all_inputs(const Net& net) {
  DifferentiateOptions options;
  options.losses = {"loss"};
  options.outputs = true;
  for (const ValueId input : net.inputs) options.wanted.push_back(net[input].name);
  options.dense = options.wanted;
  return options;
}

// Returns the outputs of a derived net after its first output, the loss.
inline Values gradients_of(const DerivedNet& derived, const std::vector<Shape>& shapes, const Values& at, int threads = 1) {
  Session session = testing_nets::open(testing_nets::runtime(threads), Net(derived.net));
  Values all = outputs_of(session, shapes, at);
  if (!all.empty()) all.erase(all.begin());
  return all;
}

inline Values gradients_of(const Net& net, const std::vector<Shape>& shapes, const Values& at) {
  const auto made = derived(net, all_inputs(net));
  EXPECT_TRUE(made.ok()) << made.status().text();
  return made.ok() ? gradients_of(*made, shapes, at) : Values();
}

// y depends on x [2,3], w [3] and the sign of s: tanh(x w) or, without w, x x of `else_rows` rows. w is read outside too.
inline Net branching(int64_t else_rows) {
  NetBuilder then_branch("then"), else_branch("else"), b("branches");
  const ValueId tx = taken(then_branch, "x"), tw = taken(then_branch, "w"), ex = taken(else_branch, "x");
  taken(else_branch, "w");
  then_branch.output(then_branch.add1("Tanh", "y", {then_branch.add1("Mul", "xw", {tx, tw})}));
  ValueId square = else_branch.add1("Mul", "xx", {ex, ex});
  if (else_rows > 2) square = else_branch.add1("Concat", "xxx", {square, ex}, {{"axis", int64_t{0}}});
  else_branch.output(square);
  const ValueId x = b.input("x", DType::f64, Shape{2, 3}), w = b.input("w", DType::f64, Shape{3}), s = b.input("s", DType::f64, Shape{});
  const ValueId positive = b.add1("Greater", "positive", {s, number(b, "zero", 0)});
  const ValueId y = b.add1("If", "y", {positive, x, w},
                           {{"then_branch", testing_nets::subnet(then_branch)}, {"else_branch", testing_nets::subnet(else_branch)}});
  b.output(b.add1("Add", "loss", {sum_of(b, "sum", b.add1("Sin", "sine", {y})), sum_of(b, "of w", b.add1("Exp", "exp", {w}))}));
  return b.finish();
}

// A recurrent cell over `times` steps: computes the next state from state, x and gate of a step, and twice the next state as the output of
// the step. The axes and directions of the steps in x, gate and outputs can be chosen.
struct Recurrence {
  int64_t x_axis = 0, gate_axis = 0, output_axis = 0;
  bool x_backward = false, gate_backward = false, output_backward = false;

  static constexpr int64_t times = 4, width = 2, hidden = 3;
  static Shape with_steps(const Shape& step, int64_t axis, int64_t steps = times) {
    Shape shape;
    for (int d = 0; d <= step.rank(); ++d)
      if (d == (axis < 0 ? axis + step.rank() + 1 : axis))
        shape.push_back(steps);
      else
        shape.push_back(step[d < (axis < 0 ? axis + step.rank() + 1 : axis) ? d : d - 1]);
    return shape;
  }
  std::vector<Shape> shapes(int64_t batch = 2, int64_t steps = times) const {
    return {Shape{batch, hidden}, with_steps(Shape{batch, width}, x_axis, steps), with_steps(Shape{batch, hidden}, gate_axis, steps),
            Shape{width, hidden}, Shape{hidden, hidden}};
  }
  Values at(int64_t batch = 2, int64_t steps = times) const {
    Values all;
    for (const Shape& shape : shapes(batch, steps)) all.push_back(numbers(shape, static_cast<int>(all.size()) + 1));
    return all;
  }

  // state, x, gate, w, r -> the next state
  static ValueId cell(NetBuilder& b, const std::string& prefix, const std::vector<ValueId>& in) {
    const ValueId sum =
        b.add1("Add", prefix + "sum", {b.add1("MatMul", prefix + "xw", {in[1], in[3]}), b.add1("MatMul", prefix + "hr", {in[0], in[4]})});
    return b.add1("Mul", prefix + "next", {b.add1("Tanh", prefix + "tanh", {sum}), in[2]});
  }
  static ValueId twice(NetBuilder& b, const std::string& name, ValueId value) { return b.add1("Add", name, {value, value}); }

  // Returns the last state and the outputs, given the inputs of cell() with all steps.
  std::vector<ValueId> scanned(NetBuilder& b, const std::vector<ValueId>& in) const {
    NetBuilder body("body");
    const std::vector<ValueId> step = {taken(body, "state"), taken(body, "x"), taken(body, "gate"), taken(body, "w"), taken(body, "r")};
    const ValueId next = cell(body, "", step);
    body.output(next);
    body.output(twice(body, "output", next));
    return b.add("Scan", "scan", in, 2,
                 {{"body", testing_nets::subnet(body)},
                  {"num_scan_inputs", int64_t{2}},
                  {"captured", int64_t{2}},
                  {"scan_input_axes", std::vector<int64_t>{x_axis, gate_axis}},
                  {"scan_input_directions", std::vector<int64_t>{x_backward, gate_backward}},
                  {"scan_output_axes", std::vector<int64_t>{output_axis}},
                  {"scan_output_directions", std::vector<int64_t>{output_backward}}});
  }
  std::vector<ValueId> unrolled(NetBuilder& b, const std::vector<ValueId>& in) const {
    ValueId state = in[0];
    std::vector<ValueId> outputs(static_cast<size_t>(times));
    for (int64_t t = 0; t < times; ++t) {
      const std::string prefix = "step" + std::to_string(t) + ".";
      const auto step_of = [&](const std::string& name, ValueId value, int64_t axis, bool backward) {
        return b.add1("Gather", prefix + name, {value, whole(b, prefix + name + ".at", backward ? times - 1 - t : t)}, {{"axis", axis}});
      };
      state =
          cell(b, prefix, {state, step_of("x", in[1], x_axis, x_backward), step_of("gate", in[2], gate_axis, gate_backward), in[3], in[4]});
      outputs[static_cast<size_t>(output_backward ? times - 1 - t : t)] =
          b.add1("Unsqueeze", prefix + "row", {twice(b, prefix + "output", state), b.constant_ints(prefix + "axis", {output_axis})});
    }
    return {state, b.add1("Concat", "outputs", outputs, {{"axis", output_axis}})};
  }

  // The loss is the sum over both and over w, which is read outside too. Extents of batch and steps are given or open.
  Net net(bool is_unrolled, bool is_open = false) const {
    NetBuilder b(is_unrolled ? "unrolled" : "scan");
    const std::vector<Shape> fixed = shapes();
    std::vector<ValueId> in;
    for (const char* name : {"state", "x", "gate", "w", "r"}) {
      DeclaredType type = DeclaredType::of(DType::f64, fixed[in.size()]);
      for (size_t d = 0; is_open && d < type.dims.size() && in.size() < 3; ++d) {
        if (type.dims[d].value == 2 && d + 1 < type.dims.size()) type.dims[d] = Dim::named("N");
        if (type.dims[d].value == times) type.dims[d] = Dim::named("T");
      }
      in.push_back(b.input(name, type));
    }
    const std::vector<ValueId> made = is_unrolled ? unrolled(b, in) : scanned(b, in);
    const ValueId of_outputs = sum_of(b, "of outputs", b.add1("Sin", "sines", {made[1]}));
    const ValueId of_state = sum_of(b, "of state", b.add1("Mul", "squares", {made[0], made[0]}));
    const ValueId of_w = sum_of(b, "of w", b.add1("Mul", "squares of w", {in[3], in[3]}));
    b.output(b.add1("Sum", "loss", {of_outputs, of_state, of_w}));
    return b.finish();
  }
};

}  // namespace heddle::testing_derive
