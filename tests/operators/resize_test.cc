// Resize and GridSample against plain loops in double: every interpolation, coordinate mode and dtype. Integers are rounded to the nearest
// one, ties to even, and saturate (ONNX's reference implementation: saturate_cast).
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "operators/pointwise_support.h"

namespace heddle::testing {
namespace {

constexpr const char* coordinate_modes[] = {"half_pixel",    "half_pixel_symmetric", "pytorch_half_pixel",
                                            "align_corners", "asymmetric",           "tf_crop_and_resize"};
constexpr double crop_start = 0.25, crop_end = 0.75;  // of both axes; exact in f32

struct Sampling {
  std::string mode = "linear", coordinates = "half_pixel";
  bool antialias = false, exclude_outside = false;
};

// ONNX Resize-19, "coordinate_transformation_mode".
double source(const std::string& coordinates, double x, double in, double out) {
  const double scale = out / in;
  if (coordinates == "half_pixel" || coordinates == "half_pixel_symmetric") return (x + 0.5) / scale - 0.5;  // equal where sizes are given
  if (coordinates == "pytorch_half_pixel") return out > 1 ? (x + 0.5) / scale - 0.5 : 0;
  if (coordinates == "align_corners") return out == 1 ? 0 : x * (in - 1) / (out - 1);
  if (coordinates == "asymmetric") return x / scale;
  return out > 1 ? crop_start * (in - 1) + x * (crop_end - crop_start) * (in - 1) / (out - 1) : 0.5 * (crop_start + crop_end) * (in - 1);
}

double kernel(const std::string& mode, double distance) {
  const double d = std::fabs(distance), a = -0.75;
  if (mode == "linear") return std::max(0.0, 1 - d);
  if (d <= 1) return (a + 2) * d * d * d - (a + 3) * d * d + 1;
  return d < 2 ? a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a : 0;
}

// Returns the weight of each input position at output position x; empty: outside a cropped input.
std::vector<double> weights(const Sampling& s, int64_t x, int64_t in, int64_t out) {
  const double at = source(s.coordinates, static_cast<double>(x), static_cast<double>(in), static_cast<double>(out));
  if (s.coordinates == "tf_crop_and_resize" && (at < 0 || at > static_cast<double>(in - 1))) return {};
  const double shrink = s.antialias ? std::min(1.0, static_cast<double>(out) / static_cast<double>(in)) : 1;
  std::vector<double> w(static_cast<size_t>(in), 0.0);
  double sum = 0;
  for (int64_t k = -4 * in - 4; k < 5 * in + 4; ++k) {
    if (s.exclude_outside && (k < 0 || k >= in)) continue;
    const double v = kernel(s.mode, (static_cast<double>(k) - at) * shrink);
    w[static_cast<size_t>(std::clamp<int64_t>(k, 0, in - 1))] += v;
    sum += v;
  }
  if (s.antialias || s.exclude_outside)
    for (double& v : w) v /= sum;
  return w;
}

std::vector<double> resized(const Sampling& s, const std::vector<double>& x, int64_t rows, int64_t columns, int64_t to_rows,
                            int64_t to_columns) {
  std::vector<double> y;
  for (int64_t i = 0; i < to_rows; ++i)
    for (int64_t j = 0; j < to_columns; ++j) {
      const std::vector<double> down = weights(s, i, rows, to_rows), across = weights(s, j, columns, to_columns);
      double sum = down.empty() || across.empty() ? 0.0 : 0;
      for (size_t a = 0; a < down.size() && !across.empty(); ++a)
        for (size_t b = 0; b < across.size(); ++b) sum += down[a] * across[b] * x[a * across.size() + b];
      y.push_back(sum);
    }
  return y;
}

template <class T>
double allowed(double value) {
  if constexpr (std::is_integral_v<T>) {
    value = std::nearbyint(value);
    return std::clamp(value, static_cast<double>(std::numeric_limits<T>::min()), static_cast<double>(std::numeric_limits<T>::max()));
  }
  return value;
}

// Returns true if y is the exact value converted to T. A tie that an error of the last digit decides may go either way.
template <class T>
bool is_result(T y, double exact, double magnitude) {
  const double slack = magnitude * (std::is_same_v<T, float> ? 1e-5 : 1e-14), given = static_cast<double>(y);
  if constexpr (std::is_integral_v<T>) return given >= allowed<T>(exact - slack) && given <= allowed<T>(exact + slack);
  return std::fabs(given - exact) <= slack;
}

Attribute text(const char* name, const std::string& value) {
  return {name, value};
}
OperatorCall resize_call(const Sampling& s, const Tensor& x, int64_t rows, int64_t columns) {
  return call_of("Resize",
                 {x, tensor<float>({4}, {crop_start, crop_start, crop_end, crop_end}), nullptr, tensor<int64_t>({2}, {rows, columns})},
                 {text("mode", s.mode),
                  text("coordinate_transformation_mode", s.coordinates),
                  {"antialias", int64_t{s.antialias}},
                  {"exclude_outside", int64_t{s.exclude_outside}}});
}
std::vector<Sampling> all_samplings() {
  std::vector<Sampling> all;
  for (const char* mode : {"linear", "cubic"})
    for (const char* coordinates : coordinate_modes)
      for (const bool antialias : {false, true})
        for (const bool exclude : {false, true}) all.push_back({mode, coordinates, antialias, exclude});
  return all;
}
std::string name_of(const Sampling& s) {
  return s.mode + " " + s.coordinates + (s.antialias ? " antialias" : "") + (s.exclude_outside ? " exclude_outside" : "");
}

// Calls f(T()) for every element type that can be interpolated.
template <class F>
void for_each_type(F&& f) {
  const auto call = [&](auto... zeros) { (f(zeros), ...); };
  call(uint8_t(), int8_t(), uint16_t(), int16_t(), uint32_t(), int32_t(), uint64_t(), int64_t(), float(), double());
}

template <class T>
void expect_plain_sums(T) {
  constexpr int64_t rows = 5, columns = 7;
  std::mt19937_64 random(7);
  std::vector<T> x;
  std::vector<double> exact;
  double magnitude = 0;
  for (int64_t i = 0; i < rows * columns; ++i) {
    // The numbers use every bit of the narrow types, and up to 2^50 of the wide ones: sums in double stay exact.
    if constexpr (std::is_floating_point_v<T>)
      x.push_back(static_cast<T>(static_cast<double>(random() % 2000) / 16 - 60));
    else
      x.push_back(static_cast<T>(random() >> (sizeof(T) == 8 ? 14 : 0)));
    exact.push_back(static_cast<double>(x.back()));
    magnitude = std::max(magnitude, std::fabs(exact.back()));
  }
  const Tensor input = tensor<T>({rows, columns}, x);
  for (const Sampling& s : all_samplings())
    for (const auto& [to_rows, to_columns] : {std::pair<int64_t, int64_t>{5, 7}, {9, 16}, {3, 4}, {1, 1}, {8, 3}, {4, 37}}) {
      const auto result = run_operator(cpu_registry(), resize_call(s, input, to_rows, to_columns));
      ASSERT_TRUE(result.ok()) << result.status().text();
      const std::vector<T> y = values<T>(*result->front());
      const std::vector<double> wanted = resized(s, exact, rows, columns, to_rows, to_columns);
      for (size_t i = 0; i < y.size(); ++i)
        ASSERT_TRUE(is_result(y[i], wanted[i], magnitude))
            << name_of(s) << " to " << to_rows << "x" << to_columns << ": element " << i << " is " << +y[i] << ", expected " << wanted[i];
    }
}

TEST(Resize, IsThePlainSumOfItsTapsRoundedToNearest) {
  for_each_type([](auto zero) { expect_plain_sums(zero); });
}

template <class T>
void expect_identities(T) {
  const Tensor sevens = tensor<T>({6, 9}, std::vector<T>(54, T(7)));
  // The numbers have more digits than f32 holds, and for 64-bit integers more than f64 does.
  std::vector<T> v;
  for (int64_t i = 0; i < 54; ++i) v.push_back(static_cast<T>(std::numeric_limits<T>::max() - static_cast<T>(i)));
  const Tensor large = tensor<T>({6, 9}, v);
  for (const Sampling& s : all_samplings()) {
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{6, 9}, {13, 17}, {4, 5}, {31, 2}}) {
      const std::vector<T> y = values<T>(*run(resize_call(s, sevens, rows, columns)).at(0));
      for (const T e : y)
        ASSERT_NEAR(static_cast<double>(e), 7, std::is_integral_v<T> ? 0 : 1e-5) << name_of(s) << " to " << rows << "x" << columns;
    }
    if (s.coordinates == "tf_crop_and_resize") continue;
    ASSERT_EQ(values<T>(*run(resize_call(s, large, 6, 9)).at(0)), v) << name_of(s);
  }
}

