// ImageDecoder: the pixels of a JPEG or PNG file.
#include <algorithm>
#include <string>

#include "codec/encoded_picture.h"
#include "image_operators.h"

namespace heddle::image {
namespace {

using pictures::EncodedPicture;
using pictures::PixelFormat;

struct Format {
  explicit Format(const Attributes& attributes) : name(attributes.s("pixel_format")) {
    value = name == "BGR" ? PixelFormat::bgr : name == "Grayscale" ? PixelFormat::grayscale : PixelFormat::rgb;
  }
  Status status() const {
    if (name == "RGB" || name == "BGR" || name == "Grayscale") return {};
    return invalid("pixel_format is \"" + name + "\", expected RGB, BGR or Grayscale");
  }
  std::string name;
  PixelFormat value = PixelFormat::rgb;
};

EncodedPicture encoded(const heddle_tensor& stream) {
  return {static_cast<const unsigned char*>(stream.data), static_cast<size_t>(stream.element_count)};
}

Status infer_decoder(InferContext& context) {
  const Format format(context.attributes);
  HEDDLE_PLUGIN_CHECK(format.status());
  const Dims stream = context.dims(0);
  if (stream.rank != 1) return invalid("encoded_stream has " + std::to_string(stream.rank) + " dims, expected the bytes of a file");
  if (!context.known(0)) return context.set_dynamic(0, 3), Status();
  pictures::PictureHeader header;
  HEDDLE_PLUGIN_CHECK(read_header(encoded(context.input(0)), &header));
  context.set_dims(0, {header.height, header.width, channels_of(format.value)});
  return {};
}

Status decode_image(In<uint8_t> stream, const Format& format, Out<uint8_t> image, const RunContext& context) {
  const EncodedPicture picture = encoded(*stream.tensor);
  pictures::PictureHeader header;
  HEDDLE_PLUGIN_CHECK(read_header(picture, &header));
  const int64_t dims[] = {header.height, header.width, channels_of(format.value)};
  if ((image.tensor->flags & HEDDLE_TENSOR_DYNAMIC) == 0) {
    if (!std::equal(dims, dims + 3, image.tensor->dims))
      return invalid("the picture has " + std::to_string(dims[0]) + " x " + std::to_string(dims[1]) +
                     " pixels now: prepare again with this content");
    return decode(picture, header, format.value, image.data);
  }
  void* const pixels = allocate_output(context, 0, {dims, 3});
  if (!pixels) return {HEDDLE_ERROR_OUT_OF_MEMORY, "no memory for a picture of " + std::to_string(header.pixels()) + " pixels"};
  return decode(picture, header, format.value, static_cast<uint8_t*>(pixels));
}

}  // namespace

void add_image_decoder(Builder& plugin) {
  plugin.add(Op("ImageDecoder", "", 20)
                 .doc("Decodes a JPEG or PNG file to pixels, upright (EXIF's orientation is applied) and without transparency. A file that "
                      "is damaged or cut off is an error.")
                 .shapes("image is [height, width, channels]")
                 .in("encoded_stream", dtypes<uint8_t>(), nullptr)
                 .not_differentiable()
                 .out_as("image", HEDDLE_U8)
                 .attribute("pixel_format", "RGB")
                 .infer(infer_decoder)
                 .cpu<decode_image>()
                 .kernel_flags(HEDDLE_KERNEL_DYNAMIC_OUTPUTS)
                 // Two grey pixels, as a PNG file.
                 .example("u8[68] = 137 80 78 71 13 10 26 10 0 0 0 13 73 72 68 82 0 0 0 2 0 0 0 1 8 0 0 0 0 209 73 32 86 0 0 0 11 73 68 65 "
                          "84 120 218 99 224 58 1 0 0 223 0 211 216 133 210 174 0 0 0 0 73 69 78 68 174 66 96 130; "
                          "pixel_format=\"Grayscale\" -> u8[1,2,1] = 10 200",
                          "by hand"));
}

}  // namespace heddle::image
