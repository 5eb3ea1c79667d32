// JPEG pictures, with libjpeg-turbo: the accurate inverse transform and smooth upsampling of colours, both its defaults, as ONNX's
// ImageDecoder asks for.
#pragma once

#include "codec/encoded_picture.h"

namespace heddle::pictures {

// Sets the stored height and width, and the orientation.
Status read_jpeg_header(const EncodedPicture& picture, PictureHeader* header);
// Writes the pixels as they are stored.
Status decode_jpeg(const EncodedPicture& picture, const PictureHeader& header, PixelFormat format, uint8_t* pixels);

}  // namespace heddle::pictures
