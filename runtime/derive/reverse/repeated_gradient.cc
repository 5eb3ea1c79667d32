#include "derive/reverse/repeated_gradient.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text/text.h"
#include "derive/reverse/gradient_paths.h"
#include "derive/reverse/subnet_gradient.h"
#include "plugin/schema.h"
#include "resolve/updates.h"

namespace heddle {
namespace {

// Returns the body without outputs that the node leaves out: they are not stacked.
Net stacked_body(const Node& node, const RepeatedPorts& ports) {
  Net body = *subnet_of(node, "body");
  body.outputs.resize(ports.own_outputs + node.outputs.size());
  return body;
}

class RepeatedGradient {
 public:
  RepeatedGradient(const NodeGradientCall& call, const RepeatedPorts& ports, const PolymorphicTypes& types, Emitter& emitter)
      : call_(call),
        ports_(ports),
        types_(types),
        emitter_(emitter),
        node_(call.forward()),
        body_(stacked_body(node_, ports)),
        gradient_(body_, types) {}

  Result<std::vector<GradientPart>> build() {
    find_paths();
    if (ports_.counts) gradient_.make_constant(body_.inputs[1], Blob::copy_of(DType::boolean, Shape{}, "\1"));
    HEDDLE_CHECK(gradient_.derive(wanted_, arrives_), "in its body");
    HEDDLE_CHECK(add_states());
    add_slices();
    gradient_.give(outputs_);
    HEDDLE_CHECK(take_stacks());
    return emit();
  }

 private:
  // A value that the backward Scan takes, and the input of its body that it becomes.
  struct Taken {
    ValueId outer, inner;
    int64_t axis = 0, direction = 0;  // of slices
  };

  // A gradient of a state at the end of an iteration comes from later iterations, and one at the beginning is passed to earlier ones.
  void find_paths() {
    wanted_.assign(body_.inputs.size(), false);
    for (size_t i = ports_.own; i < wanted_.size(); ++i) wanted_[i] = call_.wanted[i];
    std::vector<bool> depends;
    for (bool grows = true; grows;) {
      grows = false;
      std::vector<ValueId> of;
      for (size_t i = 0; i < wanted_.size(); ++i)
        if (wanted_[i]) of.push_back(body_.inputs[i]);
      depends = dependents(body_, types_, of);
      for (size_t s = 0; s < ports_.states; ++s)
        if (depends[state_output(s).index] && !wanted_[ports_.own + s]) wanted_[ports_.own + s] = grows = true;
    }
    arrives_.assign(body_.outputs.size(), false);
    for (size_t i = 0; i < node_.outputs.size(); ++i)
      arrives_[ports_.own_outputs + i] = call_.output_gradients[i].valid() && depends[body_.outputs[ports_.own_outputs + i].index];
    for (bool grows = true; grows;) {
      grows = false;
      std::vector<ValueId> from;
      for (size_t i = 0; i < arrives_.size(); ++i)
        if (arrives_[i]) from.push_back(body_.outputs[i]);
      const std::vector<bool> reached = reached_from(body_, types_, depends, from);
      for (size_t s = 0; s < ports_.states; ++s)
        if (reached[body_.inputs[ports_.own + s].index] && depends[state_output(s).index] && !arrives_[ports_.own_outputs + s])
          arrives_[ports_.own_outputs + s] = grows = true;
    }
  }
  ValueId state_output(size_t state) const { return body_.outputs[ports_.own_outputs + state]; }

