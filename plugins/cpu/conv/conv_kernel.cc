// Layouts, tiles and epilogues of convolutions. See conv_kernel.h.
#include "conv/conv_kernel.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "conv/conv_gradient.h"
#include "conv/conv_spread.h"
#include "conv/depthwise.h"
#include "shared/dense_layouts.h"
#include "shared/dims.h"
#include "shared/extent_rules.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

constexpr std::initializer_list<int32_t> operand_kinds = {HEDDLE_OPERAND_NONE, HEDDLE_OPERAND_SAME_SHAPE, HEDDLE_OPERAND_PER_CHANNEL,
                                                          HEDDLE_OPERAND_SCALAR};

double flops_of(const ConvProblem& problem) {
  const Window& window = problem.window;
  const int64_t positions = problem.transposed ? window.input_count() : window.output_count();
  const int64_t inputs = problem.input_channels / problem.groups;
  return 2.0 * static_cast<double>(problem.batch) * static_cast<double>(positions) * static_cast<double>(window.kernel_count()) *
         static_cast<double>(inputs) * static_cast<double>(problem.output_channels);
}

// The number of parts into which the output channels are divided. Where the weights are larger than the pixels, tiles of pixels would each
// read all of them; divided channels read them once.
int64_t channel_parts(const ConvProblem& problem, int64_t tiles) {
  constexpr int64_t block = 64;  // output channels that oneDNN's kernels compute together
  if (problem.transposed || problem.groups > 1 || problem.batch > 1 || problem.output_channels % (tiles * block) != 0) return 1;
  const int64_t weights = problem.output_channels * problem.input_channels * problem.window.kernel_count();
  const int64_t pixels = problem.window.input_count() * problem.input_channels + problem.window.output_count() * problem.output_channels;
  return weights > pixels ? tiles : 1;
}

// Leaves out axes along which there is one position and one tap: rows of one pixel ([N, C, T, 1], of sequences) are one long row, which
// loops over rows would make slow.
void drop_unit_axes(Window* window) {
  for (int axis = window->spatial - 1; axis >= 0 && window->spatial > 1; --axis) {
    if (window->input[axis] != 1 || window->output[axis] != 1 || window->kernel[axis] != 1) continue;
    if (window->pad_begin[axis] != 0 || window->pad_end[axis] != 0) continue;
    for (auto* values : {&window->input, &window->output, &window->kernel, &window->stride, &window->dilation})
      std::rotate(*values + axis, *values + axis + 1, *values + window->spatial);
    for (auto* pads : {&window->pad_begin, &window->pad_end}) std::rotate(*pads + axis, *pads + axis + 1, *pads + window->spatial);
    --window->spatial;
    window->stride[window->spatial] = window->dilation[window->spatial] = 1;
  }
}

bool accepts_epilogue_ops(const CreateContext& context, size_t most) {
  return context.epilogue_op_count() <= most && onednn::accepts(context, operand_kinds);
}

}  // namespace

bool Convolution::accepts_epilogue(const CreateContext& context) {
  return accepts_epilogue_ops(context, max_epilogue_ops);
}
bool TransposedConvolution::accepts_epilogue(const CreateContext& context) {
  return accepts_epilogue_ops(context, max_epilogue_ops);
}
bool ConvDataGradient::accepts_epilogue(const CreateContext& context) {
  return accepts_epilogue_ops(context, max_epilogue_ops);
}

Status ConvDriver::create(const CreateContext& context) {
  attributes_ = WindowAttributes(context.attributes);
  groups_ = context.attributes.i("group", 1);
  threads_ = context.max_threads();
  if (context.epilogue_op_count() > max_epilogue_ops) return unsupported("more than 8 fused operators");
  HEDDLE_PLUGIN_CHECK(onednn::read_epilogue(context, &epilogue_));
  bias_input_ = context.input(2) && kind_ != ConvKind::data_gradient ? 2 : -1;
  // Extra inputs of epilogue ops follow the schema's three; without a bias, input 2 may be one of them.
  for (const onednn::EpilogueOp& epilogue_op : epilogue_)
    if (epilogue_op.operand_input == bias_input_) bias_input_ = -1;
  first_epilogue_op_ = 0;
  if (bias_input_ < 0 && !epilogue_.empty() && onednn::is_bias(epilogue_[0], HEDDLE_OPERAND_PER_CHANNEL)) {
    bias_input_ = epilogue_[0].operand_input;
    first_epilogue_op_ = 1;
  }
  return {};
}

