// Every source of the generators compiles with NVIDIA's own compiler, without a warning.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "generate/image/grid_sample_launches.h"
#include "generate/image/pool_launches.h"
#include "generate/image/resize_launches.h"
#include "generate/image/roi_align_launches.h"
#include "generate/move/box_launches.h"
#include "generate/move/fill_launches.h"
#include "generate/move/parts_launches.h"
#include "generate/move/pick_launches.h"
#include "generate/move/scatter_launches.h"
#include "generate/move/view_launches.h"
#include "generate/operators/channel_launches.h"
#include "generate/operators/combine_launches.h"
#include "generate/operators/einsum_launches.h"
#include "generate/operators/loss_launches.h"
#include "generate/operators/random_launches.h"
#include "generate/operators/recurrent_launches.h"
#include "generate/operators/update_launches.h"
#include "generate/reduce/reduce_launches.h"
#include "generate/rows/row_launches.h"
#include "generate/select/compact_launches.h"
#include "generate/select/scan_launches.h"
#include "generate/select/topk_launches.h"
#include "lines.h"
#include "nvrtc_check.h"

namespace heddle::cuda::grid_test {
namespace {

using operators::Reduction;

GridCase to_compile(std::string name, std::unique_ptr<Launches> launches, std::vector<Tensor> inputs, std::vector<Numbers> outputs) {
  GridCase one;
  one.name = std::move(name);
  one.launches = std::move(launches);
  one.inputs = std::move(inputs);
  one.expected = std::move(outputs);
  return one;
}
Tensor zeros_of(DType dtype, const Shape& shape) {
  return conformance::blob_of(conformance::zeros(dtype, shape));
}

void compiles(std::vector<GridCase> cases, size_t per_program = 12) {
  std::string why;
  const Nvrtc* const compiler = Nvrtc::open(&why);
  if (!compiler) GTEST_SKIP() << why;
  std::set<std::string> compiled;  // calls of other sizes may have the same kernels
  std::string text, called;
  size_t in_program = 0;
  const auto compile = [&] {
    if (in_program > 0) {
      EXPECT_EQ(compiler->compile(text, true), "") << called;
    }
    text = texts().at("element");
    called.clear();
    in_program = 0;
  };
  compile();
  for (const GridCase& one : cases) {
    const Operated operated(one);
    const auto source_named = [&](const std::string& prefix, std::string* kernels) {
      KernelSource source;
      source.prefix = prefix;
      ASSERT_TRUE(one.launches->choose(operated.operands(), one.varies, &source).ok()) << one.name;
      *kernels = source.text;
    };
    std::string kernels;
    ASSERT_NO_FATAL_FAILURE(source_named("k_", &kernels));
    if (!compiled.insert(kernels).second) continue;
    ASSERT_NO_FATAL_FAILURE(source_named("k" + std::to_string(compiled.size()) + "_", &kernels));
    text += kernels;
    called += one.name + "; ";
    if (++in_program == per_program) compile();
  }
  compile();
}

// The PTX that NVRTC 13.0 makes of `(unsigned)a < (unsigned)b ? (unsigned)a : (unsigned)b`, and of min().
TEST(PtxCheck, ChoicesThatTheAssemblerGetsWrongAreFound) {
  const std::string head =
      ".visible .entry sums(\n)\n{\n\tld.param.u64 \t%rd5, [sums_param_0+16];\n\tcvt.u32.u64 \t%r8, %rd6;\n\tcvt.u32.u64 \t%r9, %rd5;\n";
  EXPECT_EQ(narrowed_choices(head + "\tsetp.lt.u32 \t%p1, %r9, %r8;\n\tselp.b64 \t%rd7, %rd5, %rd6, %p1;\n\tcvt.u32.u64 \t%r1, %rd7;\n"),
            "sums:\tcvt.u32.u64 \t%r1, %rd7;\n");
  EXPECT_EQ(narrowed_choices(head + "\tmin.u32 \t%r1, %r9, %r8;\n"), "");
  // With another comparison it is right.
  EXPECT_EQ(narrowed_choices(head + "\tsetp.eq.s32 \t%p1, %r2, 0;\n\tselp.b64 \t%rd7, %rd5, %rd6, %p1;\n\tcvt.u32.u64 \t%r1, %rd7;\n"), "");
}

TEST(Nvrtc, TakesReductions) {
  std::vector<GridCase> cases;
  const auto add = [&](ReduceKind kind, DType dtype, const Shape& shape, int64_t axis, bool varies = false) {
    const bool arg = kind == ReduceKind::arg_max || kind == ReduceKind::arg_min;
    auto launches = std::make_unique<AxisReduction>();
    launches->passes.last.shape.kind = kind;
    launches->passes.last.shape.exponent = 3;
    launches->axis = axis;
    cases.push_back(to_compile(std::to_string(static_cast<int>(kind)) + " of " + to_string(dtype) + shape.text(), std::move(launches),
                               {zeros_of(dtype, shape)},
                               {conformance::zeros(arg ? DType::i64 : dtype, reduced_shape(shape, 1u << axis, false))}));
    cases.back().varies = varies;
  };
  for (int kind = 0; kind <= static_cast<int>(ReduceKind::log_sum_exp); ++kind)
    for (const DType dtype : number_kinds) {
      const auto of = static_cast<ReduceKind>(kind);
      if (of_floats_only(of) && !conformance::is_floating(dtype)) continue;
      add(of, dtype, kind % 2 == 0 ? Shape{5, 64} : Shape{64, 5}, kind % 2 == 0 ? 1 : 0);
    }
  for (const DType dtype : float_kinds) {
    add(ReduceKind::sum, dtype, Shape{3, 4096}, 1);
    add(ReduceKind::mean, dtype, Shape{1, 1 << 20}, 1);
    add(ReduceKind::log_sum_exp, dtype, Shape{1 << 16, 4}, 0);
    add(ReduceKind::arg_max, dtype, Shape{1, 1 << 20}, 1);
    add(ReduceKind::sum, dtype, Shape{3, 5, 7}, 1, true);
  }
  compiles(std::move(cases));
}

TEST(Nvrtc, TakesSoftmaxesAndNormalizations) {
  std::vector<GridCase> cases;
  for (int kind = 0; kind <= static_cast<int>(RowKind::norm2); ++kind)
    for (const DType dtype : float_kinds)
      for (const Shape& shape :
           {Shape{5, 64}, Shape{3, 1023}, Shape{3, 5000}, Shape{2, 12000}, Shape{2, 100000}, Shape{2, 9, 33}, Shape{2, 65, 33}}) {
        if (dtype != DType::f32 && shape[1] % 1000 != 0 && shape.rank() == 2) continue;
        auto launches = std::make_unique<AxisLaunches>();
        launches->shape.kind = static_cast<RowKind>(kind);
        launches->axis = 1;
        cases.push_back(to_compile(std::to_string(kind) + " of " + to_string(dtype) + shape.text(), std::move(launches),
                                   {zeros_of(dtype, shape)}, {conformance::zeros(dtype, shape)}));
        cases.back().varies = shape == Shape{2, 9, 33};
      }
  compiles(std::move(cases));
}

TEST(Nvrtc, TakesNormalizationsWithParameters) {
  std::vector<GridCase> cases;
  for (const DType dtype : float_kinds) {
    for (const int64_t n : {768, 33, 50000}) {
      auto launches = std::make_unique<TrailingLaunches>();
      launches->shape.kind = RowKind::moments;
      cases.push_back(to_compile("layer of " + std::string(to_string(dtype)), std::move(launches),
                                 {zeros_of(dtype, Shape{4, n}), zeros_of(dtype, Shape{n}), zeros_of(dtype, Shape{n})},
                                 {conformance::zeros(dtype, Shape{4, n}), conformance::zeros(DType::f32, Shape{4, 1})}));
    }
    for (const int64_t spatial : {64, 49, 9000}) {
      auto launches = std::make_unique<GroupLaunches>();
      launches->shape.kind = RowKind::moments;
      launches->groups = 2;
      const Shape shape{2, 6, spatial};
      cases.push_back(to_compile("groups of " + std::string(to_string(dtype)), std::move(launches),
                                 {zeros_of(dtype, shape), zeros_of(dtype, Shape{6}), zeros_of(dtype, Shape{6})},
                                 {conformance::zeros(dtype, shape)}));
      const Tensor parameter = zeros_of(dtype, Shape{6});
      cases.push_back(to_compile("batch of " + std::string(to_string(dtype)), std::make_unique<BatchLaunches>(),
                                 {zeros_of(dtype, shape), parameter, parameter, parameter, parameter}, {conformance::zeros(dtype, shape)}));
      cases.push_back(to_compile("LRN of " + std::string(to_string(dtype)), std::make_unique<LocalLaunches>(), {zeros_of(dtype, shape)},
                                 {conformance::zeros(dtype, shape)}));
    }
  }
  compiles(std::move(cases));
}

TEST(Nvrtc, TakesPools) {
  std::vector<GridCase> cases;
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8, DType::u8})
    for (const PoolKind kind : {PoolKind::max, PoolKind::average, PoolKind::lp}) {
      if (kind != PoolKind::max && !conformance::is_floating(dtype)) continue;
      for (const int64_t power : {1, 2, 3}) {
        auto launches = std::make_unique<PoolLaunches>();
        launches->kind = kind;
        launches->power = power;
        launches->column_major = power == 2;
        launches->attributes.kernel_shape = {3, 3};
        std::vector<Numbers> outputs = {conformance::zeros(dtype, Shape{2, 3, 6, 5})};
        if (kind == PoolKind::max && power > 1) outputs.push_back(conformance::zeros(DType::i64, Shape{2, 3, 6, 5}));
        cases.push_back(to_compile("pool of " + std::string(to_string(dtype)), std::move(launches), {zeros_of(dtype, Shape{2, 3, 8, 7})},
                                   std::move(outputs)));
        cases.back().varies = power == 3;
      }
    }
  compiles(std::move(cases));
}

