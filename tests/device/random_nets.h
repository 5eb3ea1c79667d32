// Nets for devices, the same for the same seed.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "device/device_support.h"

namespace heddle::testing_devices {

// Operators of 8 x 8 matrices that fork and join, with a variable that is read before it is updated.
inline Net random_net(uint64_t seed) {
  constexpr int64_t side = 8;
  std::mt19937_64 random(seed);
  NetBuilder b("spread");
  const Shape matrix{side, side};
  std::vector<ValueId> values = {b.input("x", DType::f32, matrix), b.constant("w", whole_numbers(matrix, static_cast<int>(seed % 7), 3))};
  const ValueId variable = b.variable("v", whole_numbers(matrix, 2, 5));
  values.push_back(variable);
  const auto any = [&] { return values[random() % values.size()]; };
  const size_t count = 12 + random() % 20;
  for (size_t i = 0; i < count; ++i) {
    const std::string name = "n" + std::to_string(i);
    switch (random() % 7) {
      case 0:
        values.push_back(b.add1("MatMul", name, {b.add1("Softmax", name + "s", {any()}), any()}));
        break;
      case 1:
        values.push_back(b.add1("Relu", name, {any()}));
        break;
      case 2:
        values.push_back(b.add1("Transpose", name, {any()}));
        break;
      case 3:
        values.push_back(b.add1("Softmax", name, {any()}));
        break;
      case 4:
        values.push_back(b.add1("Neg", name, {any()}));
        break;
      default:
        values.push_back(b.add1("Add", name, {any(), any()}));
        break;
    }
  }
  const ValueId next = b.add1("Assign", "next", {variable, b.add1("Softmax", "last", {values.back()})}, {}, "heddle");
  b.updates(next, variable);
  for (size_t i = values.size() - 3; i < values.size(); ++i) b.output(values[i]);
  b.output(next);
  return b.finish();
}

}  // namespace heddle::testing_devices
