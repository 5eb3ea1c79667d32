#include "models/weights.h"

#include <cmath>

#include "base/random.h"

namespace heddle::models {
namespace {

uint64_t fnv1a(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

}  // namespace

std::shared_ptr<const Blob> uniform(const std::string& name, const Shape& shape, float least, float most, uint64_t seed) {
  std::byte* bytes = nullptr;
  auto blob = Blob::allocate(DType::f32, shape, &bytes);
  auto* elements = reinterpret_cast<float*>(bytes);
  uint64_t state = seed ^ fnv1a(name);
  state = next_random(state);
  const double centre = (static_cast<double>(least) + most) / 2;
  const double half = (static_cast<double>(most) - least) / 2;
  for (int64_t i = 0; i < shape.element_count(); ++i) {
    // A product of 24 + 25 significant bits is exact in double, so a fused multiply-add gives the same sum as two roundings.
    const double unit = static_cast<double>(static_cast<int64_t>(next_random(state) >> 40) * 2 - (1 << 24)) / (1 << 24);
    elements[i] = static_cast<float>(centre + unit * half);
  }
  return blob;
}

std::shared_ptr<const Blob> spread(const std::string& name, const Shape& shape, float deviation, uint64_t seed) {
  const float bound = std::sqrt(3.0f) * deviation;
  return uniform(name, shape, -bound, bound, seed);
}

}  // namespace heddle::models
