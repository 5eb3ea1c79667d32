// Seeded weights: the same bytes on every machine, and for a tensor the same whatever other tensors a net has.
//
// Numbers are uniform: k / 2^24 from the upper bits of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), seeded by the seed and the FNV-1a
// hash of the tensor's name. Every operation is exact or rounds once, so no compiler or library can change a bit.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "net/net.h"

namespace heddle::models {

// f32 of `shape`, uniform in [least, most).
std::shared_ptr<const Blob> uniform(const std::string& name, const Shape& shape, float least, float most, uint64_t seed);

// f32 of `shape`, uniform with mean 0 and the standard deviation given.
std::shared_ptr<const Blob> spread(const std::string& name, const Shape& shape, float deviation, uint64_t seed);

}  // namespace heddle::models
