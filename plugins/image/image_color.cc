// ImageColor: a picture with other brightness, contrast and saturation.
#include <cmath>
#include <string>

#include "image_operators.h"
#include "pixels/color.h"

namespace heddle::image {
namespace {

Status infer_color(InferContext& context) {
  const Dims from = context.dims(0);
  HEDDLE_PLUGIN_CHECK(check_picture(from));
  if (from[2] != 3) return invalid("image has " + std::to_string(from[2]) + " channels, expected red, green and blue");
  if (context.input(1).element_count != 3) return invalid("factors is to be three numbers, for brightness, contrast and saturation");
  context.set_dims(0, from);
  return {};
}

Status change_image(In<uint8_t> image, In<float> factors, Out<uint8_t> changed) {
  for (int i = 0; i < 3; ++i)
    if (!(factors[i] >= 0) || std::isinf(factors[i]))
      return invalid("factor " + std::to_string(i) + " is " + std::to_string(factors[i]) + ", expected a number of at least 0");
  pictures::change_colors(pixels_of(*image.tensor), {factors[0], factors[1], factors[2]}, changed.data);
  return {};
}

}  // namespace

void add_image_color(Builder& plugin) {
  plugin.add(Op("ImageColor", "heddle")
                 .doc("Changes the colours of a picture: factors holds those of brightness, contrast and saturation; 1 changes nothing, 0 "
                      "makes the picture black, uniformly grey, or grey. The result is to the bit that of Pillow's ImageEnhance, and of "
                      "torchvision's ColorJitter with it.")
                 .shapes("changed has the dims of image")
                 .in("image", dtypes<uint8_t>(), nullptr)
                 .not_differentiable()
                 .in("factors", dtypes<float>(), nullptr)
                 .not_differentiable()
                 .out_as("changed", HEDDLE_U8)
                 .infer(infer_color)
                 .cpu<change_image>()
                 .example("u8[1,2,3] = 100 50 0 200 220 250, f32[3] = 1.5 1 1 -> u8[1,2,3] = 150 75 0 255 255 255", "Pillow"));
}

}  // namespace heddle::image
