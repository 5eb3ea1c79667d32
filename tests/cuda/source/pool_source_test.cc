// MaxPool, AveragePool and LpPool on the emulated grid, compared with the host's.
#include <gtest/gtest.h>

#include "cuda/lines.h"
#include "generate/image/pool_launches.h"

namespace heddle::cuda::grid_test {
namespace {

// The host's result is expected: its bits, except for powers that are no squares.
GridCase pool(PoolKind kind, const Tensor& x, std::vector<Attribute> attributes, bool indices = false, bool channels_last = false) {
  GridCase one;
  const std::string type = kind == PoolKind::max ? "MaxPool" : kind == PoolKind::average ? "AveragePool" : "LpPool";
  auto launches = std::make_unique<PoolLaunches>();
  launches->kind = kind;
  for (const Attribute& a : attributes) {
    const auto* const list = std::get_if<std::vector<int64_t>>(&a.value);
    const auto* const number = std::get_if<int64_t>(&a.value);
    operators::WindowAttributes& window = launches->attributes;
    if (a.name == "kernel_shape") window.kernel_shape = *list;
    if (a.name == "strides") window.strides = *list;
    if (a.name == "dilations") window.dilations = *list;
    if (a.name == "pads") window.pads = *list;
    if (a.name == "auto_pad") window.auto_pad = std::get<std::string>(a.value);
    if (a.name == "ceil_mode") window.ceil_mode = *number != 0;
    if (a.name == "count_include_pad") launches->counts_padding = *number != 0;
    if (a.name == "storage_order") launches->column_major = *number != 0;
    if (a.name == "p") launches->power = *number;
  }
  one.name = type + " of " + to_string(x->dtype) + x->shape.text();
  one.ulps = kind == PoolKind::lp && launches->power > 2 ? 8 : 0;
  one.launches = std::move(launches);
  one.inputs = {x};
  const auto host = run_operator(testing::cpu_registry(), testing::call_of(type, one.inputs, attributes, indices ? 2 : 1));
  EXPECT_TRUE(host.ok()) << one.name << ": " << host.status().text();
  for (size_t i = 0; host.ok() && i < (indices ? 2u : 1u); ++i) one.expected.push_back(conformance::numbers_of(*(*host)[i]));
  if (!channels_last) return one;
  EXPECT_EQ(one.expected[0].shape, x->shape) << "the view has the input's layout where it has its shape";
  one.layout = plugin::channels_last(x->shape.rank());
  one.inputs = {conformance::in_layout(x, one.layout)};
  return one;
}

struct Windowed {
  Shape x;
  std::vector<Attribute> attributes;
};

std::vector<Windowed> windows() {
  return {
      {Shape{2, 3, 9, 8}, {{"kernel_shape", Ints{3, 2}}}},
      {Shape{1, 2, 9, 8}, {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{2, 0, 1, 1}}, {"strides", Ints{2, 3}}}},
      {Shape{1, 2, 10, 7}, {{"kernel_shape", Ints{3, 2}}, {"dilations", Ints{2, 3}}, {"ceil_mode", int64_t{1}}, {"strides", Ints{2, 2}}}},
      {Shape{2, 2, 7, 6}, {{"kernel_shape", Ints{3, 4}}, {"auto_pad", std::string("SAME_UPPER")}, {"strides", Ints{2, 2}}}},
      {Shape{2, 2, 17}, {{"kernel_shape", Ints{5}}, {"pads", Ints{2, 1}}, {"strides", Ints{3}}, {"ceil_mode", int64_t{1}}}},
      {Shape{1, 2, 5, 6, 4}, {{"kernel_shape", Ints{2, 3, 2}}, {"pads", Ints{0, 1, 0, 1, 1, 1}}}},
      {Shape{1, 1, 20, 20}, {{"kernel_shape", Ints{17, 19}}, {"pads", Ints{8, 9, 8, 9}}, {"strides", Ints{3, 5}}}},
  };
}

std::vector<Attribute> with(std::vector<Attribute> attributes, const char* name, int64_t value) {
  attributes.push_back({name, value});
  return attributes;
}

TEST(PoolSource, LargestElementsAndWhereTheyAre) {
  std::vector<GridCase> cases;
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8, DType::u8})
    for (const Windowed& w : windows()) {
      const Tensor x = random_tensor(dtype, w.x, dtype == DType::u8 ? 0 : -6, 7, 1);
      cases.push_back(pool(PoolKind::max, x, w.attributes));
      cases.push_back(pool(PoolKind::max, x, w.attributes, true));
      cases.push_back(pool(PoolKind::max, x, with(w.attributes, "storage_order", 1), true));
    }
  run_on_grid(std::move(cases));
}

TEST(PoolSource, MeansWithAndWithoutPadding) {
  std::vector<GridCase> cases;
  for (const DType dtype : float_kinds)
    for (const Windowed& w : windows())
      for (const int64_t counts : {0, 1})
        cases.push_back(pool(PoolKind::average, random_tensor(dtype, w.x, -4, 5, 2), with(w.attributes, "count_include_pad", counts)));
  run_on_grid(std::move(cases));
}

TEST(PoolSource, Norms) {
  std::vector<GridCase> cases;
  for (const DType dtype : float_kinds)
    for (const Windowed& w : windows())
      for (const int64_t p : {1, 2, 3})
        cases.push_back(pool(PoolKind::lp, random_tensor(dtype, w.x, -4, 5, 3), with(w.attributes, "p", p)));
  run_on_grid(std::move(cases));
}

TEST(PoolSource, ChannelsLast) {
  const std::vector<Attribute> same = {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}};
  std::vector<GridCase> cases;
  for (const DType dtype : float_kinds) {
    const Tensor x = random_tensor(dtype, Shape{2, 5, 7, 6}, -4, 5, 4);
    cases.push_back(pool(PoolKind::max, x, same, false, true));
    cases.push_back(pool(PoolKind::average, x, same, false, true));
    cases.push_back(pool(PoolKind::average, x, with(same, "count_include_pad", 1), false, true));
    cases.push_back(pool(PoolKind::lp, x, same, false, true));
  }
  run_on_grid(std::move(cases));
}

TEST(PoolSource, NaNAndInfinities) {
  const Number nan = std::nan(""), inf = HUGE_VAL;
  std::vector<GridCase> cases;
  for (const DType dtype : float_kinds) {
    const Tensor x = tensor_of(dtype, Shape{1, 1, 8}, {-inf, -inf, nan, 1, 2, inf, -inf, nan});
    cases.push_back(pool(PoolKind::max, x, {{"kernel_shape", Ints{2}}}, true));
    cases.push_back(pool(PoolKind::average, x, {{"kernel_shape", Ints{2}}}));
  }
  run_on_grid(std::move(cases));
}

}  // namespace
}  // namespace heddle::cuda::grid_test