TEST(Nvrtc, TakesScansSortsAndLosses) {
  std::vector<GridCase> cases;
  for (const DType dtype : number_kinds) {
    for (const Shape& shape : {Shape{3, 1000}, Shape{1, 100001}, Shape{40, 7}, Shape{41, 7}}) {
      auto launches = std::make_unique<ScanLaunches>();
      launches->reverse = shape[0] == 1;
      cases.push_back(to_compile("sums of " + std::string(to_string(dtype)), std::move(launches), {zeros_of(dtype, shape), integers({1})},
                                 {conformance::zeros(dtype, shape)}));
      cases.back().varies = shape[0] == 41;
    }
    for (const auto& [n, k] : {std::pair<int64_t, int64_t>(40, 3), {100000, 9}, {3000, 2000}})
      cases.push_back(to_compile("first of " + std::string(to_string(dtype)), std::make_unique<TopKLaunches>(),
                                 {zeros_of(dtype, Shape{2, n}), integers({k})},
                                 {conformance::zeros(dtype, Shape{2, k}), conformance::zeros(DType::i64, Shape{2, k})}));
  }
  for (const DType dtype : float_kinds)
    for (const LossReduction reduction : {LossReduction::none, LossReduction::mean, LossReduction::sum}) {
      const bool softmax = reduction != LossReduction::sum;
      auto launches = std::make_unique<LossLaunches>();
      launches->softmax = softmax;
      launches->reduction = reduction;
      launches->has_ignored = reduction == LossReduction::mean;
      std::vector<Numbers> outputs = {conformance::zeros(dtype, reduction == LossReduction::none ? Shape{64} : Shape{})};
      if (softmax) outputs.push_back(conformance::zeros(dtype, Shape{64, 10}));
      cases.push_back(to_compile("loss of " + std::string(to_string(dtype)), std::move(launches),
                                 {zeros_of(dtype, Shape{64, 10}), zeros_of(DType::i32, Shape{64}), zeros_of(dtype, Shape{10})}, outputs));
    }
  compiles(std::move(cases));
}