  // Adds the gradients of the states, and the sums of those of the captures.
  Status add_states() {
    for (size_t s = 0; s < ports_.states; ++s) {
      if (!arrives_[ports_.own_outputs + s]) continue;
      const size_t input = ports_.own + s;
      const ValueId after = gradient_.output_gradient(ports_.own_outputs + s);
      ValueId before = gradient_.input_gradient(input);
      if (!before.valid()) {
        const ValueId state = body_.inputs[input];
        HEDDLE_TRY(before, filled(gradient_.emitter_for(input), types_.dtype(state), types_.shape(state), after, 0));
      }
      ValueId last = call_.output_gradients[s];
      if (!last.valid()) {
        HEDDLE_TRY(last, filled_like(emitter_, call_.types, node_.inputs[input], 0));
      }
      add_state(input, last, after, before);
    }
    for (size_t c = 0; c < ports_.captures; ++c) {
      const size_t input = ports_.first_capture() + c;
      const ValueId own = gradient_.input_gradient(input);
      if (!own.valid()) continue;
      Emitter& inner = gradient_.emitter_for(input);
      const ValueId sum = inner.add_input(body_[body_.inputs[input]].name + ".gradient.sum");
      HEDDLE_TRY(const ValueId next, inner.emit1("", "Add", {sum, own}));
      HEDDLE_TRY(const ValueId zeros, filled_like(emitter_, call_.types, node_.inputs[input], 0));
      add_state(input, zeros, sum, next);
    }
    return {};
  }
  void add_state(size_t input, ValueId outer, ValueId inner, ValueId next) {
    taken_states_.push_back({outer, inner});
    outputs_.push_back(next);
    gives_.push_back(input);
  }

  void add_slices() {
    for (size_t k = 0; k < ports_.slices; ++k) {
      const size_t input = ports_.first_slice() + k;
      if (!gradient_.input_gradient(input).valid()) continue;
      outputs_.push_back(gradient_.input_gradient(input));
      gives_.push_back(input);
      made_axes_.push_back(ports_.input_axes[k]);
      made_directions_.push_back(1 - ports_.input_directions[k]);
    }
  }

  // Stacks the values of the forward iterations that the backward ones read, from the last to the first.
  Status take_stacks() {
    // Starts with the last one, which may be computed from others.
    for (auto found = gradient_.unrepeatable(); !found.empty(); found = gradient_.unrepeatable()) {
      HEDDLE_TRY(const ValueId stored, stored_output(found.back()));
      gradient_.make_input(found.back().value);
      taken_slices_.push_back({stack(stored), found.back().value, 0, 1});
    }
    for (size_t s = 0; s < ports_.states; ++s)
      if (const ValueId state = body_.inputs[ports_.own + s]; gradient_.reads(state)) taken_slices_.push_back({stack(state), state, 0, 1});
    for (size_t k = 0; k < ports_.slices; ++k)
      if (gradient_.reads(body_.inputs[ports_.first_slice() + k])) take_slice(k);
    for (size_t k = 0; ports_.states + k < node_.outputs.size(); ++k)
      if (const size_t output = ports_.own_outputs + ports_.states + k; arrives_[output])
        taken_slices_.push_back({call_.output_gradients[ports_.states + k], gradient_.output_gradient(output), ports_.output_axes[k],
                                 1 - ports_.output_directions[k]});
    // Whatever it reads, it must have as many iterations as the forward.
    if (ports_.counts && (taken_slices_.empty() || gradient_.reads(body_.inputs[0])))
      taken_slices_.push_back({stack(body_.inputs[0]), body_.inputs[0], 0, 1});
    if (taken_slices_.empty()) take_slice(0);
    return {};
  }
  void take_slice(size_t k) {
    const size_t input = ports_.first_slice() + k;
    taken_slices_.push_back({node_.inputs[input], body_.inputs[input], ports_.input_axes[k], 1 - ports_.input_directions[k]});
  }

  // Returns the value in the forward's body: its gradient may need an output of the node that the net did not have.
  Result<ValueId> stored_output(const SubnetGradient::Unrepeatable& found) {
    const Value& value = gradient_.net()[found.value];
    Node& node = body_[found.node];
    if (updates_variable(body_, node))
      return Status(Code::unsupported, fmt::format("in its body the gradient would compute {} again: {}", quoted(node.name), found.why),
                    "update it outside");
    if (value.output < node.outputs.size() && node.outputs[value.output].valid()) return node.outputs[value.output];
    if (node.outputs.size() <= value.output) node.outputs.resize(value.output + 1);
    body_.values.push_back(value);
    return node.outputs[value.output] = ValueId(body_.values.size() - 1);
  }

