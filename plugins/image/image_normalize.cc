// ImageNormalize: a picture as the numbers that nets compute with.
#include <cmath>
#include <string>
#include <vector>

#include "image_operators.h"
#include "pixels/normalize.h"

namespace heddle::image {
namespace {

struct Numbers {
  explicit Numbers(const Attributes& attributes) : scale(static_cast<float>(attributes.f("scale"))) {
    for (const auto mean : attributes.floats("mean")) means.push_back(static_cast<float>(mean));
    for (const auto deviation : attributes.floats("deviation")) deviations.push_back(static_cast<float>(deviation));
    if (means.empty()) means.assign(std::max<size_t>(1, deviations.size()), 0.0f);
    if (deviations.empty()) deviations.assign(means.size(), 1.0f);
  }
  Status status() const {
    if (means.size() != deviations.size())
      return invalid("mean has " + std::to_string(means.size()) + " numbers, deviation " + std::to_string(deviations.size()));
    for (const float deviation : deviations)
      if (!(deviation > 0)) return invalid("a deviation is " + std::to_string(deviation) + ", expected more than 0");
    return {};
  }
  float scale;
  std::vector<float> means, deviations;
};

Status infer_normalize(InferContext& context) {
  const Dims from = context.dims(0);
  HEDDLE_PLUGIN_CHECK(check_picture(from));
  const Numbers numbers(context.attributes);
  HEDDLE_PLUGIN_CHECK(numbers.status());
  const auto count = static_cast<int64_t>(numbers.means.size());
  if (count != 1 && count != from[2])
    return invalid("there are means for " + std::to_string(count) + " channels, and the picture has " + std::to_string(from[2]));
  context.set_dims(0, {from[2], from[0], from[1]});
  return {};
}

class Normalize {
 public:
  Status create(const CreateContext& context) {
    const Numbers numbers(context.attributes);
    HEDDLE_PLUGIN_CHECK(numbers.status());
    table_ = pictures::Normalization(numbers.scale, numbers.means, numbers.deviations);
    return {};
  }
  Status prepare(PrepareContext& context) {
    const heddle_tensor& from = *context.input(0);
    tiles_ = Tiles::of(from.dims[0], rows_of_tile(from.dims[1] * from.dims[2] * 4));
    context.set_tiles(tiles_.count());
    context.set_cost_ns(30 + static_cast<double>(from.element_count));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const Tiles::Range rows = tiles_.elements(begin, end);
    table_.write(pixels_of(*context.inputs[0]), rows.first, rows.last, static_cast<float*>(context.outputs[0]->data));
    return {};
  }

 private:
  pictures::Normalization table_;
  Tiles tiles_;
};

}  // namespace

void add_image_normalize(Builder& plugin) {
  plugin.add(
      Op("ImageNormalize", "heddle")
          .doc("Turns a picture into f32 numbers with the channels first. mean and deviation hold a number for each channel, or one for "
               "all; without them they are 0 and 1.")
          .formula("numbers = (image scale - mean) / deviation")
          .shapes("[height, width, channels] becomes [channels, height, width]")
          .in("image", dtypes<uint8_t>(), nullptr)
          .not_differentiable()
          .out_as("numbers", HEDDLE_F32)
          .attribute("scale", 1.0 / 255)
          .maybe("mean", HEDDLE_ATTRIBUTE_FLOATS)
          .maybe("deviation", HEDDLE_ATTRIBUTE_FLOATS)
          .infer(infer_normalize)
          .cpu<Normalize>()
          .example("u8[1,2,2] = 0 1 2 3; scale=1.0, mean=[1.0,0.0], deviation=[2.0,4.0] -> f32[2,1,2] = -0.5 0.5 0.25 0.75", "by hand"));
}

}  // namespace heddle::image
