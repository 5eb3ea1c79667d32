// ConvFilterGradient by oneDNN: one primitive per shape of the stretches that a sum is taken over. See conv_filter_gradient.h.
#include "conv/conv_filter_gradient.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "conv/conv_algorithm.h"
#include "conv/conv_blocks.h"
#include "shared/dense_layouts.h"
#include "shared/dims.h"

namespace heddle::cpu {
namespace {

using namespace onednn;

constexpr int64_t min_channels = 32;   // of a part: with fewer oneDNN's loops are slow
constexpr int64_t channel_block = 16;  // oneDNN's loops work on blocks of so many

// The largest number of equal parts of `count` things, at most `wanted`, whose size is a multiple of `block` and at least `least`.
int64_t equal_parts(int64_t count, int64_t wanted, int64_t block, int64_t least) {
  for (int64_t parts = std::min(wanted, count / std::max<int64_t>(1, least)); parts > 1; --parts)
    if (count % parts == 0 && count / parts % block == 0) return parts;
  return 1;
}

}  // namespace

ConvFilterGradient::Parts ConvFilterGradient::choose_parts() const {
  Parts parts;
  const double flops = problem_.flops();
  // With few channels in a group memory bandwidth limits: count each operation five times, as Conv does.
  const int64_t wanted = tiles_for_flops(problem_.group_inputs() < 4 ? 5 * flops : flops);
  if (problem_.groups > 1) {
    const int64_t narrow = std::min(problem_.group_inputs(), problem_.group_outputs());
    parts.groups = equal_parts(problem_.groups, wanted, std::max<int64_t>(1, channel_block / std::max<int64_t>(1, narrow)),
                               std::max<int64_t>(1, min_channels / std::max<int64_t>(1, narrow)));
    return parts;
  }
  // The divided tensor is copied part by part. With more than one tap the sums are much more work than that; parts have the width that
  // oneDNN's loops prefer, if that leaves more than one.
  if (problem_.window.kernel_count() > 1) {
    parts.outputs = equal_parts(problem_.output_channels, wanted, channel_block, 2 * min_channels);
    parts.inputs = equal_parts(problem_.input_channels, wanted / parts.outputs, channel_block, 2 * min_channels);
    if (parts.count() > 1) return parts;
  }
  // Otherwise the smaller tensor is divided, unless it has too few channels.
  const int64_t outputs = equal_parts(problem_.output_channels, wanted, channel_block, min_channels);
  const int64_t inputs = equal_parts(problem_.input_channels, wanted, channel_block, min_channels);
  const bool smaller_x = problem_.input_channels * problem_.x.pixels < problem_.output_channels * problem_.dy.pixels;
  if (inputs > outputs || (inputs == outputs && smaller_x))
    parts.inputs = inputs;
  else
    parts.outputs = outputs;
  return parts;
}

std::vector<int64_t> ConvFilterGradient::filter_dims() const {
  const int64_t groups = problem_.groups / parts_.groups;
  std::vector<int64_t> dims = {part_outputs_ / groups, part_inputs_ / groups};
  if (groups > 1) dims.insert(dims.begin(), groups);
  dims.insert(dims.end(), problem_.window.kernel, problem_.window.kernel + problem_.window.spatial);
  return dims;
}

Status ConvFilterGradient::make_primitive(const ConvTileShape& shape, bool alone, ChunkPrimitive* made, bool* is_fast) {
  const Window& window = problem_.window;
  int64_t dilation[max_spatial];
  for (int i = 0; i < max_spatial; ++i) dilation[i] = window.dilation[i] - 1;
  const auto tensor = [&](int64_t channels, const int64_t* extents) {
    std::vector<int64_t> dims = {shape.images, channels};
    dims.insert(dims.end(), extents, extents + window.spatial);
    return dims;
  };
  MemoryDesc x, dy, any, plain;
  HEDDLE_PLUGIN_CHECK(describe_channels_last(tensor(part_inputs_, shape.input), &x));
  HEDDLE_PLUGIN_CHECK(describe_channels_last(tensor(part_outputs_, shape.output), &dy));
  HEDDLE_PLUGIN_CHECK(describe_any(filter_dims(), &any));
  const ConvolutionOperation operation = {.kind = ConvolutionOperation::Kind::filter_gradient,
                                          .x = &x,
                                          .weights = &any,
                                          .bias = nullptr,
                                          .y = &dy,
                                          .stride = window.stride,
                                          .dilation = dilation,
                                          .pad_begin = shape.pad_begin,
                                          .pad_end = shape.pad_end};
  PrimitiveDesc desc, unpack;
  *is_fast = desc.create(operation, nullptr).ok() && !desc.is_reference();
  if (!*is_fast) return {};
  const MemoryDesc packed = desc.query(dnnl_query_diff_weights_md);
  // The sums go straight into dW, where other input channels lie between, or are packed, to be added to dW later.
  std::vector<int64_t> strides;
  if (alone && parts_.inputs > 1) {
    int64_t stride = window.kernel_count();
    strides = {stride * problem_.input_channels, stride};
    for (int i = 0; i < window.spatial; ++i) strides.push_back(stride /= window.kernel[i]);
  }
  HEDDLE_PLUGIN_CHECK(describe(filter_dims(), strides, &plain));
  HEDDLE_PLUGIN_CHECK(unpack.create_reorder(packed, plain));
  library_bytes_ = std::max({library_bytes_, desc.scratch_bytes(), unpack.scratch_bytes()});
  packed_bytes_ = std::max(packed_bytes_, bytes_of(packed));
  const uint32_t threads = std::min<uint32_t>(threads_, static_cast<uint32_t>(parts_.count()));
  HEDDLE_PLUGIN_CHECK(made->call.create(desc,
                                        {{DNNL_ARG_SRC, x},
                                         {DNNL_ARG_DIFF_DST, dy},
                                         {DNNL_ARG_DIFF_WEIGHTS, packed},
                                         {DNNL_ARG_SCRATCHPAD, desc.query(dnnl_query_scratchpad_md)}},
                                        threads));
  return made->unpack.create(
      unpack, {{DNNL_ARG_FROM, packed}, {DNNL_ARG_TO, plain}, {DNNL_ARG_SCRATCHPAD, unpack.query(dnnl_query_scratchpad_md)}}, threads);
}

Status ConvFilterGradient::plan_library(PrepareContext& context, bool* planned) {
  *planned = false;
  const Window& window = problem_.window;
  if (context.output(0)->element_count == 0 || problem_.batch == 0 || window.input_count() == 0 || window.output_count() == 0) return {};
  parts_ = choose_parts();
  part_inputs_ = problem_.input_channels / (parts_.groups * parts_.inputs);
  part_outputs_ = problem_.output_channels / (parts_.groups * parts_.outputs);
  ConvProblem convolution;
  convolution.batch = problem_.batch;
  convolution.groups = problem_.groups;
  convolution.input_channels = problem_.input_channels;
  convolution.output_channels = problem_.output_channels;
  convolution.window = window;
  // Gathered data should stay in the cache, but adding the sums of a stretch should be little work beside it.
  const bool gathers_x = !problem_.x.channels_last || part_inputs_ < problem_.input_channels;
  const bool gathers_dy = !problem_.dy.channels_last || part_outputs_ < problem_.output_channels;
  const auto part_flops = problem_.flops() / static_cast<double>(parts_.count());
  const double sums = static_cast<double>(context.output(0)->element_count) / static_cast<double>(parts_.count());
  double gathered = gathers_x ? static_cast<double>(problem_.batch * problem_.x.pixels) * static_cast<double>(part_inputs_) : 0;
  if (gathers_dy) gathered += static_cast<double>(problem_.batch * problem_.dy.pixels) * static_cast<double>(part_outputs_);
  constexpr double near = 256.0 * 1024;
  const double read = static_cast<double>(context.input(0)->byte_size) + static_cast<double>(context.input(1)->byte_size);
  const int64_t least = min_tiles(part_flops, read);
  const auto wanted = static_cast<int64_t>(std::fmin(std::ceil(gathered / std::fmax(near, 8 * sums)), 1024.0));
  if (!library_takes(convolution, least)) return {};
  chunks_ = divide_convolution(window, problem_.batch, std::max<int64_t>(1, wanted), least, ConvDivision::rows);
  if (static_cast<int64_t>(chunks_.tiles.size()) < least || !library_takes(convolution, chunks_)) return {};
  const SerialSection serial;
  int64_t x_pixels = 0, dy_pixels = 0;
  for (const ConvTileShape& shape : chunks_.shapes) {
    primitives_.push_back(std::make_unique<ChunkPrimitive>());
    bool is_fast = false;
    HEDDLE_PLUGIN_CHECK(make_primitive(shape, chunks_.tiles.size() == 1, primitives_.back().get(), &is_fast));
    if (!is_fast) return {};
  }
  for (const ConvTile& chunk : chunks_.tiles) {
    x_pixels = std::max(x_pixels, chunk.input_count);
    dy_pixels = std::max(dy_pixels, chunk.output_count);
  }
  uint64_t end = aligned(library_bytes_);
  const auto place = [&end](bool is_needed, uint64_t bytes) { return std::exchange(end, end + (is_needed ? aligned(bytes) : 0)); };
  packed_offset_ = place(true, packed_bytes_);
  sums_offset_ = place(chunks_.tiles.size() > 1, static_cast<uint64_t>(sums) * sizeof(float));
  x_offset_ = place(gathers_x, static_cast<uint64_t>(x_pixels * part_inputs_) * sizeof(float));
  dy_offset_ = place(gathers_dy, static_cast<uint64_t>(dy_pixels * part_outputs_) * sizeof(float));
  context.set_tiles(parts_.count());
  context.set_scratch(0, end);
  context.set_cost_ns(500.0 + problem_.flops() / flops_per_ns);
  *planned = true;
  return {};
}

Status ConvFilterGradient::prepare(PrepareContext& context) {
  HEDDLE_PLUGIN_CHECK(read_problem(context));
  primitives_.clear();
  library_bytes_ = packed_bytes_ = 0;
  HEDDLE_PLUGIN_CHECK(plan_library(context, &by_library_));
  if (!by_library_) plan_plain(context);
  return {};
}

void ConvFilterGradient::add_to(float* dw, const float* sums) const {
  const int64_t taps = problem_.window.kernel_count();
  const int64_t groups = problem_.groups / parts_.groups, inputs = part_inputs_ / groups;
  const int64_t row = inputs * taps, stride = problem_.group_inputs() * taps;
  for (int64_t filter = 0; filter < part_outputs_; ++filter)
    for (int64_t i = 0; i < row; ++i) dw[filter * stride + i] += sums[filter * row + i];
}

Status ConvFilterGradient::run_part(const RunContext& context, int64_t part, char* scratch, CancellationPoll& poll) const {
  const int64_t taps = problem_.window.kernel_count();
  // The first channels that this part reads of x and dy, and where its sums begin.
  const bool of_groups = parts_.groups > 1;
  const int64_t x_channel = (of_groups ? part : part % parts_.inputs) * part_inputs_;
  const int64_t dy_channel = (of_groups ? part : part / parts_.inputs) * part_outputs_;
  auto* const dw =
      static_cast<float*>(context.outputs[0]->data) + (dy_channel * problem_.group_inputs() + (of_groups ? 0 : x_channel)) * taps;
  auto* const sums = reinterpret_cast<float*>(scratch + sums_offset_);
  const auto read = [&](uint32_t input, const PixelLayout& layout, const PixelRange& range, uint64_t offset) {
    const auto* tensor = static_cast<const float*>(context.inputs[input]->data);
    if (layout.channels_last && range.channels == layout.channels) return tensor + range.first * layout.channels;
    auto* gathered = reinterpret_cast<float*>(scratch + offset);
    gather_pixels(layout, tensor, range, gathered);
    return static_cast<const float*>(gathered);
  };
  for (const ConvTile& chunk : chunks_.tiles) {
    const bool is_first = &chunk == &chunks_.tiles.front(), alone = chunks_.tiles.size() == 1;
    if (poll.stops(static_cast<int64_t>(problem_.flops() / flops_per_ns) / parts_.count() / static_cast<int64_t>(chunks_.tiles.size())))
      return cancelled();
    const float* x = read(0, problem_.x, {chunk.input_first, chunk.input_count, x_channel, part_inputs_}, x_offset_);
    const float* dy = read(1, problem_.dy, {chunk.output_first, chunk.output_count, dy_channel, part_outputs_}, dy_offset_);
    const ChunkPrimitive& primitive = *primitives_[chunk.shape];
    HEDDLE_PLUGIN_CHECK(primitive.call.run({x, dy, scratch + packed_offset_, scratch}));
    // The first stretch's sums are written straight into dW if the part has all input channels.
    const bool direct = alone || (is_first && parts_.inputs == 1);
    HEDDLE_PLUGIN_CHECK(primitive.unpack.run({scratch + packed_offset_, direct ? dw : sums, scratch}));
    if (direct) continue;
    if (is_first)
      for (int64_t filter = 0; filter < part_outputs_; ++filter)
        std::fill_n(dw + filter * problem_.group_inputs() * taps, part_inputs_ * taps, 0.0f);
    add_to(dw, sums);
  }
  return {};
}

Status ConvFilterGradient::run(const RunContext& context, int64_t begin, int64_t end) const {
  HEDDLE_PLUGIN_CHECK(check_shape(context));
  if (!by_library_) return run_plain<float>(context, begin, end);
  const SerialSection serial;
  CancellationPoll poll(context);
  auto* scratch = thread_scratch<char>(context);
  for (int64_t part = begin; part < end; ++part) HEDDLE_PLUGIN_CHECK(run_part(context, part, scratch, poll));
  return {};
}

std::vector<heddle_format> ConvFilterGradient::formats(const CreateContext& context) {
  heddle_format row_major = {};
  row_major.struct_size = sizeof(row_major);
  const heddle_type &x = *context.input(0), &dy = *context.input(1), &dw = *context.output(0);
  const bool resolved =
      x.rank >= 3 && x.rank <= max_spatial + 2 && dy.rank == x.rank && !((x.flags | dy.flags | dw.flags) & HEDDLE_TYPE_DYNAMIC);
  if (!resolved) return {row_major};
  const double x_count = static_cast<double>(Dims{x.dims, x.rank}.count(0, x.rank));
  const double dy_count = static_cast<double>(Dims{dy.dims, dy.rank}.count(0, dy.rank));
  const double compute = 2.0 * dy_count * static_cast<double>(Dims{dw.dims, dw.rank}.count(1, dw.rank)) / flops_per_ns;
  constexpr double transpose_ns = 1.0;  // per element
  const auto choice = [&](bool x_last, bool dy_last) {
    heddle_format format = row_major;
    if (x_last) format.inputs[0] = channels_last(x.rank);
    if (dy_last) format.inputs[1] = channels_last(x.rank);
    format.cost_ns = 500.0 + compute + (x_last ? 0 : x_count * transpose_ns) + (dy_last ? 0 : dy_count * transpose_ns);
    return format;
  };
  return {choice(true, true), choice(false, true), choice(true, false), choice(false, false)};
}

}  // namespace heddle::cpu
