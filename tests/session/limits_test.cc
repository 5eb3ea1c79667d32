// SessionOptions::limits are enforced from the first byte that is read to the last step that runs.
#include <gtest/gtest.h>

#include "load/save.h"
#include "session/session_impl.h"
#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_nets;

std::string bytes_of(const Net& net) {
  const auto bytes = net_to_bytes(net);
  EXPECT_TRUE(bytes.ok()) << bytes.status().text();
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

// Opens and prepares the convolution net under a limit.
Status prepared_under(int64_t Limits::*limit, int64_t value) {
  const Runtime r = runtime();
  const std::string bytes = bytes_of(convolution_net());
  SessionOptions options;
  options.limits.*limit = value;
  HEDDLE_TRY(Session session, r.open_bytes(bytes.data(), bytes.size(), "", options));
  return session.prepare().status();
}

TEST(SessionLimits, AreHeldToByEveryStage) {
  struct Case {
    const char* name;
    int64_t Limits::*limit;
    int64_t too_small;
  };
  const Case cases[] = {{"file_bytes", &Limits::file_bytes, 100},      {"nodes", &Limits::nodes, 9},
                        {"name_bytes", &Limits::name_bytes, 3},        {"attribute_elements", &Limits::attribute_elements, 3},
                        {"tensor_bytes", &Limits::tensor_bytes, 4000}, {"plan_bytes", &Limits::plan_bytes, 1000},
                        {"operations", &Limits::operations, 1000}};
  for (const Case& c : cases) {
    const Status status = prepared_under(c.limit, c.too_small);
    EXPECT_EQ(status.code(), Code::limit_exceeded) << c.name << ": " << status.text();
    EXPECT_NE(status.text().find(std::string("raise the limit with SessionOptions::limits.") + c.name), std::string::npos) << status.text();
    EXPECT_TRUE(prepared_under(c.limit, Limits().*c.limit).ok()) << c.name;
  }
}

// Products of f16 stay loops over all of them: rounded in between, their sums would lose bits.
Net products(int64_t extent, const std::string& equation, DType dtype) {
  NetBuilder b("products");
  const ValueId x = b.input("x", dtype, Shape{extent, extent}), y = b.input("y", dtype, Shape{extent, extent});
  b.output(b.add1("Einsum", "all", {x, y}, {{"equation", equation}}));
  return b.finish();
}

// A net of few bytes may take years to run.
TEST(SessionLimits, OperationsAreCountedBesideBytes) {
  const Runtime r = runtime();
  const Status refused = open(r, products(20000, "ij,kl->", DType::f16)).prepare().status();  // 1.6e17 products
  EXPECT_EQ(refused.code(), Code::limit_exceeded) << refused.text();
  EXPECT_NE(refused.text().find("a run takes 3.2e+17 operations, most of them (3.2e+17) in operator \"all\" (Einsum)"), std::string::npos)
      << refused.text();
  EXPECT_NE(refused.text().find("the limit operations is 10000000000000000"), std::string::npos) << refused.text();
  EXPECT_TRUE(open(r, products(3000, "ij,kl->", DType::f16)).prepare().ok());
  // The operations of a subnet count towards the operator that runs it.
  NetBuilder b("outer");
  const auto branch = std::make_shared<const Net>(products(100, "ij,jk->ik", DType::f32));
  b.output(
      b.add1("If", "if",
             {b.input("c", DType::boolean, Shape{}), b.input("x", DType::f32, Shape{100, 100}), b.input("y", DType::f32, Shape{100, 100})},
             {{"then_branch", branch}, {"else_branch", branch}}));
  const Net outer = b.finish();
  SessionOptions options;
  options.limits.operations = 3'999'999;  // either branch alone takes 2,000,000
  const Status both = open(r, outer, options).prepare().status();
  EXPECT_EQ(both.code(), Code::limit_exceeded) << both.text();
  options.limits.operations = 4'000'000;
  EXPECT_TRUE(open(r, outer, options).prepare().ok());
}

// A deadline that passes while the plan is made ends that; a later run makes it.
TEST(SessionDeadline, CoversThePreparationOfANewPlan) {
  const Runtime r = runtime();
  Session session = open(r, convolution_net());
  const auto x = blob(Shape{1, 8, 14, 14}, 0, 0.01f);
  const std::vector<TensorView> inputs = {{DType::f32, Shape{1, 8, 14, 14}, const_cast<std::byte*>(x->data)}};
  RunOptions late;
  late.deadline_ns = 1;
  const Status status = session.run(inputs, late).status();
  EXPECT_EQ(status.code(), Code::deadline_exceeded) << status.text();
  EXPECT_NE(status.text().find("while the net was prepared"), std::string::npos) << status.text();
  EXPECT_TRUE(session.run(inputs).ok());
}

// Folding this constant would take years too.
TEST(SessionLimits, NoConstantIsFoldedForHours) {
  NetBuilder b("folded");
  const std::vector<uint16_t> zeros(4'000'000);
  const ValueId x = b.constant("x", Blob::copy_of(DType::f16, Shape{2000, 2000}, zeros.data()));
  b.output(
      b.add1("Add", "y", {b.add1("Einsum", "all", {x, x}, {{"equation", std::string("ij,kl->")}}), b.input("z", DType::f16, Shape{})}));
  EXPECT_TRUE(open(runtime(), b.finish()).prepare().ok());
}

// Nets nested in one another.
Net nested(int depth) {
  NetBuilder b("level" + std::to_string(depth));
  const uint8_t yes = 1;
  const ValueId x = b.input("x", DType::f32, Shape{2});
  if (depth == 0) {
    b.output(b.add1("Neg", "turned", {x}));
  } else {
    const auto inner = std::make_shared<const Net>(nested(depth - 1));
    NetBuilder other("other");
    other.output(other.add1("Abs", "absolute", {other.input("x", DType::f32, Shape{2})}));
    b.output(b.add1("If", "if", {b.constant("yes", Blob::copy_of(DType::boolean, Shape{}, &yes)), x},
                    {{"then_branch", inner}, {"else_branch", std::make_shared<const Net>(other.finish())}}));
  }
  return b.finish();
}

// The limit is raised to its maximum, in a thread of the default stack size.
TEST(SessionLimits, RaisedNetsNestAsDeepAsTheMostThereIs) {
  const Runtime r = runtime();
  SessionOptions options;
  int64_t most = 0;
  for (const LimitEntry& entry : limit_table())
    if (entry.value == &Limits::subnet_depth) most = entry.most;
  ASSERT_GT(most, Limits().subnet_depth);
  EXPECT_EQ(r.open(nested(17), options).status().code(), Code::limit_exceeded);
  options.limits.subnet_depth = most;
  Limits save;
  save.subnet_depth = most;
  const auto bytes = net_to_bytes(nested(static_cast<int>(most)), save);
  ASSERT_TRUE(bytes.ok()) << bytes.status().text();
  auto session = r.open_bytes(bytes->data(), bytes->size(), "", options);
  ASSERT_TRUE(session.ok()) << session.status().text();
  const float x[2] = {1, -2};
  const auto outputs = session->run({{DType::f32, Shape{2}, const_cast<float*>(x)}});
  ASSERT_TRUE(outputs.ok()) << outputs.status().text();
  EXPECT_EQ(static_cast<const float*>(outputs->at(0).data())[1], 2);
  EXPECT_EQ(r.open(nested(static_cast<int>(most) + 1), options).status().code(), Code::limit_exceeded);
}

// Contents that a session does not evaluate or fold because of its limits are computed in each run, with the same result.
TEST(SessionLimits, FoldingAndFollowingMayBeTurnedOff) {
  const Runtime r = runtime();
  const auto net = [] {
    NetBuilder b("reshape");
    const ValueId shape =
        b.add1("Concat", "shape", {b.constant_ints("rows", {3}), b.constant_ints("columns", {2})}, {{"axis", int64_t{0}}});
    const ValueId table = b.add1("Add", "table", {b.constant("a", blob(Shape{6}, 1, 1)), b.constant("b", blob(Shape{6}, 2, 1))});
    b.output(b.add1("Mul", "y", {b.add1("Reshape", "r", {table, shape}), b.input("x", DType::f32, Shape{3, 2})}));
    return b.finish();
  };
  SessionOptions none;
  none.limits.folded_bytes = none.limits.evaluated_elements = 0;
  const auto x = blob(Shape{3, 2}, 1, 1);
  const auto run = [&](const SessionOptions& options) {
    const auto outputs = open(r, net(), options).run({{DType::f32, Shape{3, 2}, const_cast<std::byte*>(x->data)}});
    EXPECT_TRUE(outputs.ok()) << outputs.status().text();
    if (!outputs.ok()) return std::vector<float>();
    const auto* p = static_cast<const float*>(outputs->at(0).data());
    return std::vector<float>(p, p + 6);
  };
  EXPECT_EQ(run(none), run({}));
}

}  // namespace
}  // namespace heddle
