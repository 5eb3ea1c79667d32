// Softmax and the normalisations against plain loops in double precision; tiles, layouts, dtypes, errors.
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "operators/layouts/layout_support.h"
#include "operators/pointwise_support.h"

namespace heddle::testing {
namespace {

std::vector<float> uniform_noise(int64_t n, unsigned seed = 1, float centre = 0) {
  std::mt19937 random(seed);
  std::vector<float> v(static_cast<size_t>(n));
  for (float& f : v) f = static_cast<float>(random() % 4001) / 1000.0f - 2.0f + centre;
  return v;
}
std::vector<double> doubles(const std::vector<float>& v) {
  return {v.begin(), v.end()};
}

// Applies `f` in place to each line of `x` along `axis`.
using Line = std::vector<double>;
std::vector<double> along(const Shape& shape, int axis, std::vector<double> x, const std::function<void(Line&)>& f) {
  int64_t inner = 1;
  for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  const int64_t count = shape[axis], lines = shape.element_count() / count;
  for (int64_t l = 0; l < lines; ++l) {
    Line line;
    const auto at = [&](int64_t i) { return static_cast<size_t>(l / inner * count * inner + l % inner + i * inner); };
    for (int64_t i = 0; i < count; ++i) line.push_back(x[at(i)]);
    f(line);
    for (int64_t i = 0; i < count; ++i) x[at(i)] = line[static_cast<size_t>(i)];
  }
  return x;
}
void softmax(Line& line) {
  double sum = 0;
  for (double& v : line) sum += v = std::exp(v);
  for (double& v : line) v /= sum;
}
void log_softmax(Line& line) {
  double sum = 0;
  for (double v : line) sum += std::exp(v);
  for (double& v : line) v -= std::log(sum);
}
void normalize(Line& line, double epsilon) {
  double mean = 0, variance = 0;
  for (double v : line) mean += v / static_cast<double>(line.size());
  for (double v : line) variance += (v - mean) * (v - mean) / static_cast<double>(line.size());
  for (double& v : line) v = (v - mean) / std::sqrt(variance + epsilon);
}

void expect_near(const std::vector<float>& got, const std::vector<double>& expected, double tolerance = 1e-5) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], tolerance * (1 + std::fabs(expected[i]))) << "element " << i;
}

// Runs a call whole and in random tiles; both must agree to the bit.
std::vector<float> run_both(OperatorCall call) {
  const std::vector<float> whole = values<float>(*run(call)[0]);
  for (uint64_t seed = 1; seed < 4; ++seed) {
    call.split_seed = seed;
    EXPECT_EQ(values<float>(*run(call)[0]), whole) << "depends on the division into tiles";
  }
  return whole;
}

TEST(Softmax, EveryAxisAndOddLengths) {
  for (const Shape& shape : {Shape{3, 5, 7}, Shape{400, 197}, Shape{2, 3, 150}, Shape{1, 1000}, Shape{9, 64, 130}})
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const std::vector<float> x = uniform_noise(shape.element_count());
      const std::vector<Attribute> attributes = {{"axis", int64_t{axis - shape.rank()}}};
      expect_near(run_both(call_of("Softmax", {tensor(shape, x)}, attributes)), along(shape, axis, doubles(x), softmax), 1e-6);
      expect_near(run_both(call_of("LogSoftmax", {tensor(shape, x)}, attributes)), along(shape, axis, doubles(x), log_softmax));
    }
}

