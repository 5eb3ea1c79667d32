// The ABI's view of one node's attributes: in schema order, defaults filled in.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "heddle/abi.h"
#include "heddle/status.h"
#include "net/net.h"
#include "plugin/schema.h"

namespace heddle {

// Owns the storage its pointers refer to, except tensor bytes and subnets, which belong to the node's attribute values: the node (or a
// copy of it, they share) must outlive the table. Movable; pointers stay valid.
class AttributeTable {
 public:
  AttributeTable() = default;
  // The node's attributes must have passed resolve.
  AttributeTable(const OperatorSchema& schema, const std::vector<Attribute>& attributes);
  // Without a schema: the attributes as they are.
  explicit AttributeTable(const std::vector<Attribute>& attributes);
  const heddle_attribute* const* data() const { return pointers_.data(); }
  uint32_t size() const { return static_cast<uint32_t>(pointers_.size()); }

 private:
  struct Storage;
  const heddle_attribute* add(const Attribute& attribute);
  std::vector<const heddle_attribute*> pointers_;
  std::vector<std::shared_ptr<Storage>> storage_;
};

// A heddle_subnet is the Net it stands for.
inline const heddle_subnet* to_abi(const Net* net) {
  return reinterpret_cast<const heddle_subnet*>(net);
}
inline const Net* from_abi(const heddle_subnet* subnet) {
  return reinterpret_cast<const Net*>(subnet);
}

// Returns a copy of the value; none: it is a subnet, or nothing, or its elements are null.
std::optional<AttributeValue> attribute_from_abi(const heddle_attribute& attribute);

// Returns a text that differs for values that differ; empty for tensors and nets.
std::string exact_text(const AttributeValue& value);

// Returns the attribute that `net` points to; `net` comes from a plugin and is not dereferenced. Null when it is none of the attributes.
std::shared_ptr<const Net> subnet_attribute(const std::vector<Attribute>& attributes, const Net* net);
// The error for that case.
Status not_its_subnet();

// Copies the attributes that are given; null entries are left out. Errors: plugin_invalid, for one of a type that can not be copied.
Result<std::vector<Attribute>> attributes_from_abi(const heddle_attribute* const* attributes, uint32_t count);
// The shape of a type whose extents are all known. Errors: plugin_invalid.
Result<Shape> shape_from_abi(const heddle_type& type);

// HEDDLE_ATTRIBUTE_* of a value.
heddle_attribute_type attribute_type(const AttributeValue& value);
// "int", "list of floats", ...
const char* attribute_type_name(heddle_attribute_type type);

// Converts a value to the type where text forms need it: an integer for a number, an empty list for one of another type. Returns false if
// it is of another type.
bool fit_attribute(heddle_attribute_type wanted, AttributeValue* value);

// Returns a row-major view of host memory; `shape` and `data` stay owned by the caller.
inline heddle_tensor tensor_view(DType dtype, const Shape& shape, void* data) {
  heddle_tensor t = {};
  t.struct_size = sizeof(t);
  t.dtype = static_cast<heddle_dtype>(dtype);
  t.rank = shape.rank();
  t.data = data;
  t.dims = shape.data();
  t.element_count = shape.element_count();
  t.byte_size = static_cast<uint64_t>(t.element_count * byte_width(dtype));
  t.extent_axis = -1;
  return t;
}

}  // namespace heddle
