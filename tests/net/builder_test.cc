// A builder does not check what it is given; open_net and save_net check it as load checks a file.
#include <gtest/gtest.h>

#include <functional>

#include "load/save.h"
#include "session/session_impl.h"
#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_nets;

struct Broken {
  const char* name;
  std::function<void(NetBuilder&, ValueId x)> build;
};

const Broken broken[] = {
    {"InputFromElsewhere", [](NetBuilder& b, ValueId) { b.output(b.add1("Relu", "y", {ValueId(500)})); }},
    {"OutputFromElsewhere", [](NetBuilder& b, ValueId) { b.output(ValueId(500)); }},
    {"NoOutputValue", [](NetBuilder& b, ValueId) { b.output(ValueId()); }},
    {"SameNameTwice",
     [](NetBuilder& b, ValueId x) {
       b.add1("Relu", "y", {x});
       b.output(b.add1("Relu", "y", {x}));
     }},
    {"NoName", [](NetBuilder& b, ValueId x) { b.output(b.add1("Relu", "", {x})); }},
    {"ConstantWithoutContent",
     [](NetBuilder& b, ValueId x) {
       b.output(b.add1("Add", "y", {x, b.constant("c", nullptr)}));
     }},
    {"VariableWithoutContent",
     [](NetBuilder& b, ValueId x) {
       b.output(b.add1("Add", "y", {x, b.variable("v", nullptr)}));
     }},
    {"ConstantWithoutBytes",
     [](NetBuilder& b, ValueId x) {
       auto nowhere = std::make_shared<Blob>();
       nowhere->dtype = DType::boolean;
       nowhere->shape = Shape{8};
       nowhere->bytes = 8;
       b.output(b.add1("Add", "y", {x, b.constant("c", nowhere)}));
     }},
    {"ConstantOfAnotherSize",
     [](NetBuilder& b, ValueId x) {
       auto small = std::make_shared<Blob>(*blob(Shape{2}, 1, 1));
       small->shape = Shape{1000};
       b.output(b.add1("Add", "y", {x, b.constant("c", small)}));
     }},
    {"ContentElsewhere",
     [](NetBuilder& b, ValueId x) {
       const ValueId c = b.constant("c", blob(Shape{2}, 1, 1));
       b.net().values[c.index].content = {nullptr, WeightReference{"w.safetensors", "c", 0, {}}};
       b.output(b.add1("Add", "y", {x, c}));
     }},
    {"UpdateOfNothing", [](NetBuilder& b, ValueId x) { b.updates(b.add1("Relu", "y", {x}), ValueId(77)); }},
    {"UpdateOfAnInput", [](NetBuilder& b, ValueId x) { b.updates(b.add1("Relu", "y", {x}), x); }},
    {"UpdateByNothing", [](NetBuilder& b, ValueId) { b.updates(ValueId(), b.variable("v", blob(Shape{2}, 1, 1))); }},
    {"RenamedNothing", [](NetBuilder& b, ValueId) { b.rename(ValueId(9), "z"); }},
    {"NoSubnet",
     [](NetBuilder& b, ValueId x) {
       b.output(b.add1("If", "y", {x}, {{"then_branch", std::shared_ptr<const Net>()}, {"else_branch", std::shared_ptr<const Net>()}}));
     }},
    {"NoTensor",
     [](NetBuilder& b, ValueId x) {
       b.output(b.add1("Relu", "y", {x}, {{"value", std::shared_ptr<const Blob>()}}));
     }},
    {"BrokenSubnet",
     [](NetBuilder& b, ValueId x) {
       NetBuilder inner("inner");
       inner.output(inner.add1("Relu", "z", {ValueId(3)}));
       const auto net = std::make_shared<const Net>(inner.finish());
       b.output(b.add1("If", "y", {x}, {{"then_branch", net}, {"else_branch", net}}));
     }},
    {"RankNine", [](NetBuilder& b, ValueId) {
       DeclaredType type = DeclaredType::of(DType::f32, Shape{1});
       type.dims.resize(9, type.dims[0]);
       b.output(b.input("wide", type));
     }}};

void PrintTo(const Broken& b, std::ostream* out) {
  *out << b.name;
}

class BrokenNets : public ::testing::TestWithParam<Broken> {};

TEST_P(BrokenNets, AreRefusedWhereverTheyGo) {
  const auto built = [] {
    NetBuilder b("broken");
    GetParam().build(b, b.input("x", DType::f32, Shape{2}));
    return b.finish();
  };
  const auto session = runtime().open(built(), {});
  EXPECT_FALSE(session.ok());
  EXPECT_NE(session.status().code(), Code::internal) << session.status().text();
  EXPECT_FALSE(session.status().diagnostic().message.empty());
  if (std::string(GetParam().name) != "ContentElsewhere") {  // such contents are allowed in files
    EXPECT_FALSE(net_to_bytes(built()).ok());
    EXPECT_FALSE(net_to_json(built()).ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Builder, BrokenNets, ::testing::ValuesIn(broken), [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace heddle
