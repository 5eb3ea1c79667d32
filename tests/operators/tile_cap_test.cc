// No tile of the CPU plugin does more than 2 GFLOP or touches more than 64 MiB, and the number of tiles is a function of the shape; where
// one result is more work than that, the kernel polls whether its run is over. Extents here are large and nothing has memory: kernels are
// prepared, in a moment, and never run.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "in_children.h"
#include "layouts/layout_support.h"
#include "prepared_operator.h"
#include "tile_cap_cases.h"

namespace heddle::testing {
namespace {

TEST(TileCap, HoldsForEveryOperatorOfThePlugin) {
  std::set<std::string> seen;
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name());
    const std::string name = display_name(c.domain, c.type);
    seen.insert(name);
    if (name == "If" || name == "Loop" || name == "Scan") continue;
    const Prepared prepared(cpu_plugin(), c, false);
    EXPECT_TRUE(prepared.status().ok()) << prepared.status().text();
    if (!prepared.status().ok() || prepared.lowered() || in_one_tile().count(name) > 0) continue;
    const auto cost = prepared.cost();
    ASSERT_TRUE(cost.ok()) << cost.status().text();
    const auto tiles = static_cast<double>(std::max<int64_t>(prepared.tiles(), 1));
    EXPECT_LE(cost->flops.value_or(0) / tiles, 2e9) << prepared.tiles() << " tiles";
    // A lookup in a table reads as many bytes as it writes.
    const double looked_up = static_cast<double>(std::min(prepared.input_bytes(), 2 * prepared.output_bytes()) + prepared.output_bytes());
    const bool looks_up = name.rfind("Gather", 0) == 0 || name == "Slice" || name == "NegativeLogLikelihoodLoss";
    EXPECT_LE((looks_up ? looked_up : static_cast<double>(cost->bytes)) / tiles, 64.0 * 1024 * 1024) << prepared.tiles() << " tiles";
  }
  for (const auto& schema : cpu_plugin()->plugins()[0]->operators)
    EXPECT_EQ(seen.count(display_name(schema.domain, schema.name)), 1u) << schema.name << " has no case here";
  for (const auto& [name, reason] : in_one_tile()) EXPECT_EQ(seen.count(name), 1u) << name << " is no operator: " << reason;
}

