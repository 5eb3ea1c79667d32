// The orientation of the camera that a picture's EXIF data record, so that the picture is shown upright.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::pictures {

// Returns the orientation that EXIF data, a TIFF file, have: 1 to 8 (EXIF 2.3, tag 0x0112); 1, stored upright, where they have none or are
// malformed.
int exif_orientation(const unsigned char* exif, size_t size);
// Returns true for a JPEG's APP1 segment, without its length, that has EXIF data: they follow exif_identifier bytes, "Exif" and two zeros.
constexpr size_t exif_identifier = 6;
bool has_exif(const unsigned char* segment, size_t size);

// Writes pixels that are stored in an orientation upright, row by row. The extents are the upright ones: orientations 5 to 8 exchange them.
void turn_upright(int orientation, const uint8_t* stored, int64_t channels, int64_t height, int64_t width, uint8_t* upright);

}  // namespace heddle::pictures