TEST(Resize, OfOneValueIsThatValueAndOfTheSameSizeTheSame) {
  for_each_type([](auto zero) { expect_identities(zero); });
}

TEST(Resize, SaturatesWhereACubicOvershoots) {
  const Sampling cubic = {"cubic", "half_pixel", false, false};
  const auto extremes = [](const std::vector<uint8_t>& y) {
    return std::pair(*std::min_element(y.begin(), y.end()), *std::max_element(y.begin(), y.end()));
  };
  const Tensor edge = tensor<uint8_t>({1, 6}, {0, 0, 0, 255, 255, 255});
  EXPECT_EQ(extremes(values<uint8_t>(*run(resize_call(cubic, edge, 1, 17)).at(0))), (std::pair<uint8_t, uint8_t>(0, 255)));
  const auto row = values<uint8_t>(*run(resize_call(cubic, edge, 1, 12)).at(0));
  EXPECT_EQ(row[4], 0);    // -13.4 before clamping
  EXPECT_EQ(row[7], 255);  // 268.4
}

// ---------------------------------------------------------------- nearest

double rounded(const std::string& how, double x) {
  if (how == "floor") return std::floor(x);
  if (how == "ceil") return std::ceil(x);
  if (how == "round_prefer_floor") return std::ceil(x - 0.5);
  return std::floor(x + 0.5);
}

