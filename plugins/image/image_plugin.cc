// The image plugin: operators that make tensors of picture files, on the host.
#include "image_operators.h"

HEDDLE_PLUGIN("image", "0.1.0", plugin) {
  heddle::image::add_image_decoder(plugin);
  heddle::image::add_image_resize(plugin);
  heddle::image::add_image_crop(plugin);
  heddle::image::add_image_flip(plugin);
  heddle::image::add_image_color(plugin);
  heddle::image::add_image_normalize(plugin);
}
