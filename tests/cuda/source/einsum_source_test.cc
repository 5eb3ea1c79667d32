// Einsum on the emulated grid, compared with the host's.
#include <gtest/gtest.h>

#include "cuda/lines.h"
#include "generate/operators/einsum_launches.h"

namespace heddle::cuda::grid_test {
namespace {

// Sums of many floats have another order than the host's: the error is relative to the sum of the magnitudes of the terms.
GridCase einsum(const std::string& equation, std::vector<Tensor> inputs, double ulps = 4) {
  GridCase one;
  auto launches = std::make_unique<EinsumLaunches>();
  launches->equation = equation;
  one.launches = std::move(launches);
  one.name = equation + " of " + to_string(inputs[0]->dtype);
  one.inputs = std::move(inputs);
  one.ulps = ulps;
  const std::vector<Attribute> attributes = {{"equation", equation}};
  const auto host = run_operator(testing::cpu_registry(), testing::call_of("Einsum", one.inputs, attributes, 1));
  EXPECT_TRUE(host.ok()) << one.name << ": " << host.status().text();
  if (!host.ok()) return one;
  one.expected.push_back(conformance::numbers_of(*(*host)[0]));
  if (!conformance::is_floating(one.inputs[0]->dtype)) one.ulps = 0;
  if (one.ulps == 0) return one;
  std::vector<Tensor> magnitudes;
  for (const Tensor& input : one.inputs) {
    Numbers numbers = conformance::numbers_of(*input);
    for (Number& n : numbers.values) n = std::fabs(n);
    magnitudes.push_back(conformance::blob_of(numbers));
  }
  const auto sums = run_operator(testing::cpu_registry(), testing::call_of("Einsum", magnitudes, attributes, 1));
  EXPECT_TRUE(sums.ok());
  if (sums.ok()) one.expected[0].scale = conformance::numbers_of(*(*sums)[0]).values;
  return one;
}

Tensor numbers(DType dtype, const Shape& shape, uint64_t seed) {
  return random_tensor(dtype, shape, conformance::is_floating(dtype) || dtype < DType::u8 ? -4 : 0, 5, seed);
}

struct Equation {
  const char* text;
  std::vector<Shape> shapes;
};
const std::vector<Equation>& equations() {
  static const std::vector<Equation> all = {
      {"ij,jk->ik", {Shape{3, 5}, Shape{5, 7}}},
      {"ij,j", {Shape{3, 5}, Shape{5}}},
      {"i,i->", {Shape{7}, Shape{7}}},
      {"i,j->ij", {Shape{7}, Shape{5}}},
      {"abc->", {Shape{3, 5, 7}}},
      {" a b c -> b ", {Shape{3, 5, 7}}},
      {"ij,kj,lj->ikl", {Shape{3, 5}, Shape{7, 5}, Shape{4, 5}}},
      {"ab,bc,cd,da->", {Shape{2, 3}, Shape{3, 4}, Shape{4, 5}, Shape{5, 2}}},
      {"->", {Shape{}}},
      {",a->a", {Shape{}, Shape{3}}},
      {"bij,bjk->bik", {Shape{3, 4, 6}, Shape{3, 6, 5}}},
      {"...ij,...jk->...ik", {Shape{2, 1, 3, 5}, Shape{1, 4, 5, 2}}},
      {"a...,a", {Shape{3, 5, 2}, Shape{3}}},
      {"...,...,...->...", {Shape{1, 5}, Shape{3, 1}, Shape{1, 1}}},
      {"ii->i", {Shape{5, 5}}},
      {"ii", {Shape{5, 5}}},
      {"abba->ba", {Shape{3, 4, 4, 3}}},
      {"...ii->...i", {Shape{2, 5, 5}}},
      {"ba", {Shape{3, 5}}},
      {"aBa...", {Shape{2, 3, 2, 5}}},
      {"abcd,dbe->cea", {Shape{2, 3, 5, 4}, Shape{4, 3, 2}}},
      {"abcdefgh,abcdefgh->hgfedcba", {Shape{1, 2, 1, 2, 1, 2, 1, 3}, Shape{1, 2, 1, 2, 1, 2, 1, 3}}},
      {"ab,cd,ef,gh,ij,kl,mn,op->",
       {Shape{1, 2}, Shape{1, 2}, Shape{1, 2}, Shape{1, 2}, Shape{1, 1}, Shape{1, 1}, Shape{1, 1}, Shape{1, 1}}},
  };
  return all;
}

GridCase of(const Equation& equation, DType dtype) {
  std::vector<Tensor> inputs;
  for (const Shape& shape : equation.shapes) inputs.push_back(numbers(dtype, shape, inputs.size() + 1));
  return einsum(equation.text, std::move(inputs));
}

TEST(EinsumSource, EveryDtype) {
  std::vector<GridCase> cases;
  for (const DType dtype : number_kinds)
    for (const Equation& equation : equations())
      if (dtype == DType::f32 || equation.shapes.size() > 1) cases.push_back(of(equation, dtype));
  run_on_grid(std::move(cases));
}

TEST(EinsumSource, ExtentsThatVary) {
  std::vector<GridCase> cases;
  for (const Equation& equation : equations()) {
    if (equation.shapes.size() > 4) continue;
    cases.push_back(of(equation, DType::f32));
    cases.back().varies = true;
  }
  run_on_grid(std::move(cases));
}

// Sums of one block each, and of several blocks if there are few sums.
TEST(EinsumSource, LongSums) {
  std::vector<GridCase> cases;
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8, DType::u32, DType::i64}) {
    const double near = dtype == DType::f64 || dtype == DType::f32 ? 64 : 4;  // of the host's own sums, one after the other
    for (const int64_t n : {255, 256, 257, 1000, 32767, 32768, 50001}) {
      cases.push_back(einsum("i,i->", {numbers(dtype, Shape{n}, 1), numbers(dtype, Shape{n}, 2)}, near));
      if (n <= 1000) cases.push_back(einsum("aij,ji->ja", {numbers(dtype, Shape{2, n, 3}, 3), numbers(dtype, Shape{3, n}, 4)}, near));
    }
    cases.push_back(einsum("abc,cd->d", {numbers(dtype, Shape{7, 9, 11}, 5), numbers(dtype, Shape{11, 5}, 6)}, near));
  }
  run_on_grid(std::move(cases));
}

