// Conv and ConvTranspose against plain loops in double: odd shapes, every layout, every split, fused operators.
#include <gtest/gtest.h>

#include "layout_support.h"
#include "operators/float_tiles_support.h"

namespace heddle::testing {
namespace {

struct Case {
  std::string name;
  Shape x, w;
  Ints strides, dilations, pads;
  int64_t group = 1;
  bool bias = true;
  Ints output_padding = {};
};

std::vector<Attribute> attributes_of(const Case& c) {
  std::vector<Attribute> attributes = {{"group", c.group}};
  if (!c.strides.empty()) attributes.push_back({"strides", c.strides});
  if (!c.dilations.empty()) attributes.push_back({"dilations", c.dilations});
  if (!c.pads.empty()) attributes.push_back({"pads", c.pads});
  if (!c.output_padding.empty()) attributes.push_back({"output_padding", c.output_padding});
  return attributes;
}

int64_t at(const Ints& list, size_t i, int64_t otherwise) {
  return list.empty() ? otherwise : list[i];
}

// Advances a position within a box like an odometer; returns false after the last one.
bool advance(Ints& position, const Ints& extents) {
  for (size_t i = extents.size(); i-- > 0;) {
    if (++position[i] < extents[i]) return true;
    position[i] = 0;
  }
  return false;
}

// Adds every product to the output it belongs to; works for both directions.
std::vector<float> expected(const Case& c, bool transposed, const Shape& y, const Tensor& xt, const Tensor& wt, const Tensor& bt) {
  const std::vector<float> x = values<float>(*xt), w = values<float>(*wt);
  const size_t spatial = static_cast<size_t>(c.x.rank() - 2);
  std::vector<double> sums(static_cast<size_t>(y.element_count()), 0.0);
  const int64_t channels = y[1], inputs = c.x[1];
  // `origins` are the extents of the side with the windows' origins: outputs of a convolution, inputs of its transpose.
  Ints origins, kernel, far;
  for (size_t i = 0; i < spatial; ++i) {
    const int axis = static_cast<int>(i) + 2;
    origins.push_back(transposed ? c.x[axis] : y[axis]);
    far.push_back(transposed ? y[axis] : c.x[axis]);
    kernel.push_back(c.w[axis]);
  }
  auto flat = [](const Ints& p, const Ints& extents) {
    int64_t f = 0;
    for (size_t i = 0; i < p.size(); ++i) f = f * extents[i] + p[i];
    return f;
  };
  auto count = [](const Ints& e) {
    int64_t n = 1;
    for (int64_t v : e) n *= v;
    return n;
  };
  const int64_t near_count = count(origins), far_count = count(far), taps = count(kernel);
  for (int64_t n = 0; n < c.x[0]; ++n) {
    for (int64_t o = 0; o < channels; ++o) {
      const int64_t group = o / (channels / c.group);
      for (int64_t i = group * (inputs / c.group); i < (group + 1) * (inputs / c.group); ++i) {
        Ints p(spatial, 0);
        do {
          Ints k(spatial, 0);
          do {
            Ints q(spatial);
            bool inside = true;
            for (size_t a = 0; a < spatial; ++a) {
              q[a] = p[a] * at(c.strides, a, 1) - at(c.pads, a, 0) + k[a] * at(c.dilations, a, 1);
              inside = inside && q[a] >= 0 && q[a] < far[a];
            }
            if (!inside) continue;
            const int64_t near = flat(p, origins), other = flat(q, far), tap = flat(k, kernel);
            if (transposed)
              sums[static_cast<size_t>((n * channels + o) * far_count + other)] +=
                  static_cast<double>(x[static_cast<size_t>((n * inputs + i) * near_count + near)]) *
                  w[static_cast<size_t>((i * (channels / c.group) + o % (channels / c.group)) * taps + tap)];
            else
              sums[static_cast<size_t>((n * channels + o) * near_count + near)] +=
                  static_cast<double>(x[static_cast<size_t>((n * inputs + i) * far_count + other)]) *
                  w[static_cast<size_t>((o * (inputs / c.group) + i % (inputs / c.group)) * taps + tap)];
          } while (advance(k, kernel));
        } while (advance(p, origins));
      }
    }
  }
  std::vector<float> result;
  const int64_t pixels = sums.empty() ? 1 : static_cast<int64_t>(sums.size()) / (y[0] * channels);
  const std::vector<float> bias = bt ? values<float>(*bt) : std::vector<float>(static_cast<size_t>(channels), 0.0f);
  for (size_t i = 0; i < sums.size(); ++i)
    result.push_back(
        static_cast<float>(sums[i] + static_cast<double>(bias[static_cast<size_t>(static_cast<int64_t>(i) / pixels % channels)])));
  return result;
}

OperatorCall make_call(const Case& c, const char* type, const std::vector<Tensor>& inputs, uint64_t seed, bool constant) {
  OperatorCall call = call_of(type, inputs, attributes_of(c));
  call.split_seed = seed;
  call.constant_inputs = constant;
  return call;
}

// Results of 16-bit floats are those of f32 rounded once, with the same bits in every layout.
void check_narrow(const Case& c, const char* type, const std::vector<Tensor>& inputs) {
  for (const bool constant : {true, false}) expect_f32_rounded_once(make_call(c, type, inputs, 0, constant), inputs, true);
  const heddle_layout layout = channels_last_layout(c.x.rank());
  for (const DType dtype : narrow_dtypes) {
    OperatorCall call = make_call(c, type, all_as_dtype(inputs, dtype), 0, true);
    const Tensor plain = run(call)[0];
    call.split_seed = 4;
    call.output_layouts = {layout};
    const auto reordered = [&](const Tensor& x, bool to_channels_last) {
      return as_dtype(reorder_channels(as_dtype(x, DType::f32), to_channels_last), dtype);
    };
    expect_same_bits(reordered(run(call)[0], false), plain, c.name + ", narrow, y channels-last");
    call.inputs[0] = reordered(call.inputs[0], true);
    call.input_layouts = {layout};
    expect_same_bits(reordered(run(call)[0], false), plain, c.name + ", narrow, channels-last");
  }
}

// Compares row-major with the loops, and all other layouts, splits and packings with row-major, bit for bit.
void check(const Case& c, const char* type) {
  const bool transposed = std::string(type) == "ConvTranspose";
  const int64_t channels = transposed ? c.w[1] * c.group : c.w[0];
  std::vector<Tensor> inputs = {random_tensor(c.x, 1), random_tensor(c.w, 2)};
  inputs.push_back(c.bias ? random_tensor(Shape{channels}, 3) : nullptr);
  const auto plain = run(make_call(c, type, inputs, 0, true));
  ASSERT_EQ(plain.size(), 1u) << c.name;
  expect_close(values<float>(*plain[0]), expected(c, transposed, plain[0]->shape, inputs[0], inputs[1], inputs[2]), 1e-5f * 20, c.name);
  for (uint64_t seed : {1, 2}) expect_same_bits(run(make_call(c, type, inputs, seed, true))[0], plain[0], c.name + ", split");
  expect_same_bits(run(make_call(c, type, inputs, 3, false))[0], plain[0], c.name + ", weights that are no constant");
  std::vector<Tensor> last = inputs;
  last[0] = reorder_channels(inputs[0], true);
  const heddle_layout layout = channels_last_layout(c.x.rank());
  for (int mode = 1; mode < 4; ++mode) {
    OperatorCall call = make_call(c, type, mode & 1 ? last : inputs, 4, true);
    if (mode & 1) call.input_layouts = {layout};
    if (mode & 2) call.output_layouts = {layout};
    const auto outputs = run(call);
    ASSERT_EQ(outputs.size(), 1u);
    expect_same_bits(mode & 2 ? reorder_channels(outputs[0], false) : outputs[0], plain[0],
                     c.name + ", layout mode " + std::to_string(mode));
  }
  check_narrow(c, type, inputs);
}

TEST(Conv, EqualsPlainLoopsInEveryLayoutAndSplit) {
  const Case cases[] = {
      {"3x3", {1, 16, 37, 29}, {33, 16, 3, 3}, {}, {}, {1, 1, 1, 1}},
      {"3x3 in tiles", {1, 16, 50, 50}, {24, 16, 3, 3}, {}, {}, {1, 1, 1, 1}},
      {"1x1", {1, 64, 40, 40}, {96, 64, 1, 1}, {}, {}, {}},
      {"1x1 of a batch", {3, 64, 21, 20}, {65, 64, 1, 1}, {}, {}, {}},
      {"1x1 stride 2", {1, 32, 31, 31}, {48, 32, 1, 1}, {2, 2}, {}, {}},
      {"stem", {1, 3, 63, 65}, {24, 3, 7, 7}, {2, 2}, {}, {3, 3, 3, 3}},
      {"asymmetric", {2, 7, 19, 23}, {5, 7, 3, 5}, {2, 3}, {}, {0, 2, 1, 3}},
      {"dilated", {1, 16, 40, 40}, {32, 16, 3, 3}, {1, 1}, {2, 3}, {2, 3, 2, 3}},
      {"groups", {1, 32, 20, 20}, {48, 8, 3, 3}, {}, {}, {1, 1, 1, 1}, 4},
      {"odd groups", {2, 6, 9, 9}, {9, 2, 3, 3}, {2, 1}, {}, {1, 0, 1, 0}, 3, false},
      {"stride above kernel", {1, 8, 30, 30}, {16, 8, 2, 2}, {3, 4}, {}, {}},
      {"one image each", {5, 8, 12, 12}, {16, 8, 3, 3}, {}, {}, {1, 1, 1, 1}},
      {"many images", {9, 8, 21, 21}, {16, 8, 3, 3}, {}, {}, {1, 1, 1, 1}},
      {"kernel as large as the image", {1, 4, 5, 6}, {3, 4, 5, 6}, {}, {}, {}},
      {"1d", {2, 5, 60}, {7, 5, 4}, {2}, {}, {1, 2}},
      {"1d long", {1, 16, 1500}, {48, 16, 5}, {}, {}, {2, 2}},
      {"3d", {1, 4, 9, 10, 11}, {6, 4, 3, 3, 3}, {1, 2, 1}, {}, {1, 1, 1, 1, 1, 1}},
      {"3d in tiles", {1, 8, 10, 12, 14}, {16, 8, 3, 3, 3}, {}, {}, {1, 1, 1, 1, 1, 1}},
      {"no bias", {1, 16, 14, 14}, {16, 16, 3, 3}, {}, {}, {1, 1, 1, 1}, 1, false},
      {"divided channels", {1, 256, 5, 5}, {128, 256, 3, 3}, {}, {}, {1, 1, 1, 1}},
      {"divided channels, 1x1", {1, 512, 7, 7}, {256, 512, 1, 1}, {}, {}, {}, 1, false},
      {"divided channels, stride 2", {1, 256, 9, 9}, {512, 256, 1, 1}, {2, 2}, {}, {}},
      {"divided channels, 1d", {1, 512, 16}, {256, 512, 3}, {}, {}, {1, 1}},
      {"empty batch", {0, 4, 5, 5}, {3, 4, 3, 3}, {}, {}, {}},
  };
  for (const Case& c : cases) check(c, "Conv");
}

TEST(Conv, Depthwise) {
  const Case cases[] = {
      {"stride 1", {1, 32, 28, 28}, {32, 1, 3, 3}, {1, 1}, {}, {1, 1, 1, 1}, 32},
      {"stride 2", {1, 48, 29, 31}, {48, 1, 3, 3}, {2, 2}, {}, {1, 1, 1, 1}, 48},
      {"odd channels", {2, 19, 13, 17}, {19, 1, 3, 3}, {1, 1}, {}, {1, 1, 1, 1}, 19, false},
      {"in tiles", {1, 96, 60, 60}, {96, 1, 3, 3}, {1, 1}, {}, {1, 1, 1, 1}, 96},
      {"no padding", {1, 24, 16, 16}, {24, 1, 3, 3}, {2, 2}, {}, {}, 24},
      {"asymmetric", {1, 17, 9, 8}, {17, 1, 3, 3}, {2, 2}, {}, {0, 0, 1, 1}, 17},
      {"narrow", {1, 33, 5, 2}, {33, 1, 3, 3}, {1, 1}, {}, {1, 1, 1, 1}, 33},
      {"wide padding", {1, 16, 4, 4}, {16, 1, 3, 3}, {1, 1}, {}, {2, 2, 2, 2}, 16},
      {"5x5", {1, 32, 20, 20}, {32, 1, 5, 5}, {2, 2}, {}, {2, 2, 2, 2}, 32},
      {"7x7", {2, 35, 19, 30}, {35, 1, 7, 7}, {1, 1}, {}, {3, 3, 3, 3}, 35},
      {"4x6, strides 2 and 3", {1, 16, 17, 40}, {16, 1, 4, 6}, {2, 3}, {}, {1, 2, 2, 3}, 16},
      {"dilated", {1, 20, 30, 31}, {20, 1, 3, 3}, {1, 1}, {2, 3}, {2, 3, 2, 3}, 20},
      {"dilated beyond the input", {1, 16, 9, 12}, {16, 1, 3, 3}, {1, 1}, {16, 16}, {16, 16, 16, 16}, 16},
      {"1d", {2, 40, 70}, {40, 1, 9}, {1}, {}, {4, 4}, 40},
      {"1d, no wider than a block", {1, 33, 3}, {33, 1, 5}, {1}, {}, {2, 2}, 33},
      {"1d, long and dilated", {1, 48, 3000}, {48, 1, 3}, {1}, {8}, {16, 0}, 48},
      {"1d, many channels, stride 2", {1, 600, 101}, {600, 1, 5}, {2}, {}, {2, 2}, 600, false},
      {"two outputs per channel", {1, 8, 12, 12}, {16, 1, 3, 3}, {1, 1}, {}, {1, 1, 1, 1}, 8},
  };
  for (const Case& c : cases) check(c, "Conv");
}

TEST(ConvTranspose, EqualsPlainLoopsInEveryLayoutAndSplit) {
  const Case cases[] = {
      {"2x2 stride 2", {1, 16, 14, 14}, {16, 24, 2, 2}, {2, 2}, {}, {}},
      {"3x3 padded", {2, 8, 11, 13}, {8, 6, 3, 3}, {2, 2}, {}, {1, 1, 1, 1}, 1, true, {1, 1}},
      {"groups", {1, 8, 9, 9}, {8, 3, 3, 3}, {1, 2}, {}, {1, 0, 0, 1}, 2, false},
      {"dilated", {1, 6, 8, 8}, {6, 5, 3, 3}, {1, 1}, {2, 2}, {2, 2, 2, 2}},
      {"stride above kernel", {1, 5, 6, 6}, {5, 4, 2, 2}, {4, 3}, {}, {}},
      {"1d", {2, 4, 17}, {4, 6, 5}, {3}, {}, {1, 2}},
      {"3d", {1, 4, 5, 6, 7}, {4, 3, 3, 2, 3}, {2, 1, 2}, {}, {1, 0, 1, 1, 0, 1}},
      {"images", {4, 16, 12, 12}, {16, 16, 4, 4}, {2, 2}, {}, {1, 1, 1, 1}},
      {"no overlap", {1, 32, 14, 15}, {32, 17, 2, 2}, {2, 2}, {}, {}},
      {"no overlap, in tiles of several images", {3, 32, 40, 40}, {32, 20, 2, 2}, {2, 2}, {}, {}, 1, false},
      {"no overlap, unequal strides", {2, 8, 9, 10}, {8, 5, 3, 2}, {3, 2}, {}, {}},
      {"no overlap, 1d", {2, 20, 61}, {20, 8, 4}, {4}, {}, {}},
      {"no overlap, 3d", {1, 6, 4, 5, 6}, {6, 7, 2, 1, 3}, {2, 1, 3}, {}, {}},
  };
  for (const Case& c : cases) check(c, "ConvTranspose");
}

// With the kernels of any dtype, an output_shape one stride beyond the input's reach, and an output_padding of a stride, are refused.
TEST(ConvTranspose, RefusesOutputsBeyondWhatItsInputReaches) {
  const auto refusal = [](const Tensor& x, const Tensor& w, const char* name, int64_t extent) {
    return error_of(call_of("ConvTranspose", {x, w}, {{"strides", Ints{2}}, {name, Ints{extent}}}));
  };
  const auto both = [&](const char* name, int64_t extent) {
    const std::string one = refusal(tensor<float>({1, 1, 5}, std::vector<float>(5, 1)), tensor<float>({1, 1, 1}, {1}), name, extent);
    EXPECT_EQ(one, refusal(tensor<double>({1, 1, 5}, std::vector<double>(5, 1)), tensor<double>({1, 1, 1}, {1}), name, extent));
    return one;
  };
  EXPECT_NE(both("output_shape", 11).find("output_shape asks for 11 elements of dimension 2, the input reaches 9"), std::string::npos);
  EXPECT_NE(both("output_padding", 2).find("output_padding is [2], expected numbers below the strides"), std::string::npos);
  EXPECT_EQ(run1("ConvTranspose", {tensor<float>({1, 1, 5}, std::vector<float>(5, 1)), tensor<float>({1, 1, 1}, {1})},
                 {{"strides", Ints{2}}, {"output_shape", Ints{10}}})
                ->shape,
            (Shape{1, 1, 10}));
}

TEST(Conv, AutoPad) {
  const Tensor x = random_tensor(Shape{1, 3, 10, 11}, 1), w = random_tensor(Shape{4, 3, 3, 4}, 2);
  auto shape_of = [&](const char* mode) { return run1("Conv", {x, w}, {{"auto_pad", std::string(mode)}, {"strides", Ints{2, 2}}})->shape; };
  EXPECT_EQ(shape_of("SAME_UPPER"), (Shape{1, 4, 5, 6}));
  EXPECT_EQ(shape_of("VALID"), (Shape{1, 4, 4, 4}));
  // The odd element of padding goes to the side that the mode names.
  const Tensor upper = run1("Conv", {x, w}, {{"auto_pad", std::string("SAME_UPPER")}, {"strides", Ints{2, 2}}});
  const Tensor lower = run1("Conv", {x, w}, {{"auto_pad", std::string("SAME_LOWER")}, {"strides", Ints{2, 2}}});
  expect_same_bits(run1("Conv", {x, w}, {{"pads", Ints{0, 1, 1, 2}}, {"strides", Ints{2, 2}}}), upper, "upper");
  expect_same_bits(run1("Conv", {x, w}, {{"pads", Ints{1, 2, 0, 1}}, {"strides", Ints{2, 2}}}), lower, "lower");
}

TEST(Conv, OtherDtypes) {
  const std::vector<double> x = {1, 2, 3, 4, 5, 6, 7, 8, 9}, w = {1, -1, 0.5, 2};
  const Tensor y = run1("Conv", {tensor<double>(Shape{1, 1, 3, 3}, x), tensor<double>(Shape{1, 1, 2, 2}, w)});
  EXPECT_EQ(values<double>(*y), (std::vector<double>{11, 13.5, 18.5, 21}));
}

struct Fusion {
  const char* name;
  std::vector<OperatorCall::EpilogueOp> epilogue_ops;  // operand_input 3 is the residual, 4 per channel, 5 a scalar
};

Tensor unfused(Tensor y, const Fusion& fusion, const std::vector<Tensor>& inputs) {
  for (const OperatorCall::EpilogueOp& epilogue_op : fusion.epilogue_ops) y = apply_epilogue_op(y, epilogue_op, inputs);
  return y;
}

TEST(Conv, FusedEpilogueOpsEqualSeparateOperators) {
  const Case depthwise = {"depthwise", {1, 40, 24, 24}, {40, 1, 3, 3}, {1, 1}, {}, {1, 1, 1, 1}, 40};
  const Case cases[] = {{"1x1", {1, 48, 30, 30}, {40, 48, 1, 1}, {}, {}, {}},
                        {"3x3", {2, 16, 24, 24}, {40, 16, 3, 3}, {}, {}, {1, 1, 1, 1}},
                        {"divided channels", {1, 64, 7, 7}, {1024, 64, 1, 1}, {}, {}, {}},
                        depthwise};
  const Fusion fusions[] = {
      {"relu", {{"max(acc, 0)"}}},
      {"residual and relu", {{"add(acc, operand)", 3, HEDDLE_OPERAND_SAME_SHAPE}, {"max(acc, 0)"}}},
      {"swish and residual", {{"mul(acc, sigmoid(acc))"}, {"add(operand, acc)", 3, HEDDLE_OPERAND_SAME_SHAPE}}},
      {"clip", {{"min(max(acc, 0), 6)"}}},
      {"bias and leaky", {{"add(acc, operand)", 4, HEDDLE_OPERAND_PER_CHANNEL}, {"select(lt(acc, 0), mul(0.1, acc), acc)"}}},
      {"product and scalar", {{"mul(acc, operand)", 3, HEDDLE_OPERAND_SAME_SHAPE}, {"mul(acc, operand)", 5, HEDDLE_OPERAND_SCALAR}}},
      {"two residuals", {{"add(acc, operand)", 3, HEDDLE_OPERAND_SAME_SHAPE}, {"add(acc, operand)", 3, HEDDLE_OPERAND_SAME_SHAPE}}},
      {"softplus", {{"log(add(exp(acc), 1))"}, {"max(acc, 0.25)"}}},
      {"hard swish", {{"mul(acc, min(max(add(mul(acc, 0.16666667), 0.5), 0), 1))"}}},
      {"scale per channel",
       {{"mul(acc, operand)", 4, HEDDLE_OPERAND_PER_CHANNEL}, {"tanh(acc)"}, {"sub(operand, acc)", 3, HEDDLE_OPERAND_SAME_SHAPE}}},
  };
  for (const Case& c : cases) {
    for (bool bias : {true, false}) {
      std::vector<Tensor> inputs = {random_tensor(c.x, 1), random_tensor(c.w, 2), bias ? random_tensor(Shape{c.w[0]}, 3) : nullptr};
      const Tensor plain = run(make_call(c, "Conv", inputs, 0, true))[0];
      inputs.push_back(random_tensor(plain->shape, 4));
      inputs.push_back(random_tensor(Shape{c.w[0], 1, 1}, 5));
      inputs.push_back(random_tensor(Shape{}, 6));
      for (const Fusion& fusion : fusions) {
        const std::string what = c.name + ", " + fusion.name + (bias ? ", bias" : "");
        OperatorCall call = make_call(c, "Conv", inputs, 0, true);
        call.epilogue_ops = fusion.epilogue_ops;
        const auto fused = run(call);
        ASSERT_EQ(fused.size(), 1u) << what;
        expect_close(values<float>(*fused[0]), values<float>(*unfused(plain, fusion, inputs)), 2e-5f, what);
        call.split_seed = 7;
        expect_same_bits(run(call)[0], fused[0], what + ", split");
        call.inputs[0] = reorder_channels(inputs[0], true);
        call.inputs[3] = reorder_channels(inputs[3], true);
        call.input_layouts = {channels_last_layout(4), {}, {}, channels_last_layout(4)};
        call.output_layouts = {channels_last_layout(4)};
        expect_same_bits(reorder_channels(run(call)[0], false), fused[0], what + ", channels-last");
        call.output_layouts = {};
        expect_same_bits(run(call)[0], fused[0], what + ", channels-last to row-major");
        call.inputs[3] = inputs[3];
        call.input_layouts = {channels_last_layout(4)};
        call.output_layouts = {channels_last_layout(4)};
        expect_same_bits(reorder_channels(run(call)[0], false), fused[0], what + ", a row-major residual to channels-last");
      }
    }
  }
}

TEST(Conv, RefusesWhatDoesNotFit) {
  const Tensor x = random_tensor(Shape{1, 4, 8, 8}, 1);
  auto error = [&](const Shape& w, std::vector<Attribute> attributes, Tensor bias = nullptr) {
    return error_of(call_of("Conv", {x, random_tensor(w, 2), std::move(bias)}, std::move(attributes)));
  };
  EXPECT_NE(error(Shape{2, 3, 3, 3}, {}).find("expected dimension 1 to be 4"), std::string::npos);
  EXPECT_NE(error(Shape{2, 4, 3}, {}).find("has rank 4"), std::string::npos);
  EXPECT_NE(error(Shape{2, 4, 9, 3}, {}).find("the window spans 9"), std::string::npos);
  EXPECT_NE(error(Shape{2, 4, 3, 3}, {{"strides", Ints{0, 1}}}).find("strides"), std::string::npos);
  EXPECT_NE(error(Shape{2, 4, 3, 3}, {{"dilations", Ints{int64_t{1} << 62, 1}}}).find("dilations"), std::string::npos);
  EXPECT_NE(error(Shape{2, 4, 3, 3}, {{"pads", Ints{1, 1, 1}}}).find("expected 4 numbers"), std::string::npos);
  EXPECT_NE(error(Shape{2, 4, 3, 3}, {{"pads", Ints{1, -1, 1, 1}}}).find("no negative"), std::string::npos);
  EXPECT_NE(error(Shape{2, 4, 3, 3}, {{"group", int64_t{3}}}).find("group is 3"), std::string::npos);
  EXPECT_NE(error(Shape{2, 4, 3, 3}, {{"auto_pad", std::string("SAME")}}).find("auto_pad"), std::string::npos);
  EXPECT_NE(error(Shape{2, 4, 3, 3}, {}, random_tensor(Shape{3}, 3)).find("expected [2]"), std::string::npos);
  EXPECT_NE(error(Shape{2, 4, 3, 3}, {{"kernel_shape", Ints{3, 4}}}).find("kernel_shape"), std::string::npos);
}

}  // namespace
}  // namespace heddle::testing
