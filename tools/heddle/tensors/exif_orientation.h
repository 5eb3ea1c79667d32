// How a camera was held: the orientation that it notes in a picture's EXIF data, so that the picture is seen upright.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::tool {

// Of a JPEG's APP1 segment without its length: 1 to 8 (EXIF 2.3, tag 0x0112); 1, stored upright, where it notes none or is malformed.
int exif_orientation(const unsigned char* segment, size_t size);

// The stored pixels, RGB row by row, as a person is to see them; orientations 5 to 8 exchange width and height.
void turn_upright(int orientation, int64_t* width, int64_t* height, std::vector<uint8_t>* rgb);

}  // namespace heddle::tool
