// If, Loop and Scan against subnets that are C++ functions: values, counts of runs, types, and the error texts of bad counts.
#include <numeric>

#include "operators/subnet_host.h"

namespace heddle::testing {
namespace {

Tensor flag(bool value) {
  return booleans({}, {static_cast<uint8_t>(value)});
}
Tensor number(int64_t value) {
  return tensor<int64_t>({}, {value});
}
Tensor floats(const std::vector<float>& v) {
  return tensor<float>({static_cast<int64_t>(v.size())}, v);
}
Tensor plus(const Tensor& x, float y) {
  std::vector<float> v = values<float>(*x);
  for (float& e : v) e += y;
  return tensor<float>(x->shape, v);
}

// ---------------------------------------------------------------- If

const SubnetFunction one_more = [](const std::vector<Tensor>& in) { return std::vector<Tensor>{plus(in[0], 1)}; };
const SubnetFunction twice_as_long = [](const std::vector<Tensor>& in) {
  std::vector<float> v = values<float>(*in[0]);
  v.insert(v.end(), v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size()));
  return std::vector<Tensor>{floats(v)};
};

TEST(If, RunsTheBranchThatItsConditionNames) {
  const SubnetFunction one_less = [](const std::vector<Tensor>& in) { return std::vector<Tensor>{plus(in[0], -1)}; };
  for (bool taken : {true, false}) {
    const ControlResult r =
        run_control({"If", {flag(taken), floats({1, 2})}, {}, {{"then_branch", one_more}, {"else_branch", one_less}}, {}});
    ASSERT_EQ(r.error, "");
    EXPECT_EQ(r.types[0].flags & HEDDLE_TYPE_DYNAMIC, 0u);
    EXPECT_EQ(values<float>(*r.outputs[0]), taken ? (std::vector<float>{2, 3}) : (std::vector<float>{0, 1}));
    EXPECT_EQ(r.runs, 1u);
  }
}

TEST(If, IsDynamicWhereTheBranchesDifferUnlessTheConditionIsKnown) {
  ControlCall call = {"If", {flag(false), floats({1, 2})}, {}, {{"then_branch", one_more}, {"else_branch", twice_as_long}}, {}};
  const ControlResult unknown = run_control(call);
  ASSERT_EQ(unknown.error, "");
  EXPECT_NE(unknown.types[0].flags & HEDDLE_TYPE_DYNAMIC, 0u);
  EXPECT_EQ(values<float>(*unknown.outputs[0]), (std::vector<float>{1, 2, 1, 2}));
  call.known = {0};
  const ControlResult known = run_control(call);
  ASSERT_EQ(known.error, "");
  EXPECT_EQ(known.types[0].flags & HEDDLE_TYPE_DYNAMIC, 0u);
  EXPECT_EQ(known.types[0].dims[0], 4);
}

TEST(If, RefusesBranchesOfDifferentDtypesAndReportsAFailingBranch) {
  const SubnetFunction other = [](const std::vector<Tensor>&) { return std::vector<Tensor>{number(1)}; };
  const SubnetFunction failing = [](const std::vector<Tensor>& in) {
    return values<float>(*in[0])[0] != 0 ? std::vector<Tensor>() : std::vector<Tensor>{in[0]};  // also runs on inference's zeros
  };
  EXPECT_NE(run_control({"If", {flag(true), floats({1})}, {}, {{"then_branch", one_more}, {"else_branch", other}}, {}}).error.find("dtype"),
            std::string::npos);
  EXPECT_EQ(run_control({"If", {flag(true), floats({1})}, {}, {{"then_branch", failing}, {"else_branch", failing}}, {}}).error,
            "the subnet failed");
}

// ---------------------------------------------------------------- Loop

// carried sum += step; scans the sum; continues while the sum is below 100.
const SubnetFunction add_up = [](const std::vector<Tensor>& in) {
  const Tensor sum = plus(in[2], values<float>(*in[3])[0]);
  return std::vector<Tensor>{flag(values<float>(*sum)[0] < 100), sum, sum};
};

ControlCall loop(Tensor trips, Tensor cond, float step, const std::vector<size_t>& known) {
  return {"Loop", {std::move(trips), std::move(cond), floats({0, 50}), floats({step})}, known, {{"body", add_up}}, {{"captured", {1}}}, 2};
}

TEST(Loop, StacksScansUpToItsTripCount) {
  const ControlResult r = run_control(loop(number(3), flag(true), 10, {0}));
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.types[1].bounded_axis, 0);
  EXPECT_EQ(values<float>(*r.outputs[0]), (std::vector<float>{30, 80}));
  EXPECT_EQ(r.outputs[1]->shape, (Shape{3, 2}));
  EXPECT_EQ(values<float>(*r.outputs[1]), (std::vector<float>{10, 60, 20, 70, 30, 80}));
}

TEST(Loop, EndsWhenTheBodySaysSo) {
  const ControlResult r = run_control(loop(number(9), nullptr, 40, {0}));
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.runs, 3u);
  EXPECT_EQ(r.outputs[1]->shape, (Shape{3, 2}));
  EXPECT_EQ(values<float>(*r.outputs[0]), (std::vector<float>{120, 170}));
}

