// The gradient of a pointwise operator: the symbolic derivative of its expression by each input, summed over broadcast axes.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "derive/expression/expression_derivative.h"
#include "derive/node_gradient.h"
#include "plugin/pointwise_lowering.h"

namespace heddle {
namespace {

using expression::Opcode;
using expression::Program;

// Returns the same program over only the inputs that it reads, called x0, x1, ...; their positions are written to `read`.
Program narrowed(const Program& derivative, std::vector<size_t>* read) {
  Program program;
  program.code = derivative.code;
  for (size_t i = 0; i < derivative.inputs.size(); ++i) {
    if (!reads_input(derivative, i)) continue;
    for (size_t k = 0; k < program.code.size(); ++k)
      if (derivative.code[k].op == Opcode::input && derivative.code[k].a == static_cast<int32_t>(i))
        program.code[k].a = static_cast<int32_t>(read->size());
    program.inputs.push_back(fmt::format("x{}", read->size()));
    read->push_back(i);
  }
  return program;
}

class PointwiseGradient {
 public:
  PointwiseGradient(const NodeGradientCall& call, Emitter& emitter) : call_(call), emitter_(emitter) {}

  Result<std::vector<GradientPart>> build() {
    const Node node = call_.forward();  // the net grows
    std::vector<GradientPart> parts(node.inputs.size());
    if (!call_.output_gradients[0].valid()) return parts;
    HEDDLE_TRY(const Program program, pointwise_form(node));
    std::vector<size_t> wanted;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (call_.wanted[i]) wanted.push_back(i);
    HEDDLE_TRY(const std::vector<Program> derivatives, expression_derivatives(program, wanted));
    operands_ = node.inputs;
    operands_.push_back(call_.output_gradients[0]);
    operands_.push_back(node.outputs[0]);
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (is_zero(derivatives[i])) continue;
      const Program derivative = call_.chosen ? where_chosen(derivatives[i], node.inputs.size()) : derivatives[i];
      HEDDLE_TRY(const ValueId whole, emit(derivative, call_.types.dtype(node.outputs[0])));
      HEDDLE_TRY(parts[wanted[i]].dense, summed(node, wanted[i], whole));
      parts[wanted[i]].chosen = call_.chosen || is_chosen(program, derivative);
    }
    return parts;
  }

 private:
  // Sums the gradient over the axes along which an input was broadcast.
  Result<ValueId> summed(const Node& node, size_t i, ValueId whole) {
    const ValueId input = node.inputs[i];
    if (decides_shape(node, input)) return whole;
    // Extents of one bound may differ: one of them may be 1 in a run.
    const bool late = call_.types.is_late(input) || call_.types.is_late(node.outputs[0]);
    if (const auto spread = call_.types.spread(input, node.outputs[0]); spread && !late) return sum_over(emitter_, whole, *spread);
    // The axes are known only during the run.
    HEDDLE_TRY(const ValueId dims, emitter_.emit1("", "Shape", {input}));
    return emitter_.emit1("heddle", "SumTo", {whole, dims});
  }

  // Whether the other inputs have one element each, so that the output has the shape of this one.
  bool decides_shape(const Node& node, ValueId input) const {
    const int rank = call_.types.abi(input).rank;
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId other) {
      if (!other.valid() || other == input) return true;
      const std::optional<Shape> shape = call_.types.shape(other);
      return shape && shape->element_count() == 1 && shape->rank() <= rank;
    });
  }

  Result<ValueId> emit(const Program& derivative, DType dtype) {
    std::vector<size_t> read;
    const Program program = narrowed(derivative, &read);
    std::vector<ValueId> inputs;
    for (const size_t place : read) {
      HEDDLE_TRY(const ValueId operand, operand_as(place, dtype));
      inputs.push_back(operand);
    }
    if (program.code.size() == 1 && program.code[0].op == Opcode::input) return inputs[0];
    return emitter_.emit1("heddle", "Pointwise", std::move(inputs), {{"program", expression::print(program)}});
  }

  // Returns an operand in the output's dtype, with a cast where it has another one: the exponent of Pow.
  Result<ValueId> operand_as(size_t place, DType dtype) {
    if (place + 2 >= operands_.size()) return operands_[place];
    const DType own = call_.types.dtype(operands_[place]);
    if (own == dtype || own == DType::boolean) return operands_[place];
    casts_.resize(operands_.size());
    if (!casts_[place].valid()) {
      HEDDLE_TRY(casts_[place], emitter_.emit1("", "CastLike", {operands_[place], call_.output_gradients[0]}));
    }
    return casts_[place];
  }

  const NodeGradientCall& call_;
  Emitter& emitter_;
  std::vector<ValueId> operands_;  // by position in the derivatives: the node's inputs, dy, y
  std::vector<ValueId> casts_;     // likewise, in the output's dtype: values that were emitted, which have no inferred type
};

}  // namespace

Result<std::vector<GradientPart>> pointwise_gradient(const NodeGradientCall& call, Emitter& emitter) {
  return PointwiseGradient(call, emitter).build();
}

}  // namespace heddle
