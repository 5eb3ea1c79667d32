// Generated kernels that move elements by their positions, on the emulated grid, compared with the host's operators: the same bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "generate/move/box_launches.h"
#include "generate/move/fill_launches.h"
#include "generate/move/parts_launches.h"
#include "generate/move/pick_launches.h"
#include "move_run.h"

namespace heddle::cuda::grid_test {
namespace {

using Cases = std::vector<MoveCase>;

// ---------------------------------------------------------------- Transpose

MoveCase transpose(const Tensor& x, const std::vector<int64_t>& perm, bool varies = false) {
  auto launches = std::make_unique<TransposeLaunches>();
  launches->order.assign(perm.begin(), perm.end());
  MoveCase one = move_case(std::move(launches), "Transpose", {x}, {{"perm", perm}});
  one.varies = varies;
  return one;
}

TEST(MoveSource, TransposesOfAllWidthsAndShapes) {
  Cases cases;
  for (const DType dtype : width_kinds) {
    for (const Shape& shape :
         {Shape{1, 1}, Shape{1, 37}, Shape{33, 1}, Shape{32, 32}, Shape{33, 65}, Shape{7, 100}, Shape{130, 9}, Shape{0, 5}})
      cases.push_back(transpose(any_bytes(dtype, shape, 1), {1, 0}));
    std::vector<int64_t> perm = {0, 1, 2};
    do cases.push_back(transpose(any_bytes(dtype, Shape{3, 17, 34}, 2), perm));
    while (std::next_permutation(perm.begin(), perm.end()));
    cases.push_back(transpose(any_bytes(dtype, Shape{5, 12, 3, 16}, 3), {0, 2, 1, 3}));  // rows of wide units
    cases.push_back(transpose(any_bytes(dtype, Shape{9, 3, 40, 4}, 4), {2, 1, 0, 3}));
    cases.push_back(transpose(any_bytes(dtype, Shape{2, 3, 2, 2, 3, 2, 2, 3}, 5), {7, 6, 5, 4, 3, 2, 1, 0}));
    cases.push_back(transpose(any_bytes(dtype, Shape{}, 6), {}));
  }
  for (const bool tiled : {false, true}) cases.push_back(transpose(any_bytes(DType::f32, Shape{tiled ? 40 : 4, 33}, 7), {1, 0}, true));
  run_moves(std::move(cases));
}

TEST(MoveSource, TransposesBetweenLayouts) {
  Cases cases;
  for (const DType dtype : {DType::f16, DType::f32})
    for (const auto& [in, out] : {std::pair(true, false), std::pair(false, true)})
      for (const std::vector<int64_t>& perm : {std::vector<int64_t>{0, 2, 3, 1}, {0, 3, 1, 2}, {3, 2, 1, 0}}) {
        cases.push_back(transpose(any_bytes(dtype, Shape{2, 9, 5, 11}, 1), perm));
        cases.back().call.input_layouts = {in ? last_channels(4) : heddle_layout{}};
        cases.back().call.output_layouts = {out ? last_channels(4) : heddle_layout{}};
      }
  run_moves(std::move(cases));
}

TEST(MoveSource, ReordersOfAllLayouts) {
  Cases cases;
  for (const DType dtype : width_kinds)
    for (const Shape& shape : {Shape{2, 40, 5, 7}, Shape{1, 3, 33, 9}, Shape{3, 16, 4}, Shape{2, 8, 3, 4, 5}, Shape{0, 3, 4, 4}})
      for (const bool to_last : {true, false}) {
        MoveCase one = move_case(std::make_unique<ReorderLaunches>(), "Reorder", {any_bytes(dtype, shape, 1)});
        one.call.domain = "heddle";
        one.call.input_layouts = {to_last ? heddle_layout{} : last_channels(shape.rank())};
        one.call.output_layouts = {to_last ? last_channels(shape.rank()) : heddle_layout{}};
        one.varies = shape.rank() == 3;
        cases.push_back(std::move(one));
      }
  run_moves(std::move(cases));
}

// ---------------------------------------------------------------- Slice

struct Sliced {
  Shape shape;
  std::vector<int64_t> starts, ends, axes, steps;
};

TEST(MoveSource, SlicesWithStepsOfBothSigns) {
  const Sliced what[] = {
      {Shape{9}, {2}, {7}, {}, {}},
      {Shape{9}, {-1}, {-20}, {0}, {-1}},
      {Shape{40, 33}, {3, 1}, {30, 33}, {0, 1}, {2, 4}},
      {Shape{40, 32}, {8}, {24}, {1}, {}},
      {Shape{40, 32}, {4, 4}, {36, INT64_MAX}, {-2, -1}, {}},
      {Shape{5, 6, 7}, {INT64_MAX, 1}, {INT64_MIN, 5}, {2, 0}, {-3, 2}},
      {Shape{5, 6}, {3}, {3}, {0}, {}},
      {Shape{1}, {0}, {1}, {}, {}},
      {Shape{2, 3, 2, 3, 2, 3, 2, 3}, {1, 2, 0}, {2, 0, 2}, {0, 5, 7}, {1, -1, 1}},
      {Shape{0, 4}, {0}, {9}, {0}, {}},
  };
  Cases cases;
  for (const DType dtype : width_kinds)
    for (const Sliced& s : what)
      for (const bool varies : {false, true}) {
        std::vector<Tensor> inputs = {any_bytes(dtype, s.shape, 1), integers(s.starts), integers(s.ends)};
        if (!s.axes.empty()) inputs.push_back(integers(s.axes));
        if (!s.steps.empty()) inputs.push_back(integers(s.steps));
        cases.push_back(move_case(std::make_unique<SliceLaunches>(), "Slice", inputs));
        cases.back().varies = varies;
      }
  MoveCase last = move_case(std::make_unique<SliceLaunches>(), "Slice",
                            {any_bytes(DType::f32, Shape{2, 8, 5, 7}, 2), integers({2, 1}), integers({7, 5}), integers({1, 3})});
  last.call.input_layouts = last.call.output_layouts = {last_channels(4)};
  cases.push_back(std::move(last));
  run_moves(std::move(cases));
}

// ---------------------------------------------------------------- Expand, Tile

TEST(MoveSource, ExpandAndTileRepeat) {
  const std::pair<Shape, std::vector<int64_t>> expanded[] = {{Shape{3, 1}, {3, 40}},
                                                             {Shape{1, 33}, {7, 33}},
                                                             {Shape{64}, {5, 3, 64}},
                                                             {Shape{1}, {}},
                                                             {Shape{}, {4, 5}},
                                                             {Shape{2, 1, 3, 1}, {1, 5, 1, 4}},
                                                             {Shape{3, 1}, {3, 0}},
                                                             {Shape{2, 3}, {2, 3}},
                                                             {Shape{1, 1, 16}, {6, 1, 16}},
                                                             {Shape{2, 1, 2, 1, 2, 1, 2, 1}, {2, 3, 2, 2, 2, 3, 2, 3}}};
  const std::pair<Shape, std::vector<int64_t>> tiled[] = {
      {Shape{3, 5}, {2, 3}}, {Shape{32}, {9}}, {Shape{4, 16}, {3, 2}}, {Shape{2, 3}, {0, 2}},
      {Shape{0, 3}, {2, 2}}, {Shape{7}, {1}},  {Shape{}, {}},          {Shape{2, 1, 2, 1, 2, 1, 2, 3}, {1, 2, 1, 2, 1, 2, 2, 2}}};
  Cases cases;
  for (const DType dtype : width_kinds)
    for (const bool tile : {false, true})
      for (const auto& [shape, operand] :
           tile ? std::vector(std::begin(tiled), std::end(tiled)) : std::vector(std::begin(expanded), std::end(expanded)))
        for (const bool varies : {false, true}) {
          if (varies && dtype != DType::f32) continue;
          auto launches = std::make_unique<RepeatLaunches>();
          launches->tile = tile;
          cases.push_back(move_case(std::move(launches), tile ? "Tile" : "Expand", {any_bytes(dtype, shape, 1), integers(operand)}));
          cases.back().varies = varies;
        }
  run_moves(std::move(cases));
}

// ---------------------------------------------------------------- DepthToSpace, SpaceToDepth

TEST(MoveSource, BlocksOfChannelsAndPixels) {
  Cases cases;
  for (const DType dtype : width_kinds)
    for (const int64_t block : {1, 2, 3})
      for (const int form : {0, 1, 2})
        for (const bool last : {false, true}) {
          auto launches = std::make_unique<BlocksLaunches>();
          launches->to_space = form > 0;
          launches->channel_first = form == 2;
          launches->block = block;
          std::vector<Attribute> attributes = {{"blocksize", block}};
          if (form > 0) attributes.push_back({"mode", std::string(form == 2 ? "CRD" : "DCR")});
          const Shape shape = form > 0 ? Shape{2, 5 * block * block, 3, 9} : Shape{2, 5, 3 * block, 9 * block};
          cases.push_back(
              move_case(std::move(launches), form > 0 ? "DepthToSpace" : "SpaceToDepth", {any_bytes(dtype, shape, 1)}, attributes));
          if (last) cases.back().call.input_layouts = cases.back().call.output_layouts = {last_channels(4)};
          cases.back().varies = block == 3 && !last;
        }
  run_moves(std::move(cases));
}

// ---------------------------------------------------------------- Concat, Split

MoveCase concat(DType dtype, const Shape& shape, int64_t axis, const std::vector<int64_t>& extents, bool varies = false) {
  auto launches = std::make_unique<PartsLaunches>();
  launches->axis = axis;
  std::vector<Tensor> inputs;
  for (const int64_t extent : extents) {
    Shape part = shape;
    part[static_cast<int>(axis < 0 ? axis + shape.rank() : axis)] = extent;
    inputs.push_back(any_bytes(dtype, part, inputs.size() + 1));
  }
  MoveCase one = move_case(std::move(launches), "Concat", inputs, {{"axis", axis}});
  one.varies = varies;
  return one;
}

TEST(MoveSource, ConcatOfManyParts) {
  Cases cases;
  std::vector<int64_t> many(40);
  for (size_t i = 0; i < many.size(); ++i) many[i] = static_cast<int64_t>(i * 7 % 5);
  for (const DType dtype : width_kinds) {
    for (const bool varies : {false, true}) {
      cases.push_back(concat(dtype, Shape{4, 5}, 0, {3, 1, 2}, varies));
      cases.push_back(concat(dtype, Shape{4, 16}, -1, {16, 32, 64}, varies));
      cases.push_back(concat(dtype, Shape{3, 1, 7}, 1, {1, 0, 5, 0}, varies));
      cases.push_back(concat(dtype, Shape{2, 1, 3}, 1, many, varies));
    }
    cases.push_back(concat(dtype, Shape{1}, 0, {1}));
    cases.push_back(concat(dtype, Shape{0, 4}, 1, {4, 4}));
    cases.push_back(concat(dtype, Shape{70, 33}, 1, {33, 31, 64}));
    cases.push_back(concat(dtype, Shape{2, 3, 5, 7}, 1, {3, 8, 1}));
    cases.back().call.input_layouts.assign(3, last_channels(4));
    cases.back().call.output_layouts = {last_channels(4)};
    cases.push_back(concat(dtype, Shape{2, 1, 2, 1, 2, 2, 2, 1}, 4, {2, 1}));
  }
  run_moves(std::move(cases));
}

MoveCase split(const Tensor& x, int64_t axis, const std::vector<int64_t>& sizes, bool named, std::vector<bool> absent = {},
               bool varies = false) {
  auto launches = std::make_unique<PartsLaunches>();
  launches->into_whole = false;
  launches->axis = axis;
  std::vector<Tensor> inputs = {x};
  std::vector<Attribute> attributes = {{"axis", axis}};
  if (named) inputs.push_back(integers(sizes));
  if (!named) attributes.push_back({"num_outputs", static_cast<int64_t>(sizes.size())});
  MoveCase one = move_case(std::move(launches), "Split", inputs, attributes, sizes.size());
  one.absent = std::move(absent);
  one.varies = varies;
  return one;
}

TEST(MoveSource, SplitWithAndWithoutSizes) {
  Cases cases;
  for (const DType dtype : width_kinds) {
    for (const bool varies : {false, true}) {
      cases.push_back(split(any_bytes(dtype, Shape{7, 6}, 1), 0, {3, 3, 1}, false, {}, varies));
      cases.push_back(split(any_bytes(dtype, Shape{5, 48}, 2), 1, {16, 0, 32}, true, {}, varies));
      cases.push_back(split(any_bytes(dtype, Shape{3, 20, 7}, 3), -2, std::vector<int64_t>(20, 1), true, {}, varies));
    }
    cases.push_back(split(any_bytes(dtype, Shape{7, 6}, 4), 0, {3, 3, 1}, false, {false, true, false}));
    cases.push_back(split(any_bytes(dtype, Shape{6, 9}, 5), 1, {2, 3, 4}, true, {true, false, false}));
    cases.push_back(split(any_bytes(dtype, Shape{2, 12, 3, 5}, 6), 1, {4, 8}, true));
    cases.back().call.input_layouts = {last_channels(4)};
    cases.back().call.output_layouts.assign(2, last_channels(4));
    cases.push_back(split(any_bytes(dtype, Shape{3, 0}, 7), 1, {0, 0}, true));
  }
  run_moves(std::move(cases));
}

TEST(MoveSource, TooManyPartsAreRefused) {
  const MoveCase one = concat(DType::u8, Shape{1}, 0, std::vector<int64_t>(417, 1));
  const std::vector<Tensor> wanted = wanted_of(one);
  ASSERT_FALSE(wanted.empty());
  KernelSource source;
  const Moved moved(one, wanted, false);
  const plugin::Status chosen = one.launches->choose(moved.operands(), false, &source);
  EXPECT_NE(chosen.text.find("417 parts, expected at most 416"), std::string::npos) << chosen.text;
}

// ---------------------------------------------------------------- Pad

TEST(MoveSource, PadInAllModes) {
  const std::pair<Shape, std::vector<int64_t>> what[] = {
      {Shape{7}, {3, 2}},
      {Shape{5, 6}, {1, 2, 3, 4}},
      {Shape{5, 32}, {2, 0, 1, 0}},   // rows as they are
      {Shape{3, 4}, {9, 11, 8, 10}},  // more than there is
      {Shape{6, 7}, {-2, 1, 1, -3}},  // fewer
      {Shape{1, 3}, {2, 0, 2, 1}},
      {Shape{4, 5}, {0, 0, 0, 0}},
      {Shape{2, 3, 4, 16}, {0, 1, 1, 0, 0, 2, 1, 0}},
      {Shape{2, 1, 2, 3, 2, 1, 2, 3}, {1, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 2}},
  };
  Cases cases;
  const char* const modes[] = {"constant", "edge", "reflect", "wrap"};
  for (const DType dtype : width_kinds)
    for (int mode = 0; mode < 4; ++mode)
      for (const auto& [shape, pads] : what)
        for (const int form : {0, 1, 2}) {  // 1: without a value; 2: varies
          if (form == 1 && mode > 0) continue;
          auto launches = std::make_unique<PadLaunches>();
          launches->mode = static_cast<operators::PadMode>(mode);
          std::vector<Tensor> inputs = {any_bytes(dtype, shape, 1), integers(pads)};
          if (mode == 0 && form != 1) inputs.push_back(any_bytes(dtype, Shape{}, 2));
          cases.push_back(move_case(std::move(launches), "Pad", inputs, {{"mode", std::string(modes[mode])}}));
          cases.back().varies = form == 2;
        }
  for (const DType dtype : width_kinds) {
    for (const bool last : {false, true}) {
      cases.push_back(move_case(std::make_unique<PadLaunches>(), "Pad",
                                {any_bytes(dtype, Shape{2, 8, 3, 5}, 3), integers({1, 2, 0, 3}), nullptr, integers({2, -1})}));
      if (last) cases.back().call.input_layouts = cases.back().call.output_layouts = {last_channels(4)};
    }
    cases.push_back(move_case(std::make_unique<PadLaunches>(), "Pad", {any_bytes(dtype, Shape{0, 2}, 4), integers({1, 0, 2, 0})}));
    cases.push_back(move_case(std::make_unique<PadLaunches>(), "Pad", {any_bytes(dtype, Shape{}, 5), integers({})}));
  }
  run_moves(std::move(cases));
}

// ---------------------------------------------------------------- Trilu

MoveCase trilu(const Tensor& x, bool upper, const Tensor& k = nullptr) {
  auto launches = std::make_unique<TriluLaunches>();
  launches->upper = upper;
  return move_case(std::move(launches), "Trilu", k ? std::vector<Tensor>{x, k} : std::vector<Tensor>{x}, {{"upper", int64_t{upper}}});
}

TEST(MoveSource, TrianglesOnEachSideOfEachDiagonal) {
  for (const bool in_place : {false, true}) {
    Cases cases;
    for (const DType dtype : width_kinds)
      for (const bool upper : {false, true}) {
        for (const Shape& shape : {Shape{5, 5}, Shape{3, 4, 7}, Shape{2, 2, 9, 3}, Shape{1, 1}, Shape{0, 4}}) {
          cases.push_back(trilu(any_bytes(dtype, shape, 1), upper));
          for (const int64_t k : {int64_t{-2}, int64_t{1}, int64_t{100}, INT64_MIN, INT64_MAX})
            cases.push_back(trilu(any_bytes(dtype, shape, 2), upper, Blob::copy_of(DType::i64, Shape{}, &k)));
        }
        cases.push_back(trilu(any_bytes(dtype, Shape{8, 40}, 3), upper));
        cases.back().varies = true;
      }
    run_moves(std::move(cases), in_place);
  }
}

// ---------------------------------------------------------------- what only a run knows

// A run whose operands differ from those that the plan was made for is refused, and nothing is written past its end.
TEST(MoveSource, OtherContentThanPlannedForIsRefused) {
  const Tensor x = any_bytes(DType::f32, Shape{6, 5}, 1);
  const auto refuses = [](std::unique_ptr<Launches> launches, const std::string& type, const std::vector<Tensor>& inputs,
                          const std::vector<Tensor>& others, const std::string& text) {
    MoveCase one = move_case(std::move(launches), type, inputs);
    one.varies = true;
    const std::vector<Tensor> wanted = wanted_of(one);
    ASSERT_FALSE(wanted.empty());
    KernelSource source;
    ASSERT_TRUE(one.launches->choose(Moved(one, wanted, false).operands(), true, &source).ok());
    one.call.inputs = others;
    LaunchPlan plan;
    const plugin::Status planned = one.launches->plan(Moved(one, wanted, false).operands(), &plan);
    EXPECT_FALSE(planned.ok()) << type;
    EXPECT_NE(planned.text.find(text), std::string::npos) << planned.text;
  };
  refuses(std::make_unique<SliceLaunches>(), "Slice", {x, integers({1}), integers({3})}, {x, integers({1}), integers({5})}, "ends [5]");
  refuses(std::make_unique<RepeatLaunches>(), "Expand", {x, integers({2, 6, 5})}, {x, integers({3, 6, 5})}, "shape [3, 6, 5]");
  refuses(std::make_unique<PadLaunches>(), "Pad", {x, integers({1, 0, 0, 0})}, {x, integers({2, 0, 0, 0})}, "pads [2, 0, 0, 0]");
  refuses(std::make_unique<ConstantLaunches>(), "ConstantOfShape", {integers({4})}, {integers({5})}, "input [5]");
}

// Content that only a run knows is missing in prepare, where the same Launches are asked for a plan.
TEST(MoveSource, ContentMayBeMissingInPrepare) {
  const Tensor x = any_bytes(DType::f32, Shape{6, 5}, 1), none = tensor_of(DType::f32, Shape{}, {0}),
               one = tensor_of(DType::f32, Shape{}, {1});
  auto split = std::make_unique<PartsLaunches>();
  split->into_whole = false;
  Cases cases;
  cases.push_back(move_case(std::make_unique<SliceLaunches>(), "Slice", {x, integers({1}), integers({3})}));
  cases.push_back(move_case(std::make_unique<RepeatLaunches>(), "Expand", {x, integers({2, 6, 5})}));
  cases.push_back(move_case(std::make_unique<PadLaunches>(), "Pad", {x, integers({1, 0, 0, 0}), none, integers({0, 1})}));
  cases.push_back(move_case(std::make_unique<ConstantLaunches>(), "ConstantOfShape", {integers({4})}));
  cases.push_back(move_case(std::make_unique<RangeLaunches>(), "Range", {none, tensor_of(DType::f32, Shape{}, {9}), one}));
  cases.push_back(move_case(std::make_unique<OneHotLaunches>(), "OneHot", {x, integers({4}), tensor_of(DType::f32, Shape{2}, {3, 4})}));
  cases.push_back(move_case(std::move(split), "Split", {x, integers({4, 2})}, {}, 2));
  for (const MoveCase& what : cases) {
    const std::vector<Tensor> wanted = wanted_of(what);
    ASSERT_FALSE(wanted.empty());
    const Moved moved(what, wanted, false);
    const Operands whole = moved.operands();
    std::vector<heddle_tensor> tensors;
    std::vector<const heddle_tensor*> inputs;
    for (uint32_t i = 0; i < whole.input_count; ++i) {
      tensors.push_back(*whole.inputs[i]);
      tensors.back().data = nullptr;
      tensors.back().flags = 0;
    }
    for (const heddle_tensor& tensor : tensors) inputs.push_back(&tensor);
    const Operands missing = {inputs.data(), whole.outputs, whole.input_count, whole.output_count};
    KernelSource source;
    ASSERT_TRUE(what.launches->choose(missing, false, &source).ok()) << what.name();
    EXPECT_TRUE(what.launches->varies()) << what.name();
    LaunchPlan plan;
    EXPECT_TRUE(what.launches->plan(missing, &plan).ok()) << what.name();
    EXPECT_EQ(plan.launch_count, 0u) << what.name();
    EXPECT_TRUE(what.launches->plan(whole, &plan).ok()) << what.name();
    EXPECT_EQ(plan.launch_count, 1u) << what.name();
  }
}

}  // namespace
}  // namespace heddle::cuda::grid_test
