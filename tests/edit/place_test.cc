// Placement: a device is an id in the table that the net carries.
#include "place/place.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "edit/editor.h"
#include "infer/infer.h"
#include "resolve/resolve.h"
#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_nets;

// A chain of one operator for each entry of `devices`, which names its device; an empty entry names none.
TypedNet placed_chain(const std::vector<std::string>& devices, const CompilationTarget& target, Findings& findings) {
  const Runtime r = runtime();
  NetBuilder b("chain");
  ValueId x = b.input("x", DType::f32, Shape{4});
  for (size_t i = 0; i < devices.size(); ++i) {
    x = b.add1("Neg", "n" + std::to_string(i), {x});
    b.net().nodes.back().device = devices[i];
  }
  b.output(x);
  const auto registry = Internals::of(r).registry.snapshot();
  auto resolved = resolve(b.finish(), registry);
  EXPECT_TRUE(resolved.ok()) << resolved.status().text();
  auto typed = infer(std::move(*resolved), registry, {});
  EXPECT_TRUE(typed.ok()) << typed.status().text();
  return place(std::move(*typed), target, findings);
}

std::vector<uint32_t> ids(const TypedNet& net) {
  std::vector<uint32_t> list;
  for (const Node& node : net.net.nodes) list.push_back(node.placed.index);
  return list;
}

TEST(Place, GivesIdsInTheOrderOfTheOperators) {
  Findings findings;
  const TypedNet net = placed_chain({"far:1", "", "near", "cpu", "far:1"}, host_target(), findings);
  EXPECT_EQ(net.devices, (std::vector<std::string>{"cpu:0", "far:1", "near:0"}));
  EXPECT_EQ(ids(net), (std::vector<uint32_t>{1, 0, 2, 0, 1}));
  EXPECT_EQ(net.device_of(net.net.nodes[2]), "near:0");
  EXPECT_EQ(findings.count(), 0u);
}

TEST(Place, GivesTheDefaultDeviceToWhoNamesNone) {
  CompilationTarget target("far", Limits(), 1);
  target.copies = Copies::strict;  // nothing falls back to the host
  Findings findings;
  const TypedNet net = placed_chain({"", "cpu:0", "far:0"}, target, findings);
  EXPECT_EQ(net.devices, (std::vector<std::string>{"cpu:0", "far:0"}));
  EXPECT_EQ(ids(net), (std::vector<uint32_t>{1, 0, 1}));
}

// A device that does not exist is reported by verify: nothing falls back from it.
TEST(Place, KnowsADeviceThatIsNamedWithTheHost) {
  CompilationTarget target = host_target();
  target.copies = Copies::automatic;
  Findings findings;
  const TypedNet net = placed_chain({"far:1|cpu", "near|cpu", "far:1", "cpu|cpu"}, target, findings);
  EXPECT_EQ(net.devices, (std::vector<std::string>{"cpu:0", "far:1", "near:0"}));
  EXPECT_EQ(ids(net), (std::vector<uint32_t>{1, 2, 1, 0}));
  EXPECT_EQ(findings.count(), 0u);
}

TEST(Place, LeavesTheHostAloneWhereNothingElseIsNamed) {
  Findings findings;
  const TypedNet net = placed_chain({"", "cpu", "cpu:0"}, host_target(), findings);
  EXPECT_EQ(net.devices, std::vector<std::string>{"cpu:0"});
  EXPECT_EQ(ids(net), (std::vector<uint32_t>{0, 0, 0}));
}

TEST(Place, DevicesThatNobodyIsLeftOnLeaveTheTable) {
  Findings findings;
  TypedNet net = placed_chain({"far:1", "", "near"}, host_target(), findings);
  Editor editor(std::move(net));
  editor.set_device(NodeId(0), host_device);
  net = editor.finish();
  drop_unused_devices(net);
  EXPECT_EQ(net.devices, (std::vector<std::string>{"cpu:0", "near:0"}));
  EXPECT_EQ(ids(net), (std::vector<uint32_t>{0, 0, 1}));
}

TEST(Editor, HandsOnDevicesAndLimits) {
  Findings findings;
  TypedNet net = placed_chain({"far:1", "near"}, host_target(), findings);
  net.limits.tensor_bytes = 64;
  Editor editor(std::move(net));
  const auto added = editor.add_node(NodeId(1), "Abs", "abs", {editor.graph().inputs[0]});
  ASSERT_TRUE(added.ok()) << added.status().text();
  editor.replace(editor.node(NodeId(0)).outputs[0], *added);
  net = editor.finish();
  EXPECT_EQ(net.limits.tensor_bytes, 64);
  EXPECT_EQ(net.devices, (std::vector<std::string>{"cpu:0", "far:1", "near:0"}));
  ASSERT_EQ(net.net.nodes.size(), 3u);
  EXPECT_EQ(net.net.nodes[1].name, "abs");
  EXPECT_EQ(net.device_of(net.net.nodes[1]), "near:0");  // the device of the node that it was added for
}

// A node that is added before placement also gets the device that the file gives the node it is added for.
TEST(Editor, HandsOnDevicesThatAreYetToBeGiven) {
  NetBuilder b("named");
  b.output(b.add1("Neg", "n", {b.input("x", DType::f32, Shape{4})}));
  b.net().nodes[0].device = "near:2";
  const auto registry = Internals::of(runtime()).registry.snapshot();
  auto resolved = resolve(b.finish(), registry);
  ASSERT_TRUE(resolved.ok()) << resolved.status().text();
  auto typed = infer(std::move(*resolved), registry, {});
  ASSERT_TRUE(typed.ok()) << typed.status().text();
  Editor editor(std::move(*typed));
  const auto added = editor.add_node(NodeId(0), "Abs", "abs", {editor.graph().inputs[0]});
  ASSERT_TRUE(added.ok()) << added.status().text();
  editor.set_inputs(NodeId(0), {*added});
  Findings findings;
  const TypedNet net = place(editor.finish(), host_target(), findings);
  ASSERT_EQ(net.net.nodes.size(), 2u);
  EXPECT_EQ(net.net.nodes[0].name, "abs");
  EXPECT_EQ(net.device_of(net.net.nodes[0]), "near:2");
}

}  // namespace
}  // namespace heddle
