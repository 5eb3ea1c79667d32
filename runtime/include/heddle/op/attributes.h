// Attributes: an operator author's view of the attributes of a node.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "heddle/abi.h"
#include "heddle/op/mistake.h"

namespace heddle {
namespace plugin {

// The checked attributes of one node, by name. Look them up in create, never in run. To read an attribute that the schema does not declare,
// or declares with another type, is a mistake of the plugin and becomes the error of the node: the function throws, or, with
// -fno-exceptions, returns the same as for an absent attribute.
class Attributes {
 public:
  Attributes(const heddle_operator* op, const heddle_attribute* const* values, uint32_t count, detail::Mistakes* mistakes = nullptr)
      : op_(op), values_(values), count_(count), mistakes_(mistakes) {}
  // Returns the attribute; null if the schema declares it without a default and the node does not give it.
  const heddle_attribute* find(const char* name) const {
    for (uint32_t i = 0; i < count_ && i < op_->attribute_count; ++i)
      if (std::strcmp(op_->attributes[i]->name, name) == 0) return values_[i];
    detail::make_mistake(mistakes_, std::string("operator ") + op_->name + " declares no attribute \"" + name + "\"");
    return nullptr;
  }
  bool has(const char* name) const { return find(name) != nullptr; }
  // True if the schema declares an attribute of this name. For code that several operators share.
  bool declares(const char* name) const {
    for (uint32_t i = 0; i < count_ && i < op_->attribute_count; ++i)
      if (std::strcmp(op_->attributes[i]->name, name) == 0) return true;
    return false;
  }
  // All attributes, in the order of the schema; null: the schema has no default and the node gives no value.
  uint32_t size() const { return count_; }
  const heddle_attribute* operator[](uint32_t i) const { return values_[i]; }
  int64_t i(const char* name, int64_t otherwise = 0) const {
    const heddle_attribute* a = find(name, HEDDLE_ATTRIBUTE_INT);
    return a ? a->i : otherwise;
  }
  double f(const char* name, double otherwise = 0) const {
    const heddle_attribute* a = find(name, HEDDLE_ATTRIBUTE_FLOAT);
    return a ? a->f : otherwise;
  }
  std::string s(const char* name, const char* otherwise = "") const {
    const heddle_attribute* a = find(name, HEDDLE_ATTRIBUTE_STRING);
    return a && a->s ? std::string(a->s, a->count) : std::string(otherwise);
  }
  std::vector<int64_t> ints(const char* name) const {
    const heddle_attribute* a = find(name, HEDDLE_ATTRIBUTE_INTS);
    return a ? std::vector<int64_t>(a->ints, a->ints + a->count) : std::vector<int64_t>();
  }
  std::vector<double> floats(const char* name) const {
    const heddle_attribute* a = find(name, HEDDLE_ATTRIBUTE_FLOATS);
    return a ? std::vector<double>(a->floats, a->floats + a->count) : std::vector<double>();
  }
  std::vector<std::string> strings(const char* name) const {
    const heddle_attribute* a = find(name, HEDDLE_ATTRIBUTE_STRINGS);
    return a ? std::vector<std::string>(a->strings, a->strings + a->count) : std::vector<std::string>();
  }
  const heddle_tensor* tensor(const char* name) const {
    const heddle_attribute* a = find(name, HEDDLE_ATTRIBUTE_TENSOR);
    if (!a && mistakes_ && mistakes_->any()) return &detail::no_tensor();
    return a ? a->tensor : nullptr;
  }
  const heddle_subnet* subnet(const char* name) const {
    const heddle_attribute* a = find(name, HEDDLE_ATTRIBUTE_SUBNET);
    return a ? a->subnet : nullptr;
  }

 private:
  const heddle_attribute* find(const char* name, heddle_attribute_type type) const {
    const heddle_attribute* a = find(name);
    if (!a || a->type == type) return a;
    detail::make_mistake(mistakes_, std::string("attribute \"") + name + "\" of operator " + op_->name + " is read as type " +
                                        std::to_string(type) + " but has type " + std::to_string(a->type));
    return nullptr;
  }
  const heddle_operator* op_;
  const heddle_attribute* const* values_;
  uint32_t count_;
  detail::Mistakes* mistakes_;
};

}  // namespace plugin
}  // namespace heddle
