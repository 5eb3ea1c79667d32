// SubnetGradient: the gradient of a net inside an operator, as a net of its own.
//
// It holds the subnet's operators, which compute again the values that gradients need, followed by those of the gradients. So no value
// within a subnet has to leave it. Values that would differ when computed again (random numbers, effects) are reported: they must come from
// the forward run, as inputs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "derive/polymorphic_types.h"
#include "derive/reverse/reverse_pass.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

class SubnetGradient {
 public:
  // `types`: of the subnet's values; outlives this.
  SubnetGradient(const Net& subnet, const PolymorphicTypes& types);

  // Marks a value of the subnet that is the same in all of its runs. Must be called before derive().
  void make_constant(ValueId value, std::shared_ptr<const Blob> blob);
  // Derives the gradients of those inputs, where a gradient arrives at those outputs.
  Status derive(const std::vector<bool>& wanted, const std::vector<bool>& arrives);
  // The input that stands for the gradient of an output; invalid: none arrives.
  ValueId output_gradient(size_t output) const { return output_gradients_[output]; }
  // A tensor of the input's shape; invalid: no gradient reaches it.
  ValueId input_gradient(size_t input) const { return input_gradients_[input]; }

  // An emitter for nodes after the gradients, named after that input's gradient.
  Emitter& emitter_for(size_t input);
  ValueId subnet_input(size_t input) const { return net_.inputs[input]; }
  const PolymorphicTypes& types() const { return types_; }

  // Sets the outputs of the net. Must be called once.
  void give(std::vector<ValueId> outputs) { outputs_ = std::move(outputs); }
  // A value of the subnet that gradients need and that would differ when computed again.
  struct Unrepeatable {
    ValueId value;
    NodeId node;
    std::string why;  // "Dropout, which draws random numbers"
  };
  std::vector<Unrepeatable> unrepeatable() const;
  // Makes an unrepeatable value an input.
  void make_input(ValueId value);
  // Whether an output of the net depends on an input.
  bool reads(ValueId input) const;
  const Net& net() const { return net_; }
  // Returns the net, with inputs in that order: all inputs that it reads must be among them.
  std::shared_ptr<const Net> finish(const std::vector<ValueId>& inputs) const;

 private:
  Net net_;
  const PolymorphicTypes& types_;
  ReversePass pass_;
  std::vector<ValueId> output_gradients_, input_gradients_;
  std::vector<ValueId> outputs_;
};

// The attribute's net. Every node of a resolved net has those that its operator names.
std::shared_ptr<const Net> subnet_of(const Node& node, const std::string& attribute);

}  // namespace heddle
