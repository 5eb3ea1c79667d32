// GradientContext: builds a gradient that depends on attributes or types.
//
//   Status softmax_gradient(GradientContext& g) {
//     const GradientValue product = g.emit("Mul", {g.dy(0), g.y(0)});
//     const GradientValue sum = g.emit("ReduceSum", {product, g.ints({g.attributes().i("axis")})});
//     g.give(0, g.emit("Sub", {product, g.emit("Mul", {g.y(0), sum})}));
//     return {};
//   }
//   ... Op("Softmax", ...).gradient<softmax_gradient>()
//
// A table from which rows were gathered gets its gradient as rows: here y[i] = table[indices[i]].
//
//   Status lookup_gradient(GradientContext& g) {
//     g.give_rows(0, g.x(1), g.dy(0));
//     return {};
//   }
//
// The function is called once, when a net is derived, before extents are known: the operators that it emits must be valid for every shape.
// If the host refuses an operator, the gradient fails with the host's reason; the outputs of that operator, and of operators that use them,
// are absent.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "heddle/abi.h"
#include "heddle/op/attributes.h"
#include "heddle/op/guard.h"
#include "heddle/op/plugin_status.h"

namespace heddle {
namespace plugin {

// A value of the derived net. It is absent (false) if the node has no such value.
struct GradientValue {
  heddle_value_handle handle = 0;
  explicit operator bool() const { return handle != 0; }
};

// An attribute of an emitted operator.
class GradientAttribute {
 public:
  GradientAttribute(const char* name, int64_t value) : abi_(named(name, HEDDLE_ATTRIBUTE_INT)) { abi_.i = value; }
  GradientAttribute(const char* name, int value) : GradientAttribute(name, static_cast<int64_t>(value)) {}
  GradientAttribute(const char* name, double value) : abi_(named(name, HEDDLE_ATTRIBUTE_FLOAT)) { abi_.f = value; }
  GradientAttribute(const char* name, std::string value) : abi_(named(name, HEDDLE_ATTRIBUTE_STRING)), text_(std::move(value)) {}
  GradientAttribute(const char* name, const char* value) : GradientAttribute(name, std::string(value)) {}
  GradientAttribute(const char* name, std::vector<int64_t> value) : abi_(named(name, HEDDLE_ATTRIBUTE_INTS)), ints_(std::move(value)) {}
  // Copies an attribute of the forward operator, as GradientContext::attributes().find() returns it. If `same` is null, the emitted
  // operator does not get the attribute.
  explicit GradientAttribute(const heddle_attribute* same) : is_given_(same != nullptr) {
    if (same) abi_ = *same;
    is_copy_ = true;
  }
  bool is_given() const { return is_given_; }
  // Returns a view that is valid as long as this object.
  heddle_attribute abi() const {
    heddle_attribute a = abi_;
    if (is_copy_) return a;
    a.s = text_.c_str();
    a.ints = ints_.data();
    a.count = a.type == HEDDLE_ATTRIBUTE_STRING ? text_.size() : ints_.size();
    return a;
  }

 private:
  static heddle_attribute named(const char* name, heddle_attribute_type type) {
    heddle_attribute attribute = {};
    attribute.struct_size = sizeof(attribute);
    attribute.type = type;
    attribute.name = name;
    return attribute;
  }
  heddle_attribute abi_ = {};
  std::string text_;
  std::vector<int64_t> ints_;
  bool is_given_ = true, is_copy_ = false;
};

class GradientContext {
 public:
  GradientContext(const heddle_gradient_builder& builder, detail::Mistakes* mistakes)
      : builder_(builder), attributes_(builder.op, builder.attributes, builder.attribute_count, mistakes) {}

  const Attributes& attributes() const { return attributes_; }
  // Copies an attribute of the forward operator, under the same name, for an emitted operator.
  GradientAttribute same(const char* name) const { return GradientAttribute(attributes_.find(name)); }
  uint32_t input_count() const { return builder_.input_count; }
  uint32_t output_count() const { return builder_.output_count; }
  // Return input x, output y and the gradient dy of an output. The result is absent if the node has no such value, or, for dy, if no
  // gradient reaches the output.
  GradientValue x(uint32_t input) const { return {input < builder_.input_count ? builder_.inputs[input] : 0}; }
  GradientValue y(uint32_t output) const { return {output < builder_.output_count ? builder_.outputs[output] : 0}; }
  GradientValue dy(uint32_t output) const { return {output < builder_.output_count ? builder_.output_gradients[output] : 0}; }
  // Like y(), for an optional output that the net may not have requested. The net requests the output from then on.
  GradientValue needed_y(uint32_t output) {
    GradientValue value;
    note(builder_.output(&builder_, output, &value.handle));
    return value;
  }
  // True if the gradient of that input is requested. Operators that are needed only for gradients that are not requested need not be
  // emitted.
  bool wants(uint32_t input) const { return input < builder_.input_count && builder_.inputs[input] != 0 && builder_.wanted[input] != 0; }
  // Return types. The dtype, the rank and all dims other than -1 are the same in every run. An absent value has HEDDLE_DTYPE_NONE and no
  // dims.
  const heddle_type& input_type(uint32_t input) const {
    return input < builder_.input_count && builder_.input_types[input] ? *builder_.input_types[input] : none();
  }
  const heddle_type& output_type(uint32_t output) const {
    return output < builder_.output_count && builder_.output_types[output] ? *builder_.output_types[output] : none();
  }

