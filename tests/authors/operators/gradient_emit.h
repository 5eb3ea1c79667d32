// Functions that the gradient callbacks of these plugins share.
#pragma once

#include <cstring>
#include <initializer_list>

#include "heddle/abi.h"

// Returns the attribute `name`, a string.
inline heddle_attribute string_attribute(const char* name, const char* value) {
  heddle_attribute attribute = {};
  attribute.struct_size = sizeof(attribute);
  attribute.type = HEDDLE_ATTRIBUTE_STRING;
  attribute.name = name;
  attribute.s = value;
  attribute.count = std::strlen(value);
  return attribute;
}

// Emits ONNX's Einsum. `output` is, for example, a place of input_gradients.
inline heddle_status emit_einsum(const heddle_gradient_builder* b, const char* equation, std::initializer_list<heddle_value_handle> inputs,
                                 heddle_value_handle* output) {
  const heddle_attribute attribute = string_attribute("equation", equation);
  const heddle_attribute* const attributes[] = {&attribute};
  return b->emit(b, "", "Einsum", inputs.begin(), static_cast<uint32_t>(inputs.size()), output, 1, attributes, 1);
}