TEST(Nvrtc, TakesMoves) {
  std::vector<GridCase> cases;
  for (const DType dtype : {DType::u8, DType::f16, DType::f32, DType::f64, DType::boolean})
    for (const bool varies : {false, true}) {
      const auto add = [&](const char* name, std::unique_ptr<Launches> launches, std::vector<Tensor> inputs, const Shape& output) {
        cases.push_back(to_compile(name, std::move(launches), std::move(inputs), {conformance::zeros(dtype, output)}));
        cases.back().varies = varies;
      };
      const Tensor x = zeros_of(dtype, Shape{40, 33}), wide = zeros_of(dtype, Shape{4, 16, 32});
      auto transpose = std::make_unique<TransposeLaunches>();
      transpose->order = {1, 0};
      add("transpose", std::move(transpose), {x}, Shape{33, 40});
      transpose = std::make_unique<TransposeLaunches>();
      transpose->order = {1, 0, 2};
      add("transpose of rows", std::move(transpose), {wide}, Shape{16, 4, 32});
      auto concat = std::make_unique<PartsLaunches>();
      add("concat", std::move(concat), {x, x, x}, Shape{120, 33});
      auto split = std::make_unique<PartsLaunches>();
      split->into_whole = false;
      add("split", std::move(split), {x, integers({40})}, Shape{40, 33});
      for (const operators::PadMode mode :
           {operators::PadMode::constant, operators::PadMode::edge, operators::PadMode::reflect, operators::PadMode::wrap}) {
        auto pad = std::make_unique<PadLaunches>();
        pad->mode = mode;
        add("pad", std::move(pad), {wide, integers({1, 0, 0, 1, 0, 0}), zeros_of(dtype, Shape{})}, Shape{6, 16, 32});
      }
      add("gather", std::make_unique<GatherLaunches>(), {wide, integers({1, 2})}, Shape{2, 16, 32});
      add("elements", std::make_unique<GatherElementsLaunches>(), {x, zeros_of(DType::i32, Shape{3, 33})}, Shape{3, 33});
      add("tuples", std::make_unique<GatherNDLaunches>(), {wide, zeros_of(DType::i64, Shape{5, 2})}, Shape{5, 32});
      add("reverse", std::make_unique<ReverseLaunches>(), {x, zeros_of(DType::i64, Shape{33})}, Shape{40, 33});
      add("triangle", std::make_unique<TriluLaunches>(), {x, integers({1})}, Shape{40, 33});
      add("hot", std::make_unique<OneHotLaunches>(), {zeros_of(DType::f16, Shape{5}), integers({9}), zeros_of(dtype, Shape{2})},
          Shape{5, 9});
      add("constant", std::make_unique<ConstantLaunches>(), {integers({40, 33})}, Shape{40, 33});
      add("eye", std::make_unique<EyeLaunches>(), {x}, Shape{40, 33});
      add("view", std::make_unique<ViewLaunches>(), {x}, Shape{40 * 33});
    }
  for (const DType dtype : {DType::boolean, DType::i8, DType::u64, DType::f16, DType::f32, DType::f64})
    for (int reduction = 0; reduction < 5; ++reduction) {
      const bool lines = reduction % 2 == 0;
      auto elements = std::make_unique<ScatterElementsLaunches>();
      elements->reduction = static_cast<operators::ScatterReduction>(reduction);
      const Shape shape{lines ? 9 : 70, 3};
      cases.push_back(to_compile("scatter of elements", std::move(elements),
                                 {zeros_of(dtype, Shape{5, 3}), zeros_of(DType::i32, shape), zeros_of(dtype, shape)},
                                 {conformance::zeros(dtype, Shape{5, 3})}));
      auto slices = std::make_unique<ScatterNDLaunches>();
      slices->reduction = static_cast<operators::ScatterReduction>(reduction);
      cases.push_back(to_compile("scatter of slices", std::move(slices),
                                 {zeros_of(dtype, Shape{5, 3}), zeros_of(DType::i64, Shape{7, 1}), zeros_of(dtype, Shape{7, 3})},
                                 {conformance::zeros(dtype, Shape{5, 3})}));
      cases.back().varies = lines;
    }
  for (const DType dtype : {DType::f32, DType::f64, DType::i16, DType::i32, DType::i64})
    cases.push_back(to_compile("range", std::make_unique<RangeLaunches>(),
                               {zeros_of(dtype, Shape{}), tensor_of(dtype, Shape{}, {9}), tensor_of(dtype, Shape{}, {1})},
                               {conformance::zeros(dtype, Shape{9})}));
  compiles(std::move(cases), 24);
}

