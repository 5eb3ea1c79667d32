#include <algorithm>

#include "cudnn_objects.h"

namespace heddle::cuda::standin {
namespace {

struct AttributeRule {
  cudnnBackendDescriptorType_t descriptor;
  cudnnBackendAttributeName_t attribute;
  const char* name;
  cudnnBackendAttributeType_t type;
  int64_t least, most;
  bool required;
};
const AttributeRule attribute_rules[] = {
#define HEDDLE_CUDNN_ATTRIBUTE(descriptor, attribute, type, least, most, required) \
  {CUDNN_BACKEND_##descriptor##_DESCRIPTOR, CUDNN_ATTR_##attribute, #attribute, CUDNN_TYPE_##type, least, most, required},
#include "cudnn_schema.inc"
#undef HEDDLE_CUDNN_ATTRIBUTE
};

}  // namespace

size_t element_bytes(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    case CUDNN_TYPE_BOOLEAN:
      return 1;
    case CUDNN_TYPE_DATA_TYPE:
    case CUDNN_TYPE_FLOAT:
    case CUDNN_TYPE_CONVOLUTION_MODE:
    case CUDNN_TYPE_HEUR_MODE:
    case CUDNN_TYPE_POINTWISE_MODE:
    case CUDNN_TYPE_NAN_PROPOGATION:
      return 4;
    default:
      return 0;
  }
}

bool may_set(cudnnBackendDescriptorType_t descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count) {
  return std::any_of(std::begin(attribute_rules), std::end(attribute_rules), [&](const AttributeRule& rule) {
    return rule.descriptor == descriptor && rule.attribute == name && rule.type == type && rule.least <= count && count <= rule.most;
  });
}

const char* missing_attribute(const BackendDescriptor& descriptor) {
  for (const AttributeRule& rule : attribute_rules)
    if (rule.descriptor == descriptor.type && rule.required && !descriptor.has(rule.attribute)) return rule.name;
  return nullptr;
}

const BackendDescriptor::Attribute* BackendDescriptor::find(cudnnBackendAttributeName_t name) const {
  const auto found = attributes.find(name);
  return found == attributes.end() ? nullptr : &found->second;
}

std::vector<int64_t> BackendDescriptor::integers(cudnnBackendAttributeName_t name) const {
  const Attribute& attribute = *find(name);
  const auto* const first = reinterpret_cast<const int64_t*>(attribute.bytes.data());
  return {first, first + attribute.count};
}

}  // namespace heddle::cuda::standin
