// The gradient of If: an If on the same condition, whose branches are the gradients of the forward's.
//
// Each of its branches takes the inputs of the forward's branch, as far as it needs them, and the gradients of the outputs. It computes the
// values of the forward's branch again: that costs time, but no memory for the branch that was not taken, whose values do not exist.
#include <fmt/format.h>

#include "base/text/text.h"
#include "derive/node_gradient.h"
#include "derive/reverse/subnet_gradient.h"
#include "plugin/schema.h"

namespace heddle {
namespace {

constexpr size_t first_capture = 1;  // after the condition
constexpr const char* branch_names[] = {"then_branch", "else_branch"};

class IfGradient {
 public:
  IfGradient(const NodeGradientCall& call, Emitter& emitter) : call_(call), emitter_(emitter), node_(call.forward()) {}

  Result<std::vector<GradientPart>> build() {
    for (const char* const name : branch_names) HEDDLE_CHECK(derive(name), fmt::format("in its {}", name));
    HEDDLE_CHECK(check_shapes());
    std::vector<GradientPart> parts(node_.inputs.size());
    std::vector<size_t> given;  // captures whose gradient a branch has
    for (size_t i = first_capture; i < node_.inputs.size(); ++i)
      if (call_.wanted[i] && (has_gradient(0, i) || has_gradient(1, i))) given.push_back(i);
    if (given.empty()) return parts;
    for (size_t b = 0; b < branches_.size(); ++b) HEDDLE_CHECK(give(b, given));
    HEDDLE_TRY(const std::vector<ValueId> made, emit(given.size()));
    for (size_t i = 0; i < given.size(); ++i) parts[given[i]].dense = made[i];
    return parts;
  }

 private:
  Status derive(const char* name) {
    const std::shared_ptr<const Net> subnet = subnet_of(node_, name);
    HEDDLE_TRY(PolymorphicTypes types, call_.types.of_subnet(*subnet, [&](const TypedNet& around) {
      std::vector<InputBinding> bindings;
      for (size_t i = first_capture; i < node_.inputs.size(); ++i)
        bindings.push_back({around.type(node_.inputs[i]), around.known[node_.inputs[i].index]});
      return bindings;
    }));
    types_.push_back(std::make_unique<PolymorphicTypes>(std::move(types)));
    branches_.push_back(std::make_unique<SubnetGradient>(*subnet, *types_.back()));
    std::vector<bool> arrives(subnet->outputs.size(), false);
    for (size_t i = 0; i < node_.outputs.size(); ++i) arrives[i] = call_.output_gradients[i].valid();
    return branches_.back()->derive({call_.wanted.begin() + first_capture, call_.wanted.end()}, arrives);
  }

  // The gradient of an output goes to both branches, and each is prepared for its shape; with a constant condition only one is.
  Status check_shapes() const {
    if (call_.net[node_.inputs[0]].kind == Value::Kind::constant) return {};
    for (size_t i = 0; i < node_.outputs.size(); ++i) {
      if (!call_.output_gradients[i].valid()) continue;
      const ValueId a = subnet_of(node_, branch_names[0])->outputs[i], b = subnet_of(node_, branch_names[1])->outputs[i];
      if (!types_[0]->same_shape(a, *types_[1], b))
        return {Code::unsupported, fmt::format("its branches give output {} different shapes", quoted(call_.net[node_.outputs[i]].name)),
                "give it one shape in both, or put heddle::StopGradient after it"};
    }
    return {};
  }

  bool has_gradient(size_t branch, size_t input) const { return branches_[branch]->input_gradient(input - first_capture).valid(); }

  // Makes branch `b` give zeros as the gradient of captures that it does not depend on.
  Status give(size_t b, const std::vector<size_t>& given) {
    SubnetGradient& branch = *branches_[b];
    std::vector<ValueId> outputs;
    for (const size_t i : given) {
      const size_t input = i - first_capture;
      ValueId gradient = branch.input_gradient(input);
      if (!gradient.valid()) {
        HEDDLE_TRY(gradient, filled_like(branch.emitter_for(input), branch.types(), branch.subnet_input(input), 0));
      }
      outputs.push_back(gradient);
    }
    branch.give(std::move(outputs));
    const std::vector<SubnetGradient::Unrepeatable> found = branch.unrepeatable();
    if (found.empty()) return {};
    return {Code::unsupported,
            fmt::format("in its {} the gradient would compute {} again: {}", branch_names[b], quoted(branch.net()[found[0].node].name),
                        found[0].why),
            "put it in front of the If and hand the branches what it gives"};
  }

  // Both branches take the same inputs: those that either reads.
  Result<std::vector<ValueId>> emit(size_t outputs) {
    std::vector<ValueId> inputs = {node_.inputs[0]};
    std::vector<std::vector<ValueId>> taken(branches_.size());
    const auto take = [&](ValueId outer, const std::vector<ValueId>& inner) {
      if (!branches_[0]->reads(inner[0]) && !branches_[1]->reads(inner[1])) return;
      inputs.push_back(outer);
      for (size_t b = 0; b < branches_.size(); ++b) taken[b].push_back(inner[b]);
    };
    for (size_t i = first_capture; i < node_.inputs.size(); ++i)
      take(node_.inputs[i], {branches_[0]->subnet_input(i - first_capture), branches_[1]->subnet_input(i - first_capture)});
    for (size_t i = 0; i < node_.outputs.size(); ++i)
      if (call_.output_gradients[i].valid())
        take(call_.output_gradients[i], {branches_[0]->output_gradient(i), branches_[1]->output_gradient(i)});
    std::vector<Attribute> attributes;
    for (size_t b = 0; b < branches_.size(); ++b) attributes.push_back({branch_names[b], branches_[b]->finish(taken[b])});
    return emitter_.emit("", "If", std::move(inputs), outputs, std::move(attributes));
  }

  const NodeGradientCall& call_;
  Emitter& emitter_;
  const Node node_;  // a copy: the net grows
  std::vector<std::unique_ptr<PolymorphicTypes>> types_;
  std::vector<std::unique_ptr<SubnetGradient>> branches_;
};

}  // namespace

Result<std::vector<GradientPart>> if_gradient(const NodeGradientCall& call, Emitter& emitter) {
  return IfGradient(call, emitter).build();
}

}  // namespace heddle
