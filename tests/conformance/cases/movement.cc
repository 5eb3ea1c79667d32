#include "conformance/cases/movement.h"

namespace heddle::conformance {

Numbers moved(const Numbers& data, const Shape& shape, const std::function<Ints(const Ints&)>& from) {
  Numbers result = zeros(data.dtype, shape);
  for (int64_t i = 0; i < result.size(); ++i) result.values[i] = data.values[flat_of(from(position_of(i, shape)), data.shape)];
  return result;
}

Numbers picked(const Numbers& data, const std::vector<Ints>& coordinates, Number fill) {
  Shape shape;
  for (const Ints& along : coordinates) shape.push_back(static_cast<int64_t>(along.size()));
  Numbers result = zeros(data.dtype, shape);
  for (int64_t i = 0; i < result.size(); ++i) {
    Ints position = position_of(i, shape);
    bool filled = false;
    for (size_t axis = 0; axis < position.size(); ++axis) {
      position[axis] = coordinates[axis][position[axis]];
      filled = filled || position[axis] < 0;
    }
    result.values[i] = filled ? fill : data.values[flat_of(position, data.shape)];
  }
  return result;
}

Ints counted(int64_t count) {
  Ints numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(i);
  return numbers;
}

Shape shape_of(const Ints& dims) {
  return {dims.data(), static_cast<int>(dims.size())};
}

std::vector<Ints> all_of(const Shape& shape) {
  std::vector<Ints> coordinates;
  for (const int64_t extent : shape) coordinates.push_back(counted(extent));
  return coordinates;
}

}  // namespace heddle::conformance