TEST(Softmax, LargeValuesMasksAndOtherDtypes) {
  EXPECT_EQ(values<float>(*run1("Softmax", {tensor<float>(Shape{3}, {1000, 1000, -inf})})), (std::vector<float>{0.5f, 0.5f, 0}));
  for (float v : values<float>(*run1("Softmax", {tensor<float>(Shape{2}, {-inf, -inf})}))) EXPECT_TRUE(std::isnan(v));
  const std::vector<double> y = values<double>(*run1("Softmax", {tensor<double>(Shape{2, 1}, {0, std::log(3.0)})}, {{"axis", int64_t{0}}}));
  EXPECT_NEAR(y[1], 0.75, 1e-15);
  EXPECT_EQ(values<uint16_t>(*run1("Softmax", {halves(DType::f16, Shape{2}, {0, 0})})), (std::vector<uint16_t>{0x3800, 0x3800}));
  EXPECT_EQ(values<float>(*run1("Hardmax", {tensor<float>(Shape{2, 3}, {1, 5, 5, 2, 1, 0})})), (std::vector<float>{0, 1, 0, 1, 0, 0}));
  EXPECT_EQ(values<float>(*run1("Hardmax", {tensor<float>(Shape{2, 3}, {1, 5, 5, 2, 1, 0})}, {{"axis", int64_t{0}}})),
            (std::vector<float>{0, 1, 1, 1, 0, 0}));
  EXPECT_EQ(run1("Softmax", {tensor<float>(Shape{2, 0}, {})})->shape, (Shape{2, 0}));
  EXPECT_NE(error_of(call_of("Softmax", {tensor<float>(Shape{2}, {1, 2})}, {{"axis", int64_t{1}}})).find("axis is 1"), std::string::npos);
}

TEST(LayerNormalization, RowsScaleBiasAndStatistics) {
  const Shape shape{2, 130, 77};
  const std::vector<float> x = uniform_noise(shape.element_count(), 3, 100), scale = uniform_noise(77, 4), bias = uniform_noise(77, 5);
  std::vector<double> expected = along(shape, 2, doubles(x), [](Line& line) { normalize(line, 1e-5); });
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = expected[i] * scale[i % 77] + bias[i % 77];
  OperatorCall call = call_of("LayerNormalization", {tensor(shape, x), tensor(Shape{77}, scale), tensor(Shape{77}, bias)}, {}, 3);
  expect_near(run_both(call), expected, 2e-5);
  const auto outputs = run(call);
  EXPECT_EQ(outputs[1]->shape, (Shape{2, 130, 1}));
  double mean = 0, squares = 0;
  for (size_t i = 0; i < 77; ++i) mean += x[i] / 77.0;
  for (size_t i = 0; i < 77; ++i) squares += (x[i] - mean) * (x[i] - mean) / 77;
  EXPECT_NEAR(values<float>(*outputs[1])[0], mean, 1e-4);
  EXPECT_NEAR(values<float>(*outputs[2])[0], 1 / std::sqrt(squares + 1e-5), 1e-5);
}

TEST(LayerNormalization, SeveralAxesOneScaleAndDoubles) {
  const Shape shape{3, 4, 5};
  const std::vector<float> x = uniform_noise(60);
  std::vector<double> expected = along(Shape{3, 20}, 1, doubles(x), [](Line& line) { normalize(line, 0.1); });
  for (double& v : expected) v *= 2;
  const std::vector<Attribute> attributes = {{"axis", int64_t{1}}, {"epsilon", 0.1}};
  expect_near(values<float>(*run1("LayerNormalization", {tensor(shape, x), tensor<float>(Shape{1}, {2})}, attributes)), expected);
  const std::vector<double> y = values<double>(
      *run1("LayerNormalization", {tensor(shape, doubles(x)), tensor<double>(Shape{1, 5}, std::vector<double>(5, 2))}, attributes));
  for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], expected[i], 1e-13);
  EXPECT_NE(error_of(call_of("LayerNormalization", {tensor(shape, x), tensor<float>(Shape{4}, {1, 1, 1, 1})})).find("scale has shape [4]"),
            std::string::npos);
}

