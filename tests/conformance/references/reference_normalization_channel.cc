// Normalisations with channels: BatchNormalization, InstanceNormalization, GroupNormalization, LRN. The channel is dimension 1.
#include "conformance/computations/normalization_reference.h"

namespace heddle::conformance {
namespace reference_normalization_channel {
namespace {

using Elements = std::vector<Number>;

// Returns the channel of each element. A tensor of one dimension has one channel.
std::vector<size_t> channels_of(const Shape& shape) {
  std::vector<size_t> channels(static_cast<size_t>(shape.element_count()), 0);
  if (shape.rank() > 1)
    for (size_t i = 0; i < channels.size(); ++i) channels[i] = static_cast<size_t>(position_of(static_cast<int64_t>(i), shape)[1]);
  return channels;
}
std::vector<Elements> gathered(const Numbers& x, const std::vector<size_t>& set, size_t sets) {
  std::vector<Elements> all(sets);
  for (size_t i = 0; i < x.values.size(); ++i) all[set[i]].push_back(x.values[i]);
  return all;
}

// ---------------------------------------------------------------- BatchNormalization

// With the given statistics the whole is one product and one sum, each of whose terms may be rounded.
std::vector<Numbers> infer_batch(const Call& call, const std::vector<size_t>& channel, Number epsilon) {
  Numbers y = zeros_with_scale(call[0].dtype, call[0].shape);
  for (size_t i = 0; i < y.values.size(); ++i) {
    const size_t c = channel[i];
    const Number x = call[0].values[i], mean = call[3].values[c];
    const Number factor = call[1].values[c] / std::sqrt(call[4].values[c] + epsilon), bias = call[2].values[c];
    store(y, i, {(x - mean) * factor + bias, (std::fabs(x) + std::fabs(mean)) * std::fabs(factor) + std::fabs(bias)});
  }
  return {y};
}

std::vector<Numbers> batch_normalization(const Call& call) {
  const Numbers& x = call[0];
  const std::vector<size_t> channel = channels_of(x.shape);
  const auto epsilon = static_cast<Number>(call.f("epsilon", 1e-5)), momentum = static_cast<Number>(call.f("momentum", 0.9));
  if (call.i("training_mode", 0) == 0) return infer_batch(call, channel, epsilon);
  const size_t channels = call[1].values.size();
  // Statistics are in f32, as ONNX says, also if they are stored in f64.
  const Number error = call[3].dtype == DType::f64 && x.dtype != DType::f64 ? 0x1p29L : 1;
  Numbers y = zeros_with_scale(x.dtype, x.shape), mean = zeros_with_scale(call[3].dtype, call[3].shape), variance = mean;
  std::vector<Moments> moments;
  for (const Elements& elements : gathered(x, channel, channels)) {
    const Moments m = moments_of(elements, x.dtype);
    const size_t c = moments.size();
    const Number mean_before = call[3].values[c] * momentum, variance_before = call[4].values[c] * momentum;
    store(mean, c, {mean_before + m.mean * (1 - momentum), std::fabs(mean_before) + m.magnitude * error * m.error * (1 - momentum)});
    store(variance, c,
          {variance_before + m.variance * (1 - momentum), std::fabs(variance_before) + m.variance * error * m.error * (1 - momentum)});
    moments.push_back(m);
  }
  for (size_t i = 0; i < y.values.size(); ++i) {
    const size_t c = channel[i];
    const Normalized n = centred(x.values[i], moments[c], std::sqrt(moments[c].variance + epsilon), x.dtype);
    store(y, i, scaled(n, call[1].values[c], call[2].values[c]));
  }
  return {y, mean, variance};
}

// ---------------------------------------------------------------- InstanceNormalization, GroupNormalization

// Groups of neighbouring channels of one image have a mean and a variance; InstanceNormalization has a group for each channel.
std::vector<Numbers> group_normalization(const Call& call) {
  const Numbers& x = call[0];
  Numbers y = zeros_with_scale(x.dtype, x.shape);
  if (y.values.empty()) return {y};
  const std::vector<size_t> channel = channels_of(x.shape);
  const auto channels = static_cast<size_t>(x.shape[1]), images = static_cast<size_t>(x.shape[0]);
  const auto groups = static_cast<size_t>(call.i("num_groups", x.shape[1])), elements = x.values.size() / images;
  std::vector<size_t> group(x.values.size());
  for (size_t i = 0; i < group.size(); ++i) group[i] = i / elements * groups + channel[i] / (channels / groups);
  std::vector<Moments> moments;
  for (const Elements& of_group : gathered(x, group, images * groups)) moments.push_back(moments_of(of_group, x.dtype));
  const auto epsilon = static_cast<Number>(call.f("epsilon", 1e-5));
  for (size_t i = 0; i < y.values.size(); ++i) {
    const Normalized n = centred(x.values[i], moments[group[i]], std::sqrt(moments[group[i]].variance + epsilon), x.dtype);
    store(y, i, scaled(n, call[1].values[channel[i]], call[2].values[channel[i]]));
  }
  return {y};
}

// ---------------------------------------------------------------- LRN

// The neighbours of channel c are those from c - floor((size - 1) / 2) to c + ceil((size - 1) / 2).
std::vector<Numbers> local_response(const Call& call) {
  const Numbers& x = call[0];
  const int64_t size = call.i("size", 0), before = (size - 1) / 2, behind = size / 2;
  const auto alpha = static_cast<Number>(call.f("alpha", 1e-4)), beta = static_cast<Number>(call.f("beta", 0.75)),
             bias = static_cast<Number>(call.f("bias", 1));
  Numbers y = zeros(x.dtype, x.shape);
  const std::vector<size_t> channel = channels_of(x.shape);
  int64_t step = 1;  // from a channel to the next
  for (int axis = 2; axis < x.shape.rank(); ++axis) step *= x.shape[axis];
  for (int64_t i = 0; i < x.size(); ++i) {
    const auto own = static_cast<int64_t>(channel[static_cast<size_t>(i)]);
    Number sum = 0;
    for (int64_t c = std::max<int64_t>(0, own - before); c <= std::min(x.shape[1] - 1, own + behind); ++c) {
      const Number n = x.values[static_cast<size_t>(i + (c - own) * step)];
      sum += n * n;
    }
    y.values[static_cast<size_t>(i)] = x.values[static_cast<size_t>(i)] / std::pow(bias + alpha / static_cast<Number>(size) * sum, beta);
  }
  return {y};
}

// ---------------------------------------------------------------- cases

// X's shape and the number of its channels.
struct Image {
  Kind kind;
  std::string shape, channels;
};
const std::vector<Image>& images() {
  static const auto& all = *new std::vector<Image>{{Kind::odd, "[3,5]", "[5]"},
                                                   {Kind::odd, "[2,3,17]", "[3]"},
                                                   {Kind::odd, "[2,4,5,7]", "[4]"},
                                                   {Kind::odd, "[3,33,3,3]", "[33]"},
                                                   {Kind::odd, "[1,6,1,1]", "[6]"},
                                                   {Kind::odd, "[2,1,65]", "[1]"},
                                                   {Kind::odd, "[1,2,64]", "[2]"},
                                                   {Kind::odd, "[5,8,8]", "[8]"},
                                                   {Kind::odd, "[2,2,16]", "[2]"},
                                                   {Kind::empty, "[0,4,3]", "[4]"},
                                                   {Kind::rank, "[2,4,1,2,1,2,3,1]", "[4]"},
                                                   {Kind::large, "[3,6,61,67]", "[6]"},
                                                   {Kind::large, "[257,300]", "[300]"},
                                                   {Kind::large, "[1,2,38700]", "[2]"}};
  return all;
}
// Channels of numbers, separate from channels with special ones.
const char* const special = "[2,4,3] = nan 1 2 inf 1 2 0 -0 0 3 3 3 1 2 -inf -1 0 1 1e-3 2e-3 0 -3 -3 -3";

// f32 and f64 round the difference from the mean, the deviation, its product with it, with the scale and the sum with the bias. 16-bit
// floats are computed in f32 and rounded once.
const std::map<DType, double> halves = {{DType::f16, 1}, {DType::bf16, 1}};
const char* const whole_tensors = "parameters are one number a channel; images have no steps";

Row batch() {
  std::vector<Case> cases;
  const auto add = [&](Kind kind, const std::string& x, const std::string& c, const std::string& more) {
    cases.push_back({kind, "T" + x + ", T" + c + ", T" + c + ", T" + c + ", T" + c + " = 0.25..2" + more});
  };
  for (const Image& image : images()) {
    add(image.kind, image.shape, image.channels, "");
    if (image.kind != Kind::empty) add(image.kind, image.shape, image.channels, "; training_mode=1");
  }
  for (const char* mode : {"0", "1"}) {
    const std::string more = "; epsilon=0.25, momentum=0.625, training_mode=" + std::string(mode);
    add(Kind::odd, "[7]", "[1]", more);
    add(Kind::odd, "[2,3,17] = -9..9", "[3]", more);
    add(Kind::odd, special, "[4]", more);
    for (const char* parameters : {"U[3], U[3], f32[3], f32[3] = 0.25..2", "f32[3], f32[3], U[3], U[3] = 0.25..2"})
      cases.push_back({Kind::odd, "T[2,3,5], " + std::string(parameters) + more});
  }
  for (const char* mode : {"0", "1"})
    cases.push_back({Kind::large, "f32[5,6,81,83], f32[6], f32[6], f32[6], f32[6] = 0.25..2; training_mode=" + std::string(mode)});
  cases.push_back({Kind::large, "f32[691,301], f32[301], f32[301], f32[301], f32[301] = 0.25..2"});
  add(Kind::odd, "[2,3,17] = 1000..1010", "[3]", "; training_mode=1");
  add(Kind::odd, "[2,3,17]", "[3]", "; momentum=0, training_mode=1");
  add(Kind::empty, "[2,0,3]", "[0]", "");
  return {.type = "BatchNormalization",
          .reference = batch_normalization,
          .cases = cases,
          .ulps = 2.5,
          .without = {{Kind::broadcast, whole_tensors}, {Kind::strided, whole_tensors}},
          .ulps_of = halves};
}

Row instance() {
  std::vector<Case> cases;
  const auto add = [&](Kind kind, const std::string& x, const std::string& c, const std::string& more) {
    cases.push_back({kind, "T" + x + ", T" + c + ", T" + c + " = -3..3" + more});
  };
  for (const Image& image : images()) add(image.kind, image.shape, image.channels, "");
  cases.push_back({Kind::large, "f32[5,6,81,83], f32[6], f32[6]"});
  add(Kind::odd, "[2,3,17] = 1000..1010", "[3]", "");
  add(Kind::odd, "[2,3,17] = -9..9", "[3]", "; epsilon=0.25");
  add(Kind::odd, special, "[4]", "; epsilon=0.5");
  add(Kind::empty, "[2,0,3]", "[0]", "");
  add(Kind::empty, "[2,3,0]", "[3]", "");
  return {.type = "InstanceNormalization",
          .reference = group_normalization,
          .cases = cases,
          .ulps = 2.5,
          .without = {{Kind::broadcast, whole_tensors}, {Kind::strided, whole_tensors}},
          .ulps_of = halves};
}

Row group() {
  std::vector<Case> cases;
  const auto add = [&](Kind kind, const std::string& x, const std::string& c, const std::string& more) {
    cases.push_back({kind, "T" + x + ", T" + c + ", T" + c + " = -3..3; num_groups=" + more});
  };
  for (const Image& image : images()) {
    const int64_t channels = std::stoll(image.channels.substr(1));
    add(image.kind, image.shape, image.channels, "1");
    add(image.kind, image.shape, image.channels, std::to_string(channels % 2 == 0 ? channels / 2 : channels));
  }
  for (const char* groups : {"1", "2", "3", "6"}) {
    add(Kind::odd, "[2,6,17] = 1000..1010", "[6]", groups);
    add(Kind::odd, "[2,6,5,3] = -9..9", "[6]", std::string(groups) + ", epsilon=0.25");
  }
  cases.push_back({Kind::large, "f32[5,6,81,83], f32[6], f32[6]; num_groups=3"});
  for (const char* stash : {"10", "11", "16"}) add(Kind::odd, "[2,6,5,3] = -9..9", "[6]", "3, stash_type=" + std::string(stash));
  add(Kind::odd, special, "[4]", "2, epsilon=0.5");
  add(Kind::empty, "[2,3,0]", "[3]", "3");
  return {.type = "GroupNormalization",
          .reference = group_normalization,
          .cases = cases,
          .ulps = 2.5,
          .without = {{Kind::broadcast, whole_tensors}, {Kind::strided, whole_tensors}},
          .ulps_of = halves};
}

Row lrn() {
  std::vector<Case> cases;
  for (const Image& image : images()) {
    cases.push_back({image.kind, "T" + image.shape + "; size=3"});
    cases.push_back({image.kind, "T" + image.shape + " = -9..9; size=4, alpha=0.5, beta=0.5, bias=2.0"});
  }
  for (const char* size : {"1", "2", "5", "6", "31"})
    cases.push_back({Kind::odd, "T[2,7,5,3] = -9..9; alpha=0.25, size=" + std::string(size)});
  cases.push_back({Kind::odd, "T[1,4,3] = nan 1 2 inf 1 2 0 -0 0 3 3 3; size=1"});
  cases.push_back({Kind::odd, "T[1,5,3] = nan 1 2 3 1 2 0 -0 0 -inf 3 3 1 2 3; size=3, beta=-1.5, bias=-0.5"});
  cases.push_back({Kind::empty, "T[2,3,0]; size=3"});
  cases.push_back({Kind::empty, "T[2,0,3]; size=3"});
  // The sum, its power with beta and the quotient are rounded.
  return {.type = "LRN",
          .reference = local_response,
          .cases = cases,
          .ulps = 2.5,
          .without = {{Kind::broadcast, "one input"}, {Kind::strided, "neighbours are next to each other"}},
          .ulps_of = halves};
}

}  // namespace
}  // namespace reference_normalization_channel

std::vector<Row> normalization_channel_rows() {
  using namespace reference_normalization_channel;
  return {batch(), instance(), group(), lrn()};
}

}  // namespace heddle::conformance
