// Runs of subnets: the outer run determines their extents, random numbers, time and count.
#include <gtest/gtest.h>

#include <set>

#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_nets;

ValueId turns(NetBuilder& b, int64_t count) {
  return b.constant("turns", Blob::copy_of(DType::i64, Shape{}, &count));
}

// If's branches give 6 or 3 values, so that their number is dynamic; the NonZero after it has a bound only during the run.
Net bounded_behind_dynamic() {
  NetBuilder whole("whole"), part("part"), b("outer");
  whole.output(whole.add1("Relu", "relu", {whole.input("x", DType::f32, Shape{6})}));
  const ValueId x = part.input("x", DType::f32, Shape{6});
  part.output(part.add1("Slice", "slice", {x, part.constant_ints("from", {0}), part.constant_ints("to", {3})}));
  const ValueId c = b.input("c", DType::boolean, Shape{}), in = b.input("x", DType::f32, Shape{6});
  const ValueId either = b.add1("If", "if", {c, in}, {{"then_branch", subnet(whole)}, {"else_branch", subnet(part)}});
  b.output(b.add1("NonZero", "found", {either}));
  return b.finish();
}

TEST(SubnetRuns, BoundedOutputsBehindDynamicValuesHaveTheirOwnExtent) {
  Session session = open(runtime(), bounded_behind_dynamic());
  const auto found = [&](bool all, const std::vector<float>& x) {
    const auto out = session.run({view(&all, DType::boolean, Shape{}), view(x.data(), DType::f32, Shape{6})});
    EXPECT_TRUE(out.ok()) << out.status().text();
    const Tensor& t = out.value()[0];
    const auto* data = static_cast<const int64_t*>(t.data());
    EXPECT_EQ(t.shape(), (Shape{1, t.shape()[1]}));
    return std::vector<int64_t>(data, data + t.shape().element_count());
  };
  EXPECT_EQ(found(true, {0, 1, 0, 2, 3, 0}), (std::vector<int64_t>{1, 3, 4}));
  EXPECT_EQ(found(true, {1, 1, 1, 1, 1, 1}), (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(found(true, {0, 0, 0, 0, 0, 7}), (std::vector<int64_t>{5}));
  EXPECT_EQ(found(false, {0, 5, 0, 2, 3, 0}), (std::vector<int64_t>{1}));
  EXPECT_EQ(found(true, {0, 0, 0, 0, 0, 0}), (std::vector<int64_t>{}));
}

// Four trips of three random numbers each; `grows`: the carried value is longer after each trip.
Net random_loop(bool grows) {
  NetBuilder body("body"), b("outer");
  body.input("turn", DType::i64, Shape{});
  body.output(body.input("go_on", DType::boolean, Shape{}));
  DeclaredType any;
  any.dtype = DType::f32;
  const ValueId v = grows ? body.input("v", any) : body.input("v", DType::f32, Shape{2});
  body.output(grows ? body.add1("Concat", "longer", {v, body.constant("one", blob(Shape{1}, 1, 1))}, {{"axis", int64_t{0}}})
                    : body.add1("Neg", "turned", {v}));
  body.output(body.add("RandomUniform", "random", {}, 1, {{"shape", std::vector<int64_t>{3}}})[0]);
  const std::vector<ValueId> out =
      b.add("Loop", "loop", {turns(b, 4), yes(b), b.input("v", DType::f32, Shape{2})}, 2, {{"body", subnet(body)}});
  b.output(out[1]);
  return b.finish();
}

TEST(SubnetRuns, EachTripDrawsItsOwnNumbersWhetherTheLoopGrowsOrNot) {
  const float v[2] = {1, 2};
  std::vector<std::vector<float>> drawn;
  for (const bool grows : {false, true}) {
    const auto out = open(runtime(), random_loop(grows)).run({view(v, DType::f32, Shape{2})});
    ASSERT_TRUE(out.ok()) << out.status().text();
    ASSERT_EQ(out.value()[0].shape(), (Shape{4, 3}));
    const auto* data = static_cast<const float*>(out.value()[0].data());
    drawn.emplace_back(data, data + 12);
    EXPECT_EQ(std::set<float>(drawn.back().begin(), drawn.back().end()).size(), 12u) << "a number is drawn twice";
  }
  EXPECT_EQ(drawn[0], drawn[1]);
}

TEST(SubnetRuns, TripsOfNestedLoopsCountTogether) {
  const auto nested = [](NetBuilder& b, std::shared_ptr<const Net> body) {
    return b.add1("Loop", "loop", {turns(b, 4), yes(b), b.input("x", DType::f32, Shape{2})}, {{"body", std::move(body)}});
  };
  const auto net = [&] {
    NetBuilder inmost("inmost"), body("body"), b("outer");
    for (NetBuilder* each : {&inmost, &body}) {
      each->input("turn", DType::i64, Shape{});
      each->output(each->input("go_on", DType::boolean, Shape{}));
    }
    inmost.output(inmost.add1("Neg", "turned", {inmost.input("x", DType::f32, Shape{2})}));
    body.output(nested(body, subnet(inmost)));
    b.output(nested(b, subnet(body)));
    return b.finish();
  };
  const float x[2] = {1, 2};
  for (const int64_t most : {20, 19}) {  // 4 and 4 times 4
    SessionOptions options;
    options.limits.loop_trips = most;
    const auto out = open(runtime(), net(), options).run({view(x, DType::f32, Shape{2})});
    EXPECT_EQ(out.ok(), most == 20) << out.status().text();
    if (!out.ok()) {
      EXPECT_EQ(out.status().code(), Code::limit_exceeded);
    }
  }
}

// One branch takes half a second: no loop polls whether to continue.
TEST(SubnetRuns, DeadlinesReachIntoABranch) {
  NetBuilder long_branch("long"), short_branch("short"), b("outer");
  ValueId x = long_branch.input("x", DType::f32, Shape{512, 512});
  const ValueId first = x;
  for (int i = 0; i < 500; ++i) x = long_branch.add1("MatMul", "product" + std::to_string(i), {x, first});
  long_branch.output(x);
  short_branch.output(short_branch.add1("Relu", "relu", {short_branch.input("x", DType::f32, Shape{512, 512})}));
  const ValueId c = b.input("c", DType::boolean, Shape{}), in = b.input("x", DType::f32, Shape{512, 512});
  b.output(b.add1("If", "if", {c, in}, {{"then_branch", subnet(long_branch)}, {"else_branch", subnet(short_branch)}}));
  const bool yes = true;
  const std::vector<float> zeros(512 * 512);
  RunOptions options;
  options.deadline_ns = 10'000'000;
  const auto out =
      open(runtime(), b.finish()).run({view(&yes, DType::boolean, Shape{}), view(zeros.data(), DType::f32, Shape{512, 512})}, options);
  EXPECT_EQ(out.status().code(), Code::deadline_exceeded) << out.status().text();
}

Net branching(std::vector<ValueId> (*inputs)(NetBuilder&), const std::string& variable) {
  NetBuilder branches[2] = {NetBuilder("then"), NetBuilder("else")}, b("outer");
  for (NetBuilder& branch : branches) branch.output(branch.add1("Relu", "relu", {branch.input("x", DType::f32, Shape{2})}));
  if (!variable.empty()) branches[0].variable(variable, blob(Shape{2}, 0, 1));
  b.output(b.add1("If", "if", inputs(b), {{"then_branch", subnet(branches[0])}, {"else_branch", subnet(branches[1])}}));
  return b.finish();
}

TEST(SubnetRuns, VariablesOfSubnetsAndAbsentInputsAreRefused) {
  const auto both = [](NetBuilder& b) {
    return std::vector<ValueId>{b.input("c", DType::boolean, Shape{}), b.input("x", DType::f32, Shape{2})};
  };
  const auto one = [](NetBuilder& b) { return std::vector<ValueId>{b.input("c", DType::boolean, Shape{}), ValueId()}; };
  const Runtime r = runtime();
  EXPECT_TRUE(open(r, branching(both, "")).prepare().ok());
  const Status variable = r.open(branching(both, "w"), {}).status();
  EXPECT_EQ(variable.code(), Code::subnet_mismatch) << variable.text();
  EXPECT_NE(variable.text().find("variable \"w\""), std::string::npos) << variable.text();
  const Status absent = open(r, branching(one, "")).prepare().status();
  EXPECT_EQ(absent.code(), Code::subnet_mismatch) << absent.text();
  EXPECT_NE(absent.text().find("input 0 of subnet"), std::string::npos) << absent.text();
}

TEST(SubnetRuns, ALoopsConditionIsOneBool) {
  const int64_t number = 256;
  const auto net = [&](DType dtype, const Shape& shape) {
    NetBuilder body("body"), b("outer");
    body.input("turn", DType::i64, Shape{});
    body.input("go_on", DType::boolean, Shape{});
    const ValueId v = body.input("v", DType::f32, Shape{2});
    body.output(body.constant("condition", Blob::copy_of(dtype, shape, &number)));
    body.output(body.add1("Neg", "turned", {v}));
    b.output(b.add1("Loop", "loop", {turns(b, 4), yes(b), b.input("v", DType::f32, Shape{2})}, {{"body", subnet(body)}}));
    return b.finish();
  };
  const Runtime r = runtime();
  EXPECT_TRUE(open(r, net(DType::boolean, Shape{})).prepare().ok());
  EXPECT_TRUE(open(r, net(DType::boolean, Shape{1})).prepare().ok());
  for (const auto& [dtype, shape] :
       {std::pair(DType::i64, Shape{}), std::pair(DType::boolean, Shape{0}), std::pair(DType::boolean, Shape{4})}) {
    const Status status = open(r, net(dtype, shape)).prepare().status();
    EXPECT_NE(status.text().find("it is to be one bool"), std::string::npos) << status.text();
  }
}

}  // namespace
}  // namespace heddle