// Kernels under a host that reports the run as over return, however much work is left.
TEST(TileCap, WhatIsNotDividedAsksWhetherItsRunGoesOn) {
  const auto i64 = [](Shape shape) { return of(DType::i64, shape); };
  const Attribute axis0 = {"axis", int64_t{0}};
  const int64_t m = 1 << 20;
  const std::vector<Case> calls = {
      {"Unique", {f32({2 * m})}},
      {"NonZero", {of(DType::boolean, {4 * m})}},
      {"Compress", {f32({8 * m}), of(DType::boolean, {8 * m})}},
      {"NonMaxSuppression", {f32({1, 3000, 4}), f32({1, 1, 3000}), scalar(3000)}},
      {"ScatterElements", {f32({m}), i64({2 * m}), f32({2 * m})}, {axis0}},
      {"ScatterND", {f32({m}), i64({m, 1}), f32({m})}},
      {"Multinomial", {f32({1, 4})}, {{"sample_size", int64_t{200000}}}},
      {"Softmax", {f32({1, 16 * m + 1})}},
      {"TopK", {f32({1, 4 * m}), ints({100000})}, {}, 2},
      {"CumSum", {f32({8 * m}), scalar(0)}},
      {"ArgMax", {f32({8 * m})}},
      {"ReduceLogSumExp", {f32({1, 8 * m}), ints({1})}},
      {"LayerNormalization", {f32({1, 4 * m}), f32({4 * m})}},
      {"LpNormalization", {f32({1, m})}},
      {"InstanceNormalization", {f32({1, 1, 4 * m}), f32({1}), f32({1})}},
      {"BatchNormalization", {f32({1, 1, 8 * m}), f32({1}), f32({1}), f32({1}), f32({1})}},
      {"LRN", {f32({1, 64, m / 8})}, {{"size", int64_t{1} << 40}}},
      {"MeanVarianceNormalization", {f32({1, 1, 1, 8 * m})}},
      {"SoftmaxCrossEntropyLoss", {f32({1, m}), i64({1})}},
      {"SoftmaxCrossEntropyLossGradient", {f32({1, 17 * m}), i64({1}), f32({})}, {}, 1, "heddle"},
      {"LayerNormalizationGradient", {f32({1, 4 * m}), f32({1, 4 * m}), f32({4 * m})}, {}, 3, "heddle"},
      {"GroupNormalizationGradient", {f32({1, 1, 4 * m}), f32({1, 1, 4 * m}), f32({1})}, {}, 3, "heddle"},
      {"BatchNormalizationGradient", {f32({1, 1, 8 * m}), f32({1, 1, 8 * m}), f32({1})}, {{"training_mode", int64_t{1}}}, 3, "heddle"},
      {"SgdUpdateRows", {f32({1, 4}), i64({4 * m}), f32({4 * m, 4}), f32({})}, {}, 1, "heddle"},
      {"EmbeddingBag", {f32({4, 4}), i64({1, 4 * m})}, {}, 1, "heddle"},
      {"SparseLengthsSum", {f32({4, 1}), i64({0}), i64({8 * m})}, {}, 1, "heddle"},
      {"Einsum", {f32({3000}), f32({3000})}, {{"equation", std::string("i,j->")}}},
      {"LSTM", {f32({20000, 1, 64}), f32({1, 256, 64}), f32({1, 256, 64})}},
      {"GRU", {f32({20000, 1, 64}), f32({1, 192, 64}), f32({1, 192, 64})}},
      {"RNN", {f32({20000, 1, 64}), f32({1, 64, 64}), f32({1, 64, 64})}},
      {"LstmGradient", {f32({20000, 1, 256}), f32({1, 256, 64})}, {}, 5, "heddle"},
      {"GruGradient", {f32({20000, 1, 256}), f32({1, 192, 64})}, {}, 4, "heddle"},
      {"RnnGradient", {f32({20000, 1, 64}), f32({1, 64, 64})}, {}, 3, "heddle"},
      {"GlobalAveragePool", {f32({1, 1, 8 * m})}},
      {"MaxPool", {f32({1, 1, 300, 300})}, {{"kernel_shape", Ints{150, 150}}}},
      {"Resize", {f32({1, 1, 4000, 4000}), {}, {}, ints({1, 1, 1, 1})}, {{"mode", std::string("linear")}, {"antialias", int64_t{1}}}},
      {"GridSample", {f32({1, 1, 8, 8}), f32({1, 2000, 2000, 2})}},
      {"RoiAlign", {f32({1, 1, 8, 8}), f32({1, 4}), i64({1})}, {{"sampling_ratio", int64_t{4096}}}},
      {"Pad", {f32({1, 4}), ints({0, 0, 0, 32 * m})}},
      {"GatherElements", {f32({8}), i64({2 * m})}},
      {"OneHot", {i64({2}), scalar(16 * m), f32({2})}},
      {"Conv", {of(DType::f64, {1, 64, 64, 64}), of(DType::f64, {64, 64, 3, 3})}},
      {"Conv", {f32({1, 1, 5}), f32({1, 1, 3})}, {{"pads", Ints{4 * m, 4 * m}}}},
      {"ConvFilterGradient", {f32({1, 256, 130, 130}), f32({1, 256, 128, 128}), ints({256, 256, 3, 3})}, {}, 1, "heddle"},
      {"ConvFilterGradient", {of(DType::f64, {1, 1, 8 * m}), of(DType::f64, {1, 1, 8 * m}), ints({1, 1, 1})}, {}, 1, "heddle"},
      {"MaxPoolGradient", {f32({1, 1, 300, 300}), f32({1, 1, 151, 151})}, {{"kernel_shape", Ints{150, 150}}}, 1, "heddle"},
      {"AveragePoolGradient", {f32({1, 1, 1}), ints({1, 1, 8 * m})}, {}, 1, "heddle"},
      {"MatMul", {of(DType::f64, {300, 300}), of(DType::f64, {300, 300})}},
      {"MatMul", {f32({1, 32 * m}), f32({32 * m, 1})}},
      {"Gemm", {i64({300, 300}), i64({300, 300})}},
  };
  std::set<std::string> asked;
  for (const Case& c : calls) {
    SCOPED_TRACE(c.name());
    asked.insert(display_name(c.domain, c.type));
    Prepared prepared(cpu_plugin(), c, true);
    ASSERT_TRUE(prepared.status().ok()) << prepared.status().text();
    EXPECT_EQ(prepared.run_called_off(), HEDDLE_ERROR_CANCELLED) << Prepared::said();
  }
  for (const auto& [name, reason] : in_one_tile()) {
    const bool asks = std::string(reason).find("asks") != std::string::npos;
    EXPECT_TRUE(!asks || asked.count(name) == 1) << name;
  }
}

