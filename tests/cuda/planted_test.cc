// Mistakes that are planted into the texts of kernels, one at a time, are found: the changed text gives other numbers than the original, or
// does not end.
#include <gtest/gtest.h>

#include "generate/image/grid_sample_launches.h"
#include "generate/image/resize_launches.h"
#include "generate/image/roi_align_launches.h"
#include "generate/operators/einsum_launches.h"
#include "generate/operators/random_launches.h"
#include "generate/reduce/reduce_launches.h"
#include "generate/rows/row_launches.h"
#include "generate/select/scan_launches.h"
#include "lines.h"
#include "sparse.h"

namespace heddle::cuda::grid_test {
namespace {

// A piece of text that occurs once in a kernel's source, and its replacement.
struct Planted {
  const char* what;
  std::string piece, instead;
};

size_t occurrences(const std::string& text, const std::string& piece) {
  size_t count = 0;
  for (size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1)) ++count;
  return count;
}

// Returns the bytes of output 0, or the error, for each order of threads.
std::vector<std::string> results(const GridCase& one, const std::vector<Tensor>& outputs, const Planted* planted, uint64_t last) {
  std::vector<std::string> all;
  KernelSource source;
  const Operated operated(one.inputs, outputs);
  EXPECT_TRUE(one.launches->choose(operated.operands(), one.varies, &source).ok());
  std::string text = std::string(texts().at("element")) + source.text, error;
  if (planted) {
    EXPECT_EQ(occurrences(text, planted->piece), 1u) << planted->what;
    if (const size_t at = text.find(planted->piece); at != std::string::npos) text.replace(at, planted->piece.size(), planted->instead);
  }
  const auto module = grid::Module::compile(text, grid_cache, &error);
  EXPECT_NE(module, nullptr) << error.substr(0, 4000);
  for (const grid::Order order : {grid::Order::ascending, grid::Order::descending, grid::Order::random}) {
    const auto plan = std::make_unique<LaunchPlan>();
    if (!module || !one.launches->plan(operated.operands(), plan.get()).ok()) return {};
    const Blob& output = *outputs[0];
    // Only the end of a sparse tensor is compared.
    const int64_t shown = std::min<int64_t>(output.bytes, 1 << 16);
    auto* const end = const_cast<std::byte*>(output.data) + output.bytes - shown;
    std::memset(end, 0xa5, static_cast<size_t>(shown));
    const std::string wrong = launch_plan(*module, source, *plan, operated.operands(), order, last);
    all.push_back(wrong.empty() ? std::string(reinterpret_cast<const char*>(end), static_cast<size_t>(shown)) : wrong);
  }
  return all;
}

void is_found(GridCase one, const std::vector<Tensor>& outputs, const Planted& planted, uint64_t last = UINT64_MAX) {
  const std::vector<std::string> right = results(one, outputs, nullptr, last), wrong = results(one, outputs, &planted, last);
  ASSERT_EQ(right.size(), 3u);
  EXPECT_EQ(right[0], right[1]) << "the text as it is depends on the order of threads";
  EXPECT_EQ(right[0], right[2]) << "the text as it is depends on the order of threads";
  EXPECT_NE(right, wrong) << planted.what << " was not found";
}

Tensor room(DType dtype, const Shape& shape) {
  std::byte* data = nullptr;
  return Blob::allocate(dtype, shape, &data);
}
// Returns a tensor of fewer rows than its memory holds: reading one element too many gives a wrong result, and does no other harm.
Tensor with_more_behind(const Tensor& x, int64_t rows) {
  auto fewer = std::make_shared<Blob>(*x);
  fewer->shape = Shape{rows, x->shape[1]};
  fewer->bytes = fewer->shape.element_count() * byte_width(x->dtype);
  fewer->owner = x;
  return fewer;
}

GridCase reduction_of(ReduceKind kind, const Tensor& x, int64_t axis) {
  auto launches = std::make_unique<AxisReduction>();
  launches->passes.last.shape.kind = kind;
  launches->axis = axis;
  GridCase one;
  one.launches = std::move(launches);
  one.inputs = {x};
  return one;
}
GridCase softmax_of(const Tensor& x) {
  auto launches = std::make_unique<AxisLaunches>();
  launches->axis = 1;
  GridCase one;
  one.launches = std::move(launches);
  one.inputs = {x};
  return one;
}

TEST(Planted, AnIndexPastTheRow) {
  const Tensor x = with_more_behind(random_tensor(DType::f32, Shape{6, 96}, 1, 2, 1), 5);
  is_found(reduction_of(ReduceKind::sum, x, 1), {room(DType::f32, Shape{5})},
           {"an index past the row", "i = first + lane * W; i < last;", "i = first + lane * W; i <= last;"});
}

TEST(Planted, AMissingBarrier) {
  is_found(reduction_of(ReduceKind::sum, random_tensor(DType::f32, Shape{3, 4100}, 1, 2, 1), 1), {room(DType::f32, Shape{3})},
           {"a missing barrier", "shared[threadIdx.x / 32] = a;\n    __syncthreads();", "shared[threadIdx.x / 32] = a;"});
}

TEST(Planted, AMissingBarrierInAScan) {
  GridCase sums;
  sums.launches = std::make_unique<ScanLaunches>();
  sums.inputs = {random_tensor(DType::f32, Shape{2, 4100}, 1, 2, 1), integers({1})};
  is_found(std::move(sums), {room(DType::f32, Shape{2, 4100})},
           {"a missing barrier in a scan", "shared[warp] = sum;\n  __syncthreads();", "shared[warp] = sum;"});
}

TEST(Planted, AWrongShuffleWidth) {
  is_found(reduction_of(ReduceKind::sum, random_tensor(DType::f32, Shape{3, 100}, 1, 2, 1), 1), {room(DType::f32, Shape{3})},
           {"a wrong width of shuffles", "mask < LANES; mask *= 2", "mask < LANES / 2; mask *= 2"});
}

TEST(Planted, AnIndexOf32Bits) {
  const int64_t rows = ((int64_t{1} << 32) + 4096) / 64;
  const auto x = sparse_tensor(DType::u8, Shape{rows, 64}), y = sparse_tensor(DType::u8, Shape{rows});
  if (!x || !y) GTEST_SKIP() << "there are not so many addresses";
  elements_of<uint8_t>(*x)[rows * 64 - 1] = 3;
  is_found(reduction_of(ReduceKind::sum, x, 1), {y}, {"an index of 32 bits", "typedef u64 Index;", "typedef u32 Index;"}, 1);
}

TEST(Planted, AReadOfASharedWordThatNobodyWrote) {
  const Tensor x = random_tensor(DType::f32, Shape{2, 4096}, -4, 4, 1);
  is_found(softmax_of(x), {room(DType::f32, x->shape)},
           {"a read of a shared word that nobody wrote", "shared[threadIdx.x % (LANES / 32)]", "shared[threadIdx.x % 32]"});
}

TEST(Planted, AWrongDtypeOfAccumulators) {
  const Tensor x = tensor_of(DType::f32, Shape{1, 4}, {1e30L, 1e-30L, 1e30L, 1e-30L});
  is_found(reduction_of(ReduceKind::product, x, 1), {room(DType::f32, Shape{1})},
           {"a wrong dtype of accumulators", "typedef double A;", "typedef float A;"});
}

TEST(Planted, ATapThatIsLeftOut) {
  GridCase one;
  auto launches = std::make_unique<ResizeLaunches>();
  launches->node.options.interpolation = operators::Interpolation::linear;
  one.launches = std::move(launches);
  one.inputs = {random_tensor(DType::f32, Shape{3, 8}, 1, 2, 1), nullptr, nullptr, integers({3, 11})};
  is_found(std::move(one), {room(DType::f32, Shape{3, 11})},
           {"a tap that is left out", "const i64 first = (i64)floor(at) + 1 - taps / 2;", "const i64 first = (i64)floor(at) - taps / 2;"});
}

TEST(Planted, APositionInFloatWhereTheHostHasDouble) {
  GridCase one;
  one.launches = std::make_unique<GridSampleLaunches>();
  one.inputs = {random_tensor(DType::f64, Shape{1, 1, 9}, 1, 2, 1), random_tensor(DType::f64, Shape{1, 20, 1}, -1, 1, 2)};
  is_found(std::move(one), {room(DType::f64, Shape{1, 1, 20})},
           {"a position in float", "void find(double coordinate, i64 extent)", "void find(float coordinate, i64 extent)"});
}

TEST(Planted, AnotherRow) {
  GridCase one;
  auto launches = std::make_unique<RoiAlignLaunches>();
  launches->options.sampling_ratio = 2;
  one.launches = std::move(launches);
  one.inputs = {random_tensor(DType::f32, Shape{1, 1, 9, 9}, 1, 2, 1), tensor_of(DType::f32, Shape{1, 4}, {1, 1, 6.5L, 7.25L}),
                integers({0})};
  is_found(std::move(one), {room(DType::f32, Shape{1, 1, 3, 3})},
           {"another row", "at(down.second, across.first, ", "at(down.first, across.first, "});
}

TEST(Planted, APartThatIsAddedTwice) {
  GridCase one;
  auto launches = std::make_unique<EinsumLaunches>();
  launches->equation = "i,i->";
  one.launches = std::move(launches);
  one.inputs = {random_tensor(DType::f32, Shape{40000}, 1, 2, 1), random_tensor(DType::f32, Shape{40000}, 1, 2, 2)};
  is_found(std::move(one), {room(DType::f32, Shape{})},
           {"a part that is added twice", "const Index end = first + (Index)p.part,", "const Index end = first + (Index)p.part + 1,"});
}

// Makes a case whose output is like the input.
GridCase numbers_like(const Tensor& x, double low, double high) {
  auto launches = std::make_unique<NumbersLaunches>();
  launches->numbers = {false, low, high - low, high};
  GridCase one;
  one.launches = std::move(launches);
  one.inputs = {x};
  return one;
}

TEST(Planted, NumbersOfAThreadAndNotOfAnElement) {
  const Tensor x = room(DType::f32, Shape{5000});
  is_found(numbers_like(x, 0, 1), {room(DType::f32, x->shape)},
           {"numbers of a thread", "p.random_first / N + block);\n    double x[N];", "p.random_first / N + threadIdx.x);\n    double x[N];"});
}

TEST(Planted, ANumberThatIsRoundedToItsBound) {
  const Tensor x = room(DType::f32, Shape{70000});
  is_found(numbers_like(x, 0.5, 1), {room(DType::bf16, x->shape)},
           {"a number that is its bound", "before<typename F::Bits>(value) : value", "value : value"});
}

TEST(Planted, AMissingBarrierBeforeClassesAreDrawn) {
  GridCase classes;
  classes.launches = std::make_unique<MultinomialLaunches>();
  classes.inputs = {random_tensor(DType::f32, Shape{5, 3000}, -1, 1, 1)};
  is_found(std::move(classes), {room(DType::i32, Shape{5, 300})},
           {"a missing barrier before classes are drawn", "__syncthreads();\n    const double whole", "const double whole"});
}

}  // namespace
}  // namespace heddle::cuda::grid_test
