// The orientation of the camera that a picture's EXIF data record, so that the picture is shown upright.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::pictures {

// Returns the orientation in a JPEG's APP1 segment without its length: 1 to 8 (EXIF 2.3, tag 0x0112); 1, stored upright, where it has none
// or is malformed.
int exif_orientation(const unsigned char* segment, size_t size);

// Writes pixels that are stored in an orientation upright, row by row. The extents are the upright ones: orientations 5 to 8 exchange them.
void turn_upright(int orientation, const uint8_t* stored, int64_t channels, int64_t height, int64_t width, uint8_t* upright);

}  // namespace heddle::pictures