// Extents for which a library would take minutes to prepare, or tables would be made.
TEST(TileCap, AbsurdExtentsArePreparedInAMoment) {
  const int64_t g = 1'000'000'000, m = 1'000'000;
  const std::vector<Case> prepared = {
      {"Conv", {f32({1, 1, 5, 5}), f32({1, 1, 3, 3})}, {{"pads", Ints{g, m, g, m}}}},
      {"Conv", {f32({1, 16, 64, 64}), f32({16, 16, 3, 3})}, {{"pads", Ints{0, m, 0, m}}}},
      {"Conv", {f32({1, 16, 64, m}), f32({16, 16, 3, 3})}},
      {"Conv", {f32({1, 1, 3, g}), f32({1, 1, 3, m})}},
      {"Conv", {f32({1, 1, g}), f32({1, 1, g})}},
      {"Conv", {f32({1, 1, g}), f32({1, 1, 3})}, {{"dilations", Ints{m}}}},
      {"Conv", {f32({1, g, 1}), f32({1, g, 1})}},
      {"ConvTranspose", {f32({1, 1, m}), f32({1, 1, 3})}, {{"strides", Ints{1000}}}},
      {"ConvTranspose", {f32({1, 1, 2}), f32({1, 1, 3})}, {{"strides", Ints{g}}}},
      {"ConvDataGradient", {f32({1, 1, 1}), f32({1, 1, g}), ints({1, 1, g})}, {}, 1, "heddle"},
      {"ConvDataGradient", {f32({1, 1, 3}), f32({1, 1, 3}), ints({1, 1, 5})}, {{"pads", Ints{g, g}}}, 1, "heddle"},
      {"ConvFilterGradient", {f32({1, 1, g}), f32({1, 1, 1}), ints({1, 1, g})}, {}, 1, "heddle"},
      {"ConvFilterGradient", {f32({1, 1, g}), f32({1, 1, g}), ints({1, 1, 1})}, {}, 1, "heddle"},
      {"ConvFilterGradient", {f32({1, 16, 64, m}), f32({1, 16, 62, m - 2}), ints({16, 16, 3, 3})}, {}, 1, "heddle"},
      {"MaxPoolGradient", {f32({1, 1, g}), f32({1, 1, g - m + 1})}, {{"kernel_shape", Ints{m}}}, 1, "heddle"},
      {"MatMul", {f32({g, 1}), f32({1, g})}},
      {"MatMul", {f32({1, g}), f32({g, 1})}},
      {"MatMul", {f32({g, 1, 2}), f32({g, 2, 1})}},
      {"MaxPool", {f32({1, 1, g})}, {{"kernel_shape", Ints{m}}}},
      {"AveragePool", {f32({1, 1, g, 1})}, {{"kernel_shape", Ints{m, 1}}}},
      {"LRN", {f32({1, g, 1})}, {{"size", int64_t{1} << 60}}},
  };
  for (const Case& c : prepared) {
    SCOPED_TRACE(c.name());
    const Prepared made(cpu_plugin(), c, false);
    EXPECT_TRUE(made.status().ok()) << made.status().text();
  }
  // Tables for these extents are refused.
  Case refused = {"Resize", {f32({1, 1, 2}), {}, {}, ints({1, 1, g})}, {{"mode", std::string("cubic")}}};
  const Prepared long_axis(cpu_plugin(), refused, false);
  EXPECT_NE(long_axis.status().text().find("resize in several steps"), std::string::npos) << long_axis.status().text();
}

