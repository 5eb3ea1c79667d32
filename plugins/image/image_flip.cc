// ImageFlip: a picture with left and right exchanged.
#include <cstring>

#include "image_operators.h"
#include "pixels/crop.h"

namespace heddle::image {
namespace {

Status infer_flip(InferContext& context) {
  HEDDLE_PLUGIN_CHECK(check_picture(context.dims(0)));
  if (context.has_input(1) && context.input(1).element_count != 1) return invalid("decision is to be one value");
  context.set_dims(0, context.dims(0));
  return {};
}

Status flip_image(In<uint8_t> image, OptionalIn<bool> decision, Out<uint8_t> flipped) {
  if (decision && !decision[0]) {
    if (image.size > 0) std::memcpy(flipped.data, image.data, static_cast<size_t>(image.size));
    return {};
  }
  pictures::mirror(pixels_of(*image.tensor), flipped.data);
  return {};
}

}  // namespace

void add_image_flip(Builder& plugin) {
  plugin.add(Op("ImageFlip", "heddle")
                 .doc("Exchanges left and right of a picture, unless decision is given and false.")
                 .shapes("flipped has the dims of image")
                 .in("image", dtypes<uint8_t>(), nullptr)
                 .not_differentiable()
                 .optional("decision", dtypes<bool>(), nullptr)
                 .not_differentiable()
                 .out_as("flipped", HEDDLE_U8)
                 .infer(infer_flip)
                 .cpu<flip_image>()
                 .example("u8[1,2,3] = 1 2 3 4 5 6 -> u8[1,2,3] = 4 5 6 1 2 3", "by hand")
                 .example("u8[1,2,3] = 1 2 3 4 5 6, bool[] = 0 -> u8[1,2,3] = 1 2 3 4 5 6", "by hand"));
}

}  // namespace heddle::image