// Rows whose noise is a few thousand times below their mean: an uncorrected rounding error of the f32 mean would show in every element.
std::vector<float> near_constant(int64_t n, float centre, float spread, unsigned seed) {
  std::vector<float> v = uniform_noise(n, seed);
  for (float& f : v) f = centre + f * spread;
  return v;
}
template <class Operator>
void expect_exact_moments(int64_t length, Operator&& normalized) {
  for (const float centre : {1000.0f, -3.0e4f, 7.0f})
    for (const float spread : {1.0f, 1e-3f, 1e-5f, 0.0f}) {
      const std::vector<float> x = near_constant(3 * length, centre, spread * std::fabs(centre) / 1000, 5);
      const auto expected = along({3, length}, 1, doubles(x), [](Line& line) { normalize(line, 1e-5); });
      const std::vector<float> y = normalized(x);
      ASSERT_EQ(y.size(), expected.size());
      // The tolerance is a few units in the last place: the differences from the mean are exact, their product with 1 / deviation is
      // rounded.
      for (size_t i = 0; i < y.size(); ++i)
        ASSERT_NEAR(y[i], expected[i], 5e-7 * (1 + std::fabs(expected[i]))) << "length " << length << ", " << centre << " +- " << spread;
    }
}

TEST(LayerNormalization, OfNearlyConstantRowsLosesNothing) {
  for (const int64_t length : {7, 100, 768, 1000, 5000})
    expect_exact_moments(length, [&](const std::vector<float>& x) {
      return values<float>(*run1("LayerNormalization", {tensor<float>({3, length}, x), tensor<float>({1}, {1})}, {{"epsilon", 1e-5}}));
    });
  // Mean and deviation are outputs here.
  const std::vector<float> x = near_constant(768, 1000, 1e-3f, 9);
  const auto outputs = run(call_of("LayerNormalization", {tensor<float>({1, 768}, x), tensor<float>({1}, {1})}, {}, 3));
  double mean = 0, variance = 0;
  for (const float v : x) mean += static_cast<double>(v) / 768;
  for (const float v : x) variance += (static_cast<double>(v) - mean) * (static_cast<double>(v) - mean) / 768;
  EXPECT_EQ(values<float>(*outputs.at(1))[0], static_cast<float>(mean));
  EXPECT_NEAR(values<float>(*outputs.at(2))[0] * std::sqrt(variance + 1e-5), 1, 1e-6);
}

TEST(GroupNormalization, OfNearlyConstantGroupsLosesNothing) {
  const Tensor one = tensor<float>({3}, {1, 1, 1}), zero = tensor<float>({3}, {0, 0, 0});
  for (const int64_t length : {49, 784})
    for (const bool instance : {true, false})
      expect_exact_moments(length, [&](const std::vector<float>& x) {
        const std::vector<Attribute> attributes = instance ? std::vector<Attribute>{} : std::vector<Attribute>{{"num_groups", int64_t{3}}};
        return values<float>(
            *run1(instance ? "InstanceNormalization" : "GroupNormalization", {tensor<float>({1, 3, length}, x), one, zero}, attributes));
      });
}

TEST(RmsNormalization, DividesByTheRootMeanSquare) {
  const std::vector<float> y =
      values<float>(*run1("RMSNormalization", {tensor<float>(Shape{1, 2}, {3, 4}), tensor<float>(Shape{2}, {1, 10})}, {{"epsilon", 0.0}}));
  EXPECT_NEAR(y[0], 3 / std::sqrt(12.5), 1e-6);
  EXPECT_NEAR(y[1], 40 / std::sqrt(12.5), 1e-5);
}