Status ConvDriver::read_problem(PrepareContext& context, ConvProblem* problem) const {
  const Dims x = dims_of(*context.input(0)), y = dims_of(*context.output(0)), w = dims_of(*context.input(1));
  const std::vector<int64_t> kernel(w.begin() + 2, w.end());
  problem->transposed = transposed_;
  problem->batch = x[0];
  problem->groups = groups_;
  problem->input_channels = x[1];
  problem->output_channels = y[1];
  problem->has_bias = bias_input_ >= 0;
  if (kind_ == ConvKind::data_gradient)
    HEDDLE_PLUGIN_CHECK(resolve_gradient_window(attributes_, y, x, kernel, true, &problem->window));
  else if (transposed_)
    HEDDLE_PLUGIN_CHECK(resolve_transposed_window(attributes_, x, kernel, &problem->window));
  else
    HEDDLE_PLUGIN_CHECK(resolve_window(attributes_, x, kernel, &problem->window));
  drop_unit_axes(&problem->window);
  return {};
}

Status ConvDriver::read_layouts(PrepareContext& context, const ConvProblem& problem) {
  x_layout_ = {true, problem.input_channels, problem.window.input_count()};
  y_layout_ = {true, problem.output_channels, problem.window.output_count()};
  HEDDLE_PLUGIN_CHECK(read_layout("the input", *context.input(0), &x_layout_.channels_last));
  HEDDLE_PLUGIN_CHECK(read_layout("the output", *context.output(0), &y_layout_.channels_last));
  for (size_t i = 0; i < epilogue_.size(); ++i) {
    if (epilogue_[i].operand_kind != HEDDLE_OPERAND_SAME_SHAPE) continue;
    const heddle_tensor& operand = *context.input(static_cast<uint32_t>(epilogue_[i].operand_input));
    HEDDLE_PLUGIN_CHECK(read_layout("a fused operand", operand, &operand_channels_last_[i]));
  }
  return {};
}

Status ConvDriver::choose_algorithm(PrepareContext& context, const ConvRequest& request) {
  if (problem_.input_channels == 0 || problem_.window.input_count() == 0) return {};
  if (is_depthwise(problem_)) return make_depthwise(request, context, &algorithm_);
  if (is_spread(problem_)) return make_spread(request, context, &algorithm_);
  return make_onednn_conv(request, context, &algorithm_);
}

bool ConvDriver::read_in_place(size_t epilogue_op) const {
  return algorithm_ && algorithm_->in_place_epilogue_op() == static_cast<int32_t>(epilogue_op);
}

// True for same-shape operands that are transposed or read in part, or that would be overwritten before they are read when the output takes
// their bytes. If the algorithm adds the operand from scratch, it is gathered there directly.
bool ConvDriver::wants_copy(size_t epilogue_op) const {
  if (epilogue_[epilogue_op].operand_kind != HEDDLE_OPERAND_SAME_SHAPE) return false;
  return !read_in_place(epilogue_op) || (written_in_place() && !operand_channels_last_[epilogue_op]);
}

