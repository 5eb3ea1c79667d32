// PNG pictures, with libpng. Of 16 bits the high ones are kept; what is said of gamma and colour profiles is not applied.
#pragma once

#include "codec/encoded_picture.h"

namespace heddle::pictures {

// Sets the stored height and width, and the orientation.
Status read_png_header(const EncodedPicture& picture, PictureHeader* header);
Status decode_png(const EncodedPicture& picture, const PictureHeader& header, PixelFormat format, uint8_t* pixels);

}  // namespace heddle::pictures
