// DepthToSpace and SpaceToDepth: blocks of channels against blocks of pixels, [N, C, H, W], in row-major or channels-last order.
#include "families.h"
#include "shared/dense_layouts.h"
#include "shared/movement/boxes.h"
#include "support/copy_kernel.h"
#include "support/cpu_api.h"
#include "support/gradients.h"

namespace heddle::cpu {
namespace {

Status block_size(const InferContext& context, int64_t* block) {
  if (context.dims(0).rank != 4) return invalid("input has shape " + dims_text(context.dims(0)) + ", expected four dimensions");
  *block = context.attributes.i("blocksize");
  if (*block < 1 || *block > INT32_MAX) return invalid("blocksize is " + std::to_string(*block) + ", expected 1 or more");
  return {};
}

Status infer_depth_to_space(InferContext& context) {
  int64_t block = 0;
  HEDDLE_PLUGIN_CHECK(block_size(context, &block));
  const Dims x = context.dims(0);
  const std::string mode = context.attributes.s("mode");
  if (mode != "DCR" && mode != "CRD") return invalid("mode is \"" + mode + "\", expected DCR or CRD");
  if (x[1] % (block * block)) return invalid(std::to_string(x[1]) + " channels do not divide by blocksize squared");
  std::vector<int64_t> dims = {x[0], x[1] / (block * block), 0, 0};
  if (__builtin_mul_overflow(x[2], block, &dims[2]) || __builtin_mul_overflow(x[3], block, &dims[3]))
    return invalid("the output extents overflow");
  context.set_dims(0, dims);
  return {};
}

Status infer_space_to_depth(InferContext& context) {
  int64_t block = 0;
  HEDDLE_PLUGIN_CHECK(block_size(context, &block));
  const Dims x = context.dims(0);
  if (x[2] % block || x[3] % block) return invalid("height and width of " + dims_text(x) + " do not divide by blocksize");
  int64_t channels = 0;
  if (__builtin_mul_overflow(x[1], block * block, &channels)) return invalid("the output extents overflow");
  context.set_dims(0, std::vector<int64_t>{x[0], channels, x[2] / block, x[3] / block});
  return {};
}

template <bool to_space>
class Blocks : public CopyKernel {
 public:
  Status create(const CreateContext& context) {
    block_ = context.attributes.i("blocksize");
    channel_first_ = to_space && context.attributes.s("mode") == "CRD";
    return {};
  }
  Status prepare(PrepareContext& context) {
    const heddle_tensor& y = *context.output(0);
    copy_ = StridedCopy(blocks_box(*context.input(0), y, to_space, block_, channel_first_));
    tiling_.plan(context, 2 * static_cast<int64_t>(y.byte_size), 2.0);
    return {};
  }
  static std::vector<heddle_format> formats(const CreateContext& context) { return uniform_formats(context, 1, 1); }

 private:
  int64_t block_ = 1;
  bool channel_first_ = false;
};

// SpaceToDepth puts channels last, as DCR has them; where they come first (CRD) they are moved there.
Status depth_to_space_gradient(GradientContext& g) {
  const int64_t block = g.attributes().i("blocksize");
  if (g.attributes().s("mode") == "DCR") {
    g.give(0, g.emit("SpaceToDepth", {g.dy(0)}, {{"blocksize", block}}));
    return {};
  }
  // [N, C, H block, W block] as [N, C, H, block, W, block].
  const GradientValue shape = shape_of(g, g.x(0));
  const GradientValue numbers =
      g.emit("Concat", {shape, g.emit("Shape", {g.y(0)}, {{"start", 1}, {"end", 2}}), g.ints({block})}, {{"axis", 0}});
  const GradientValue apart = reshape(g, g.dy(0), g.emit("Gather", {numbers, g.ints({0, 4, 2, 5, 3, 5})}));
  g.give(0, reshape(g, g.emit("Transpose", {apart}, {{"perm", std::vector<int64_t>{0, 1, 3, 5, 2, 4}}}), shape));
  return {};
}

}  // namespace

void add_depth_to_space(Builder& plugin) {
  plugin.add(Op("DepthToSpace", "", 13)
                 .doc("Turns blocks of channels into blocks of pixels. In mode DCR the position in the block is the outer part of a "
                      "channel's number, in mode CRD the inner one.")
                 .shapes("[N, C, H, W] becomes [N, C / blocksize^2, H blocksize, W blocksize]")
                 .in("input")
                 .out("output")
                 .required("blocksize", HEDDLE_ATTRIBUTE_INT)
                 .attribute("mode", "DCR")
                 .infer(infer_depth_to_space)
                 .gradient<depth_to_space_gradient>()
                 .cpu<Blocks<true>>()
                 .example("f32[1,4,1,2] = 1 2 3 4 5 6 7 8; blocksize=2 -> f32[1,1,2,4] = 1 3 2 4 5 7 6 8", "ONNX Runtime")
                 .example("f32[1,8,1,1] = 1 2 3 4 5 6 7 8; blocksize=2, mode=\"CRD\" -> f32[1,2,2,2] = 1 2 3 4 5 6 7 8", "ONNX Runtime"));
  plugin.add(Op("SpaceToDepth", "", 13)
                 .doc("Turns blocks of pixels into channels.")
                 .shapes("[N, C, H, W] becomes [N, C blocksize^2, H / blocksize, W / blocksize]")
                 .in("input")
                 .out("output")
                 .required("blocksize", HEDDLE_ATTRIBUTE_INT)
                 .infer(infer_space_to_depth)
                 .gradient("DepthToSpace", {"doutput"}, {"dinput"})
                 .cpu<Blocks<false>>()
                 .example("f32[1,1,2,4] = 1 2 3 4 5 6 7 8; blocksize=2 -> f32[1,4,1,2] = 1 3 2 4 5 7 6 8", "ONNX Runtime"));
}

}  // namespace heddle::cpu