void ConvDriver::plan_scratch(PrepareContext& context) {
  int64_t input_pixels = 0, output_pixels = in_blocks_ ? block_pixels_ : 0;
  for (const ConvTile& tile : tiling_.tiles) {
    input_pixels = std::max(input_pixels, tile.input_count);
    output_pixels = std::max(output_pixels, tile.output_count);
  }
  const uint64_t x_bytes = aligned(static_cast<uint64_t>(input_pixels * problem_.input_channels) * sizeof(float));
  const uint64_t y_bytes = aligned(static_cast<uint64_t>(output_pixels * tile_channels_) * sizeof(float));
  uint64_t end = algorithm_ ? aligned(algorithm_->scratch_bytes()) : 0;
  auto place = [&end](uint64_t bytes) { return std::exchange(end, end + bytes); };
  epilogue_op_offset_ = place(aligned(onednn::epilogue_scratch_bytes(epilogue_)));
  x_offset_ = place(gathers_input() ? x_bytes : 0);
  y_offset_ = place(written_in_place() ? 0 : y_bytes);
  operand_offset_ = end;
  operand_bytes_ = y_bytes;
  for (size_t i = 0; i < epilogue_.size(); ++i)
    if (wants_copy(i)) place(y_bytes);
  if (is_narrow()) {
    narrow_offset_ = place(std::max(gathers_input() ? x_bytes : 0, y_bytes));
    weights_offset_ = place(aligned(static_cast<uint64_t>(weight_count_) * sizeof(float)));
    bias_offset_ = place(bias_input_ < 0 ? 0 : aligned(static_cast<uint64_t>(problem_.output_channels) * sizeof(float)));
  }
  context.set_scratch(0, end);
}

bool ConvDriver::divide(double flops, double weight, double bytes) {
  const Window& window = problem_.window;
  int64_t least = min_tiles(flops, bytes);
  // Long signals are divided along their one dimension, which oneDNN has tables for.
  constexpr int64_t columns = 1 << 16;
  if (window.spatial == 1 && window.output[0] > 2 * columns)
    least = std::max(least, std::min<int64_t>(problem_.batch, columns) * (window.output[0] / columns));
  if (!library_takes(problem_, least)) return false;
  const int64_t tiles = tiles_for_flops(flops * weight);
  if (is_spread(problem_)) {
    tiling_ = divide_spread(problem_, tiles, least);
    tile_channels_ = problem_.output_channels;
    return !tiling_.tiles.empty();
  }
  const int64_t parts = least > tiles ? 1 : channel_parts(problem_, tiles);
  const ConvDivision division = window.input_count() == 0 ? ConvDivision::images
                                : transposed_             ? ConvDivision::transposed
                                                          : ConvDivision::rows;
  tiling_ = parts > 1 ? divide_channels(window, parts) : divide_convolution(window, problem_.batch, tiles, least, division);
  const auto made = static_cast<int64_t>(tiling_.tiles.size());
  if (made < least && !transposed_ && problem_.groups == 1) {
    constexpr int64_t max_parts = 1024;  // each has packed weights of its own
    int64_t more = (least + made - 1) / made;
    while (more < problem_.output_channels && problem_.output_channels % more != 0) ++more;
    if (more <= std::min(problem_.output_channels, max_parts)) divide_channels_too(more, &tiling_);
  }
  tile_channels_ = problem_.output_channels / tiling_.channel_parts;
  if (static_cast<int64_t>(tiling_.tiles.size()) >= least && library_takes(problem_, tiling_)) return true;
  tiling_ = {};
  return false;
}

// Plans blocks of up to 64 pixels and 256 channels, fewer where each output is much work.
void ConvDriver::plan_blocks(PrepareContext& context, double flops, double bytes) {
  const double outputs = static_cast<double>(context.output(0)->element_count);
  const double outputs_of_tile = max_tile_flops * outputs / std::max(flops, 1.0);
  in_blocks_ = true;
  tile_channels_ =
      std::clamp<int64_t>(static_cast<int64_t>(std::min(outputs_of_tile, 256.0)), 1, std::min<int64_t>(256, problem_.output_channels));
  block_pixels_ = std::clamp<int64_t>(static_cast<int64_t>(std::min(outputs_of_tile / static_cast<double>(tile_channels_), 64.0)), 1, 64);
  block_tiling_.plan(context, std::max(flops, bytes), 1.0);
  context.set_cost_ns(500.0 + flops);
}

