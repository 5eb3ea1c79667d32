// Helpers of the tests of fusion: special values, comparison, and operators of the registry as programs.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "operators/pointwise_support.h"
#include "plugin/pointwise_lowering.h"

namespace heddle::testing {

// NaNs of both signs, infinities, zeros, denormals, the edges of the range, and numbers around which operators change their behaviour.
inline const std::vector<float>& special_values() {
  using Limits = std::numeric_limits<float>;
  static const std::vector<float> values = {std::nanf(""),
                                            -std::nanf(""),
                                            Limits::infinity(),
                                            -Limits::infinity(),
                                            0.0f,
                                            -0.0f,
                                            1.0f,
                                            -1.0f,
                                            2.0f,
                                            -2.0f,
                                            0.5f,
                                            -0.5f,
                                            6.0f,
                                            -6.0f,
                                            3.0f,
                                            -100.0f,
                                            100.0f,
                                            Limits::denorm_min(),
                                            -Limits::denorm_min(),
                                            1e-40f,
                                            -1e-40f,
                                            Limits::min(),
                                            -Limits::min(),
                                            Limits::max(),
                                            -Limits::max(),
                                            16777217.0f,
                                            3.1415927f,
                                            0.70710677f};
  return values;
}

inline std::string hexadecimal(float value) {
  char text[64];
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  std::snprintf(text, sizeof(text), "%g (%08x)", static_cast<double>(value), bits);
  return text;
}

enum class Nans { any, by_bits };

// Returns the first element that differs as "element 3: a, b"; empty if none does.
inline std::string first_difference(const float* a, const float* b, size_t count, Nans nans) {
  for (size_t i = 0; i < count; ++i) {
    if (std::memcmp(a + i, b + i, sizeof(float)) == 0) continue;
    if (nans == Nans::any && std::isnan(a[i]) && std::isnan(b[i])) continue;
    return "element " + std::to_string(i) + ": " + hexadecimal(a[i]) + ", " + hexadecimal(b[i]);
  }
  return {};
}

// An operator of the registry that declares an expression for floats.
struct PointwiseOperator {
  const OperatorSchema* schema;
  std::vector<Attribute> attributes;
  std::string program;  // over x0, x1, ...
  size_t inputs;
};

// Returns all of them whose inputs and output may have `dtype`, each once per choice that an attribute makes.
inline std::vector<PointwiseOperator> pointwise_operators(const RegistrySnapshot& registry, DType dtype) {
  std::vector<PointwiseOperator> found;
  const heddle_dtype_set bit = HEDDLE_DTYPE_BIT(static_cast<int>(dtype));
  for (const auto& plugin : registry.plugins()) {
    for (const OperatorSchema& schema : plugin->operators) {
      if (!schema.op->pointwise || schema.op->output_count != 1 || !(schema.op->outputs[0]->dtypes & bit)) continue;
      if (schema.op->outputs[0]->default_dtype != HEDDLE_DTYPE_NONE) continue;  // a dtype of its own, as for comparisons
      bool fits = true;
      for (uint32_t i = 0; i < schema.op->input_count; ++i) fits = fits && (schema.op->inputs[i]->dtypes & bit);
      if (!fits) continue;
      std::vector<std::vector<Attribute>> choices = {{}};
      if (schema.attribute_index("fmod") >= 0) choices = {{{"fmod", int64_t{1}}}, {{"fmod", int64_t{0}}}};
      if (schema.attribute_index("approximate") >= 0)
        choices = {{{"approximate", std::string("none")}}, {{"approximate", std::string("tanh")}}};
      if (schema.attribute_index("direction") >= 0) choices = {{{"direction", std::string("LEFT")}}};
      for (const auto& attributes : choices) {
        auto program = pointwise_program(schema, attributes, std::vector<bool>(schema.op->input_count, true));
        EXPECT_TRUE(program.ok()) << schema.name << ": " << program.status().text();
        if (program.ok()) found.push_back({&schema, attributes, *program, schema.op->input_count});
      }
    }
  }
  return found;
}

}  // namespace heddle::testing
