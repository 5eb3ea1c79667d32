#include "plugin/abi_attributes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text/text.h"

namespace heddle {

struct AttributeTable::Storage {
  heddle_attribute abi = {};
  std::unique_ptr<heddle_tensor> tensor;
  std::vector<const char*> strings;
};

heddle_attribute_type attribute_type(const AttributeValue& value) {
  return static_cast<heddle_attribute_type>(value.index() + 1);
}
static_assert(std::is_same_v<std::variant_alternative_t<HEDDLE_ATTRIBUTE_INT - 1, AttributeVariant>, int64_t>);
static_assert(std::is_same_v<std::variant_alternative_t<HEDDLE_ATTRIBUTE_FLOATS - 1, AttributeVariant>, std::vector<double>>);
static_assert(std::is_same_v<std::variant_alternative_t<HEDDLE_ATTRIBUTE_SUBNET - 1, AttributeVariant>, std::shared_ptr<const Net>>);

const char* attribute_type_name(heddle_attribute_type type) {
  static constexpr const char* names[] = {"nothing",           "an integer",        "a number", "a string", "a list of integers",
                                          "a list of numbers", "a list of strings", "a tensor", "a subnet"};
  return type >= 0 && type <= HEDDLE_ATTRIBUTE_SUBNET ? names[type] : "unknown";
}

const heddle_attribute* AttributeTable::add(const Attribute& attribute) {
  auto storage = std::make_shared<Storage>();
  heddle_attribute& a = storage->abi;
  a.struct_size = sizeof(a);
  a.type = attribute_type(attribute.value);
  a.name = attribute.name.c_str();
  switch (a.type) {
    case HEDDLE_ATTRIBUTE_INT:
      a.i = std::get<int64_t>(attribute.value);
      break;
    case HEDDLE_ATTRIBUTE_FLOAT:
      a.f = std::get<double>(attribute.value);
      break;
    case HEDDLE_ATTRIBUTE_STRING: {
      const std::string& s = std::get<std::string>(attribute.value);
      a.s = s.c_str();
      a.count = s.size();
      break;
    }
    case HEDDLE_ATTRIBUTE_INTS: {
      const auto& v = std::get<std::vector<int64_t>>(attribute.value);
      a.ints = v.data();
      a.count = v.size();
      break;
    }
    case HEDDLE_ATTRIBUTE_FLOATS: {
      const auto& v = std::get<std::vector<double>>(attribute.value);
      a.floats = v.data();
      a.count = v.size();
      break;
    }
    case HEDDLE_ATTRIBUTE_STRINGS: {
      for (const std::string& s : std::get<std::vector<std::string>>(attribute.value)) storage->strings.push_back(s.c_str());
      a.strings = storage->strings.data();
      a.count = storage->strings.size();
      break;
    }
    case HEDDLE_ATTRIBUTE_TENSOR: {
      const Blob& blob = *std::get<std::shared_ptr<const Blob>>(attribute.value);
      storage->tensor = std::make_unique<heddle_tensor>(tensor_view(blob.dtype, blob.shape, const_cast<std::byte*>(blob.data)));
      storage->tensor->flags = HEDDLE_TENSOR_CONSTANT;
      a.tensor = storage->tensor.get();
      break;
    }
    default:
      a.subnet = to_abi(std::get<std::shared_ptr<const Net>>(attribute.value).get());
      break;
  }
  storage_.push_back(std::move(storage));
  return &a;
}

AttributeTable::AttributeTable(const std::vector<Attribute>& attributes) {
  for (const Attribute& attribute : attributes) pointers_.push_back(add(attribute));
}

AttributeTable::AttributeTable(const OperatorSchema& schema, const std::vector<Attribute>& attributes) {
  const heddle_operator& op = *schema.op;
  pointers_.resize(op.attribute_count, nullptr);
  for (uint32_t i = 0; i < op.attribute_count; ++i) pointers_[i] = op.attributes[i]->default_value;
  for (const Attribute& attribute : attributes)
    if (const int index = schema.attribute_index(attribute.name); index >= 0) pointers_[static_cast<size_t>(index)] = add(attribute);
}

bool fit_attribute(heddle_attribute_type wanted, AttributeValue* value) {
  if (attribute_type(*value) == wanted) return true;
  if (wanted == HEDDLE_ATTRIBUTE_FLOAT && std::holds_alternative<int64_t>(*value)) {
    *value = static_cast<double>(std::get<int64_t>(*value));
    return true;
  }
  const auto* const ints = std::get_if<std::vector<int64_t>>(value);
  if (wanted == HEDDLE_ATTRIBUTE_FLOATS && ints) {
    *value = std::vector<double>(ints->begin(), ints->end());
    return true;
  }
  if (wanted == HEDDLE_ATTRIBUTE_STRINGS && ints && ints->empty()) {
    *value = std::vector<std::string>();
    return true;
  }
  return false;
}

namespace {

// Whether the elements of a non-empty value are given.
bool has_elements(const heddle_attribute& a) {
  if (a.type == HEDDLE_ATTRIBUTE_TENSOR) return a.tensor && (a.tensor->rank == 0 || a.tensor->dims) && a.tensor->rank <= max_rank;
  if (a.count == 0) return true;
  if (a.type == HEDDLE_ATTRIBUTE_STRING) return a.s;
  if (a.type == HEDDLE_ATTRIBUTE_INTS) return a.ints;
  if (a.type == HEDDLE_ATTRIBUTE_FLOATS) return a.floats;
  return a.type != HEDDLE_ATTRIBUTE_STRINGS || (a.strings && std::count(a.strings, a.strings + a.count, nullptr) == 0);
}

}  // namespace

std::string exact_text(const AttributeValue& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::shared_ptr<const Blob>> || std::is_same_v<T, std::shared_ptr<const Net>>)
          return {};
        else if constexpr (std::is_same_v<T, std::string>)
          return quoted(v);
        else
          return fmt::format("{}", v);
      },
      value);
}

