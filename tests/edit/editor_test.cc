// Tests of Editor, the class that transforms are written with. Each test edits "x -> Neg a -> Abs b -> Exp c" and compares the text.
#include "edit/editor.h"

#include "stages.h"

namespace heddle {
namespace {

using namespace testing_nets;
using namespace testing_stages;

constexpr NodeId a_node(0u), b_node(1u), c_node(2u);
constexpr ValueId x_value(0u), a_value(1u), b_value(2u), c_value(3u);

Net chain() {
  NetBuilder b("chain");
  b.output(b.add1("Exp", "c", {b.add1("Abs", "b", {b.add1("Neg", "a", {b.input("x", DType::f32, Shape{2})})})}));
  return b.finish();
}

Editor edit(Net net) {
  return Editor(typed(std::move(net)).net);
}

std::string text(Editor& editor) {
  return print(editor.finish());
}

TEST(Editor, ANetThatWasNotChangedStaysAsItIs) {
  Net net = chain();
  net.values.push_back(net.values[0]);  // no node reads it
  Editor untouched = edit(net), touched = edit(net);
  EXPECT_EQ(untouched.finish().net.values.size(), 5u);
  touched.touch();
  EXPECT_EQ(touched.finish().net.values.size(), 4u);
}

TEST(Editor, CountsReadersAndFindsTheOnlyOne) {
  Editor editor = edit(chain());
  EXPECT_EQ(editor.uses(a_value), 1u);
  EXPECT_EQ(editor.only_reader(a_value), b_node);
  EXPECT_TRUE(editor.is_output(c_value));
  EXPECT_EQ(editor.uses(c_value), 1u);
  EXPECT_FALSE(editor.only_reader(c_value).valid());
  editor.set_inputs(c_node, {a_value});
  EXPECT_EQ(editor.uses(b_value), 0u);
  EXPECT_EQ(editor.uses(a_value), 2u);
  EXPECT_FALSE(editor.only_reader(a_value).valid());
  editor.remove(b_node);
  editor.remove(b_node);
  EXPECT_EQ(editor.uses(a_value), 1u);
  EXPECT_EQ(editor.only_reader(a_value), c_node);
}

// Moving either of two nodes that a control input orders would break the order.
TEST(Editor, WhoWaitsOrIsWaitedForIsNoOnlyReader) {
  Net net = chain();
  net.nodes[2].control = {NodeId(0u)};
  const Editor editor = edit(net);
  EXPECT_FALSE(editor.only_reader(a_value).valid());  // a is waited for
  EXPECT_FALSE(editor.only_reader(b_value).valid());  // c waits
}

TEST(Editor, AnAddedNodeIsInferredAndStandsBeforeItsReader) {
  Editor editor = edit(chain());
  const auto pair = editor.add_constant("pair", blob(Shape{2, 1}, 1, 1));
  const auto sum = editor.add_node(b_node, "Add", "sum", {a_value, pair});
  ASSERT_TRUE(sum.ok()) << sum.status().text();
  editor.set_inputs(b_node, {*sum});
  EXPECT_EQ(text(editor), R"net(chain(x: f32[2]) -> (c)
pair: f32[2, 1] = [1, 2]
a: f32[2] = Neg(x)
sum: f32[2, 2] = Add/14(a, pair)
b: f32[2] = Abs(sum)
c: f32[2] = Exp(b)
)net");
}

TEST(Editor, InsertionsNest) {
  Editor editor = edit(chain());
  const auto late = editor.add_node(c_node, "Neg", "late", {b_value});
  const auto early = editor.add_node(editor.graph()[*late].producer, "Abs", "early", {b_value});
  editor.set_inputs(editor.graph()[*late].producer, {*early});
  editor.set_inputs(c_node, {*late});
  const auto last = editor.add_node({}, "Sqrt", "last", {c_value});
  editor.set_output(0, *last);
  EXPECT_EQ(text(editor), R"net(chain(x: f32[2]) -> (c)
a: f32[2] = Neg(x)
b: f32[2] = Abs(a)
early: f32[2] = Abs/13(b)
late: f32[2] = Neg/13(early)
last: f32[2] = Exp(late) # c
c: f32[2] = Sqrt/13(last) # last
)net");
}

TEST(Editor, AnAddedNodeRunsOnTheDeviceOfItsReader) {
  Editor editor = edit(chain());
  editor.set_device(b_node, editor.device("bare:1"));
  const auto made = editor.add_node(b_node, "Neg", "made", {a_value});
  ASSERT_TRUE(made.ok());
  editor.set_inputs(b_node, {*made});
  EXPECT_EQ(text(editor), R"net(chain(x: f32[2]) -> (c)
a: f32[2] = Neg(x) @cpu:0
made: f32[2] = Neg/13(a) @bare:1
b: f32[2] = Abs(made) @bare:1
c: f32[2] = Exp(b) @cpu:0
)net");
}

TEST(Editor, WhatCannotBeAddedIsNamed) {
  Editor editor = edit(chain());
  const auto three = editor.add_constant("three", blob(Shape{3}, 1, 1));
  EXPECT_EQ(text_of(editor.add_node(b_node, "Add", "sum", {a_value, three}).status()),
            R"net(error[shape-mismatch] "sum" (Add): input 1 [3] does not broadcast to [2], while a transform added it
)net");
  EXPECT_EQ(text_of(editor.add_node(b_node, "Nothing", "n", {a_value}).status()),
            R"net(error[unknown-operator]: a transform needs operator Nothing, which no loaded plugin has; load the cpu plugin
)net");
}

TEST(Editor, AReplacedOutputKeepsItsName) {
  Editor editor = edit(chain());
  editor.replace(c_value, b_value);
  editor.remove(c_node);
  EXPECT_EQ(text(editor), R"net(chain(x: f32[2]) -> (c)
a: f32[2] = Neg(x)
c: f32[2] = Abs(a) # b
)net");
}

TEST(Editor, AnotherOutputKeepsTheName) {
  Net net = chain();
  net.outputs.push_back(net.outputs[0]);
  Editor editor = edit(net);
  editor.set_output(0, a_value);
  EXPECT_TRUE(editor.is_output(c_value));
  editor.set_output(1, a_value);
  EXPECT_FALSE(editor.is_output(c_value));
  EXPECT_EQ(editor.uses(c_value), 0u);
  editor.remove(c_node);
  editor.remove(b_node);
  EXPECT_EQ(text(editor), R"net(chain(x: f32[2]) -> (c, c)
c: f32[2] = Neg(x) # a
)net");
}

TEST(Editor, AConstantLetsItsProducerGo) {
  Editor editor = edit(chain());
  editor.make_constant(b_value, blob(Shape{2}, 5, 1));
  EXPECT_TRUE(editor.dead(b_node));
  EXPECT_EQ(editor.uses(a_value), 0u);
  ASSERT_TRUE(editor.constant(b_value));
  EXPECT_FALSE(editor.constant(a_value));
  EXPECT_EQ(text(editor), R"net(chain(x: f32[2]) -> (c)
b: f32[2] = [5, 6]
a: f32[2] = Neg(x)
c: f32[2] = Exp(b)
)net");
}

// The other output stays with its producer.
TEST(Editor, OneOfTwoOutputsBecomesAConstant) {
  NetBuilder b("parts");
  const auto parts = b.add("Split", "parts", {b.input("x", DType::f32, Shape{4})}, 2, {{"num_outputs", int64_t{2}}});
  b.output(b.add1("Add", "y", {parts[0], parts[1]}));
  Editor editor = edit(b.finish());
  editor.make_constant(parts[0], blob(Shape{2}, 1, 1));
  EXPECT_EQ(text(editor), R"net(parts(x: f32[4]) -> (y)
parts:0: f32[2] = [1, 2]
-, parts:1: f32[2] = Split(x) num_outputs=2 # parts
y: f32[2] = Add(parts:0, parts:1)
)net");
}

TEST(Editor, TakingOverAnOutputSwallowsItsReader) {
  Editor editor = edit(chain());
  editor.take_over_output(a_node, b_node);
  EXPECT_TRUE(editor.dead(b_node));
  EXPECT_EQ(text(editor), R"net(chain(x: f32[2]) -> (c)
b: f32[2] = Neg(x) # a
c: f32[2] = Exp(b)
)net");
}

// c waited for a, which is removed: c now waits for what a waited for and read.
TEST(Editor, OrderThroughDeadNodesIsInherited) {
  NetBuilder b("order");
  const ValueId x = b.input("x", DType::f32, Shape{2});
  const ValueId made = b.add1("Neg", "made", {x});
  b.output(b.add1("Abs", "other", {x}));
  b.add1("Exp", "gone", {made});
  b.output(b.add1("Sqrt", "last", {x}));
  b.output(made);
  b.net().nodes[2].control = {NodeId(1u)};
  b.net().nodes[3].control = {NodeId(2u), NodeId(0u)};
  Editor editor = edit(b.finish());
  editor.remove(NodeId(2u));
  EXPECT_EQ(text(editor), R"net(order(x: f32[2]) -> (other, last, made)
made: f32[2] = Neg(x)
other: f32[2] = Abs(x)
last: f32[2] = Sqrt(x) after(made, other)
)net");
}

TEST(Editor, LinksToWhatIsGoneGo) {
  for (const bool gone : {false, true}) {
    Net net = chain();
    net.sparse_links = {{x_value, "rows", a_value, b_value, 2, false, false}};
    Editor editor = edit(net);
    editor.touch();
    if (gone) {
      editor.set_inputs(c_node, {x_value});
      editor.remove(b_node);
      editor.remove(a_node);
    }
    EXPECT_EQ(editor.finish().net.sparse_links.size(), gone ? 0u : 1u);
  }
}

TEST(Editor, TypesAreInferredAgainOnRequest) {
  Editor editor = edit(chain());
  editor.make_constant(a_value, blob(Shape{3}, 1, 1));
  ASSERT_TRUE(editor.infer_again(b_node).ok());
  ASSERT_TRUE(editor.infer_again(c_node).ok());
  EXPECT_EQ(text(editor), R"net(chain(x: f32[2]) -> (c)
a: f32[3] = [1, 2, 3]
b: f32[3] = Abs(a)
c: f32[3] = Exp(b)
)net");
}

}  // namespace
}  // namespace heddle