TEST(Resize, NearestTakesThePositionThatItsModeNames) {
  std::vector<int16_t> v(23);
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<int16_t>(i);
  for (const char* how : {"floor", "ceil", "round_prefer_floor", "round_prefer_ceil"})
    for (const char* coordinates : coordinate_modes)
      for (const int64_t size : {1, 2, 7, 11, 22, 23, 24, 46, 69, 100}) {
        const auto y = values<int16_t>(
            *run1("Resize", {tensor<int16_t>({23}, v), tensor<float>({2}, {crop_start, crop_end}), nullptr, tensor<int64_t>({1}, {size})},
                  {text("nearest_mode", how), text("coordinate_transformation_mode", coordinates)}));
        for (int64_t i = 0; i < size; ++i) {
          const double x = source(coordinates, static_cast<double>(i), 23, static_cast<double>(size));
          const auto one = [&](double at) { return std::clamp<int16_t>(static_cast<int16_t>(rounded(how, at)), 0, 22); };
          const int16_t given = y[static_cast<size_t>(i)];
          EXPECT_TRUE(given == one(x - 1e-4) || given == one(x + 1e-4) || given == one(x))
              << how << " " << coordinates << " " << size << ": element " << i << " is " << given << ", x " << x;
        }
      }
}

// Copies of whole boxes, and of rows whose positions are listed: all are what each axis alone gives.
TEST(Resize, NearestOfSeveralAxesIsThatOfEach) {
  const auto positions = [](int64_t from, int64_t to, const char* coordinates) {
    std::vector<int64_t> v(static_cast<size_t>(from));
    std::iota(v.begin(), v.end(), 0);
    const Tensor y = run1("Resize", {tensor<int64_t>({from}, v), nullptr, nullptr, tensor<int64_t>({1}, {to})},
                          {text("coordinate_transformation_mode", coordinates)});
    return values<int64_t>(*y);
  };
  constexpr int64_t planes = 3, rows = 8, columns = 12;
  for_each_type([&](auto zero) {
    using T = decltype(zero);
    std::vector<T> x;
    for (int64_t i = 0; i < planes * rows * columns; ++i) x.push_back(static_cast<T>(i % 119));
    for (const char* coordinates : {"half_pixel", "asymmetric", "align_corners"})
      for (const auto& [to_rows, to_columns] :
           {std::pair<int64_t, int64_t>{16, 24}, {4, 6}, {24, 12}, {8, 48}, {13, 24}, {16, 29}, {1, 3}}) {
        const std::vector<int64_t> row = positions(rows, to_rows, coordinates), column = positions(columns, to_columns, coordinates);
        std::vector<T> expected;
        for (int64_t p = 0; p < planes; ++p)
          for (const int64_t r : row)
            for (const int64_t c : column) expected.push_back(x[static_cast<size_t>((p * rows + r) * columns + c)]);
        OperatorCall call = call_of(
            "Resize", {tensor<T>({planes, rows, columns}, x), nullptr, nullptr, tensor<int64_t>({3}, {planes, to_rows, to_columns})},
            {text("coordinate_transformation_mode", coordinates)});
        call.split_seed = 3;
        EXPECT_EQ(values<T>(*run(call).at(0)), expected) << coordinates << " to " << to_rows << "x" << to_columns;
      }
  });
}

