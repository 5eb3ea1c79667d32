// A wrong transform is named. After each transform of the list, damage to its net is planted, in each of the possible ways.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "infer/infer.h"
#include "infer/registry_evaluator.h"
#include "resolve/resolve.h"
#include "small_nets.h"
#include "transform/transform.h"
#include "verify/structure_check.h"

namespace heddle {
namespace {

using namespace testing_nets;

// x -> MatMul -> Softmax -> y, a variable that is read and updated twice, and an operator that waits for another. The transforms keep each
// of them.
Net judged_net() {
  NetBuilder b("judged");
  const ValueId x = b.input("x", DType::f32, Shape{4, 6});
  const ValueId product = b.add1("MatMul", "product", {x, b.constant("w", blob(Shape{6, 3}, 1, 1))});
  b.output(b.add1("Softmax", "soft", {product}));
  const ValueId n = b.variable("n", blob(Shape{4, 6}, 0, 1));
  b.output(b.add1("Softmax", "old", {n}));
  const ValueId first = b.add1("AccumulateAdd", "first", {n, x}, {}, "heddle");
  b.output(b.add1("AccumulateAdd", "second", {first, x}, {}, "heddle"));
  b.output(b.add1("Softmax", "later", {x}));
  b.net().nodes.back().control = {b.net()[product].producer};
  return b.finish();
}

TypedNet typed_judged_net(const Runtime& runtime) {
  const auto registry = Internals::of(runtime).registry.snapshot();
  auto resolved = resolve(judged_net(), registry);
  EXPECT_TRUE(resolved.ok()) << resolved.status().text();
  auto result = infer(std::move(*resolved), registry, {});
  EXPECT_TRUE(result.ok()) << result.status().text();
  return std::move(*result);
}

Node& node_named(TypedNet& net, const std::string& name) {
  for (Node& node : net.net.nodes)
    if (node.name == name) return node;
  ADD_FAILURE() << "no operator " << name;
  return net.net.nodes[0];
}

struct Damage {
  const char* what;
  const char* told;  // the check's message about it
  std::function<void(TypedNet&)> spoil;
};

std::vector<Damage> damages() {
  return {
      {"dropped edge: an input", "has lost its input", [](TypedNet& net) { node_named(net, "soft").inputs[0] = ValueId(); }},
      {"dropped edge: an operator that was waited for", "does not wait for \"product\" any more",
       [](TypedNet& net) { node_named(net, "later").control.clear(); }},
      {"dropped edge: an update is not made from the one before", "version 2 of variable \"n\" is not made from the one before",
       [](TypedNet& net) { node_named(net, "second").inputs[0] = node_named(net, "old").inputs[0]; }},
      {"dropped edge: a read is no longer before the update", "depends on \"first\", which overwrites it",
       [](TypedNet& net) {
         std::vector<NodeId>& control = node_named(net, "later").control;
         control.push_back(net.net[node_named(net, "first").outputs[0]].producer);
         node_named(net, "later").inputs[0] = node_named(net, "old").inputs[0];
       }},
      {"dropped edge: an update", "an update of variable \"n\" is lost",
       [](TypedNet& net) {
         // Removes the second update.
         Node& second = node_named(net, "second");
         Value& value = net.net[second.outputs[0]];
         const ValueId first = node_named(net, "first").outputs[0];
         for (Variable& variable : net.net.variables) variable.last = first;
         value.variable = VariableId();
         value.version = 0;
         value.kind = Value::Kind::node_output;
       }},
      {"wrong dtype", "is taken for i64", [](TypedNet& net) { net.types[node_named(net, "product").outputs[0].index].dtype = DType::i64; }},
      {"wrong shape", "is taken for f32[4, 4]",
       [](TypedNet& net) {
         net.types[node_named(net, "product").outputs[0].index].shape = Shape{4, 4};
       }},
      {"lost output", "the net has lost its output \"soft\"", [](TypedNet& net) { net.net.outputs.erase(net.net.outputs.begin()); }},
      {"an output without producer", "which nothing makes",
       [](TypedNet& net) {
         Node& soft = node_named(net, "soft");
         net.net[soft.outputs[0]].producer = NodeId();
         soft.outputs[0] = ValueId();
       }},
      {"a use before its definition", "makes only after it",
       [](TypedNet& net) {
         // Swaps "product" and "soft".
         Net& graph = net.net;
         const NodeId a = graph[node_named(net, "product").outputs[0]].producer, b = graph[node_named(net, "soft").outputs[0]].producer;
         std::swap(graph[a], graph[b]);
         for (const NodeId id : {a, b}) graph[graph[id].outputs[0]].producer = id;
         node_named(net, "later").control = {b};
       }},
  };
}

// Returns the list of the transforms; the one at `at` also does the damage.
std::vector<Transform> with_damage(size_t at, const Damage& damage) {
  std::vector<Transform> list(transforms().begin(), transforms().end());
  list[at].run = [right = list[at].run, &damage](TypedNet net, const TransformContext& context) -> Result<TypedNet> {
    HEDDLE_TRY(net, right(std::move(net), context));
    damage.spoil(net);
    return net;
  };
  return list;
}

TEST(TransformJudge, NamesTheTransformThatBreaksTheNet) {
  const Runtime r = runtime();
  const auto evaluator = make_registry_evaluator(Internals::of(r).registry.snapshot());
  CompilationTarget target = host_target();
  target.check_plans = true;
  ASSERT_GE(transforms().size(), 7u);
  for (size_t at = 0; at < transforms().size(); ++at)
    for (const Damage& damage : damages()) {
      const std::string name = transforms()[at].name;
      const auto result = run_transforms(typed_judged_net(r), with_damage(at, damage), {*evaluator, target, {}});
      ASSERT_FALSE(result.ok()) << name << ": " << damage.what;
      EXPECT_EQ(result.status().code(), Code::internal);
      const std::string text = result.status().text();
      EXPECT_NE(text.find("the transform \"" + name + "\" broke the net: "), std::string::npos) << damage.what << ": " << text;
      EXPECT_NE(text.find(damage.told), std::string::npos) << name << ", " << damage.what << ": " << text;
    }
}

TEST(TransformJudge, IsAskedOnlyWhereTheTargetSaysSo) {
  const Runtime r = runtime();
  const auto evaluator = make_registry_evaluator(Internals::of(r).registry.snapshot());
  const std::vector<Damage> list = damages();
  const auto lost = std::find_if(list.begin(), list.end(), [](const Damage& d) { return d.what == std::string("lost output"); });
  ASSERT_NE(lost, list.end());
  CompilationTarget target = host_target();
  for (const bool asked : {false, true}) {
    target.check_plans = asked;
    EXPECT_EQ(run_transforms(typed_judged_net(r), with_damage(0, *lost), {*evaluator, target, {}}).ok(), !asked);
  }
}

TEST(TransformJudge, TakesTheNetAsItWasGiven) {
  const Runtime r = runtime();
  const auto evaluator = make_registry_evaluator(Internals::of(r).registry.snapshot());
  TypedNet net = typed_judged_net(r);
  const NetPromises promises(net);
  EXPECT_TRUE(promises.kept_by(net).ok());
  const std::vector<TensorType> types = net.types;
  const Status status = check_structure(net, evaluator.get());
  EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(net.types, types);
}

TEST(TransformJudge, ASessionSaysWhetherItIsAsked) {
  SessionOptions options;
  for (const bool asked : {false, true}) {
    options.check_plans = asked;
    Session session = open(runtime(), judged_net(), options);
    EXPECT_EQ(Internals::of(session).target.check_plans, asked);
    const auto context = session.prepare({});
    EXPECT_TRUE(context.ok()) << context.status().text();
  }
  options.check_plans.reset();
  EXPECT_EQ(Internals::of(open(runtime(), judged_net(), options)).target.check_plans, checks_plans_by_default());
}

}  // namespace
}  // namespace heddle