  // Makes the forward stack a value of its body, along axis 0 in the order of its iterations.
  ValueId stack(ValueId of) {
    body_.outputs.push_back(of);
    stacked_.push_back(emitter_.add_output(call_.node, fmt::format("{}.{}", node_.name, body_[of].name)));
    return stacked_.back();
  }
  void extend_forward() {
    if (stacked_.empty()) return;
    emitter_.set_attribute(call_.node, "body", std::make_shared<const Net>(body_));
    for (const auto& [name, values] : {std::pair(ports_.output_axes_attribute, ports_.output_axes),
                                       std::pair(ports_.output_directions_attribute, ports_.output_directions)}) {
      if (name.empty()) continue;
      std::vector<int64_t> all = values;
      all.resize(all.size() + stacked_.size(), 0);
      emitter_.set_attribute(call_.node, name, std::move(all));
    }
  }

  Result<std::vector<GradientPart>> emit() {
    std::vector<GradientPart> parts(node_.inputs.size());
    if (gives_.empty()) return parts;
    std::vector<ValueId> inputs, inner;
    std::vector<int64_t> axes, directions;
    const auto take = [&](const Taken& taken) {
      inputs.push_back(taken.outer);
      inner.push_back(taken.inner);
    };
    for (const Taken& taken : taken_states_) take(taken);
    for (const Taken& taken : taken_slices_) {
      take(taken);
      axes.push_back(taken.axis);
      directions.push_back(taken.direction);
    }
    const size_t before_captures = inputs.size();
    for (size_t c = 0; c < ports_.captures; ++c)
      if (const size_t input = ports_.first_capture() + c; gradient_.reads(body_.inputs[input]))
        take({node_.inputs[input], body_.inputs[input]});
    extend_forward();
    const auto captured = static_cast<int64_t>(inputs.size() - before_captures);
    HEDDLE_TRY(const std::vector<ValueId> made, emitter_.emit("", "Scan", std::move(inputs), outputs_.size(),
                                                              {{"body", gradient_.finish(inner)},
                                                               {"num_scan_inputs", static_cast<int64_t>(taken_slices_.size())},
                                                               {"captured", captured},
                                                               {"scan_input_axes", axes},
                                                               {"scan_input_directions", directions},
                                                               {"scan_output_axes", made_axes_},
                                                               {"scan_output_directions", made_directions_}}));
    for (size_t i = 0; i < gives_.size(); ++i)
      if (call_.wanted[gives_[i]]) parts[gives_[i]].dense = made[i];
    return parts;
  }

  const NodeGradientCall& call_;
  const RepeatedPorts& ports_;
  const PolymorphicTypes& types_;  // of the body
  Emitter& emitter_;
  const Node node_;                     // a copy: the net grows
  Net body_;                            // the forward's body, which stacks more than before
  SubnetGradient gradient_;             // of the body; its first values are those of the body
  std::vector<bool> wanted_, arrives_;  // by input and by output of the body
  std::vector<Taken> taken_states_, taken_slices_;
  std::vector<ValueId> outputs_;  // of the backward body
  std::vector<size_t> gives_;     // by output: the node input whose gradient it is
  std::vector<int64_t> made_axes_, made_directions_;
  std::vector<ValueId> stacked_;
};

}  // namespace

Result<std::vector<GradientPart>> repeated_gradient(const NodeGradientCall& call, const RepeatedPorts& ports,
                                                    const std::function<std::vector<InputBinding>(const TypedNet& around)>& bindings,
                                                    Emitter& emitter) {
  const std::shared_ptr<const Net> body = subnet_of(call.forward(), "body");
  HEDDLE_TRY(const PolymorphicTypes types, call.types.of_subnet(*body, bindings), "in its body");
  return RepeatedGradient(call, ports, types, emitter).build();
}

}  // namespace heddle