TEST(Nvrtc, TakesResizes) {
  std::vector<GridCase> cases;
  const std::vector<float> scales = {1, 1.5f, 1, 2};
  const Tensor given = Blob::copy_of(DType::f32, Shape{4}, scales.data());
  // All pairs of dtype, mode and coordinates; for f32 all triples.
  int shift = 0;
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8, DType::i16, DType::i32, DType::i64, DType::u8,
                            DType::u16, DType::u32, DType::u64, DType::boolean}) {
    ++shift;
    for (const auto mode : {operators::Interpolation::nearest, operators::Interpolation::linear, operators::Interpolation::cubic})
      for (int coordinates = 0; coordinates < 6; ++coordinates) {
        if (dtype != DType::f32 && (coordinates + shift + static_cast<int>(mode)) % 3 != 0) continue;
        auto launches = std::make_unique<ResizeLaunches>();
        launches->node.options.interpolation = mode;
        launches->node.options.coordinates = static_cast<operators::Coordinates>(coordinates);
        launches->node.options.rounding = static_cast<operators::NearestRounding>(coordinates % 5);
        launches->node.options.antialias = coordinates % 2 == 0;
        launches->node.options.exclude_outside = coordinates % 3 == 0;
        const Tensor roi = coordinates == 5 ? zeros_of(float_kinds[static_cast<size_t>(mode)], Shape{8}) : nullptr;
        cases.push_back(to_compile("resize of " + std::string(to_string(dtype)), std::move(launches),
                                   {zeros_of(dtype, Shape{1, 4, 3, 3}), roi, given}, {conformance::zeros(dtype, Shape{1, 6, 3, 6})}));
        cases.back().varies = coordinates == 4;
      }
  }
  compiles(std::move(cases), 24);
}

