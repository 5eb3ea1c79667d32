#include "infer/late_types.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "plugin/abi_attributes.h"
#include "plugin/infer_operator.h"

namespace heddle {
namespace {

// Extents to ask with: 1 broadcasts, those of other inputs fit beside them, and what operands say (sizes, counts) needs as much.
std::vector<int64_t> likely_extents(const TypedNet& net, const Node& node) {
  constexpr size_t most = 8;
  std::vector<int64_t> extents = {1};
  const auto add = [&](int64_t extent) {
    if (extent > 0 && extents.size() < most && std::find(extents.begin(), extents.end(), extent) == extents.end())
      extents.push_back(extent);
  };
  for (const ValueId id : node.inputs)
    if (id.valid() && net.type(id).bounded_axis >= 0) add(net.type(id).shape[net.type(id).bounded_axis]);
  for (const ValueId id : node.inputs) {
    if (!id.valid()) continue;
    const TensorType& type = net.type(id);
    for (int k = 0; !type.dynamic && k < type.shape.rank(); ++k) add(type.shape[k]);
    const auto& known = net.known[id.index];
    if (!known || known->dtype != DType::i64) continue;
    int64_t sum = 0;
    for (int64_t k = 0; k < std::min<int64_t>(known->shape.element_count(), max_rank); ++k) {
      int64_t element = 0;
      std::memcpy(&element, known->data + k * int64_t{sizeof(element)}, sizeof(element));
      add(element);
      if (!__builtin_add_overflow(sum, element, &sum)) add(sum);
    }
  }
  return extents;
}

// -1 for each extent that the run alone knows.
Shape known_before_run(const TensorType& type) {
  Shape shape = type.shape;
  for (int k = 0; k < shape.rank(); ++k)
    if (type.follows_bounded || k == type.bounded_axis) shape[k] = HEDDLE_DYNAMIC_DIM;
  return shape;
}

}  // namespace

Status infer_late_types(const TypedNet& net, const Node& node, std::span<TensorType> outputs, CallServices* services) {
  std::vector<Shape> shapes(node.inputs.size());
  std::vector<heddle_tensor> views(node.inputs.size());
  std::vector<const heddle_tensor*> inputs(node.inputs.size(), nullptr);
  std::vector<char> wanted;
  for (const ValueId id : node.outputs) wanted.push_back(id.valid() ? 1 : 0);
  const AttributeTable attributes(*node.schema, node.attributes);
  const auto see = [&](size_t i, const Shape& shape) {
    shapes[i] = shape;
    const auto& known = net.known[node.inputs[i].index];
    views[i] = tensor_view(net.type(node.inputs[i]).dtype, shapes[i], known ? const_cast<std::byte*>(known->data) : nullptr);
    inputs[i] = &views[i];
  };
  // What inputs of a rank that is certain say of the others; that of a dynamic one may be a guess as well.
  const DeclaredDims& declared = node.schema->declared_dims;
  DeclaredDims::Bound bound;
  std::vector<const heddle_tensor*> certain(inputs);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.inputs[i].valid()) continue;
    see(i, known_before_run(net.type(node.inputs[i])));
    if (!net.type(node.inputs[i]).dynamic) certain[i] = inputs[i];
  }
  HEDDLE_CHECK(infer_dtypes(*node.schema, inputs, outputs));
  HEDDLE_CHECK(declared.match(certain, &bound));
  Status refusal;
  bool fits = false;
  for (const int64_t extent : likely_extents(net, node)) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.inputs[i].valid()) continue;
      const TensorType& type = net.type(node.inputs[i]);
      Shape shape = known_before_run(type);
      declared.fill(i, bound, &shape);
      for (int k = 0; k < shape.rank(); ++k)
        if (shape[k] < 0) shape[k] = type.shape[k] < 0 ? extent : type.shape[k];
      see(i, shape);
    }
    Status status = infer_operator(*node.schema, attributes, inputs, wanted, outputs, services);
    if (!status.ok() && status.code() != Code::shape_mismatch) return status;
    fits = status.ok();
    if (fits) break;
    const bool from_inside = !status.diagnostic().context.empty();
    if (refusal.ok()) refusal = std::move(status);  // the first one speaks of the least odd extents
    // Subnets are inferred with extents that are unknown whatever is asked, and those within them again.
    if (from_inside) break;
  }
  if (!fits) {
    // The extents of the run may be right all the same.
    HEDDLE_CHECK(infer_dtypes(*node.schema, inputs, outputs));
    const int rank = !node.inputs.empty() && node.inputs[0].valid() ? shapes[0].rank() : 0;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i].valid()) see(i, known_before_run(net.type(node.inputs[i])));
    DeclaredDims::Bound of_all;
    const bool says = declared.match(inputs, &of_all).ok();
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (wanted[i] && outputs[i].dtype == DType::none) return refusal;
      heddle_type type = {};
      type.rank = rank;
      // What does not follow is refused in the run, by the extents that it finds.
      if (says && wanted[i] && !declared.follow(i, of_all, &type).ok()) type.rank = rank;
      outputs[i].shape = Shape(type.dims, type.rank);
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    TensorType& type = outputs[i];
    // The next version of a variable is of its type; the run refuses an update of other extents.
    const int updated = node.schema->updated_input(i);
    const ValueId variable =
        updated >= 0 && static_cast<size_t>(updated) < node.inputs.size() ? node.inputs[static_cast<size_t>(updated)] : ValueId();
    if (variable.valid() && !net.type(variable).dynamic && net.type(variable).bounded_axis < 0) {
      type = net.type(variable);
      continue;
    }
    type.dynamic = true;
    type.bounded_axis = -1;
    for (int k = 0; k < type.shape.rank(); ++k) type.shape[k] = -1;
  }
  return {};
}

}  // namespace heddle
