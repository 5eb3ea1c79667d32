#include "derive/node_gradient.h"

#include <fmt/format.h>

#include <numeric>
#include <set>
#include <string_view>

#include "base/half.h"
#include "base/text/text.h"
#include "plugin/pointwise_lowering.h"
#include "plugin/schema.h"

namespace heddle {
namespace {

std::shared_ptr<const Blob> one_element(DType dtype, double number, const Shape& shape) {
  std::byte* data = nullptr;
  std::shared_ptr<const Blob> blob = Blob::allocate(dtype, shape, &data);
  const auto narrow = static_cast<float>(number);
  const uint16_t half = dtype == DType::f16 ? f16_of_float(narrow) : bf16_of_float(narrow);
  const void* const from = dtype == DType::f64   ? static_cast<const void*>(&number)
                           : dtype == DType::f32 ? static_cast<const void*>(&narrow)
                                                 : static_cast<const void*>(&half);
  std::memcpy(data, from, static_cast<size_t>(byte_width(dtype)));
  return blob;
}

// Returns the gradient function of an ONNX operator that runs subnets; null for other operators.
auto subnet_gradient_of(const Node& node) -> Result<std::vector<GradientPart>> (*)(const NodeGradientCall&, Emitter&) {
  if (!node.domain.empty()) return nullptr;
  if (node.type == "If") return if_gradient;
  if (node.type == "Loop") return loop_gradient;
  return node.type == "Scan" ? scan_gradient : nullptr;
}

// Operators whose gradients hold elements of dy, multiples by constants and sums of them alone: what is 0 in dy stays 0.
bool moves_elements(const Node& node) {
  static const std::set<std::string_view> types = {"Cast",           "CastLike", "Concat", "CumSum", "Expand",     "Gather",
                                                   "GatherElements", "GatherND", "Mean",   "Pad",    "ReduceMean", "ReduceSum",
                                                   "Slice",          "Split",    "Sum",    "Tile",   "Transpose",  "Trilu"};
  return node.schema->has_trait(HEDDLE_TRAIT_VIEW) || (node.domain.empty() && types.count(node.type) > 0);
}

// For an operator that works element by element and has a gradient of its own: where dy is zero because a later choice has not taken the
// element, makes the NaN of 0 times an infinite derivative zero.
Status choose_elements(const NodeGradientCall& call, std::vector<GradientPart>& parts, Emitter& emitter) {
  const Node node = call.forward();  // the net grows
  const ValueId dy = call.output_gradients[0];
  // Extents of one bound may differ in a run, so that dx would be spread to the shape of dy: refused for several operands.
  if (call.types.is_late(node.outputs[0]) && node.inputs.size() > 1) return {};
  for (size_t i = 0; i < parts.size(); ++i) {
    GradientPart& part = parts[i];
    if (!dy.valid() || !part.dense.valid()) continue;
    const auto spread = call.types.spread(node.inputs[i], node.outputs[0]);
    const bool same = call.types.dtype(node.inputs[i]) == call.types.dtype(node.outputs[0]);
    if (!same || !spread || !spread->none()) continue;
    if (part.dense != dy) {
      HEDDLE_TRY(part.dense, emitter.emit1("heddle", "Pointwise", {part.dense, dy},
                                           {{"program", std::string("select(and(eq(x1, 0), isnan(x0)), 0, x0)")}}));
    }
    part.chosen = true;
  }
  return {};
}

}  // namespace

GradientForm gradient_form(const Node& node) {
  const heddle_operator& op = *node.schema->op;
  if (op.gradient) return GradientForm::callback;
  if (op.gradient_node_count > 0) return GradientForm::nodes;
  if (subnet_gradient_of(node)) return GradientForm::subnets;
  return has_pointwise_form(node) ? GradientForm::pointwise : GradientForm::none;
}

Result<std::vector<GradientPart>> node_gradient(const NodeGradientCall& call, Emitter& emitter) {
  const Node& node = call.forward();
  emitter.derive_from(call.node, "gradient");
  Result<std::vector<GradientPart>> made = std::vector<GradientPart>();
  const GradientForm form = gradient_form(node);
  switch (form) {
    case GradientForm::callback:
      made = callback_gradient(call, emitter);
      break;
    case GradientForm::nodes:
      made = listed_gradient(call, emitter);
      break;
    case GradientForm::pointwise:
      made = pointwise_gradient(call, emitter);
      break;
    case GradientForm::subnets:
      made = subnet_gradient_of(node)(call, emitter);
      break;
    case GradientForm::none:
      return Status(Code::unsupported,
                    fmt::format("operator {} of node {} has no gradient", display_name(node.domain, node.type), quoted(node.name)),
                    "put heddle::StopGradient before it where none is to go through, or differentiate by something else");
  }
  if (made.ok() && call.chosen && moves_elements(call.forward()))
    for (GradientPart& part : *made) part.chosen = part.dense.valid();
  if (made.ok() && call.chosen && form != GradientForm::pointwise && has_pointwise_form(call.forward()))
    HEDDLE_CHECK(choose_elements(call, *made, emitter));
  if (made.ok()) return made;
  return Status(made.status()).during(fmt::format("in the gradient of node {}", quoted(call.forward().name)));
}

Result<ValueId> sum_over(Emitter& emitter, ValueId value, const PolymorphicTypes::Spread& spread) {
  if (spread.none()) return value;
  std::vector<int64_t> missing(static_cast<size_t>(spread.missing));
  std::iota(missing.begin(), missing.end(), 0);
  if (spread.ones.empty()) return emitter.emit1("", "ReduceSum", {value, emitter.constant_ints(missing)}, {{"keepdims", int64_t{0}}});
  std::vector<int64_t> all = missing;
  all.insert(all.end(), spread.ones.begin(), spread.ones.end());
  HEDDLE_TRY(const ValueId sum, emitter.emit1("", "ReduceSum", {value, emitter.constant_ints(all)}, {{"keepdims", int64_t{1}}}));
  return missing.empty() ? sum : emitter.emit1("", "Squeeze", {sum, emitter.constant_ints(missing)});
}

Result<ValueId> filled_like(Emitter& emitter, const PolymorphicTypes& types, ValueId like, double number) {
  return filled(emitter, types.dtype(like), types.shape(like), like, number);
}

Result<ValueId> filled(Emitter& emitter, DType dtype, const std::optional<Shape>& shape, ValueId like, double number) {
  if (shape && shape->element_count() == 1) return emitter.constant(one_element(dtype, number, *shape));
  HEDDLE_TRY(const ValueId dims, emitter.emit1("", "Shape", {like}));
  return emitter.emit1("", "ConstantOfShape", {dims}, {{"value", one_element(dtype, number, Shape{1})}});
}

}  // namespace heddle