TEST(BatchNormalization, BothLayoutsGiveTheSameBits) {
  const Shape shape{2, 3, 5, 7};
  const std::vector<float> x = uniform_noise(210), scale = {1, 2, -3}, bias = {0, 1, 2}, mean = {0.5f, -1, 0}, variance = {1, 4, 0.25f};
  std::vector<double> expected(210);
  std::vector<float> stored(210);
  const auto last_index = [](size_t i) { return (i / 105 * 35 + i % 35) * 3 + i / 35 % 3; };
  for (size_t i = 0; i < 210; ++i) {
    const size_t c = i / 35 % 3;
    expected[i] = (x[i] - mean[c]) / std::sqrt(variance[c] + 1e-5) * scale[c] + bias[c];
    stored[last_index(i)] = x[i];
  }
  const auto channels = [](const std::vector<float>& v) { return tensor(Shape{3}, v); };
  OperatorCall call =
      call_of("BatchNormalization", {tensor(shape, x), channels(scale), channels(bias), channels(mean), channels(variance)});
  const std::vector<float> row_major = run_both(call);
  expect_near(row_major, expected);
  heddle_layout last = {};
  last.rank = 4;
  const uint8_t order[] = {0, 2, 3, 1};
  std::copy(order, order + 4, last.order);
  call.inputs[0] = tensor(shape, stored);
  call.input_layouts = {last};
  call.output_layouts = {last};
  const std::vector<float> channels_last = run_both(call);
  for (size_t i = 0; i < 210; ++i) EXPECT_EQ(channels_last[last_index(i)], row_major[i]);
  call.inputs[1] = tensor<float>(Shape{2}, {1, 1});
  EXPECT_NE(error_of(call).find("scale has shape [2], expected [3]"), std::string::npos);
}

// Compares all outputs of a call in both layouts, whole and in random tiles.
void expect_both_layouts_same(OperatorCall call, const std::vector<size_t>& images) {
  const std::vector<Tensor> row_major = run(call);
  const heddle_layout last = channels_last_layout(call.inputs[images[0]]->shape.rank());
  call.input_layouts.resize(call.inputs.size());
  call.output_layouts = {last};
  for (const size_t i : images) {
    call.inputs[i] = reorder_channels(call.inputs[i], true);
    call.input_layouts[i] = last;
  }
  for (const uint64_t seed : {0, 1, 2}) {
    call.split_seed = seed;
    std::vector<Tensor> got = run(call);
    got[0] = reorder_channels(got[0], false);
    for (size_t o = 0; o < row_major.size(); ++o)
      expect_same_bits(got[o], row_major[o], call.inputs[images[0]]->shape.text() + " output " + std::to_string(o));
  }
}

TEST(BatchNormalization, OfABatchBothLayoutsGiveTheSameBits) {
  // One pixel, less than a vector, several vectors, more than is summed at once; channels of no, one and several vectors, and a rest.
  for (const Shape& shape : {Shape{2, 3, 5, 7}, Shape{5, 33, 1, 1}, Shape{2, 70, 3, 3}, Shape{3, 16, 8, 9}, Shape{2, 133, 7, 7},
                             Shape{2, 37, 23, 91}, Shape{2, 9, 1100}, Shape{1, 40, 3, 5, 7}}) {
    const auto channels = [&](uint32_t seed) { return random_tensor(Shape{shape[1]}, seed); };
    const Tensor x = random_tensor(shape, 1), dy = random_tensor(shape, 2), variance = run1("Abs", {channels(5)});
    const std::vector<Attribute> of_batch = {{"training_mode", int64_t{1}}};
    const Tensor mean = channels(6);
    expect_both_layouts_same(call_of("BatchNormalization", {x, channels(3), channels(4), mean, variance}, of_batch, 3), {0});
    OperatorCall gradient = call_of("BatchNormalizationGradient", {dy, x, channels(3), nullptr, nullptr, mean, channels(7)}, of_batch, 3);
    gradient.domain = "heddle";
    expect_both_layouts_same(gradient, {0, 1});
    gradient.inputs = {dy, x, channels(3), mean, variance};
    gradient.attributes = {};
    expect_both_layouts_same(gradient, {0, 1});
  }
  // Sums overflow f32: the mean is infinite.
  const Shape shape{1, 2, 5, 21};
  const Tensor huge = tensor(shape, std::vector<float>(210, 3e38F)), ones = tensor<float>(Shape{2}, {1, 1});
  const std::vector<Attribute> of_batch = {{"training_mode", int64_t{1}}};
  expect_both_layouts_same(call_of("BatchNormalization", {huge, ones, ones, ones, ones}, of_batch, 3), {0});
  OperatorCall gradient = call_of("BatchNormalizationGradient", {huge, huge, ones}, of_batch, 3);
  gradient.domain = "heddle";
  expect_both_layouts_same(gradient, {0, 1});
}

