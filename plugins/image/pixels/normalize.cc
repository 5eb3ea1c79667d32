#include "pixels/normalize.h"

#include <algorithm>

namespace heddle::pictures {

Normalization::Normalization(float scale, const std::vector<float>& means, const std::vector<float>& deviations) : tables_(means.size()) {
  for (size_t c = 0; c < means.size(); ++c)
    for (size_t byte = 0; byte < 256; ++byte) tables_[c][byte] = (static_cast<float>(byte) * scale - means[c]) / deviations[c];
}

void Normalization::write(const Pixels& from, int64_t first, int64_t last, float* to) const {
  for (int64_t c = 0; c < from.channels; ++c) {
    const std::array<float, 256>& table = tables_[tables_.size() == 1 ? 0 : static_cast<size_t>(c)];
    const uint8_t* byte = from.data + first * from.row_bytes() + c;
    float* number = to + (c * from.height + first) * from.width;
    for (int64_t i = (last - first) * from.width; i > 0; --i, byte += from.channels) *number++ = table[*byte];
  }
}

}  // namespace heddle::pictures