TEST(EinsumSource, NaNAndInfinities) {
  const Number nan = std::nan(""), inf = HUGE_VAL;
  std::vector<GridCase> cases;
  for (const DType dtype : float_kinds)
    cases.push_back(einsum("ij,i->j", {tensor_of(dtype, Shape{2, 3}, {nan, 1, 2, inf, -1, 1}), tensor_of(dtype, Shape{2}, {1, -1})}));
  run_on_grid(std::move(cases));
}

TEST(EinsumSource, NothingOfNothing) {
  std::vector<GridCase> cases;
  for (const bool varies : {false, true})
    for (const Equation& equation : std::vector<Equation>{{"ij,jk->ik", {Shape{3, 0}, Shape{0, 7}}},
                                                          {"ij,jk", {Shape{0, 5}, Shape{5, 7}}},
                                                          {"ij->", {Shape{3, 0}}},
                                                          {"ij->j", {Shape{3, 0}}}}) {
      cases.push_back(of(equation, DType::f32));
      cases.back().varies = varies;
    }
  run_on_grid(std::move(cases));
}

TEST(EinsumSource, MoreNumbersThanALaunchHas) {
  std::vector<Tensor> inputs = {numbers(DType::f32, Shape{2, 2, 2, 2, 2, 2, 2, 2}, 1), numbers(DType::f32, Shape{2, 2, 2, 2}, 2)};
  for (const Shape& shape : {Shape{2, 2}, Shape{2, 2}, Shape{2, 2}, Shape{2, 2}, Shape{2}, Shape{2}})
    inputs.push_back(numbers(DType::f32, shape, inputs.size() + 1));
  const GridCase one = einsum("abcdefgh,ijkl,ai,bj,ck,dl,e,f->", std::move(inputs));
  KernelSource source;
  const Operated operated(one);
  EXPECT_EQ(one.launches->choose(operated.operands(), false, &source).code, HEDDLE_ERROR_UNSUPPORTED);
}

}  // namespace
}  // namespace heddle::cuda::grid_test
