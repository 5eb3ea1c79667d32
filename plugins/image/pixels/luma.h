// The grey of a colour.
#pragma once

namespace heddle::pictures {

// Returns the luma of ITU-R BT.601 of red, green and blue from 0 to 255, rounded as Pillow rounds it.
inline int luma(int red, int green, int blue) {
  return (19595 * red + 38470 * green + 7471 * blue + 0x8000) >> 16;
}

}  // namespace heddle::pictures