Status ConvDriver::prepare(PrepareContext& context) {
  problem_ = {};
  checks_shape_ = kind_ == ConvKind::data_gradient && varies(context, {2});
  HEDDLE_PLUGIN_CHECK(read_problem(context, &problem_));
  HEDDLE_PLUGIN_CHECK(read_layouts(context, problem_));
  tiling_ = {};
  algorithm_ = nullptr;
  in_blocks_ = false;
  dtype_ = static_cast<heddle_dtype>(context.output(0)->dtype);
  weight_count_ = 0;
  context.set_tiles(0);
  if (context.output(0)->element_count == 0) return {};
  const double flops = flops_of(problem_);
  // Depthwise layers are limited by memory, not arithmetic: count each of their operations eight times.
  const double weight = is_depthwise(problem_) ? 8.0 : 1.0;
  double bytes = static_cast<double>(context.output(0)->byte_size);
  for (uint32_t i = 0; i < 2; ++i) bytes += static_cast<double>(context.input(i)->byte_size);
  context.set_cost_ns(500.0 + flops * weight / flops_per_ns);
  if (!divide(flops, weight, bytes)) {
    plan_blocks(context, flops, bytes);
    plan_scratch(context);
    return {};
  }
  context.set_tiles(static_cast<int64_t>(tiling_.tiles.size()));
  ConvRequest request;
  request.problem = problem_;
  request.tiling = tiling_;
  request.epilogue = &epilogue_;
  request.first_epilogue_op = first_epilogue_op_;
  request.constant_weights = context.is_constant(1);
  request.threads = threads_;
  request.dtype = dtype_;
  request.weights = static_cast<const float*>(context.input(1)->data);
  std::vector<float> converted;
  if (is_narrow() && request.constant_weights) {
    converted = constant_floats(*context.input(1));
    request.weights = converted.data();
  } else if (is_narrow()) {
    weight_count_ = context.input(1)->element_count;
  }
  HEDDLE_PLUGIN_CHECK(choose_algorithm(context, request));
  plan_scratch(context);
  return {};
}

const float* ConvDriver::bias_of(const RunContext& context, const char* scratch) const {
  if (bias_input_ < 0) return nullptr;
  return is_narrow() ? reinterpret_cast<const float*>(scratch + bias_offset_)
                     : static_cast<const float*>(context.inputs[bias_input_]->data);
}

const float* ConvDriver::weights_of(const RunContext& context, const char* scratch) const {
  return is_narrow() ? reinterpret_cast<const float*>(scratch + weights_offset_) : static_cast<const float*>(context.inputs[1]->data);
}

void ConvDriver::load_shared(const RunContext& context, char* scratch) const {
  const auto load = [&](int32_t input, int64_t count, uint64_t offset) {
    load_floats(dtype_, context.inputs[input]->data, {0, 1, count, count}, reinterpret_cast<float*>(scratch + offset));
  };
  if (weight_count_ > 0) load(1, weight_count_, weights_offset_);
  if (bias_input_ >= 0) load(bias_input_, problem_.output_channels, bias_offset_);
}

const float* ConvDriver::gather_input(const RunContext& context, const ConvTile& tile, char* scratch) const {
  const void* x = context.inputs[0]->data;
  if (!gathers_input()) return static_cast<const float*>(x) + tile.input_first * problem_.input_channels;
  const PixelRange range = {tile.input_first, tile.input_count, 0, x_layout_.channels};
  auto* x_tile = reinterpret_cast<float*>(scratch + x_offset_);
  if (is_narrow())
    gather_floats(dtype_, x_layout_, x, range, scratch + narrow_offset_, x_tile);
  else
    gather_pixels(x_layout_, x, range, x_tile);
  return x_tile;
}

PixelRange ConvDriver::outputs_of(const ConvTile& tile) const {
  return {tile.output_first, tile.output_count, first_channel(tile), channels_of(tile)};
}

