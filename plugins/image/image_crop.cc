// ImageCrop: a part of a picture.
#include <cmath>
#include <string>

#include "image_operators.h"
#include "pixels/crop.h"

namespace heddle::image {
namespace {

struct Size {
  explicit Size(const Attributes& attributes) : read(read_size(attributes, "size", &height, &width)) {}
  Status status() const { return read; }
  int64_t height = 0, width = 0;
  Status read;  // after them: it sets them
};

Status fits(const Size& size, Dims from) {
  if (from[0] >= size.height && from[1] >= size.width) return {};
  return invalid("the picture has " + std::to_string(from[0]) + " x " + std::to_string(from[1]) + " pixels, fewer than the part of " +
                 std::to_string(size.height) + " x " + std::to_string(size.width));
}

Status infer_crop(InferContext& context) {
  const Dims from = context.dims(0);
  HEDDLE_PLUGIN_CHECK(check_picture(from));
  const Size size(context.attributes);
  HEDDLE_PLUGIN_CHECK(size.status());
  HEDDLE_PLUGIN_CHECK(fits(size, from));
  if (context.has_input(1) && context.input(1).element_count != 2) return invalid("position is to be two numbers, down and across");
  context.set_dims(0, {size.height, size.width, from[2]});
  return {};
}

Status crop_image(In<uint8_t> image, OptionalIn<float> position, const Size& size, Out<uint8_t> part) {
  const Pixels from = pixels_of(*image.tensor);
  int64_t top = pictures::begin_of_middle(from.height, size.height), left = pictures::begin_of_middle(from.width, size.width);
  if (position) {
    if (!(position[0] >= 0 && position[0] <= 1 && position[1] >= 0 && position[1] <= 1))
      return invalid("position is " + std::to_string(position[0]) + ", " + std::to_string(position[1]) + ", expected numbers from 0 to 1");
    top = pictures::begin_of_part(from.height, size.height, static_cast<double>(position[0]));
    left = pictures::begin_of_part(from.width, size.width, static_cast<double>(position[1]));
  }
  pictures::crop(from, top, left, size.height, size.width, part.data);
  return {};
}

}  // namespace

void add_image_crop(Builder& plugin) {
  plugin.add(Op("ImageCrop", "heddle")
                 .doc("Cuts a part of the size `size` out of a picture. position says where, down and across, each from 0 at the top or "
                      "left to 1: all places are equally likely if it is uniformly random. Without it the part is the middle.")
                 .shapes("part is [size[0], size[1], channels]")
                 .in("image", dtypes<uint8_t>(), nullptr)
                 .not_differentiable()
                 .optional("position", dtypes<float>(), nullptr)
                 .not_differentiable()
                 .out_as("part", HEDDLE_U8)
                 .required("size", HEDDLE_ATTRIBUTE_INTS)
                 .infer(infer_crop)
                 .cpu<crop_image>()
                 .example("u8[3,3,1] = 1 2 3 4 5 6 7 8 9; size=[1,3] -> u8[1,3,1] = 4 5 6", "torchvision")
                 .example("u8[3,3,1] = 1 2 3 4 5 6 7 8 9, f32[2] = 0 0.9; size=[2,2] -> u8[2,2,1] = 2 3 5 6", "by hand"));
}

}  // namespace heddle::image
