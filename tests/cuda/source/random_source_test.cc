// Generated kernels of random operators, on the emulated grid, compared with the host's operators: the same bytes, for the same seed, step,
// trip and stream.
#include <gtest/gtest.h>

#include <cmath>

#include "cuda/sparse.h"
#include "generate/operators/random_launches.h"
#include "move_run.h"
#include "shared/scalar.h"

namespace heddle::cuda::grid_test {
namespace {

using Cases = std::vector<MoveCase>;

constexpr uint64_t run_seed = 0x123456789abcdef1, run_step = (uint64_t{5} << 32) + 77;

std::unique_ptr<NumbersLaunches> numbers(bool normal, double a, double b) {
  auto launches = std::make_unique<NumbersLaunches>();
  launches->numbers = {normal, a, normal ? b : b - a, normal || b <= a ? std::nan("") : b};
  return launches;
}

// ONNX's seeds are floats; the generator's key is made of their bits.
operators::Seed seed_of(double seed) {
  return operators::Seed(operators::bits_as<uint64_t>(seed));
}

void add_numbers(Cases* cases, bool normal, const char* type, int64_t dtype, std::vector<Tensor> inputs, const std::vector<int64_t>& shape,
                 double a, double b) {
  std::vector<Attribute> attributes = {{normal ? "mean" : "low", a}, {normal ? "scale" : "high", b}, {"dtype", dtype}};
  if (inputs.empty()) attributes.push_back({"shape", shape});
  cases->push_back(move_case(numbers(normal, a, b), type, std::move(inputs), attributes));
  cases->back().call.random_seed = run_seed;
  cases->back().call.step = run_step;
}

const std::vector<std::vector<int64_t>> shapes = {{}, {1}, {2}, {3}, {7, 5}, {0, 4}, {1025}, {4096}, {3, 1000}};

TEST(RandomSource, UniformNumbersHaveTheHostsBits) {
  Cases cases;
  for (const int64_t dtype : {1, 10, 11, 16})
    for (const auto& shape : shapes)
      for (const auto& [low, high] :
           {std::pair(0.0, 1.0), {-3.0, 5.5}, {2.0, 2.0}, {1.0, -1.0}, {0.999, 1.0}, {-1.0, 0.0}, {-1.002, -1.0}}) {
        add_numbers(&cases, false, "RandomUniform", dtype, {}, shape, low, high);
        cases.back().varies = low == 2;
      }
  run_moves(std::move(cases));
}

// The emulated grid and the host have the same logarithm, sine and cosine.
TEST(RandomSource, NormalNumbersHaveTheHostsBits) {
  Cases cases;
  for (const int64_t dtype : {1, 10, 11, 16})
    for (const auto& shape : shapes)
      for (const auto& [mean, scale] : {std::pair(0.0, 1.0), {-3.0, 0.5}, {1e6, -2.0}})
        add_numbers(&cases, true, "RandomNormal", dtype, {}, shape, mean, scale);
  run_moves(std::move(cases));
}

TEST(RandomSource, LikeAnInputOfAnyDtype) {
  Cases cases;
  for (const auto& [number, dtype] : conformance::onnx_dtypes())
    for (const bool normal : {false, true}) {
      add_numbers(&cases, normal, normal ? "RandomNormalLike" : "RandomUniformLike", 1, {any_bytes(dtype, Shape{5, 7}, 1)}, {}, 0, 1);
      cases.back().varies = normal;
    }
  run_moves(std::move(cases));
}

// Numbers that are rounded up to the bound are replaced by the number before it: of 16 bits many are.
TEST(RandomSource, TheNumberBeforeTheBound) {
  Cases cases;
  for (const int64_t dtype : {10, 16})
    for (const auto& [low, high] : {std::pair(0.5, 1.0), {-1e-9, 0.0}, {-2.0, -1.0}, {100.0, 100.25}, {0.0, 1e-7}})
      add_numbers(&cases, false, "RandomUniform", dtype, {}, {70000}, low, high);
  std::vector<bool> met;
  for (const MoveCase& one : cases) {
    const Tensor y = wanted_of(one)[0];
    const conformance::Numbers got = conformance::numbers_of(*y);
    const double bound = std::get<double>(one.call.attributes[1].value);
    met.push_back(std::all_of(got.values.begin(), got.values.end(), [&](conformance::Number v) { return v < bound; }));
  }
  EXPECT_EQ(met, std::vector<bool>(cases.size(), true));
  run_moves(std::move(cases));
}

TEST(RandomSource, ANodesOwnSeed) {
  Cases cases;
  for (const double seed : {0.0, 2.5, -1.0}) {
    add_numbers(&cases, false, "RandomUniform", 1, {}, {33}, 0, 1);
    static_cast<DrawLaunches&>(*cases.back().launches).seed = seed_of(seed);
    cases.back().call.attributes.push_back({"seed", seed});
  }
  run_moves(std::move(cases));
}

TEST(RandomSource, Bernoulli) {
  Cases cases;
  for (const DType from : float_kinds)
    for (const auto& [number, to] : conformance::onnx_dtypes())
      for (const Shape& shape : {Shape{}, Shape{3}, Shape{7, 31}, Shape{4096}, Shape{0}}) {
        if (from != DType::f32 && shape.rank() == 2) continue;
        cases.push_back(
            move_case(std::make_unique<BernoulliLaunches>(), "Bernoulli", {random_tensor(from, shape, -0.1, 1.1, 3)}, {{"dtype", number}}));
        cases.back().call.random_seed = run_seed;
        cases.back().call.step = run_step;
        cases.back().varies = shape == Shape{3};
      }
  run_moves(std::move(cases));
}

TEST(RandomSource, Multinomial) {
  Cases cases;
  for (const DType from : float_kinds)
    for (const int64_t to : {6, 7})
      for (const auto& [rows, classes, samples] :
           {std::tuple<int64_t, int64_t, int64_t>(1, 1, 9), {3, 5, 1}, {7, 3, 300}, {2, 2500, 700}, {0, 4, 3}, {4, 6, 0}, {5, 1024, 33}}) {
        auto launches = std::make_unique<MultinomialLaunches>();
        launches->seed = seed_of(4);
        cases.push_back(move_case(std::move(launches), "Multinomial", {random_tensor(from, Shape{rows, classes}, -4, 4, 5)},
                                  {{"sample_size", samples}, {"dtype", to}, {"seed", 4.0}}));
        cases.back().call.step = run_step;
        cases.back().varies = rows == 3;
      }
  // Masked classes, one alone; rows without a number.
  const long double none = -std::numeric_limits<long double>::infinity(), nan = std::nan("");
  for (const Elements& row : {Elements{none, 2, none, 1, none},
                              {none, none, 7, none, none},
                              {none, none, none, none, none},
                              {1, nan, 2, 3, 4},
                              {nan, 1, 1, 1, 1},
                              {-none, 1, 1, 1, 1},
                              {-1e30L, 1e30L, 0, 0, 0}})
    cases.push_back(move_case(std::make_unique<MultinomialLaunches>(), "Multinomial", {tensor_of(DType::f32, Shape{1, 5}, row)},
                              {{"sample_size", int64_t{100}}}));
  run_moves(std::move(cases));
}

// More rows than there are blocks with sums of their own.
TEST(RandomSource, MultinomialOfManyRowsOfManyClasses) {
  MultinomialLaunches launches;
  const Tensor x = random_tensor(DType::f16, Shape{3, 64}, -4, 4, 5);
  const Operated few({x}, {conformance::blob_of(conformance::zeros(DType::i32, Shape{3, 4}))});
  auto many_views = View(*x);
  const int64_t dims[] = {1000000, 1000000}, one_row[] = {7, int64_t{1} << 40};
  heddle_tensor much = *many_views.get();
  const heddle_tensor* inputs[] = {&much};
  const auto plan = std::make_unique<LaunchPlan>();
  for (const auto& [extents, blocks] : {std::pair(dims, int64_t{8}), {one_row, int64_t{1}}}) {
    much.dims = extents;
    plan->launch_count = 0, plan->scratch_bytes = 0;
    ASSERT_TRUE(launches.plan({inputs, few.operands().outputs, 1, 1}, plan.get()).ok());
    EXPECT_EQ(plan->launches[0].blocks, blocks);
    EXPECT_GE(plan->scratch_bytes, static_cast<uint64_t>(blocks * extents[1]) * sizeof(double));
  }
}

MoveCase dropout_case(DType dtype, const Shape& shape, Tensor ratio, Tensor training, bool mask) {
  auto launches = std::make_unique<DropoutLaunches>();
  std::vector<Tensor> inputs = {random_tensor(dtype, shape, -4, 4, 9)};
  if (ratio || training) inputs.push_back(std::move(ratio));
  if (training) inputs.push_back(std::move(training));
  MoveCase one = move_case(std::move(launches), "Dropout", std::move(inputs), {}, mask ? 2 : 1);
  one.call.random_seed = run_seed;
  one.call.step = run_step;
  return one;
}

// In place and not, with the mask and without, training and not, with ratios that are constants or known only during the run.
TEST(RandomSource, Dropout) {
  const Tensor yes = tensor_of(DType::boolean, Shape{}, {1}), no = tensor_of(DType::boolean, Shape{1}, {0});
  for (const bool shared : {false, true}) {
    Cases cases;
    for (const DType dtype : float_kinds)
      for (const Shape& shape : {Shape{}, Shape{7, 31}, Shape{4096}, Shape{0, 3}})
        for (const Tensor& training : {Tensor(), no, yes})
          for (const double ratio : {0.0, 0.25, 0.9, -1.0}) {
            const DType of_ratio = ratio == 0.25 ? dtype : DType::f32;
            const Tensor given = ratio < 0 ? nullptr : tensor_of(of_ratio, Shape{}, {ratio});
            cases.push_back(dropout_case(dtype, shape, given, training, ratio > 0.1));
            cases.back().varies = ratio == 0.9;
          }
    run_moves(std::move(cases), shared);
  }
}

TEST(RandomSource, DropoutWithItsOwnSeed) {
  Cases cases;
  cases.push_back(dropout_case(DType::f32, Shape{99}, nullptr, tensor_of(DType::boolean, Shape{}, {1}), true));
  cases.back().call.attributes.push_back({"seed", int64_t{-3}});
  static_cast<DrawLaunches&>(*cases.back().launches).seed = operators::Seed(static_cast<uint64_t>(-3));
  run_moves(std::move(cases));
}

// ---------------------------------------------------------------- beside the generator itself

// Returns the bytes of output 0 of one case with a given state and stream. `unknown`: no content is constant.
std::vector<char> drawn(const MoveCase& one, const std::vector<Tensor>& like, const Draw& draw, bool unknown = false,
                        plugin::Status* chosen = nullptr) {
  KernelSource source;
  const Moved moved(one, like, false);
  const Operands operands = moved.operands();
  for (uint32_t i = 0; unknown && i < operands.input_count; ++i)
    if (operands.inputs[i]) const_cast<heddle_tensor*>(operands.inputs[i])->flags = 0;
  const plugin::Status status = one.launches->choose(operands, one.varies, &source);
  if (chosen) *chosen = status;
  if (!status.ok()) return {};
  std::string error;
  const auto module = grid::Module::compile(std::string(texts().at("element")) + source.text, grid_cache, &error);
  EXPECT_NE(module, nullptr) << error.substr(0, 4000);
  const auto plan = std::make_unique<LaunchPlan>();
  EXPECT_TRUE(one.launches->plan(operands, plan.get()).ok());
  if (!module) return {};
  EXPECT_EQ(launch_plan(*module, source, *plan, operands, grid::Order::random, UINT64_MAX, draw), "");
  const auto* const data = reinterpret_cast<const char*>(moved.outputs()[0]->data);
  return {data, data + moved.outputs()[0]->bytes};
}

Tensor room_for(DType dtype, const Shape& shape) {
  return conformance::blob_of(conformance::zeros(dtype, shape));
}

TEST(RandomSource, StepsTripsAndStreams) {
  Cases cases;
  add_numbers(&cases, false, "RandomUniform", 1, {}, {21}, 0, 1);
  for (const Draw& draw : {Draw{{3, 0, 0}, 0},
                           {{run_seed, 1, 0}, 9},
                           {{run_seed, run_step, 1}, 9},
                           {{~uint64_t{0}, (uint64_t{1} << 48) - 1, ~uint64_t{0}}, ~0u}}) {
    const std::vector<char> bytes = drawn(cases[0], {room_for(DType::f32, Shape{21})}, draw);
    ASSERT_EQ(bytes.size(), 84u);
    const plugin::Philox philox(draw.state, draw.stream);
    for (size_t i = 0; i < 21; ++i) {
      float got = 0;
      std::memcpy(&got, &bytes[4 * i], 4);
      EXPECT_EQ(got, plugin::unit_float(philox.block(i / 4)[i % 4])) << i << ", seed " << draw.state.seed;
    }
  }
}

// A part of a tensor has the numbers that its elements have in the whole, wherever it begins.
TEST(RandomSource, PartsDrawTheNumbersOfTheWhole) {
  const auto numbers = [](const char* type, int64_t count, int64_t first) {
    Cases cases;
    add_numbers(&cases, std::string(type) == "RandomNormal", type, 1, {}, {count}, 0, 1);
    return drawn(cases[0], {room_for(DType::f32, Shape{count})}, {{run_seed, run_step, 0}, 9, first});
  };
  for (const char* const type : {"RandomUniform", "RandomNormal"})
    for (const int64_t first : {4, 5, 7, 18}) {
      SCOPED_TRACE(std::string(type) + " from " + std::to_string(first));
      const std::vector<char> whole = numbers(type, first + 21, 0), part = numbers(type, 21, first);
      ASSERT_EQ(part.size(), 84u);
      EXPECT_EQ(part, std::vector<char>(whole.begin() + 4 * first, whole.end()));
    }
}

// An invalid ratio is refused where it may be read; otherwise a kernel cannot report it.
TEST(RandomSource, RatiosThatAreNone) {
  const Tensor like = room_for(DType::f32, Shape{9});
  for (const double ratio : {1.0, -0.5, std::nan("")})
    for (const bool training : {false, true}) {
      const MoveCase one = dropout_case(DType::f32, Shape{9}, tensor_of(DType::f32, Shape{}, {ratio}),
                                        tensor_of(DType::boolean, Shape{}, {training ? 1.0L : 0.0L}), false);
      plugin::Status chosen;
      EXPECT_TRUE(drawn(one, {like}, {}, false, &chosen).empty());
      EXPECT_NE(chosen.text.find("expected a number in [0, 1)"), std::string::npos) << chosen.text;
      const std::vector<char> bytes = drawn(one, {like}, {}, true);
      ASSERT_EQ(bytes.size(), 36u);
      for (size_t i = 0; i < 9; ++i) {
        float got = 0;
        std::memcpy(&got, &bytes[4 * i], 4);
        EXPECT_TRUE(std::isnan(got)) << ratio;
      }
    }
}

// Operands that only a run knows have the same effect as constants.
TEST(RandomSource, DropoutByOperandsOfARun) {
  for (const double ratio : {0.0, 0.3})
    for (const long double training : {0.0L, 1.0L}) {
      const MoveCase one = dropout_case(DType::f64, Shape{41}, tensor_of(DType::f32, Shape{}, {ratio}),
                                        tensor_of(DType::boolean, Shape{}, {training}), false);
      const Tensor wanted = wanted_of(one)[0];
      const std::vector<char> bytes = drawn(one, {wanted}, {{run_seed, run_step, 0}, 0}, true);
      ASSERT_EQ(static_cast<int64_t>(bytes.size()), wanted->bytes);
      EXPECT_EQ(std::memcmp(bytes.data(), wanted->data, bytes.size()), 0) << ratio;
    }
}

}  // namespace
}  // namespace heddle::cuda::grid_test