// Empty tensors, whose other extents no loop may walk: each operator with all inputs so, and those that need others as well.
TEST(TileCap, NothingOfAbsurdExtentsIsDoneAtOnce) {
  const int64_t g = int64_t{1} << 40;
  const Shape nothing = {g, 3, 0};
  const auto none = [&](DType dtype) { return of(dtype, nothing); };
  std::vector<Case> cases = {
      {"Compress", {none(DType::f32), of(DType::boolean, {3})}, {{"axis", int64_t{1}}}},
      {"BatchNormalization", {f32(nothing), f32({3}), f32({3}), f32({3}), f32({3})}},
      {"InstanceNormalization", {f32(nothing), f32({3}), f32({3})}},
      {"GroupNormalization", {f32(nothing), f32({3}), f32({3})}, {{"num_groups", int64_t{3}}}},
      {"LayerNormalization", {f32(nothing), f32({0})}},
      {"LRN", {f32(nothing)}, {{"size", int64_t{3}}}},
      {"RNN", {f32({0, g, 3}), f32({1, 2, 3}), f32({1, 2, 2})}, {{"hidden_size", int64_t{2}}}},
      {"GRU", {f32({0, g, 3}), f32({1, 6, 3}), f32({1, 6, 2})}, {{"hidden_size", int64_t{2}}}},
      {"LSTM", {f32({0, g, 3}), f32({1, 8, 3}), f32({1, 8, 2})}, {{"hidden_size", int64_t{2}}}},
      {"RnnGradient", {f32({g, 0, 2}), f32({1, 2, 2})}, {}, 3, "heddle"},
      {"GruGradient", {f32({g, 0, 8}), f32({1, 6, 2})}, {}, 4, "heddle"},
      {"LstmGradient", {f32({g, 0, 8}), f32({1, 8, 2})}, {}, 5, "heddle"},
      {"NonMaxSuppression", {f32({g, 0, 4}), f32({g, 1, 0}), scalar(3)}},
      {"Unique", {f32(nothing)}, {{"axis", int64_t{1}}}},
      {"MatMul", {f32(nothing), f32({g, 0, 0})}},
  };
  const size_t with_others = cases.size();
  for (const std::string& name : cpu_plugin()->operator_names(""))
    for (uint32_t count = 1; count <= 3; ++count) {
      Case c = {name, std::vector<Input>(count, f32(nothing))};
      cases.push_back(c);
      c.inputs.assign(count, f32({0, g, 3}));
      cases.push_back(c);
      c.inputs.assign(count, f32({0, g, int64_t{1} << 20}));
      cases.push_back(c);
    }
  // The child is ended if one case takes long: "signal 14".
  const auto results = in_children(cases.size(), [&](size_t i) -> std::string {
    ::alarm(5);
    const Prepared types(cpu_plugin(), cases[i], false);
    if (types.status().ok() && types.output_bytes() > 0) return "another";
    Prepared prepared(cpu_plugin(), cases[i], true);
    if (!prepared.status().ok()) return i < with_others ? prepared.status().text() : "refused";
    if (prepared.lowered()) return "another";
    return prepared.run() == HEDDLE_OK ? "done" : Prepared::said();
  });
  std::set<std::string> done;
  for (size_t i = 0; i < cases.size(); ++i) {
    const ChildResult& result = results[i];
    EXPECT_EQ(result.crash, "") << cases[i].name() << ", " << cases[i].inputs.size() << " inputs";
    if (result.answer == "done") done.insert(cases[i].type);
    EXPECT_TRUE(i >= with_others || !result.crash.empty() || result.answer == "done") << cases[i].name() << ": " << result.answer;
  }
  EXPECT_GT(done.size(), 40u);
}

