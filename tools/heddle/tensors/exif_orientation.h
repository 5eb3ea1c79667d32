// The orientation of the camera that a picture's EXIF data record, so that the picture is shown upright.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::tool {

// Returns the orientation in a JPEG's APP1 segment without its length: 1 to 8 (EXIF 2.3, tag 0x0112); 1, stored upright, where it has none
// or is malformed.
int exif_orientation(const unsigned char* segment, size_t size);

// Rotates the stored pixels, RGB row by row, to upright; orientations 5 to 8 exchange width and height.
void turn_upright(int orientation, int64_t* width, int64_t* height, std::vector<uint8_t>* rgb);

}  // namespace heddle::tool
