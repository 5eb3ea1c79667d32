#include "infer/late_types.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "plugin/abi_attributes.h"
#include "plugin/infer_operator.h"

namespace heddle {
namespace {

// Extents to try: 1 broadcasts, those of other inputs fit beside them, and values of operands (sizes, counts) may be needed as extents.
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

// The shape with -1 for each extent that is known only during the run.
Shape known_before_run(const TensorType& type) {
  Shape shape = type.shape;
  for (int k = 0; k < shape.rank(); ++k)
    if (type.follows_bounded || k == type.bounded_axis) shape[k] = HEDDLE_DYNAMIC_DIM;
  return shape;
}

// Types of one late node, in three phases: what is certain before the run, extents that may fit, and what stays open.
class LateTypes {
 public:
  LateTypes(const TypedNet& net, const Node& node, std::span<TensorType> outputs, CallServices* services)
      : net_(net),
        node_(node),
        outputs_(outputs),
        services_(services),
        shapes_(node.inputs.size()),
        views_(node.inputs.size()),
        inputs_(node.inputs.size(), nullptr) {
    for (const ValueId id : node.outputs) wanted_.push_back(id.valid() ? 1 : 0);
  }
  Status infer() {
    HEDDLE_CHECK(match_certain_inputs());
    Status refusal;
    HEDDLE_TRY(const bool fits, try_extents(refusal));
    if (!fits) HEDDLE_CHECK(follow_declared_dims(std::move(refusal)));
    leave_extents_open();
    return {};
  }

 private:
  void see(size_t i, const Shape& shape) {
    shapes_[i] = shape;
    const auto& known = net_.known[node_.inputs[i].index];
    views_[i] = tensor_view(net_.type(node_.inputs[i]).dtype, shapes_[i], known ? const_cast<std::byte*>(known->data) : nullptr);
    inputs_[i] = &views_[i];
  }

  // Finds dims that inputs of known rank determine for the others; the rank of a dynamic one may be a guess.
  Status match_certain_inputs() {
    std::vector<const heddle_tensor*> certain(inputs_);
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      if (!node_.inputs[i].valid()) continue;
      see(i, known_before_run(net_.type(node_.inputs[i])));
      if (!net_.type(node_.inputs[i]).dynamic) certain[i] = inputs_[i];
    }
    HEDDLE_CHECK(infer_dtypes(*node_.schema, inputs_, outputs_));
    return node_.schema->declared_dims.match(certain, &bound_);
  }

  // Whether the operator takes one of the likely extents; `refusal`: why not the first of them.
  Result<bool> try_extents(Status& refusal) {
    const AttributeTable attributes(*node_.schema, node_.attributes);
    for (const int64_t extent : likely_extents(net_, node_)) {
      for (size_t i = 0; i < node_.inputs.size(); ++i) {
        if (!node_.inputs[i].valid()) continue;
        const TensorType& type = net_.type(node_.inputs[i]);
        Shape shape = known_before_run(type);
        node_.schema->declared_dims.fill(i, bound_, &shape);
        for (int k = 0; k < shape.rank(); ++k)
          if (shape[k] < 0) shape[k] = type.shape[k] < 0 ? extent : type.shape[k];
        see(i, shape);
      }
      Status status = infer_operator(*node_.schema, attributes, inputs_, wanted_, outputs_, services_);
      if (status.ok()) return true;
      if (status.code() != Code::shape_mismatch) return status;
      const bool from_inside = !status.diagnostic().context.empty();
      if (refusal.ok()) refusal = std::move(status);  // the first one names the most usual extents
      // Subnets are inferred with unknown extents whatever is tried, and nested ones again.
      if (from_inside) break;
    }
    return false;
  }

  // Takes dims from the declaration alone: the extents of the run may fit all the same.
  Status follow_declared_dims(Status refusal) {
    HEDDLE_CHECK(infer_dtypes(*node_.schema, inputs_, outputs_));
    const int rank = !node_.inputs.empty() && node_.inputs[0].valid() ? shapes_[0].rank() : 0;
    for (size_t i = 0; i < node_.inputs.size(); ++i)
      if (node_.inputs[i].valid()) see(i, known_before_run(net_.type(node_.inputs[i])));
    const DeclaredDims& declared = node_.schema->declared_dims;
    DeclaredDims::Bound of_all;
    const bool says = declared.match(inputs_, &of_all).ok();
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (wanted_[i] && outputs_[i].dtype == DType::none) return refusal;
      heddle_type type = {};
      type.rank = rank;
      // Dims that do not follow are refused in the run, by their true extents.
      if (says && wanted_[i] && !declared.follow(i, of_all, &type).ok()) type.rank = rank;
      outputs_[i].shape = Shape(type.dims, type.rank);
    }
    return {};
  }

  void leave_extents_open() {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      TensorType& type = outputs_[i];
      // The next version of a variable has its type; the run refuses an update of other extents.
      const int updated = node_.schema->updated_input(i);
      const ValueId variable =
          updated >= 0 && static_cast<size_t>(updated) < node_.inputs.size() ? node_.inputs[static_cast<size_t>(updated)] : ValueId();
      if (variable.valid() && !net_.type(variable).dynamic && net_.type(variable).bounded_axis < 0) {
        type = net_.type(variable);
        continue;
      }
      type.dynamic = true;
      type.bounded_axis = -1;
      for (int k = 0; k < type.shape.rank(); ++k) type.shape[k] = -1;
    }
  }

  const TypedNet& net_;
  const Node& node_;
  const std::span<TensorType> outputs_;
  CallServices* const services_;
  std::vector<Shape> shapes_;
  std::vector<heddle_tensor> views_;
  std::vector<const heddle_tensor*> inputs_;
  std::vector<char> wanted_;
  DeclaredDims::Bound bound_;
};

}  // namespace

Status infer_late_types(const TypedNet& net, const Node& node, std::span<TensorType> outputs, CallServices* services) {
  return LateTypes(net, node, outputs, services).infer();
}

}  // namespace heddle