const float* ConvDriver::tile_operand(const RunContext& context, size_t epilogue_op, const ConvTile& tile, float* y_tile,
                                      float** copy) const {
  const auto* operand = static_cast<const float*>(context.inputs[epilogue_[epilogue_op].operand_input]->data);
  if (epilogue_[epilogue_op].operand_kind == HEDDLE_OPERAND_PER_CHANNEL) return operand + first_channel(tile);
  if (epilogue_[epilogue_op].operand_kind != HEDDLE_OPERAND_SAME_SHAPE) return operand;
  const PixelLayout layout = {operand_channels_last_[epilogue_op], y_layout_.channels, y_layout_.pixels};
  const bool as_tile = layout.channels_last && channels_of(tile) == layout.channels;
  const float* in_place = operand + tile.output_first * layout.channels;
  if (as_tile && (in_place != y_tile || read_in_place(epilogue_op))) return in_place;
  float* target = wants_copy(epilogue_op) ? std::exchange(*copy, *copy + operand_bytes_ / sizeof(float)) : y_tile;
  gather_pixels(layout, operand, outputs_of(tile), target);
  return target;
}

Status ConvDriver::sum_tile(const ConvTile& tile, const ConvBuffers& buffers, size_t* done) const {
  if (algorithm_) {
    size_t epilogue_ops = 0;
    HEDDLE_PLUGIN_CHECK(algorithm_->run_tile(tile, buffers, &epilogue_ops));
    *done += epilogue_ops;
    return {};
  }
  for (int64_t i = 0; i < tile.output_count * tile_channels_; ++i) buffers.y[i] = buffers.bias ? buffers.bias[i % tile_channels_] : 0.0f;
  return {};
}

Status ConvDriver::sum_block(const RunContext& context, const ConvTile& tile, float* y, const char* scratch, CancellationPoll& poll) const {
  const int64_t pixels = x_layout_.pixels, channels = x_layout_.channels;
  const ConvSource source = {dtype_,
                             context.inputs[0]->data,
                             pixels * channels,
                             x_layout_.channels_last ? 1 : pixels,
                             x_layout_.channels_last ? channels : 1,
                             context.inputs[1]->data,
                             bias_of(context, scratch)};
  convolve_block(problem_, source, {tile.output_first, tile.output_count, first_channel(tile), channels_of(tile)}, y, poll);
  return poll.status();
}

Status ConvDriver::run_tile(const RunContext& context, const ConvTile& tile, char* scratch, size_t* packed, CancellationPoll* poll) const {
  auto* y = static_cast<float*>(context.outputs[0]->data);
  float* y_tile = written_in_place() ? y + tile.output_first * problem_.output_channels : reinterpret_cast<float*>(scratch + y_offset_);
  ConvBuffers buffers = {};
  if (!in_blocks_) buffers.x = gather_input(context, tile, scratch);
  buffers.weights = weights_of(context, scratch);
  if (const float* bias = bias_of(context, scratch)) buffers.bias = bias + first_channel(tile);
  buffers.y = y_tile;
  buffers.scratch = scratch;
  buffers.packed_in_scratch = packed;
  std::array<const float*, max_epilogue_ops> operands = {};
  auto* copy = reinterpret_cast<float*>(scratch + operand_offset_);
  for (size_t i = first_epilogue_op_; i < epilogue_.size(); ++i)
    if (epilogue_[i].operand_input >= 0) operands[i] = tile_operand(context, i, tile, y_tile, &copy);
  buffers.operands = operands.data();
  size_t done = first_epilogue_op_;
  HEDDLE_PLUGIN_CHECK(poll ? sum_block(context, tile, y_tile, scratch, *poll) : sum_tile(tile, buffers, &done));
  const int64_t channels = channels_of(tile);
  const onednn::TileRegion region = {y_tile, channels, tile.output_count, channels, 0, 0};
  onednn::apply_epilogue_ops(epilogue_, done, operands.data(), region, scratch + epilogue_op_offset_);
  if (is_narrow())
    scatter_floats(dtype_, y_layout_, y_tile, outputs_of(tile), scratch + narrow_offset_, y);
  else if (!written_in_place())
    scatter_pixels(y_layout_, y_tile, outputs_of(tile), y);
  return {};
}