TEST(GroupNormalization, GroupsAndInstances) {
  const Shape shape{2, 6, 35};
  const std::vector<float> x = uniform_noise(420, 9, 50), scale = uniform_noise(6, 2), bias = uniform_noise(6, 3);
  const std::vector<Tensor> inputs = {tensor(shape, x), tensor(Shape{6}, scale), tensor(Shape{6}, bias)};
  const auto expected = [&](int64_t groups) {
    std::vector<double> y = along(Shape{2 * groups, 420 / (2 * groups)}, 1, doubles(x), [](Line& line) { normalize(line, 1e-5); });
    for (size_t i = 0; i < y.size(); ++i) y[i] = y[i] * scale[i / 35 % 6] + bias[i / 35 % 6];
    return y;
  };
  expect_near(run_both(call_of("GroupNormalization", inputs, {{"num_groups", int64_t{3}}})), expected(3), 3e-5);
  expect_near(run_both(call_of("InstanceNormalization", inputs)), expected(6), 3e-5);
  EXPECT_NE(error_of(call_of("GroupNormalization", inputs, {{"num_groups", int64_t{4}}})).find("does not divide 6"), std::string::npos);
}

TEST(LocalResponse, WindowsReachTheEdges) {
  const Shape shape{1, 7, 9};
  const std::vector<float> x = uniform_noise(63);
  std::vector<double> expected(63);
  for (int c = 0; c < 7; ++c)
    for (int s = 0; s < 9; ++s) {
      double sum = 0;
      for (int k = std::max(0, c - 1); k <= std::min(6, c + 2); ++k)
        sum += double(x[static_cast<size_t>(k * 9 + s)]) * x[static_cast<size_t>(k * 9 + s)];
      expected[static_cast<size_t>(c * 9 + s)] = x[static_cast<size_t>(c * 9 + s)] / std::pow(2 + 0.5 / 4 * sum, 0.75);
    }
  expect_near(run_both(call_of("LRN", {tensor(shape, x)}, {{"size", int64_t{4}}, {"alpha", 0.5}, {"bias", 2.0}})), expected);
}

TEST(OtherNormalizations, LpAndMeanVariance) {
  EXPECT_EQ(values<float>(*run1("LpNormalization", {tensor<float>(Shape{2, 2}, {3, 4, 0, 0})})), (std::vector<float>{0.6f, 0.8f, 0, 0}));
  EXPECT_EQ(values<float>(*run1("LpNormalization", {tensor<float>(Shape{2, 2}, {3, 4, 1, -4})}, {{"p", int64_t{1}}, {"axis", int64_t{0}}})),
            (std::vector<float>{0.75f, 0.5f, 0.25f, -0.5f}));
  EXPECT_NE(error_of(call_of("LpNormalization", {tensor<float>(Shape{1}, {1})}, {{"p", int64_t{3}}})).find("p is 3"), std::string::npos);
  const std::vector<float> x = uniform_noise(2 * 3 * 4 * 5);
  const std::vector<float> y = values<float>(*run1("MeanVarianceNormalization", {tensor(Shape{2, 3, 4, 5}, x)}));
  for (size_t c = 0; c < 3; ++c) {
    Line line;
    for (size_t i = 0; i < x.size(); ++i)
      if (i / 20 % 3 == c) line.push_back(x[i]);
    normalize(line, 0);
    size_t k = 0;
    for (size_t i = 0; i < x.size(); ++i)
      if (i / 20 % 3 == c) {
        ASSERT_NEAR(y[i], line[k], 1e-5);
        ++k;
      }
  }
}

}  // namespace
}  // namespace heddle::testing