// onnxruntime does the same: in f32, 11 / 1.1f is 10.
// Positions 0, -1 or 1, 0, -1 are evenly spaced, too, but -1 stands for what is outside.
TEST(Resize, NearestOutsideOfACropIsTheExtrapolationValue) {
  const std::vector<Attribute> crop = {{"mode", std::string("nearest")},
                                       {"coordinate_transformation_mode", std::string("tf_crop_and_resize")},
                                       {"extrapolation_value", 9.0}};
  const auto cropped = [&](float start, float end, int64_t size) {
    return values<float>(*run1(
        "Resize",
        {tensor<float>({1, 1, 4}, {1, 2, 3, 4}), tensor<float>({6}, {0, 0, start, 1, 1, end}), nullptr, tensor<int64_t>({3}, {1, 1, size})},
        crop));
  };
  EXPECT_EQ(cropped(0, 2, 2), (std::vector<float>{1, 9}));
  EXPECT_EQ(cropped(0, 2, 4), (std::vector<float>{1, 3, 9, 9}));
  EXPECT_EQ(cropped(1, -1, 3), (std::vector<float>{4, 1, 9}));
  EXPECT_EQ(cropped(-1, 1, 3), (std::vector<float>{9, 1, 4}));
  EXPECT_EQ(cropped(2, 3, 2), (std::vector<float>{9, 9}));
}

TEST(Resize, NearestPositionsAreComputedInF32AsScalesAreGiven) {
  std::vector<float> v(40);
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(i);
  for (int tenths = 11; tenths < 40; ++tenths) {
    const float scale = static_cast<float>(tenths) / 10;
    const auto y = values<float>(*run1("Resize", {tensor<float>({40}, v), nullptr, tensor<float>({1}, {scale})},
                                       {text("nearest_mode", "floor"), text("coordinate_transformation_mode", "asymmetric")}));
    for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], std::floor(static_cast<float>(i) / scale)) << scale;
  }
}

