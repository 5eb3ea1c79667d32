// Convolutions and transposed convolutions by oneDNN: a primitive per tile shape, weights packed once per packed layout and part of
// the output channels.
//
// A residual is added by the sum post-op, which adds what the output already holds: the tile is copied there first unless the runtime
// let the output take the residual's bytes. (The binary post-op needs no copy but loses the fast NHWC kernels.) Both ways give the same
// bits, so memory sharing changes no result.
#include <cstring>

#include "conv/conv_algorithm.h"
#include "onednn/onednn_guard.h"

namespace heddle::cpu {
namespace {

using namespace onednn;

std::vector<int64_t> tensor_dims(int64_t images, int64_t channels, const int64_t* extents, int spatial) {
  std::vector<int64_t> dims = {images, channels};
  dims.insert(dims.end(), extents, extents + spatial);
  return dims;
}

// The logical dims of the weights as oneDNN expects them: [groups,] outputs, inputs, kernel; `strides` describe how the net stores them.
void weight_dims(const ConvProblem& problem, std::vector<int64_t>* dims, std::vector<int64_t>* strides) {
  const int64_t outputs = problem.output_channels / problem.groups, inputs = problem.input_channels / problem.groups;
  const int64_t taps = problem.window.kernel_count();
  *dims = {outputs, inputs};
  *strides = problem.transposed ? std::vector<int64_t>{taps, outputs * taps} : std::vector<int64_t>{inputs * taps, taps};
  if (problem.groups > 1) {
    dims->insert(dims->begin(), problem.groups);
    strides->insert(strides->begin(), outputs * inputs * taps);
  }
  int64_t stride = taps;
  for (int i = 0; i < problem.window.spatial; ++i) {
    dims->push_back(problem.window.kernel[i]);
    stride /= problem.window.kernel[i];
    strides->push_back(stride);
  }
}

// One distinct packed form of the weights of a part of the output channels.
struct PackedWeights {
  size_t part = 0;
  MemoryDesc desc;
  const void* constant = nullptr;  // prepacked, owned by the host
  Call pack;                       // else: the reorder each tile runs into its scratch
};

struct TilePrimitive {
  GuardedCall call;
  FusedEpilogue fused;
  std::vector<size_t> weights;  // index of the packed form, by part of the output channels
};

class OnednnConv : public ConvAlgorithm {
 public:
  Status build(const ConvRequest& request, PrepareContext& context);
  Status run_tile(const ConvTile& tile, const ConvBuffers& buffers, size_t* epilogue_ops) const override;

 private:
  struct Layouts {
    MemoryDesc x, weights, bias, y, per_channel, scalar;
  };
  static Status describe_tile(const ConvProblem& problem, const ConvTileShape& shape, Layouts* layouts);
  static Status create_desc(const ConvProblem& problem, const ConvTileShape& shape, const Layouts& layouts, const PostOps& post_ops,
                            PrimitiveDesc* desc);
  struct Choice {
    Layouts layouts = {};
    PrimitiveDesc desc;
    FusedEpilogue fused;
    PrimitiveDesc nan_safe;  // without the epilogue ops that drop a NaN
  };
  // The primitive descriptor with as many of the first `limit` epilogue ops as oneDNN has a fast implementation for.
  Status choose(const ConvRequest& request, const ConvTileShape& shape, size_t limit, Choice* choice) const;
  // Chooses the same primitive for when a NaN is met; *same is false when oneDNN would compute that one in another way.
  Status choose_nan_safe(const ConvRequest& request, const ConvTileShape& shape, Choice* choice, bool* same) const;
  Status add_primitive(const ConvRequest& request, Choice choice, PrepareContext& context);
  Status find_packed(const ConvRequest& request, size_t part, const MemoryDesc& wanted, PrepareContext& context, size_t* index);
  int64_t weights_before(size_t part) const {
    return static_cast<int64_t>(part) * problem_.output_channels * problem_.input_channels * problem_.window.kernel_count();
  }