std::optional<AttributeValue> attribute_from_abi(const heddle_attribute& a) {
  if (!has_elements(a)) return std::nullopt;
  switch (a.type) {
    case HEDDLE_ATTRIBUTE_INT:
      return a.i;
    case HEDDLE_ATTRIBUTE_FLOAT:
      return a.f;
    case HEDDLE_ATTRIBUTE_STRING:
      return std::string(a.s, a.count);
    case HEDDLE_ATTRIBUTE_INTS:
      return std::vector<int64_t>(a.ints, a.ints + a.count);
    case HEDDLE_ATTRIBUTE_FLOATS:
      return std::vector<double>(a.floats, a.floats + a.count);
    case HEDDLE_ATTRIBUTE_STRINGS:
      return std::vector<std::string>(a.strings, a.strings + a.count);
    case HEDDLE_ATTRIBUTE_TENSOR:
      return std::shared_ptr<const Blob>(
          Blob::copy_of(static_cast<DType>(a.tensor->dtype), Shape(a.tensor->dims, a.tensor->rank), a.tensor->data));
    default:
      return std::nullopt;
  }
}

std::shared_ptr<const Net> subnet_attribute(const std::vector<Attribute>& attributes, const Net* net) {
  for (const Attribute& a : attributes)
    if (const auto* candidate = std::get_if<std::shared_ptr<const Net>>(&a.value); candidate && candidate->get() == net) return *candidate;
  return nullptr;
}

Status not_its_subnet() {
  return {Code::plugin_invalid, "asks for a subnet that is not an attribute of its operator",
          "use the handles that its attributes give, in the call that gave them"};
}

Result<std::vector<Attribute>> attributes_from_abi(const heddle_attribute* const* attributes, uint32_t count) {
  std::vector<Attribute> copies;
  for (uint32_t i = 0; i < count; ++i) {
    if (!attributes[i]) continue;
    auto value = attribute_from_abi(*attributes[i]);
    if (!value || !attributes[i]->name)
      return Status(Code::plugin_invalid, fmt::format("an attribute of type {}, without a name or its elements", attributes[i]->type),
                    "give each attribute a name, a type of heddle/abi.h, and elements where its count is not 0");
    copies.push_back({attributes[i]->name, std::move(*value)});
  }
  return copies;
}

Result<Shape> shape_from_abi(const heddle_type& type) {
  const bool has_rank = type.rank >= 0 && type.rank <= max_rank && byte_width(static_cast<DType>(type.dtype)) > 0;
  if (!has_rank || std::any_of(type.dims, type.dims + type.rank, [](int64_t dim) { return dim < 0; }))
    return Status(Code::plugin_invalid, "a constant of unknown dtype or extents",
                  "give a heddle_dtype, a rank from 0 to HEDDLE_MAX_RANK and extents of 0 or more");
  return Shape(type.dims, type.rank);
}

}  // namespace heddle