// A part of the image alone, which makes one tile, gives the same rows as the whole image, which is divided.
TEST(TileCap, DividedTransposedConvolutionsAreTheWhole) {
  const auto convolve = [&](int64_t rows) {
    Case c = {"ConvTranspose", {f32({1, 64, rows, 256}), f32({64, 64, 4, 4})}, {{"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}};
    OperatorCall call;
    call.type = c.type;
    call.attributes = c.attributes;
    for (const Input& input : c.inputs) {
      std::vector<float> content(static_cast<size_t>(input.shape.element_count()));
      // The same numbers are in the same places of a row.
      const auto width = static_cast<size_t>(input.shape[3]), height = static_cast<size_t>(input.shape[2]);
      for (size_t i = 0; i < content.size(); ++i)
        content[i] = static_cast<float>((i % width * 7 + i / width % height * 13 + i / width / height * 29) % 31) - 15.0f;
      call.inputs.push_back(tensor<float>(input.shape, content));
    }
    const auto y = run_operator(*cpu_plugin(), call);
    EXPECT_TRUE(y.ok()) << y.status().text();
    return y.ok() ? values<float>(*y->at(0)) : std::vector<float>();
  };
  const int64_t all = 256, some = 16;
  const Case whole = {
      "ConvTranspose", {f32({1, 64, all, 256}), f32({64, 64, 4, 4})}, {{"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}};
  ASSERT_GT(Prepared(cpu_plugin(), whole, false).tiles(), 1);
  const std::vector<float> divided = convolve(all), part = convolve(some);
  ASSERT_EQ(divided.size(), static_cast<size_t>(64 * 2 * all * 2 * 256));
  // The last row of the part sees no row after it; the sums are of whole numbers, exact in f32.
  for (int64_t channel = 0; channel < 64; ++channel)
    for (int64_t r = 0; r < 2 * some - 1; ++r)
      for (int64_t x = 0; x < 512; ++x)
        ASSERT_EQ(divided[static_cast<size_t>((channel * 2 * all + r) * 512 + x)],
                  part[static_cast<size_t>((channel * 2 * some + r) * 512 + x)])
            << channel << ", " << r << ", " << x;
}

// Small whole numbers, so that sums are exact in any order.
template <class T>
Tensor whole_numbers(const Shape& shape, int64_t step) {
  std::vector<T> content(static_cast<size_t>(shape.element_count()));
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<T>(static_cast<int64_t>(i) * step % 7 - 3);
  return tensor<T>(shape, content);
}

template <class T>
std::vector<T> run_one(const char* type, const std::vector<Tensor>& inputs, const std::vector<Attribute>& attributes,
                       bool channels_last = false) {
  OperatorCall call;
  call.type = type;
  call.attributes = attributes;
  call.inputs = inputs;
  if (channels_last) {
    call.inputs[0] = reorder_channels(inputs[0], true);
    call.input_layouts = call.output_layouts = {channels_last_layout(inputs[0]->shape.rank())};
  }
  const auto y = run_operator(*cpu_plugin(), call);
  EXPECT_TRUE(y.ok()) << y.status().text();
  if (!y.ok()) return {};
  if constexpr (std::is_same_v<T, float>)
    if (channels_last) return values<T>(*reorder_channels(y->at(0), false));
  return values<T>(*y->at(0));
}

// Convolutions that are not given to the library: the same numbers as in f64, in both layouts.
TEST(TileCap, LoopsOfConvolutionsAreRight) {
  const std::vector<Attribute> padded = {{"pads", Ints{5000, 10}}, {"strides", Ints{2}}, {"group", int64_t{2}}};
  const std::vector<Attribute> cut = {{"pads", Ints{5000, 5000}}, {"strides", Ints{2}}, {"group", int64_t{2}}};
  const auto check = [](const char* type, const Shape& x, const Shape& w, const std::vector<Attribute>& attributes) {
    const Shape bias = {6};
    const std::vector<Tensor> f32s = {whole_numbers<float>(x, 5), whole_numbers<float>(w, 3), whole_numbers<float>(bias, 2)};
    const std::vector<double> expected =
        run_one<double>(type, {whole_numbers<double>(x, 5), whole_numbers<double>(w, 3), whole_numbers<double>(bias, 2)}, attributes);
    ASSERT_FALSE(expected.empty());
    for (const bool channels_last : {false, true}) {
      const std::vector<float> got = run_one<float>(type, f32s, attributes, channels_last);
      ASSERT_EQ(got.size(), expected.size());
      for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(static_cast<double>(got[i]), expected[i]) << type << ", element " << i;
    }
  };
  check("Conv", {2, 4, 40}, {6, 2, 3}, padded);
  check("ConvTranspose", {2, 4, 6000}, {4, 3, 3}, cut);
}

TEST(TileCap, DividedProductsAreRight) {
  // The product is divided in rows by its bytes.
  const Shape a = {16, 1 << 20}, b = {1 << 20, 16};
  const std::vector<float> divided = run_one<float>("MatMul", {whole_numbers<float>(a, 5), whole_numbers<float>(b, 3)}, {});
  const std::vector<double> whole = run_one<double>("MatMul", {whole_numbers<double>(a, 5), whole_numbers<double>(b, 3)}, {});
  ASSERT_EQ(divided.size(), whole.size());
  for (size_t i = 0; i < whole.size(); ++i) ASSERT_EQ(static_cast<double>(divided[i]), whole[i]) << i;
  // A sum of more ones than a float can count.
  const int64_t depth = (1 << 24) + 8;
  const std::vector<float> ones(static_cast<size_t>(depth), 1.0f);
  EXPECT_EQ(run_one<float>("MatMul", {tensor<float>(Shape{1, depth}, ones), tensor<float>(Shape{depth, 1}, ones)}, {}),
            std::vector<float>{16777224.0f});
}

// The only sum of an Einsum is computed in parts.
TEST(TileCap, DividedSumsAreRight) {
  const Shape line = {23000};
  const Tensor x = whole_numbers<int64_t>(line, 5);
  const std::vector<int64_t> content = values<int64_t>(*x);
  int64_t sum = 0;
  for (const int64_t v : content) sum += v;
  const Case c = {"Einsum", {of(DType::i64, line), of(DType::i64, line)}, {{"equation", std::string("i,j->")}}};
  ASSERT_GT(Prepared(cpu_plugin(), c, false).tiles(), 16);
  EXPECT_EQ(run_one<int64_t>("Einsum", {x, x}, c.attributes), std::vector<int64_t>{sum * sum});
}

}  // namespace
}  // namespace heddle::testing