Status ConvDriver::run_blocks(const RunContext& context, int64_t begin, int64_t end, char* scratch) const {
  const int64_t pixels = problem_.batch * problem_.window.output_count();
  const int64_t parts = (problem_.output_channels + tile_channels_ - 1) / tile_channels_;
  const Tiling::Range blocks = block_tiling_.range((pixels + block_pixels_ - 1) / block_pixels_ * parts, begin, end);
  CancellationPoll poll(context);
  for (int64_t i = blocks.first; i < blocks.last; ++i) {
    ConvTile block;
    block.output_first = i / parts * block_pixels_;
    block.output_count = std::min(block_pixels_, pixels - block.output_first);
    block.channel_part = static_cast<size_t>(i % parts);
    HEDDLE_PLUGIN_CHECK(run_tile(context, block, scratch, nullptr, &poll));
  }
  return {};
}

Status ConvDriver::run(const RunContext& context, int64_t begin, int64_t end) const {
  if (checks_shape_)
    HEDDLE_PLUGIN_CHECK(check_planned({{"shape", context.inputs[2]}}, *context.outputs[0],
                                      [&](Extents* to) { return constant_extents(*context.inputs[2], to); }));
  auto* scratch = thread_scratch<char>(context);
  if (is_narrow()) load_shared(context, scratch);
  if (in_blocks_) return run_blocks(context, begin, end, scratch);
  const onednn::SerialSection serial;
  size_t packed = 0;
  for (int64_t tile = begin; tile < end; ++tile)
    HEDDLE_PLUGIN_CHECK(run_tile(context, tiling_.tiles[static_cast<size_t>(tile)], scratch, &packed, nullptr));
  return {};
}

std::vector<heddle_format> ConvDriver::list_formats(const CreateContext& context) {
  heddle_format row_major = {};
  row_major.struct_size = sizeof(row_major);
  const heddle_type& x = *context.input(0);
  const heddle_type& y = *context.output(0);
  const bool resolved = x.rank >= 3 && x.rank <= max_spatial + 2 && !(x.flags & HEDDLE_TYPE_DYNAMIC) && !(y.flags & HEDDLE_TYPE_DYNAMIC);
  if (!resolved) return {row_major};
  const heddle_type& w = *context.input(1);
  const double x_count = static_cast<double>(Dims{x.dims, x.rank}.count(0, x.rank));
  const double y_count = static_cast<double>(Dims{y.dims, y.rank}.count(0, y.rank));
  const double compute = 2.0 * y_count * static_cast<double>(Dims{w.dims, w.rank}.count(1, w.rank)) / flops_per_ns;
  constexpr double transpose_ns = 1.0;  // per element, out of the way of the copy engine
  auto choice = [&](bool x_last, bool y_last) {
    heddle_format format = row_major;
    double y_moves = 1;
    if (x_last) format.inputs[0] = channels_last(x.rank);
    if (y_last) format.outputs[0] = channels_last(x.rank);
    for (uint32_t i = 0; i < context.epilogue_op_count(); ++i) {
      const heddle_epilogue_op& epilogue_op = context.epilogue_op(i);
      if (epilogue_op.operand_kind != HEDDLE_OPERAND_SAME_SHAPE) continue;
      if (y_last && epilogue_op.operand_input < HEDDLE_FORMAT_PORTS) format.inputs[epilogue_op.operand_input] = channels_last(x.rank);
      y_moves += 1;
    }
    format.cost_ns = 500.0 + compute + (x_last ? 0 : x_count * transpose_ns) + (y_last ? 0 : y_moves * y_count * transpose_ns);
    return format;
  };
  return {choice(true, true), choice(false, true), choice(true, false), choice(false, false)};
}

}  // namespace heddle::cpu