TEST(Nvrtc, TakesGridSamplesAndAlignedRegions) {
  std::vector<GridCase> cases;
  for (const DType dtype : float_kinds)
    for (int axes = 1; axes <= 3; ++axes)
      for (int k = 0; k < 9; ++k) {
        auto launches = std::make_unique<GridSampleLaunches>();
        launches->options = {static_cast<operators::SampleInterpolation>(k % 3), static_cast<operators::SamplePadding>(k / 3), k % 2 == 0};
        Shape x{2, 3}, grid{2};
        for (int i = 0; i < axes; ++i) {
          x.push_back(4);
          grid.push_back(4);
        }
        grid.push_back(axes);
        cases.push_back(to_compile("samples of " + std::string(to_string(dtype)) + x.text(), std::move(launches),
                                   {zeros_of(dtype, x), zeros_of(float_kinds[(k + axes) % 4], grid)}, {conformance::zeros(dtype, x)}));
        cases.back().varies = k == 4;
      }
  for (const DType dtype : float_kinds)
    for (const int flags : {0, 1, 2, 3}) {
      auto launches = std::make_unique<RoiAlignLaunches>();
      launches->options.takes_max = flags % 2 != 0;
      launches->options.half_pixel = flags >= 2;
      cases.push_back(to_compile("regions of " + std::string(to_string(dtype)), std::move(launches),
                                 {zeros_of(dtype, Shape{2, 3, 4, 4}), zeros_of(dtype, Shape{5, 4}), zeros_of(DType::i64, Shape{5})},
                                 {conformance::zeros(dtype, Shape{5, 3, 2, 2})}));
      cases.back().varies = flags == 3;
    }
  compiles(std::move(cases), 24);
}

TEST(Nvrtc, TakesRandomNumbersAndUpdates) {
  std::vector<GridCase> cases;
  const auto add = [&](const char* name, std::unique_ptr<Launches> launches, std::vector<Tensor> inputs, std::vector<Numbers> outputs) {
    cases.push_back(to_compile(name, std::move(launches), std::move(inputs), std::move(outputs)));
    cases.back().varies = cases.size() % 2 == 0;
  };
  const Shape shape{40, 33};
  for (const DType dtype : float_kinds) {
    const Tensor x = zeros_of(dtype, shape), scalar = zeros_of(DType::f16, Shape{}), yes = tensor_of(DType::boolean, Shape{}, {1});
    for (const bool normal : {false, true}) {
      auto numbers = std::make_unique<NumbersLaunches>();
      numbers->numbers.normal = normal;
      add("numbers", std::move(numbers), {x}, {conformance::zeros(dtype, shape)});
    }
    for (const DType to : {DType::boolean, DType::f16, DType::f32, DType::i64})
      add("choices", std::make_unique<BernoulliLaunches>(), {x}, {conformance::zeros(to, shape)});
    for (const DType to : {DType::i32, DType::i64})
      add("classes", std::make_unique<MultinomialLaunches>(), {x}, {conformance::zeros(to, Shape{40, 3})});
    add("dropout", std::make_unique<DropoutLaunches>(), {x}, {conformance::zeros(dtype, shape)});
    add("dropout with mask", std::make_unique<DropoutLaunches>(), {x, scalar, yes},
        {conformance::zeros(dtype, shape), conformance::zeros(DType::boolean, shape)});
    add("descent", std::make_unique<UpdateLaunches>(Update::sgd), {x, x, scalar}, {conformance::zeros(dtype, shape)});
  }
  for (const DType dtype : number_kinds)
    for (const Update of : {Update::assign, Update::accumulate}) {
      const Tensor x = zeros_of(dtype, shape);
      add("update", std::make_unique<UpdateLaunches>(of), {x, x}, {conformance::zeros(dtype, shape)});
    }
  add("increment", std::make_unique<UpdateLaunches>(Update::increment), {zeros_of(DType::i64, Shape{})},
      {conformance::zeros(DType::i64, Shape{})});
  compiles(std::move(cases), 24);
}

