// ImageResize: a picture of another size.
#include <algorithm>
#include <string>

#include "image_operators.h"
#include "pixels/resize.h"

namespace heddle::image {
namespace {

// Finds the size of the result.
Status find_size(const Attributes& attributes, Dims from, int64_t* height, int64_t* width) {
  const int64_t shorter = attributes.i("shorter");
  if (attributes.has("size")) {
    if (attributes.has("shorter")) return invalid("size and shorter are both given, expected one of them");
    return read_size(attributes, "size", height, width);
  }
  if (shorter < 1 || shorter > INT32_MAX) return invalid("expected size, height and width, or shorter, an extent of at least 1");
  // The longer side is rounded down, as torchvision's Resize has it.
  const int64_t least = std::min(from[0], from[1]);
  if (least < 1) return invalid("the picture has no pixels");
  int64_t scaled = 0;
  if (__builtin_mul_overflow(shorter, std::max(from[0], from[1]), &scaled)) return invalid("the picture is too large");
  *height = from[0] <= from[1] ? shorter : scaled / least;
  *width = from[0] <= from[1] ? scaled / least : shorter;
  return {};
}

Status infer_resize(InferContext& context) {
  const Dims from = context.dims(0);
  HEDDLE_PLUGIN_CHECK(check_picture(from));
  int64_t height = 0, width = 0;
  HEDDLE_PLUGIN_CHECK(find_size(context.attributes, from, &height, &width));
  if (from[0] < 1 || from[1] < 1) return invalid("the picture has no pixels");
  context.set_dims(0, {height, width, from[2]});
  return {};
}

class Resize {
 public:
  Status prepare(PrepareContext& context) {
    const heddle_tensor &from = *context.input(0), &to = *context.output(0);
    const auto height = static_cast<double>(from.dims[0]), width = static_cast<double>(from.dims[1]);
    plan_.plan(from.dims[0], from.dims[1], {0, 0, height, width}, to.dims[0], to.dims[1]);
    tiles_ = Tiles::of(to.dims[0], rows_of_tile(to.dims[1] * to.dims[2]));
    context.set_tiles(tiles_.count());
    context.set_scratch(0, static_cast<uint64_t>(plan_.memory_bytes(tiles_.grain(), from.dims[2])));
    context.set_cost_ns(100 + 2 * static_cast<double>(from.element_count + to.element_count));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    for (int64_t tile = begin; tile < end; ++tile) {
      const Tiles::Range rows = tiles_.elements(tile);
      plan_.run(pixels_of(*context.inputs[0]), rows.first, rows.last, thread_scratch<uint8_t>(context),
                static_cast<uint8_t*>(context.outputs[0]->data));
    }
    return {};
  }

 private:
  pictures::Resizing plan_;
  Tiles tiles_;
};

}  // namespace

void add_image_resize(Builder& plugin) {
  plugin.add(Op("ImageResize", "heddle")
                 .doc("Resizes a picture, bilinear with antialiasing: to the bit what Pillow's resize(BILINEAR) makes. Either size gives "
                      "height and width, or shorter gives the shorter side, and the other follows in proportion, rounded down.")
                 .shapes("resized is [height, width, channels]")
                 .in("image", dtypes<uint8_t>(), nullptr)
                 .not_differentiable()
                 .out_as("resized", HEDDLE_U8)
                 .maybe("size", HEDDLE_ATTRIBUTE_INTS)
                 .maybe("shorter", HEDDLE_ATTRIBUTE_INT)
                 .infer(infer_resize)
                 .cpu<Resize>()
                 .example("u8[2,4,1] = 0 10 20 30 40 50 60 70; size=[1,2] -> u8[1,2,1] = 27 43", "Pillow")
                 .example("u8[1,2,1] = 0 100; shorter=2 -> u8[2,4,1] = 0 25 75 100 0 25 75 100", "Pillow"));
}

}  // namespace heddle::image
