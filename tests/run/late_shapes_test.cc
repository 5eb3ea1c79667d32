// Nets whose extents only the run knows: nothing that is valid is refused before it, wherever the extents come from.
#include <gtest/gtest.h>

#include "session_plan.h"
#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_nets;

ValueId scalar(NetBuilder& b, const std::string& name, int64_t value) {
  return b.constant(name, Blob::copy_of(DType::i64, Shape{}, &value));
}
// A type of f32 of any shape.
DeclaredType floats() {
  DeclaredType type;
  type.dtype = DType::f32;
  return type;
}
// Adds the first ports of a loop's body, whose condition stays as it was; returns the number of the trip.
ValueId begin_loop(NetBuilder& body) {
  const ValueId turn = body.input("turn", DType::i64, Shape{});
  body.output(body.input("go_on", DType::boolean, Shape{}));
  return turn;
}

struct Given {
  Shape shape;
  std::vector<float> values;
  friend bool operator==(const Given&, const Given&) = default;
};
std::ostream& operator<<(std::ostream& to, const Given& given) {
  to << given.shape.text() << ":";
  for (const float v : given.values) to << " " << v;
  return to;
}
Given given(const Result<std::vector<Tensor>>& outputs) {
  EXPECT_TRUE(outputs.ok()) << outputs.status().text();
  if (!outputs.ok()) return {};
  const Tensor& t = outputs.value()[0];
  if (t.dtype() == DType::i64) {
    const auto* data = static_cast<const int64_t*>(t.data());
    return {t.shape(), {data, data + t.shape().element_count()}};
  }
  const auto* data = static_cast<const float*>(t.data());
  return {t.shape(), {data, data + t.shape().element_count()}};
}

// Returns the first rows of x [4, 3]; their number is unknown before the run: 4 if c, else 2.
ValueId some_rows(NetBuilder& b) {
  NetBuilder whole("whole"), part("part");
  whole.output(whole.add1("Relu", "relu", {whole.input("x", DType::f32, Shape{4, 3})}));
  part.output(part.add1("Slice", "slice",
                        {part.input("x", DType::f32, Shape{4, 3}), part.constant_ints("from", {0}), part.constant_ints("to", {2})}));
  return b.add1("If", "rows", {b.input("c", DType::boolean, Shape{}), b.input("x", DType::f32, Shape{4, 3})},
                {{"then_branch", subnet(whole)}, {"else_branch", subnet(part)}});
}

const std::vector<float> twelve = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

Given run_rows(Session session, bool all) {
  return given(session.run({view(&all, DType::boolean, Shape{}), view(twelve.data(), DType::f32, Shape{4, 3})}));
}

struct Behind {
  const char* name;
  std::vector<ValueId> (*make)(NetBuilder& b, ValueId rows);
  Given two, four;
};
std::ostream& operator<<(std::ostream& to, const Behind& behind) {
  return to << behind.name;
}

class LateShapes : public ::testing::TestWithParam<Behind> {};

TEST_P(LateShapes, OperatorsBehindThemAreNotRefused) {
  NetBuilder b("net");
  const ValueId rows = some_rows(b);
  b.output(GetParam().make(b, rows)[0]);
  Session session = open(runtime(), b.finish());
  EXPECT_EQ(run_rows(session, false), GetParam().two);
  EXPECT_EQ(run_rows(session, true), GetParam().four);
  EXPECT_EQ(run_rows(session, false), GetParam().two);
}