  // Adds one operator with one output. Absent inputs at the end of the list are dropped; other absent inputs stay in their place.
  GradientValue emit(const char* op, std::initializer_list<GradientValue> inputs, std::initializer_list<GradientAttribute> attributes = {},
                     const char* domain = "") {
    return emit(op, std::vector<GradientValue>(inputs), attributes, domain);
  }
  GradientValue emit(const char* op, const std::vector<GradientValue>& inputs, std::initializer_list<GradientAttribute> attributes = {},
                     const char* domain = "") {
    return emit_all(op, inputs, 1, attributes, domain)[0];
  }
  // Adds one operator with several outputs.
  std::vector<GradientValue> emit_all(const char* op, const std::vector<GradientValue>& inputs, uint32_t outputs,
                                      std::initializer_list<GradientAttribute> attributes = {}, const char* domain = "") {
    std::vector<heddle_value_handle> read, made(outputs, 0);
    for (const GradientValue& input : inputs) read.push_back(input.handle);
    while (!read.empty() && read.back() == 0) read.pop_back();
    std::vector<heddle_attribute> values;
    for (const GradientAttribute& attribute : attributes)
      if (attribute.is_given()) values.push_back(attribute.abi());
    std::vector<const heddle_attribute*> pointers;
    for (const heddle_attribute& value : values) pointers.push_back(&value);
    note(builder_.emit(&builder_, domain, op, read.data(), static_cast<uint32_t>(read.size()), made.data(), outputs, pointers.data(),
                       static_cast<uint32_t>(pointers.size())));
    std::vector<GradientValue> all;
    for (const heddle_value_handle handle : made) all.push_back({status_.ok() ? handle : 0});
    return all;
  }
  // Adds a constant i64 [n].
  GradientValue ints(const std::vector<int64_t>& values) {
    return constant(HEDDLE_I64, {static_cast<int64_t>(values.size())}, values.data());
  }
  // Adds a constant of any dtype and of known dims; its bytes are copied.
  GradientValue constant(heddle_dtype dtype, std::initializer_list<int64_t> dims, const void* data) {
    heddle_type type = none();
    type.struct_size = sizeof(type);
    type.dtype = dtype;
    type.bounded_axis = -1;
    for (const int64_t dim : dims) type.dims[type.rank++] = dim;
    GradientValue value;
    note(builder_.constant(&builder_, &type, data, &value.handle));
    return value;
  }

  // Sets the gradient of an input.
  void give(uint32_t input, GradientValue value) {
    if (input < builder_.input_count) builder_.input_gradients[input] = value.handle;
  }
  // Sets the gradient of a table: one row of `values` for each of `indices` (heddle_gradient_builder::sparse).
  void give_rows(uint32_t input, GradientValue indices, GradientValue values, uint32_t flags = 0) {
    note(builder_.sparse(&builder_, input, indices.handle, values.handle, flags));
  }

  // Ok if the host has accepted everything so far; otherwise the status has no text, because the host has the reason.
  const Status& status() const { return status_; }

 private:
  static const heddle_type& none() {
    static const heddle_type type = {};
    return type;
  }
  void note(heddle_status status) {
    if (status != HEDDLE_OK && status_.ok()) status_ = {status, ""};
  }
  const heddle_gradient_builder& builder_;
  const Attributes attributes_;
  Status status_;
};

namespace detail {

template <Status (*F)(GradientContext&)>
heddle_status call_gradient(const heddle_gradient_builder* builder) {
  return guard(*builder, [&](Mistakes& mistakes) -> Status {
    GradientContext context(*builder, &mistakes);
    const Status status = F(context);
    return status.ok() ? context.status() : status;
  });
}

}  // namespace detail

}  // namespace plugin
}  // namespace heddle