TEST(Loop, GrowsItsScansWithoutABound) {
  for (const Tensor& trips : {Tensor(), number(INT64_MAX)}) {
    const ControlResult r = run_control(loop(trips, flag(true), 25, {0}));
    ASSERT_EQ(r.error, "");
    EXPECT_NE(r.types[1].flags & HEDDLE_TYPE_DYNAMIC, 0u);
    EXPECT_EQ(r.outputs[1]->shape, (Shape{4, 2}));
    EXPECT_EQ(values<float>(*r.outputs[0]), (std::vector<float>{100, 150}));
  }
}

TEST(Loop, OfNoIterationsGivesItsInitialValues) {
  for (const auto& call : {loop(number(0), flag(true), 1, {0}), loop(number(5), flag(false), 1, {0}), loop(number(-1), nullptr, 1, {0})}) {
    const ControlResult r = run_control(call);
    ASSERT_EQ(r.error, "");
    EXPECT_EQ(r.runs, 0u);
    EXPECT_EQ(values<float>(*r.outputs[0]), (std::vector<float>{0, 50}));
    EXPECT_EQ(r.outputs[1]->shape, (Shape{0, 2}));
  }
}

TEST(Loop, CarriesValuesThatGrow) {
  const SubnetFunction append = [](const std::vector<Tensor>& in) {
    std::vector<float> v = values<float>(*in[2]);
    v.push_back(static_cast<float>(values<int64_t>(*in[0])[0]));
    return std::vector<Tensor>{flag(true), floats(v), floats({static_cast<float>(v.size())})};
  };
  const ControlResult r = run_control({"Loop", {number(4), flag(true), floats({9})}, {0}, {{"body", append}}, {}, 2});
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(values<float>(*r.outputs[0]), (std::vector<float>{9, 0, 1, 2, 3}));
  EXPECT_EQ(values<float>(*r.outputs[1]), (std::vector<float>{2, 3, 4, 5}));
}

TEST(Loop, RefusesScansThatChangeTheirShapeAndWrongCounts) {
  const SubnetFunction growing = [](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{flag(true), floats(std::vector<float>(static_cast<size_t>(values<int64_t>(*in[0])[0]) + 1))};
  };
  const ControlResult changed = run_control({"Loop", {nullptr, flag(true)}, {}, {{"body", growing}}, {}, 1});
  EXPECT_NE(changed.error.find("shape [2] in iteration 1"), std::string::npos) << changed.error;
  ControlCall call = loop(number(1), flag(true), 1, {0});
  call.ints = {{"captured", {7}}};
  EXPECT_NE(run_control(call).error.find("captured is 7"), std::string::npos);
}

// ---------------------------------------------------------------- Scan

// state sum += slice; scans the sum, scaled by the captured number.
const SubnetFunction running_sum = [](const std::vector<Tensor>& in) {
  std::vector<float> sum = values<float>(*in[0]), scaled;
  const std::vector<float> slice = values<float>(*in[1]);
  for (size_t i = 0; i < sum.size(); ++i) scaled.push_back((sum[i] += slice[i]) * values<float>(*in[2])[0]);
  return std::vector<Tensor>{floats(sum), floats(scaled)};
};

ControlCall scan(const Tensor& x, std::vector<std::pair<std::string, std::vector<int64_t>>> ints) {
  ints.push_back({"num_scan_inputs", {1}});
  ints.push_back({"captured", {1}});
  return {"Scan", {floats({0, 0}), x, floats({2})}, {}, {{"body", running_sum}}, std::move(ints), 2};
}

TEST(Scan, GoesOverTheFirstAxisInPlace) {
  const ControlResult r = run_control(scan(tensor<float>({3, 2}, {1, 2, 3, 4, 5, 6}), {}));
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(values<float>(*r.outputs[0]), (std::vector<float>{9, 12}));
  EXPECT_EQ(values<float>(*r.outputs[1]), (std::vector<float>{2, 4, 8, 12, 18, 24}));
}

TEST(Scan, GoesOverAnyAxisBackwards) {
  // The columns of [2, 3], last first; the scans become columns, first to last.
  const ControlResult r = run_control(scan(tensor<float>({2, 3}, {1, 2, 3, 4, 5, 6}),
                                           {{"scan_input_axes", {-1}}, {"scan_input_directions", {1}}, {"scan_output_axes", {1}}}));
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(values<float>(*r.outputs[0]), (std::vector<float>{6, 15}));
  EXPECT_EQ(r.outputs[1]->shape, (Shape{2, 3}));
  EXPECT_EQ(values<float>(*r.outputs[1]), (std::vector<float>{6, 10, 12, 12, 22, 30}));
}

TEST(Scan, RefusesAStateThatChangesItsShape) {
  const SubnetFunction growing = [](const std::vector<Tensor>& in) { return std::vector<Tensor>{floats({1, 2, 3}), in[1]}; };
  ControlCall call = scan(tensor<float>({3, 2}, {1, 2, 3, 4, 5, 6}), {});
  call.subnets = {{"body", growing}};
  EXPECT_NE(run_control(call).error.find("state 0 is [3] after the body"), std::string::npos);
}

}  // namespace
}  // namespace heddle::testing