INSTANTIATE_TEST_SUITE_P(
    Each, LateShapes,
    ::testing::Values(
        Behind{"MatMul",
               [](NetBuilder& b, ValueId rows) {
                 return b.add("MatMul", "y", {rows, b.constant("w", blob(Shape{3, 1}, 1, 0))}, 1);
               },
               {{2, 1}, {3, 12}},
               {{4, 1}, {3, 12, 21, 30}}},
        Behind{"Reshape",
               [](NetBuilder& b, ValueId rows) {
                 return b.add("Reshape", "y", {rows, b.constant_ints("shape", {3, -1})}, 1);
               },
               {{3, 2}, {0, 1, 2, 3, 4, 5}},
               {{3, 4}, twelve}},
        Behind{"ReshapeToMoreThanWasGuessed",
               [](NetBuilder& b, ValueId rows) {
                 const ValueId square = b.add1("Reshape", "square", {rows, b.constant_ints("shape", {-1, 6})});
                 return b.add("ReduceSum", "y", {square, b.constant_ints("axes", {1})}, 1, {{"keepdims", int64_t{0}}});
               },
               {{1}, {15}},
               {{2}, {15, 51}}},
        Behind{"TopK",
               [](NetBuilder& b, ValueId rows) {
                 return b.add("TopK", "y", {rows, b.constant_ints("k", {2})}, 2, {{"axis", int64_t{0}}});
               },
               {{2, 3}, {3, 4, 5, 0, 1, 2}},
               {{2, 3}, {9, 10, 11, 6, 7, 8}}},
        Behind{"Split",
               [](NetBuilder& b, ValueId rows) {
                 return b.add("Split", "y", {rows, b.constant_ints("sizes", {1, 2})}, 2, {{"axis", int64_t{1}}});
               },
               {{2, 1}, {0, 3}},
               {{4, 1}, {0, 3, 6, 9}}},
        Behind{"PadByLessThanNothing",
               [](NetBuilder& b, ValueId rows) {
                 return b.add("Pad", "y", {rows, b.constant_ints("pads", {-1, 0, 0, -2})}, 1);
               },
               {{1, 1}, {3}},
               {{3, 1}, {3, 6, 9}}},
        Behind{"Concat",
               [](NetBuilder& b, ValueId rows) {
                 return b.add("Concat", "y", {rows, b.constant("more", blob(Shape{1, 3}, 7, 0))}, 1, {{"axis", int64_t{0}}});
               },
               {{3, 3}, {0, 1, 2, 3, 4, 5, 7, 7, 7}},
               {{5, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 7, 7, 7}}},
        Behind{"ConvWithAWideWindow",
               [](NetBuilder& b, ValueId rows) {
                 const ValueId image = b.add1("Unsqueeze", "image", {rows, b.constant_ints("axes", {1})});
                 const ValueId sums = b.add1("Conv", "sums", {image, b.constant("w", blob(Shape{2, 1, 3}, 1, 0))});
                 return b.add("Squeeze", "y", {sums, b.constant_ints("last", {2})}, 1);
               },
               {{2, 2}, {3, 3, 12, 12}},
               {{4, 2}, {3, 3, 12, 12, 21, 21, 30, 30}}},
        Behind{"Scan",
               [](NetBuilder& b, ValueId rows) {
                 NetBuilder body("body");
                 const ValueId sum = body.input("sum", DType::f32, Shape{3}), row = body.input("row", DType::f32, Shape{3});
                 const ValueId next = body.add1("Add", "next", {sum, row});
                 body.output(next);
                 body.output(body.add1("Identity", "so_far", {next}));
                 const auto out = b.add("Scan", "scan", {b.constant("zero", blob(Shape{3}, 0, 0)), rows}, 2,
                                        {{"body", subnet(body)}, {"num_scan_inputs", int64_t{1}}});
                 return std::vector<ValueId>{out[1]};
               },
               {{2, 3}, {0, 1, 2, 3, 5, 7}},
               {{4, 3}, {0, 1, 2, 3, 5, 7, 9, 12, 15, 18, 22, 26}}},
        // No stage assumes that there are four dimensions; kernels look at their number when they are created.
        Behind{"MoreDimensionsThanAnybodyGuessed",
               [](NetBuilder& b, ValueId rows) {
                 const ValueId four = b.add1("Reshape", "four", {rows, b.constant_ints("shape", {3, 1, -1, 2})});
                 return b.add("Gather", "y", {four, scalar(b, "first", 0)}, 1, {{"axis", int64_t{-1}}});
               },
               {{3, 1, 1}, {0, 2, 4}},
               {{3, 1, 2}, {0, 2, 4, 6, 8, 10}}},
        Behind{"Scalars",
               [](NetBuilder& b, ValueId rows) {
                 NetBuilder body("body");
                 begin_loop(body);
                 const ValueId sum = body.input("sum", DType::f32, Shape{}), r = body.input("rows", floats());
                 body.output(body.add1("Add", "next", {sum, body.add1("ReduceSum", "all", {r}, {{"keepdims", int64_t{0}}})}));
                 return b.add("Loop", "loop", {scalar(b, "turns", 2), yes(b), b.constant("zero", blob(Shape{}, 0, 0)), rows}, 1,
                              {{"body", subnet(body)}, {"captured", int64_t{1}}});
               },
               {{}, {30}},
               {{}, {132}}},
        Behind{"LoopsThatStack",
               [](NetBuilder& b, ValueId rows) {
                 NetBuilder body("body");
                 begin_loop(body);
                 const ValueId r = body.input("rows", floats());
                 body.output(body.add1("ReduceSum", "sums", {r, body.constant_ints("axes", {1})}, {{"keepdims", int64_t{0}}}));
                 return b.add("Loop", "loop", {scalar(b, "turns", 2), yes(b), rows}, 1, {{"body", subnet(body)}, {"captured", int64_t{1}}});
               },
               {{2, 2}, {3, 12, 3, 12}},
               {{2, 4}, {3, 12, 21, 30, 3, 12, 21, 30}}},
        Behind{"ShapeDecidedByARowCount",
               [](NetBuilder& b, ValueId rows) {
                 const ValueId shape = b.add1("Shape", "shape", {rows});
                 return b.add("Expand", "y", {b.constant("one", blob(Shape{1}, 5, 0)), shape}, 1);
               },
               {{2, 3}, {5, 5, 5, 5, 5, 5}},
               {{4, 3}, std::vector<float>(12, 5)}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(LateOperands, ContentOfValuesThatOnlyTheRunKnowsDecidesExtents) {
  NetBuilder b("net");
  const ValueId x = b.input("x", DType::f32, Shape{6});
  const ValueId found = b.add1("NonZero", "found", {x});
  b.output(b.add1("Expand", "y", {b.constant("one", blob(Shape{1}, 5, 0)), b.add1("Shape", "shape", {found})}));
  Session session = open(runtime(), b.finish());
  for (const int64_t ones : {4, 0, 6}) {
    std::vector<float> values(6);
    for (int64_t i = 0; i < ones; ++i) values[static_cast<size_t>(i)] = 1;
    EXPECT_EQ(given(session.run({view(values.data(), DType::f32, Shape{6})})),
              (Given{{1, ones}, std::vector<float>(static_cast<size_t>(ones), 5)}));
  }
}

// The body slices one row of a matrix by the number of the trip.
TEST(LateOperands, TripsSliceByTheirNumber) {
  NetBuilder body("body"), b("outer");
  const ValueId turn = begin_loop(body);
  const ValueId sum = body.input("sum", DType::f32, Shape{3}), x = body.input("x", DType::f32, Shape{4, 3});
  const ValueId from = body.add1("Reshape", "from", {turn, body.constant_ints("one", {1})});
  const ValueId to = body.add1("Add", "to", {from, body.constant_ints("next", {1})});
  const ValueId row = body.add1("Slice", "row", {x, from, to, body.constant_ints("axes", {0})});
  body.output(body.add1("ReduceSum", "next_sum", {body.add1("Add", "both", {row, sum}), body.constant_ints("rows", {0})},
                        {{"keepdims", int64_t{0}}}));
  b.output(b.add1("Loop", "loop",
                  {scalar(b, "turns", 4), yes(b), b.constant("zero", blob(Shape{3}, 0, 0)), b.input("x", DType::f32, Shape{4, 3})},
                  {{"body", subnet(body)}, {"captured", int64_t{1}}}));
  Session session = open(runtime(), b.finish());
  EXPECT_EQ(given(session.run({view(twelve.data(), DType::f32, Shape{4, 3})})), (Given{{3}, {18, 22, 26}}));
}

// The non-zero positions of each slice, equally many, are stacked along the second axis; a carried value sums them all.
TEST(LateOperands, ScansStackWhatTheirBodyFinds) {
  NetBuilder body("body"), b("outer");
  const ValueId sum = body.input("sum", DType::f32, Shape{1, 1}), row = body.input("row", DType::f32, Shape{3});
  const ValueId where = body.add1("NonZero", "where", {row});
  const ValueId places = body.add1("Cast", "places", {where}, {{"to", int64_t{1}}});
  body.output(body.add1("Add", "next", {sum, body.add1("ReduceSum", "sums", {places})}));
  body.output(where);
  const auto out = b.add("Scan", "scan", {b.constant("zero", blob(Shape{1, 1}, 0, 0)), b.input("x", DType::f32, Shape{2, 3})}, 2,
                         {{"body", subnet(body)}, {"num_scan_inputs", int64_t{1}}, {"scan_output_axes", std::vector<int64_t>{1}}});
  b.output(out[1]);
  b.output(out[0]);
  Session session = open(runtime(), b.finish());
  const float two_each[] = {0, 1, 2, 5, 0, 6}, one_each[] = {1, 0, 0, 0, 1, 0}, unequal[] = {1, 0, 0, 0, 1, 1};
  const auto run = [&](const float* x) { return session.run({view(x, DType::f32, Shape{2, 3})}); };
  const auto found = run(two_each);
  EXPECT_EQ(given(found), (Given{{1, 2, 2}, {1, 2, 0, 2}}));
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*static_cast<const float*>(found.value()[1].data()), 5);
  EXPECT_EQ(given(run(one_each)), (Given{{1, 2, 1}, {0, 1}}));
  const Status refused = run(unequal).status();
  EXPECT_NE(refused.text().find("a scan output has shape [1, 2] in iteration 1, before it had [1, 1]"), std::string::npos)
      << refused.text();
  EXPECT_EQ(given(run(one_each)), (Given{{1, 2, 1}, {0, 1}}));
}

// Values that the body passes through are read until the trip is over.
TEST(LateOperands, CarriedValuesMayChangePlaces) {
  NetBuilder body("body"), b("outer");
  begin_loop(body);
  const ValueId first = body.input("first", floats()), second = body.input("second", floats());
  body.output(second);
  body.output(first);
  body.output(body.add1("NonZero", "where", {first}));
  const auto out =
      b.add("Loop", "loop", {scalar(b, "turns", 3), yes(b), b.input("x", DType::f32, Shape{2}), b.constant("twos", blob(Shape{2}, 2, 0))},
            3, {{"body", subnet(body)}});
  b.output(out[0]);
  b.output(out[1]);
  Session session = open(runtime(), b.finish());
  const float x[] = {1, 3};
  const auto found = session.run({view(x, DType::f32, Shape{2})});
  EXPECT_EQ(given(found), (Given{{2}, {2, 2}}));
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(static_cast<const float*>(found.value()[1].data())[1], 3);
}

TEST(LateOperands, BranchesMayDifferInTheNumberOfDimensions) {
  NetBuilder flat("flat"), square("square"), b("outer");
  flat.output(flat.add1("Reshape", "flat", {flat.input("x", DType::f32, Shape{2, 3}), flat.constant_ints("shape", {6})}));
  square.output(square.add1("Neg", "neg", {square.input("x", DType::f32, Shape{2, 3})}));
  const ValueId either = b.add1("If", "if", {b.input("c", DType::boolean, Shape{}), b.input("x", DType::f32, Shape{2, 3})},
                                {{"then_branch", subnet(flat)}, {"else_branch", subnet(square)}});
  b.output(b.add1("Softmax", "y", {b.add1("Sub", "zero", {either, either})}));  // along the last axis, whichever that is
  Session session = open(runtime(), b.finish());
  for (const bool c : {true, false, true}) {
    const auto out = given(session.run({view(&c, DType::boolean, Shape{}), view(twelve.data(), DType::f32, Shape{2, 3})}));
    EXPECT_EQ(out.shape, c ? Shape({6}) : Shape({2, 3}));
    for (const float v : out.values) EXPECT_NEAR(v, c ? 1.0 / 6 : 1.0 / 3, 1e-6);
  }
}

// A loop without a trip gives the extents of its slices, where they are known, though a carried value grows.
TEST(LateOperands, LoopsWithoutATripStackNothingOfTheirSlicesExtents) {
  NetBuilder body("body"), b("outer");
  begin_loop(body);
  const ValueId grown = body.input("grown", floats()), one = body.constant("one", blob(Shape{1, 5}, 1, 0));
  body.output(
      body.add1("Concat", "grow", {grown, body.add1("Reshape", "flat", {one, body.constant_ints("shape", {5})})}, {{"axis", int64_t{0}}}));
  body.output(body.add1("Neg", "slice", {one}));
  b.output(b.add("Loop", "loop", {b.input("turns", DType::i64, Shape{}), yes(b), b.input("x", DType::f32, Shape{1})}, 2,
                 {{"body", subnet(body)}})[1]);
  Session session = open(runtime(), b.finish());
  const float x = 1;
  for (const int64_t turns : {0, 2}) {
    const auto out = session.run({view(&turns, DType::i64, Shape{}), view(&x, DType::f32, Shape{1})});
    EXPECT_EQ(given(out), (Given{{turns, 1, 5}, std::vector<float>(static_cast<size_t>(turns * 5), -1)}));
  }
}

// A value that a branch computes from a bounded one has no bound outside of the branch.
TEST(LateOperands, ValuesComputedFromBoundedOnesLeaveBranches) {
  NetBuilder found("found"), none("none"), b("outer");
  const ValueId x = found.input("x", DType::f32, Shape{6});
  const ValueId where = found.add1("Cast", "as_float", {found.add1("NonZero", "where", {x})}, {{"to", int64_t{1}}});
  found.output(found.add1("ReduceSum", "sums", {where, found.constant_ints("axes", {0})}, {{"keepdims", int64_t{0}}}));
  none.output(none.add1("Neg", "neg", {none.input("x", DType::f32, Shape{6})}));
  b.output(b.add1("If", "if", {b.input("c", DType::boolean, Shape{}), b.input("x", DType::f32, Shape{6})},
                  {{"then_branch", subnet(found)}, {"else_branch", subnet(none)}}));
  Session session = open(runtime(), b.finish());
  const std::vector<float> values = {0, 3, 0, 0, 1, 1};
  for (const bool c : {true, false, true})
    EXPECT_EQ(given(session.run({view(&c, DType::boolean, Shape{}), view(values.data(), DType::f32, Shape{6})})),
              c ? (Given{{3}, {1, 4, 5}}) : (Given{{6}, {0, -3, 0, 0, -1, -1}}));
}

// An If with a branch that reshapes by a captured constant, as exporters write it.
Net reshape_by_capture(bool behind_late_value) {
  NetBuilder reshaped("reshaped"), kept("kept"), b("outer");
  for (NetBuilder* branch : {&reshaped, &kept}) {
    const ValueId x = branch->input("x", floats()), shape = branch->input("shape", DType::i64, Shape{2});
    branch->output(branch->add1("Reshape", "reshape", {branch == &kept ? branch->add1("Neg", "neg", {x}) : x, shape}));
  }
  const ValueId rows = behind_late_value ? some_rows(b) : b.input("x", DType::f32, Shape{4, 3});
  const ValueId d = b.input("d", DType::boolean, Shape{});
  b.output(
      b.add1("If", "if", {d, rows, b.constant_ints("shape", {1, -1})}, {{"then_branch", subnet(reshaped)}, {"else_branch", subnet(kept)}}));
  return b.finish();
}

TEST(LateOperands, ContentsOfCapturedConstantsReachBranches) {
  const bool d = true;
  Session planned = open(runtime(), reshape_by_capture(false));
  EXPECT_EQ(given(planned.run({view(twelve.data(), DType::f32, Shape{4, 3}), view(&d, DType::boolean, Shape{})})),
            (Given{{1, 12}, twelve}));
  const auto plan = planned.prepare();
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(last_plan(planned)->steps.size(), 1u);
  EXPECT_FALSE(last_plan(planned)->has_late_steps);
  Session late = open(runtime(), reshape_by_capture(true));
  for (const bool all : {true, false}) {
    const std::vector<float> first(twelve.begin(), twelve.begin() + (all ? 12 : 6));
    EXPECT_EQ(given(late.run(
                  {view(&all, DType::boolean, Shape{}), view(twelve.data(), DType::f32, Shape{4, 3}), view(&d, DType::boolean, Shape{})})),
              (Given{{1, static_cast<int64_t>(first.size())}, first}));
  }
}

// The constant that a loop starts with is not the value in its next trip: 2, then 3, then 4 ones are appended.
TEST(LateOperands, CarriedShapesAreReadAnewInEachTrip) {
  NetBuilder body("body"), b("outer");
  begin_loop(body);
  const ValueId shape = body.input("shape", DType::i64, Shape{1}), grown = body.input("grown", floats());
  const ValueId ones = body.add1("Expand", "ones", {body.constant("one", blob(Shape{1}, 1, 0)), shape});
  body.output(body.add1("Add", "longer", {shape, body.constant_ints("1", {1})}));
  body.output(body.add1("Concat", "grow", {grown, ones}, {{"axis", int64_t{0}}}));
  b.output(b.add("Loop", "loop", {scalar(b, "turns", 3), yes(b), b.constant_ints("two", {2}), b.input("x", DType::f32, Shape{1})}, 2,
                 {{"body", subnet(body)}})[1]);
  const float x = 1;
  Session session = open(runtime(), b.finish());
  EXPECT_EQ(given(session.run({view(&x, DType::f32, Shape{1})})), (Given{{10}, std::vector<float>(10, 1)}));
}

TEST(LateOperands, WhatIsWrongWhateverTheExtentsIsRefusedBeforeTheRun) {
  NetBuilder b("net");
  b.output(b.add1("MatMul", "y", {some_rows(b), b.constant_ints("integers", {1, 2, 3})}));
  auto session = runtime().open(b.finish(), {});
  const Status status = session.ok() ? session->prepare().status() : session.status();
  EXPECT_EQ(status.code(), Code::dtype_mismatch) << status.text();
}

TEST(LateOperands, ExtentsThatDoNotFitAreTheRunsError) {
  NetBuilder b("net");
  b.output(b.add1("MatMul", "y", {b.constant("w", blob(Shape{1, 4}, 1, 0)), some_rows(b)}));
  Session session = open(runtime(), b.finish());
  EXPECT_EQ(run_rows(session, true), (Given{{1, 3}, {18, 22, 26}}));
  const bool all = false;
  const auto out = session.run({view(&all, DType::boolean, Shape{}), view(twelve.data(), DType::f32, Shape{4, 3})});
  EXPECT_EQ(out.status().code(), Code::shape_mismatch) << out.status().text();
  EXPECT_NE(out.status().text().find("\"y\""), std::string::npos) << out.status().text();
  EXPECT_EQ(run_rows(session, true), (Given{{1, 3}, {18, 22, 26}}));
}

}  // namespace
}  // namespace heddle