  ConvProblem problem_;  // of one tile: with a part of the output channels
  std::vector<std::unique_ptr<TilePrimitive>> primitives_;
  std::vector<std::unique_ptr<PackedWeights>> packed_;
  uint64_t primitive_scratch_ = 0, pack_scratch_ = 0, packed_bytes_ = 0;
};

Status OnednnConv::describe_tile(const ConvProblem& problem, const ConvTileShape& shape, Layouts* layouts) {
  const int spatial = problem.window.spatial;
  std::vector<int64_t> weights, strides;
  weight_dims(problem, &weights, &strides);
  HEDDLE_PLUGIN_CHECK(describe_channels_last(tensor_dims(shape.images, problem.input_channels, shape.input, spatial), &layouts->x));
  HEDDLE_PLUGIN_CHECK(describe_channels_last(tensor_dims(shape.images, problem.output_channels, shape.output, spatial), &layouts->y));
  HEDDLE_PLUGIN_CHECK(describe_any(weights, &layouts->weights));
  HEDDLE_PLUGIN_CHECK(describe({problem.output_channels}, {}, &layouts->bias));
  const int64_t ones[max_spatial] = {1, 1, 1};
  HEDDLE_PLUGIN_CHECK(describe(tensor_dims(1, problem.output_channels, ones, spatial), {}, &layouts->per_channel));
  return describe(tensor_dims(1, 1, ones, spatial), {}, &layouts->scalar);
}

Status OnednnConv::create_desc(const ConvProblem& problem, const ConvTileShape& shape, const Layouts& layouts, const PostOps& post_ops,
                               PrimitiveDesc* desc) {
  int64_t dilation[max_spatial];
  for (int i = 0; i < max_spatial; ++i) dilation[i] = problem.window.dilation[i] - 1;
  const ConvolutionOperation operation = {
      .kind = problem.transposed ? ConvolutionOperation::Kind::transposed : ConvolutionOperation::Kind::forward,
      .x = &layouts.x,
      .weights = &layouts.weights,
      .bias = problem.has_bias ? &layouts.bias : nullptr,
      .y = &layouts.y,
      .stride = problem.window.stride,
      .dilation = dilation,
      .pad_begin = shape.pad_begin,
      .pad_end = shape.pad_end};
  return desc->create(operation, &post_ops);
}

Status OnednnConv::choose(const ConvRequest& request, const ConvTileShape& shape, size_t limit, Choice* choice) const {
  HEDDLE_PLUGIN_CHECK(describe_tile(problem_, shape, &choice->layouts));
  OperandLayouts operands;
  operands.same_shape = &choice->layouts.y;
  operands.per_column = &choice->layouts.per_channel;
  operands.scalar = &choice->layouts.scalar;
  operands.add_by_sum = true;
  for (;;) {
    FusedEpilogue& fused = choice->fused;
    fused = FusedEpilogue();
    HEDDLE_PLUGIN_CHECK(
        fuse_epilogue_ops(*request.epilogue, request.first_epilogue_op, request.first_epilogue_op + limit, operands, &fused));
    Status status = create_desc(problem_, shape, choice->layouts, fused.post_ops, &choice->desc);
    if (status.ok() && (fused.count == 0 || !(choice->desc.is_reference() || choice->desc.is_product_of_columns()))) {
      if (!drops_nan(fused)) return {};
      bool same = false;
      HEDDLE_PLUGIN_CHECK(choose_nan_safe(request, shape, choice, &same));
      if (same) return {};
      limit = fused.nan_safe;
      continue;
    }
    if (fused.count == 0) return status;
    limit = fused.count - 1;
  }
}

Status OnednnConv::choose_nan_safe(const ConvRequest& request, const ConvTileShape& shape, Choice* choice, bool* same) const {
  Layouts layouts = choice->layouts;
  layouts.weights = choice->desc.query(dnnl_query_weights_md);
  OperandLayouts operands;  // of the epilogue ops that are left; none has an operand of the output's shape
  operands.per_column = &layouts.per_channel;
  operands.scalar = &layouts.scalar;
  FusedEpilogue kept;
  HEDDLE_PLUGIN_CHECK(
      fuse_epilogue_ops(*request.epilogue, request.first_epilogue_op, request.first_epilogue_op + choice->fused.nan_safe, operands, &kept));
  const Status status = create_desc(problem_, shape, layouts, kept.post_ops, &choice->nan_safe);
  *same = status.ok() && choice->nan_safe.implementation() == choice->desc.implementation();
  return {};
}

Status OnednnConv::find_packed(const ConvRequest& request, size_t part, const MemoryDesc& wanted, PrepareContext& context, size_t* index) {
  const std::string key = key_of(wanted);
  for (*index = 0; *index < packed_.size(); ++*index)
    if (packed_[*index]->part == part && key_of(packed_[*index]->desc) == key) return {};
  auto packed = std::make_unique<PackedWeights>();
  packed->part = part;
  packed->desc = wanted;
  std::vector<int64_t> dims, strides;
  weight_dims(problem_, &dims, &strides);
  MemoryDesc plain;
  HEDDLE_PLUGIN_CHECK(describe(dims, strides, &plain));
  if (request.constant_weights) {
    Status packing;
    const std::string of_part = request.packed_as + std::string(problem_.transposed ? "deconv," : "conv,") + std::to_string(request.dtype) +
                                "," + std::to_string(part) + "," + key;
    packed->constant = context.prepack(1, of_part, bytes_of(wanted), [&](void* target) {
      packing = copy_once(plain, request.weights + weights_before(part), wanted, target);
    });
    HEDDLE_PLUGIN_CHECK(packing);
    if (!packed->constant) return {HEDDLE_ERROR_OUT_OF_MEMORY, "no memory for packed weights"};
  } else {
    PrimitiveDesc reorder;
    HEDDLE_PLUGIN_CHECK(reorder.create_reorder(plain, wanted));
    pack_scratch_ = std::max(pack_scratch_, reorder.scratch_bytes());
    packed_bytes_ = std::max(packed_bytes_, bytes_of(wanted));
    HEDDLE_PLUGIN_CHECK(packed->pack.create(
        reorder, {{DNNL_ARG_FROM, plain}, {DNNL_ARG_TO, wanted}, {DNNL_ARG_SCRATCHPAD, reorder.query(dnnl_query_scratchpad_md)}},
        request.threads));
  }
  packed_.push_back(std::move(packed));
  return {};
}

Status OnednnConv::add_primitive(const ConvRequest& request, Choice choice, PrepareContext& context) {
  auto primitive = std::make_unique<TilePrimitive>();
  const MemoryDesc weights = choice.desc.query(dnnl_query_weights_md);
  primitive->weights.resize(static_cast<size_t>(request.tiling.channel_parts));
  for (size_t part = 0; part < primitive->weights.size(); ++part)
    HEDDLE_PLUGIN_CHECK(find_packed(request, part, weights, context, &primitive->weights[part]));
  std::vector<Argument> arguments = {{DNNL_ARG_SRC, choice.layouts.x},
                                     {DNNL_ARG_WEIGHTS, weights},
                                     {DNNL_ARG_DST, choice.layouts.y},
                                     {DNNL_ARG_SCRATCHPAD, choice.desc.query(dnnl_query_scratchpad_md)}};
  if (problem_.has_bias) arguments.push_back({DNNL_ARG_BIAS, choice.layouts.bias});
  arguments.insert(arguments.end(), choice.fused.arguments.begin(), choice.fused.arguments.end());
  primitive_scratch_ = std::max(primitive_scratch_, choice.desc.scratch_bytes());
  if (drops_nan(choice.fused)) primitive_scratch_ = std::max(primitive_scratch_, choice.nan_safe.scratch_bytes());
  const uint32_t threads = std::min<uint32_t>(request.threads, static_cast<uint32_t>(request.tiling.tiles.size()));
  HEDDLE_PLUGIN_CHECK(primitive->call.create(choice.desc, choice.fused, std::move(arguments), std::move(choice.nan_safe), threads));
  primitive->fused = std::move(choice.fused);
  primitives_.push_back(std::move(primitive));
  return {};
}

Status OnednnConv::build(const ConvRequest& request, PrepareContext& context) {
  const SerialSection serial;
  problem_ = request.problem;
  problem_.output_channels /= request.tiling.channel_parts;
  // All tiles apply the same epilogue ops by the same means, or results would differ at their borders. After the post-ops of a transposed
  // convolution oneDNN adds to zero, which loses the sign of a zero: none are fused there.
  size_t epilogue_ops = problem_.transposed ? 0 : request.epilogue->size() - request.first_epilogue_op;
  std::vector<Choice> choices(request.tiling.shapes.size());
  for (size_t i = 0; i < choices.size(); ++i) {
    choices[i] = Choice();
    HEDDLE_PLUGIN_CHECK(choose(request, request.tiling.shapes[i], epilogue_ops, &choices[i]));
    if (choices[i].fused.count == epilogue_ops) continue;
    epilogue_ops = choices[i].fused.count;
    if (i > 0) i = static_cast<size_t>(-1);  // again from the first shape
  }
  if (!choices.empty()) in_place_epilogue_op_ = choices[0].fused.sum_epilogue_op;
  for (Choice& choice : choices) HEDDLE_PLUGIN_CHECK(add_primitive(request, std::move(choice), context));
  scratch_bytes_ = aligned(std::max(primitive_scratch_, pack_scratch_)) + aligned(packed_bytes_);
  return {};
}

Status OnednnConv::run_tile(const ConvTile& tile, const ConvBuffers& buffers, size_t* epilogue_ops) const {
  const TilePrimitive& primitive = *primitives_[tile.shape];
  const PackedWeights& packed = *packed_[primitive.weights[tile.channel_part]];
  const void* weights = packed.constant;
  if (!weights) {
    weights = static_cast<char*>(buffers.scratch) + aligned(std::max(primitive_scratch_, pack_scratch_));
    const size_t form = primitive.weights[tile.channel_part] + 1;
    if (*buffers.packed_in_scratch != form)
      HEDDLE_PLUGIN_CHECK(packed.pack.run({buffers.weights + weights_before(tile.channel_part), weights, buffers.scratch}));
    *buffers.packed_in_scratch = form;
  }
  Call::Pointers pointers = {buffers.x, weights, buffers.y, buffers.scratch};
  size_t count = 4;
  if (problem_.has_bias) pointers[count++] = buffers.bias;
  for (size_t epilogue_op : primitive.fused.epilogue_op_indices) pointers[count++] = buffers.operands[epilogue_op];
  if (primitive.fused.sum_epilogue_op >= 0) {
    const float* residual = buffers.operands[primitive.fused.sum_epilogue_op];
    const size_t bytes = static_cast<size_t>(tile.output_count * problem_.output_channels) * sizeof(float);
    if (residual != buffers.y) std::memcpy(buffers.y, residual, bytes);
  }
  return primitive.call.run(pointers, epilogue_ops);
}

}  // namespace

Status make_onednn_conv(const ConvRequest& request, PrepareContext& context, std::unique_ptr<ConvAlgorithm>* algorithm) {
  auto conv = std::make_unique<OnednnConv>();
  HEDDLE_PLUGIN_CHECK(conv->build(request, context));
  *algorithm = std::move(conv);
  return {};
}

}  // namespace heddle::cpu
