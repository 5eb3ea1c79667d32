#include "shared/random_numbers.h"

#include <cmath>
#include <string>

#include "shared/scalar.h"

namespace heddle::operators {

Seed Seed::from_integer(const Attributes& attributes) {
  return attributes.has("seed") ? Seed(static_cast<uint64_t>(attributes.i("seed"))) : Seed();
}

Seed Seed::from_float(const Attributes& attributes) {
  return attributes.has("seed") ? Seed(bits_as<uint64_t>(attributes.f("seed"))) : Seed();
}

// A normal number is mean + scale * z, a uniform one low + (high - low) * u.
RandomNumbers random_numbers(const Attributes& attributes, bool normal) {
  if (normal) return {true, attributes.f("mean"), attributes.f("scale"), std::nan("")};
  const double low = attributes.f("low"), high = attributes.f("high");
  return {false, low, high - low, high - low > 0 ? high : std::nan("")};
}

Status check_dropout_ratio(double ratio) {
  if (ratio >= 0 && ratio < 1) return {};
  return invalid("ratio is " + std::to_string(ratio) + ", expected a number in [0, 1)");
}

}  // namespace heddle::operators
