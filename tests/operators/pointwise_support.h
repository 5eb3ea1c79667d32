// Shorthands for tests of single CPU operators: tensors from vectors, one call, vectors back.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "build_folder.h"
#include "operator_runner/operator_runner.h"

namespace heddle::testing {

using Tensor = std::shared_ptr<const Blob>;

inline constexpr float inf = std::numeric_limits<float>::infinity();
inline constexpr float nan = std::numeric_limits<float>::quiet_NaN();

inline const Registry& cpu_registry() {
  static const Registry& registry = *[] {
    auto* r = new Registry();
    const Status loaded = r->load(build_folder() + "/lib/cpu.so");
    EXPECT_TRUE(loaded.ok()) << loaded.text();
    return r;
  }();
  return registry;
}

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) return DType::f32;
  if constexpr (std::is_same_v<T, double>) return DType::f64;
  if constexpr (std::is_same_v<T, int8_t>) return DType::i8;
  if constexpr (std::is_same_v<T, int16_t>) return DType::i16;
  if constexpr (std::is_same_v<T, int32_t>) return DType::i32;
  if constexpr (std::is_same_v<T, int64_t>) return DType::i64;
  if constexpr (std::is_same_v<T, uint8_t>) return DType::u8;
  if constexpr (std::is_same_v<T, uint16_t>) return DType::u16;
  if constexpr (std::is_same_v<T, uint32_t>) return DType::u32;
  if constexpr (std::is_same_v<T, uint64_t>) return DType::u64;
  return DType::none;
}

template <class T>
Tensor tensor(const Shape& shape, const std::vector<T>& values) {
  EXPECT_EQ(shape.element_count(), static_cast<int64_t>(values.size()));
  return Blob::copy_of(dtype_of<T>(), shape, values.data());
}
inline Tensor booleans(const Shape& shape, const std::vector<uint8_t>& values) {
  return Blob::copy_of(DType::boolean, shape, values.data());
}
// Makes a tensor of f16 or bf16 from bits.
inline Tensor halves(DType dtype, const Shape& shape, const std::vector<uint16_t>& bits) {
  return Blob::copy_of(dtype, shape, bits.data());
}
template <class T>
std::vector<T> values(const Blob& blob) {
  std::vector<T> v(static_cast<size_t>(blob.shape.element_count()));
  EXPECT_EQ(v.size() * sizeof(T), static_cast<size_t>(blob.bytes));
  if (!v.empty()) std::memcpy(v.data(), blob.data, v.size() * sizeof(T));
  return v;
}

// Returns the outputs of one call; an empty vector and a test failure if it fails.
inline std::vector<Tensor> run(const OperatorCall& call) {
  auto result = run_operator(cpu_registry(), call);
  EXPECT_TRUE(result.ok()) << result.status().text();
  return result.ok() ? std::move(result).value() : std::vector<Tensor>();
}
inline OperatorCall call_of(const std::string& type, std::vector<Tensor> inputs, std::vector<Attribute> attributes = {},
                            size_t output_count = 1) {
  OperatorCall call;
  call.type = type;
  call.inputs = std::move(inputs);
  call.attributes = std::move(attributes);
  call.output_count = output_count;
  return call;
}
inline Tensor run1(const std::string& type, std::vector<Tensor> inputs, std::vector<Attribute> attributes = {}) {
  auto outputs = run(call_of(type, std::move(inputs), std::move(attributes)));
  static const uint8_t nothing = 0;
  return outputs.empty() ? Blob::copy_of(DType::u8, Shape{0}, &nothing) : outputs[0];
}
// Returns the error text of a call that must fail.
inline std::string error_of(const OperatorCall& call) {
  auto result = run_operator(cpu_registry(), call);
  EXPECT_FALSE(result.ok()) << "the call should have failed";
  return result.ok() ? std::string() : result.status().text();
}
inline Tensor evaluate(const std::string& program, std::vector<Tensor> inputs) {
  OperatorCall call = call_of("Pointwise", std::move(inputs), {{"program", program}});
  call.domain = "heddle";
  auto outputs = run(call);
  static const uint8_t nothing = 0;
  return outputs.empty() ? Blob::copy_of(DType::u8, Shape{0}, &nothing) : outputs[0];
}

}  // namespace heddle::testing