// Resize of opset 10, with constant and other scales: the values are those of onnxruntime 1.31.
TEST(Resize, OfOpset10RoundsDownWhereAnAxisGrowsAndUpWhereItShrinks) {
  std::vector<float> v(24);
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(i);
  const auto first_row = [&](float down, float across, bool constant) {
    OperatorCall call = call_of("Resize", {tensor<float>({4, 6}, v), nullptr, tensor<float>({2}, {down, across})},
                                {text("nearest_mode", "floor_or_ceil"), text("coordinate_transformation_mode", "asymmetric")});
    call.constant_inputs = constant;
    const Tensor y = run(call).at(0);
    std::vector<float> all = values<float>(*y);
    all.resize(static_cast<size_t>(y->shape[1]));
    return all;
  };
  for (const bool constant : {false, true}) {
    EXPECT_EQ(first_row(0.6f, 0.6f, constant), (std::vector<float>{0, 2, 4}));
    EXPECT_EQ(first_row(1.5f, 0.34f, constant), (std::vector<float>{0, 3}));
    EXPECT_EQ(first_row(0.7f, 1.7f, constant), (std::vector<float>{0, 0, 1, 1, 2, 2, 3, 4, 4, 5}));
    EXPECT_EQ(first_row(1, 1, constant), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  }
}

// ---------------------------------------------------------------- GridSample

// PyTorch's grid_sample, mode bicubic: each tap is brought into range, not the coordinate.
double tap_of(const std::vector<float>& x, int64_t extent, int64_t p, const std::string& padding, bool align) {
  double at = static_cast<double>(p);
  const auto last = static_cast<double>(extent - 1);
  if (padding == "reflection") {
    const double low = align ? 0 : -0.5, span = align ? last : last + 1;
    double in = std::fabs(at - low);
    const double turns = std::floor(in / span);
    in -= turns * span;
    at = std::fmod(turns, 2) == 0 ? in + low : span - in + low;
  }
  if (padding != "zeros") at = std::clamp(at, 0.0, last);
  return at < 0 || at > last ? 0 : static_cast<double>(x[static_cast<size_t>(at)]);
}

// On a ramp, the mean of samples that lie evenly is that of the bin's middle, however many there are; more than 16 x 16 take other loops.
TEST(RoiAlign, OfARampIsItsMiddleForEverySamplingRatio) {
  constexpr int64_t channels = 5, side = 40;
  std::vector<double> x;
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t i = 0; i < side * side; ++i) x.push_back(static_cast<double>(c * 1000 + i / side * 2 + i % side));
  for (const int64_t ratio : {1, 2, 3, 16, 17, 20})
    for (const bool takes_max : {false, true}) {
      OperatorCall call = call_of("RoiAlign",
                                  {tensor<double>({1, channels, side, side}, x), tensor<double>({2, 4}, {2, 4, 32, 34, 5, 3, 14, 21}),
                                   tensor<int64_t>({2}, {0, 0})},
                                  {{"output_height", int64_t{9}}, {"output_width", int64_t{10}}, {"sampling_ratio", ratio}});
      if (takes_max) call.attributes.push_back(text("mode", "max"));
      call.split_seed = 3;
      const std::vector<double> y = values<double>(*run(call).at(0));
      ASSERT_EQ(y.size(), static_cast<size_t>(2 * channels * 90));
      for (size_t i = 0; i < y.size() && !takes_max; ++i) {
        const auto region = static_cast<double>(i / (channels * 90)), c = static_cast<double>(i / 90 % channels);
        const double height = region == 0 ? 30.0 / 9 : 2, width = region == 0 ? 3 : 0.9;
        const double row = (region == 0 ? 4 : 3) - 0.5 + height * (static_cast<double>(i % 90 / 10) + 0.5);
        const double column = (region == 0 ? 2 : 5) - 0.5 + width * (static_cast<double>(i % 10) + 0.5);
        ASSERT_NEAR(y[i], c * 1000 + 2 * row + column, 1e-9) << "element " << i << ", ratio " << ratio;
      }
      // The largest weighted corner is no larger than the largest element.
      for (const double v : y) ASSERT_LE(v, 1000.0 * channels);
    }
}

TEST(GridSample, CubicBringsEachTapInside) {
  const std::vector<float> x = {3, -7, 11, 2, 5};
  std::vector<float> grid;
  for (int i = -40; i <= 40; ++i) grid.push_back(static_cast<float>(i) / 16);
  for (const char* padding : {"zeros", "border", "reflection"})
    for (const bool align : {false, true}) {
      const auto y =
          values<float>(*run1("GridSample", {tensor<float>({1, 1, 5}, x), tensor<float>({1, static_cast<int64_t>(grid.size()), 1}, grid)},
                              {text("mode", "cubic"), text("padding_mode", padding), {"align_corners", int64_t{align}}}));
      for (size_t i = 0; i < grid.size(); ++i) {
        const double at = align ? (static_cast<double>(grid[i]) + 1) / 2 * 4 : ((static_cast<double>(grid[i]) + 1) * 5 - 1) / 2;
        double sum = 0;
        for (int64_t k = -1; k <= 2; ++k) {
          const double p = std::floor(at) + static_cast<double>(k);
          sum += kernel("cubic", at - p) * tap_of(x, 5, static_cast<int64_t>(p), padding, align);
        }
        EXPECT_NEAR(y[i], sum, 1e-5) << padding << " at " << at << (align ? ", corners aligned" : "");
      }
    }
}

}  // namespace
}  // namespace heddle::testing
