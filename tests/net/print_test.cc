// The printer of nets: every kind of line, and nets that were not checked.
#include "net/print.h"

#include <gtest/gtest.h>

#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_nets;

TEST(Print, ShowsConstantsVariablesAndOperators) {
  NetBuilder b("step");
  const ValueId x = b.input("x", {DType::f32, true, {Dim::named("N"), Dim::at_most(4), {}, Dim::of(2)}});
  const ValueId b2 = b.constant("b", blob(Shape{2}, 1, 1)), w = b.variable("w", blob(Shape{40}, 0.5f, 0.5f), true);
  const ValueId y = b.add1("Gemm", "y", {x, {}, b2}, {{"transB", int64_t{1}}, {"alpha", 0.25}});
  const ValueId next = b.add1("SgdUpdate", "sgd", {w, y}, {}, "heddle");
  b.updates(next, w);
  b.variable("still", blob(Shape{1}, 0, 0));
  b.add("Split", "parts", {y}, 2, {{"axes", std::vector<int64_t>{0, -1}}});
  b.output(y);
  b.net().nodes[0].device = "cpu:0";
  b.net().nodes[1].control = {NodeId(0)};
  b.net().nodes[2].version = 18;
  EXPECT_EQ(print(b.net()),
            "step(x: f32[N, <=4, ?, 2]) -> (y)\n"
            "b: f32[2] = [1, 2]\n"
            "variable w: f32[40] = [0.5, 1, 1.5, 2, ...] trainable -> w@1\n"
            "variable still: f32[1] = [0]\n"
            "y = Gemm(x, -, b) transB=1 alpha=0.25 @cpu:0\n"
            "w@1: f32[40] = heddle::SgdUpdate(w@0, y) after(y) # sgd\n"
            "parts:0, parts:1 = Split/18(y) axes=[0, -1] # parts\n");
}

TEST(Print, ShowsEveryKindOfAttribute) {
  NetBuilder b("attributes"), inner("body");
  inner.output(inner.add1("Neg", "n", {inner.input("i", DType::f32, Shape{})}));
  b.add1("Op", "y", {},
         {{"text", std::string("a \"b\"\n")},
          {"texts", std::vector<std::string>{"a", "b"}},
          {"numbers", std::vector<double>{0.1f, 0.1, 1e30}},
          {"tensor", blob(Shape{1, 2}, 3, 1)},
          {"none", std::shared_ptr<const Blob>()},
          {"body", subnet(inner)}});
  EXPECT_EQ(print(b.net()),
            "attributes() -> ()\n"
            R"(y = Op() text="a \"b\"\n" texts=["a", "b"] numbers=[0.1, 0.1, 1e+30] tensor=f32[1, 2][3, 4] none=nothing body={)"
            "\n"
            "  body(i: f32[]) -> (n)\n"
            "  n = Neg(i)\n"
            "}\n");
}

TEST(Print, EscapesNames) {
  NetBuilder b("a net");
  b.output(b.add1("A\nB", "-", {b.input("x\x1b[2J", DType::none, Shape{})}, {{"k=v", int64_t{1}}}, "my domain"));
  EXPECT_EQ(print(b.net()),
            "\"a net\"(\"x\\u001b[2J\": ?[]) -> (\"-\")\n"
            "\"-\" = \"my domain::A\\nB\"(\"x\\u001b[2J\") \"k=v\"=1\n");
}

TEST(Print, ShowsWhereContentsThatAreNotLoadedLie) {
  NetBuilder b("weights");
  b.constant("near", blob(Shape{1}, 2, 0));
  b.constant("far", nullptr);
  b.constant("none", nullptr);
  b.net().values[1].content.reference = WeightReference{"w.safetensors", "fc1.weight", 0, {}};
  EXPECT_EQ(print(b.net()),
            "weights() -> ()\n"
            "near: f32[1] = [2]\n"
            "far = \"fc1.weight\" of \"w.safetensors\"\n"
            "none = nothing\n");
}

TEST(Print, ShowsEpiloguesAndSparseLinks) {
  NetBuilder b("fused");
  const ValueId x = b.input("x", DType::f32, Shape{1, 2, 2, 2}), r = b.input("r", DType::f32, Shape{2, 1, 1});
  const ValueId y = b.add1("Conv", "y", {x, x, r});
  b.net().nodes[0].epilogue =
      std::vector<EpilogueOp>{{"max(acc, 0)", -1, 0, "relu", "Relu"}, {"add(acc, operand)", 2, HEDDLE_OPERAND_PER_CHANNEL, "add", "Add"}};
  b.net().sparse_links = {{x, "rows", r, y, 7, true, true}};
  EXPECT_EQ(print(b.net()),
            "fused(x: f32[1, 2, 2, 2], r: f32[2, 1, 1]) -> ()\n"
            "y = Conv(x, x, r) then Relu(max(acc, 0)) then Add(add(acc, operand)) operand=r per channel\n"
            "sparse rows of x: indices=r values=y rows=7 unique sorted\n");
}

// A TypedNet shows the inferred types.
TEST(Print, ShowsInferredTypes) {
  NetBuilder b("typed");
  const ValueId x = b.input("x", DType::f32, Shape{3});
  b.add("Op", "y", {x}, 3);
  b.add1("Op", "z", {x});
  TypedNet typed;
  typed.net = b.finish();
  typed.types = {{DType::f32, {3}}, {DType::i64, {2, 4}, 1}, {DType::f32, {-1, -1}, -1, true}, {}, {DType::f32, {5}, -1, false, true}};
  typed.known.resize(5);
  typed.known[0] = blob(Shape{3}, 1, 1);
  EXPECT_EQ(print(typed),
            "typed(x: f32[3] known [1, 2, 3]) -> ()\n"
            "y:0: i64[2, <=4], y:1: f32[?, ?], y:2: ? = Op(x) # y\n"
            "z: f32[5] late = Op(x)\n");
}

TEST(Print, ShowsNetsThatNoCheckHasSeen) {
  NetBuilder b("broken");
  b.add1("Op", "y", {ValueId(7)}, {{"body", std::shared_ptr<const Net>()}});
  b.output({});
  b.net().nodes[0].control = {NodeId(9)};
  b.net().nodes[0].outputs = {ValueId(8)};
  EXPECT_EQ(print(b.net()),
            "broken() -> (-)\n"
            "<value 8 of 1> = Op(<value 7 of 1>) body=nothing after(nothing) # y\n");
}

}  // namespace
}  // namespace heddle
