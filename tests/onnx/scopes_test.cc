// Subgraphs with captures, functions, names, symbols, constants.
#include <gtest/gtest.h>

#include "onnx/model_builder.h"

namespace heddle {
namespace {

using namespace heddle::testing;

TEST(Subgraphs, BranchesOfIfTakeTheSameCaptures) {
  ModelBuilder m(13);
  m.graph.input("c", {}, 9).input("x", {2}).input("z", {2}).output("y");
  m.graph.ints("k", {5});
  auto* node = m.graph.node("If", {"c"}, {"y"}, "n");
  GraphBuilder then_branch = set_graph(node, "then_branch");
  then_branch.node("Add", {"z", "x"}, {"t"});
  then_branch.output("t");
  GraphBuilder else_branch = set_graph(node, "else_branch");
  else_branch.node("Expand", {"x", "k"}, {"e"});
  else_branch.output("e");
  EXPECT_EQ(imported(m),
            "k: i64[1] = [5]\n"
            "y = If/21(c, z, x) then_branch={\n"
            "  then_branch(z: f32, x: f32) -> (t)\n"
            "  t = Add/14(z, x)\n"
            "} else_branch={\n"
            "  else_branch(z, x: f32) -> (e)\n"
            "  k: i64[1] = [5]\n"
            "  e = Expand/13(x, k)\n"
            "}\n");
}

// Progress counts the operators of the main graph, and not those of subgraphs.
TEST(Subgraphs, AreNoProgressOfTheirOwn) {
  ModelBuilder m(13);
  m.graph.input("c", {}, 9).input("x", {2}).output("y");
  m.graph.node("Relu", {"x"}, {"z"});
  auto* node = m.graph.node("If", {"c"}, {"y"}, "n");
  for (const char* const branch : {"then_branch", "else_branch"}) {
    GraphBuilder graph = set_graph(node, branch);
    graph.node("Relu", {"z"}, {"r"});
    graph.output("r");
  }
  std::vector<std::pair<int64_t, int64_t>> told;
  ImportOptions options;
  options.progress = [&](int64_t done, int64_t total) { told.emplace_back(done, total); };
  EXPECT_NE(imported(m, options).find("If/21"), std::string::npos);
  EXPECT_EQ(told, (std::vector<std::pair<int64_t, int64_t>>{{0, 2}, {1, 2}}));
}

TEST(Subgraphs, LoopsCountTheirCaptures) {
  ModelBuilder m(13);
  m.graph.input("m", {}, 7).input("x", {2}).input("v", {2}).output("y");
  GraphBuilder body = set_graph(m.graph.node("Loop", {"m", "", "v"}, {"y"}, "n"), "body");
  body.input("i", {}, 7).input("go", {}, 9).input("a", {2});
  body.node("Identity", {"go"}, {"on"});
  body.node("Add", {"a", "x"}, {"b"});
  body.output("on").output("b");
  EXPECT_EQ(imported(m),
            "y = Loop/21(m, -, v, x) body={\n"
            "  body(i: i64, go: bool, a: f32, x: f32) -> (on, b)\n"
            "  on = Identity/21(go)\n"
            "  b = Add/14(a, x)\n"
            "} captured=1\n");
}

TEST(Subgraphs, InnerSubgraphsCaptureThroughOuterOnes) {
  ModelBuilder m(13);
  m.graph.input("c", {}, 9).input("x", {2}).output("y");
  auto* outer = m.graph.node("If", {"c"}, {"y"}, "outer");
  for (const char* branch : {"then_branch", "else_branch"}) {
    GraphBuilder middle = set_graph(outer, branch);
    auto* inner = middle.node("If", {"c"}, {"t"}, "inner");
    for (const char* leaf : {"then_branch", "else_branch"}) {
      GraphBuilder graph = set_graph(inner, leaf);
      graph.node("Relu", {"x"}, {"r"});
      graph.output("r");
    }
    middle.output("t");
  }
  const Result<Net> net = m.import();
  ASSERT_TRUE(net.ok()) << net.status().text();
  EXPECT_NE(print(*net).find("y = If/21(c, c, x)"), std::string::npos) << print(*net);
  EXPECT_NE(print(*net).find("  t = If/21(c, x)"), std::string::npos) << print(*net);
}

TEST(Subgraphs, SignaturesAreChecked) {
  ModelBuilder m(13);
  m.graph.input("c", {}, 9).input("x", {2}).output("y");
  auto* node = m.graph.node("If", {"c"}, {"y"}, "n");
  GraphBuilder branch = set_graph(node, "then_branch");
  branch.output("x").output("c");
  EXPECT_EQ(m.failure().code, Code::subnet_mismatch);
}

TEST(Subgraphs, NestingIsLimited) {
  ModelBuilder m(13);
  m.graph.input("c", {}, 9).output("y");
  GraphBuilder graph = m.graph;
  for (int depth = 0; depth < 20; ++depth) {
    auto* node = graph.node("If", {"c"}, {"y"});
    graph = set_graph(node, "then_branch");
    graph.output("y");
  }
  graph.node("Identity", {"c"}, {"y"});
  EXPECT_EQ(m.failure().code, Code::limit_exceeded);
}

// f(a, b) with attribute `scale` = Elu(a + b) with alpha = scale
::onnx::FunctionProto* add_function(ModelBuilder& m) {
  m.model.add_opset_import()->set_domain("mine");
  auto* f = m.model.add_functions();
  f->set_domain("mine");
  f->set_name("AddElu");
  f->add_input("a");
  f->add_input("b");
  f->add_output("r");
  f->add_attribute("scale");
  f->add_opset_import()->set_version(13);
  auto* add = f->add_node();
  add->set_op_type("Add");
  add->add_input("a");
  add->add_input("b");
  add->add_output("s");
  auto* elu = f->add_node();
  elu->set_op_type("Elu");
  elu->add_input("s");
  elu->add_output("r");
  attribute(elu, "alpha", ::onnx::AttributeProto::FLOAT)->set_ref_attr_name("scale");
  return f;
}

TEST(Functions, AreInlinedUnderTheirCallsName) {
  ModelBuilder m(13);
  add_function(m);
  m.graph.input("x", {2}).input("s", {2}).output("y");
  auto* first = m.graph.node("AddElu", {"x", "s"}, {"t"}, "f1");
  first->set_domain("mine");
  set_float(first, "scale", 0.5f);
  m.graph.node("AddElu", {"t", "s"}, {"y"}, "f2")->set_domain("mine");
  EXPECT_EQ(imported(m),
            "f1/s = Add/14(x, s)\n"
            "t = Elu/6(f1/s) alpha=0.5\n"
            "f2/s = Add/14(t, s)\n"
            "y = Elu/6(f2/s)\n");
}

TEST(Functions, DefaultsOfNewerFilesAreRead) {
  ModelBuilder m(13);
  auto* f = add_function(m);
  ::onnx::AttributeProto scale;
  scale.set_name("scale");
  scale.set_type(::onnx::AttributeProto::FLOAT);
  scale.set_f(2);
  f->GetReflection()->MutableUnknownFields(f)->AddLengthDelimited(11, scale.SerializeAsString());
  m.graph.input("x", {2}).output("y");
  m.graph.node("AddElu", {"x", "x"}, {"y"}, "f")->set_domain("mine");
  EXPECT_EQ(imported(m), "f/s = Add/14(x, x)\ny = Elu/6(f/s) alpha=2\n");
}

TEST(Functions, RecursionIsACycle) {
  ModelBuilder m(13);
  auto* f = add_function(m);
  f->mutable_node(0)->set_op_type("AddElu");
  f->mutable_node(0)->set_domain("mine");
  m.graph.input("x", {2}).output("y");
  m.graph.node("AddElu", {"x", "x"}, {"y"}, "f")->set_domain("mine");
  EXPECT_EQ(m.failure().code, Code::cycle);
}

// The functions expand to 2^40 operators from a file of a few hundred bytes.
TEST(Functions, DoublingIsLimited) {
  ModelBuilder m(13);
  m.model.add_opset_import()->set_domain("mine");
  for (int level = 0; level < 40; ++level) {
    auto* f = m.model.add_functions();
    f->set_domain("mine");
    f->set_name("F" + std::to_string(level));
    f->add_input("a");
    f->add_output("b");
    for (const auto& [from, to] : {std::pair("a", "t"), std::pair("t", "b")}) {
      auto* node = f->add_node();
      node->set_op_type(level == 39 ? "Relu" : "F" + std::to_string(level + 1));
      if (level < 39) node->set_domain("mine");
      node->add_input(from);
      node->add_output(to);
    }
  }
  m.graph.input("x", {2}).output("y");
  m.graph.node("F0", {"x"}, {"y"})->set_domain("mine");
  ImportOptions options;
  options.limits.nodes = 10000;
  EXPECT_EQ(m.failure(options).code, Code::limit_exceeded);
}

TEST(Scopes, OtherDomainsPassThrough) {
  ModelBuilder m(13);
  auto* import = m.model.add_opset_import();
  import->set_domain("mine");
  import->set_version(3);
  m.graph.input("x", {2}).output("y");
  auto* node = m.graph.node("Squeeze", {"x"}, {"y"}, "n");
  node->set_domain("mine");
  set_ints(node, "axes", {0});
  EXPECT_EQ(imported(m), "y = mine::Squeeze/3(x) axes=[0]\n");
}

TEST(Scopes, NamesAreMadeUniqueAndNeverEmpty) {
  ModelBuilder m(6);
  m.graph.input("x", {1, 2}).input("Squeeze_0/axes", {2}).output("y");
  set_ints(m.graph.node("Squeeze", {"x"}, {"s"}), "axes", {0});
  m.graph.node("Add", {"s", "Squeeze_0/axes"}, {"t"}, "same");
  m.graph.node("Relu", {"t"}, {"y"}, "same");
  const Result<Net> net = m.import();
  ASSERT_TRUE(net.ok()) << net.status().text();
  EXPECT_EQ(net->nodes[0].name, "Squeeze_0");
  EXPECT_EQ(net->nodes[1].name, "same");
  EXPECT_EQ(net->nodes[2].name, "same_2");
  EXPECT_TRUE(net->find_value("Squeeze_0/axes_2").has_value());
}

TEST(Scopes, InitializersListedAsInputsAreConstants) {
  ModelBuilder m(6);
  m.model.set_ir_version(3);
  m.graph.input("x", {2}).input("w", {2}).floats("w", {2}, {1, 2}).output("y");
  m.graph.node("Add", {"x", "w"}, {"y"});
  const Result<Net> net = m.import();
  ASSERT_TRUE(net.ok()) << net.status().text();
  ASSERT_EQ(net->inputs.size(), 1u);
  EXPECT_EQ((*net)[net->inputs[0]].name, "x");
}

TEST(Scopes, DimensionsBecomeSymbols) {
  ModelBuilder m(13);
  m.graph.input("x", {-1, 3}).input("w", {1, 3}).output("y");
  m.model.mutable_graph()->mutable_input(1)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_param("N");
  m.graph.node("Add", {"x", "w"}, {"y"});
  const Result<Net> net = m.import();
  ASSERT_TRUE(net.ok()) << net.status().text();
  EXPECT_EQ((*net)[net->inputs[0]].type.dims, (std::vector<Dim>{Dim::named("x_dim_0"), Dim::of(3)}));
  EXPECT_EQ((*net)[net->inputs[1]].type.dims, (std::vector<Dim>{Dim::named("N"), Dim::of(3)}));
}

TEST(Scopes, ConstantNodesAreConstants) {
  ModelBuilder m(13);
  m.graph.output("a").output("b");
  set_float(m.graph.node("Constant", {}, {"a"}), "value_float", 2.5f);
  set_ints(m.graph.node("Constant", {}, {"b"}), "value_ints", {3, 4});
  EXPECT_EQ(imported(m), "a: f32[] = [2.5]\nb: i64[2] = [3, 4]\n");
  set_text(m.graph.node("Constant", {}, {"c"}), "value_string", "text");
  EXPECT_EQ(m.failure().code, Code::unsupported);
}

}  // namespace
}  // namespace heddle
