// A JPEG or PNG picture as the input of an image net.
#pragma once

#include <memory>
#include <string>

#include "heddle/status.h"
#include "net/net.h"

namespace heddle::tool {

bool is_picture(const std::string& file);
// f32 [batch, 3, height, width] of `shape`: the shorter side scaled (bilinear) to 8/7 of the target, the centre cut out, channels red,
// green, blue normalised with ImageNet's mean and deviation, repeated over the batch. Errors: file_not_found, file_corrupt, limit_exceeded
// (over 2^28 pixels), shape_mismatch when `shape` is no such image.
Result<std::shared_ptr<const Blob>> read_picture(const std::string& file, const Shape& shape);

}  // namespace heddle::tool