TEST(Nvrtc, TakesCombinations) {
  std::vector<GridCase> cases;
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i32, DType::i64})
    for (const auto reduction : {Reduction::sum, Reduction::mean, Reduction::min, Reduction::max, Reduction::prod}) {
      auto combine = std::make_unique<CombineLaunches>();
      combine->reduction = reduction;
      combine->parts = 3;
      cases.push_back(to_compile("combination", std::move(combine), {zeros_of(dtype, Shape{40}), zeros_of(dtype, Shape{2, 40})},
                                 {conformance::zeros(dtype, Shape{40})}));
    }
  compiles(std::move(cases), 30);
}

TEST(Nvrtc, TakesCompactions) {
  std::vector<GridCase> cases;
  for (const DType dtype : {DType::boolean, DType::f16, DType::f32, DType::i64, DType::f64})
    for (const bool varies : {false, true}) {
      const Tensor x = zeros_of(dtype, Shape{40, 33}), condition = zeros_of(DType::boolean, Shape{33});
      cases.push_back(to_compile("places", std::make_unique<NonZeroLaunches>(), {x}, {conformance::zeros(DType::i64, Shape{2, 40 * 33})}));
      cases.back().varies = varies;
      auto compress = std::make_unique<CompressLaunches>();
      compress->flat = varies;
      cases.push_back(to_compile("chosen", std::move(compress), {x, condition}, {conformance::zeros(dtype, Shape{33, 33})}));
      cases.back().varies = varies;
    }
  compiles(std::move(cases), 24);
}

TEST(Nvrtc, TakesSumsOfProducts) {
  std::vector<GridCase> cases;
  for (const DType dtype : number_kinds)
    for (const int64_t depth : {5, 300, 1 << 16})
      for (const char* const equation : {"aij,jk->ik", "j...j,jk->...k"}) {
        auto launches = std::make_unique<EinsumLaunches>();
        launches->equation = equation;
        const Shape x = equation[0] == 'a' ? Shape{3, 2, depth} : Shape{5, 2, 5};
        const Shape y{equation[0] == 'a' ? depth : 5, 3};
        cases.push_back(to_compile(equation + std::string(" of ") + to_string(dtype), std::move(launches),
                                   {zeros_of(dtype, x), zeros_of(dtype, y)}, {conformance::zeros(dtype, Shape{2, 3})}));
        cases.back().varies = depth == 5;
      }
  compiles(std::move(cases), 24);
}

TEST(Nvrtc, TakesRecurrentCells) {
  std::string why;
  const Nvrtc* const compiler = Nvrtc::open(&why);
  if (!compiler) GTEST_SKIP() << why;
  using Kind = operators::RecurrentActivation::Kind;
  std::string text(texts().at("element"));
  KernelSource all;
  int number = 0;
  for (const DType dtype : {DType::f32, DType::f64})
    for (const RecurrentCell cell : {RecurrentCell::rnn, RecurrentCell::gru, RecurrentCell::lstm})
      for (const int flags : {0, 1, 2, 3, 4, 5, 6, 7}) {  // bits: a variant; all other options; products in each step
        const bool full = flags / 2 % 2 != 0;
        RecurrentLaunches launches;
        launches.cell = cell;
        launches.shape = {3, 2, 4, flags < 4 ? 5 : 600, full ? 2 : 1, full};
        launches.variant = flags % 2 != 0;
        for (size_t i = 0; i < launches.functions() * static_cast<size_t>(launches.shape.directions); ++i)
          launches.activations.push_back({static_cast<Kind>((i + static_cast<size_t>(number)) % 11), 1, 0.5});
        const Tensor any = zeros_of(dtype, Shape{1}), lengths = full ? zeros_of(DType::i32, Shape{1}) : nullptr,
                     more = full ? any : nullptr;
        const bool lstm = cell == RecurrentCell::lstm;
        const Operated operated({any, any, any, more, lengths, more, lstm ? more : nullptr, lstm ? more : nullptr},
                                {any, more, lstm ? more : nullptr});
        all.prefix = "k" + std::to_string(number++) + "_";
        launches.choose(operated.operands(), &all);
      }
  EXPECT_EQ(compiler->compile(text + all.text, true), "");
}

}  // namespace
}  // namespace heddle::cuda::grid_test
