// host_regions: which operators move to the host next to operators that fell back to it. host_only::Through has no kernel on the device;
// all others have one.
#include "place/host_regions.h"

#include <random>
#include <regex>

#include "device/locations.h"
#include "stages.h"

namespace heddle {
namespace {

using namespace testing_nets;
using namespace testing_stages;

struct Regions : NetBuilder {
  Regions() : NetBuilder("regions") { stages.plugins = {"../sim", "host_only"}, stages.device = "sim:0", stages.fall_back = true; }
  ValueId falls_back(const std::string& name, ValueId x) { return add1("Through", name, {x}, {}, "host_only"); }
  ValueId chain(ValueId x, int length) {
    for (int i = 0; i < length; ++i) x = add1("Relu", "r" + std::to_string(i), {x});
    return x;
  }
  // An operator with much work for the bytes that it copies.
  ValueId heavy(const std::string& name, ValueId x) { return add1("MatMul", name, {x, constant("w " + name, blob(Shape{64, 64}, 1, 1))}); }

  // The names of the nodes placed on the host, in order.
  std::string on_host() {
    Typed made = typed(net(), stages);
    const TypedNet placed = place(std::move(made.net), stages.target(), findings);
    std::string names;
    for (const Node& node : placed.net.nodes)
      if (node.placed == host_device) names += (names.empty() ? "" : " ") + node.name;
    return names;
  }
  // The findings other than "no kernel".
  std::string said() const {
    std::string text;
    for (const Diagnostic& d : findings.all())
      if (d.code != Code::no_kernel) text += d.text() + "\n";
    return text;
  }

  Stages stages;
  Findings findings;
};

TEST(HostRegions, AnOperatorBetweenTwoThatFellBackGoesWithThem) {
  Regions b;
  b.output(b.falls_back("last", b.chain(b.falls_back("first", b.input("x", DType::f32, Shape{64})), 1)));
  EXPECT_EQ(b.on_host(), "first r0 last");
  EXPECT_EQ(
      b.said(),
      R"net(warning[wrong-device] "regions": "r0" (Relu): runs on "cpu:0": 512 bytes fewer are copied in each run than with it on "sim:0"; give it the device "sim:0" to keep it there, or say SessionOptions::copies = Copies::automatic
)net");
}

// The chain needs two copies of 256 bytes; each of its operators does 64 operations and moves 512 bytes.
TEST(HostRegions, AChainGoesAsLongAsItsWorkIsLessThanItsCopies) {
  for (const int length : {2, 7, 8}) {
    Regions b;
    b.output(b.falls_back("last", b.chain(b.falls_back("first", b.input("x", DType::f32, Shape{64})), length)));
    EXPECT_EQ(b.on_host(), length == 8 ? "first last" : length == 7 ? "first r0 r1 r2 r3 r4 r5 r6 last" : "first r0 r1 last");
    EXPECT_EQ(b.said().find("runs on \"cpu:0\" together with \"r1\", \"r2\", \"r3\", 3 more: 512 bytes") != std::string::npos, length == 7);
  }
}

TEST(HostRegions, ShapeArithmeticBetweenTwoGoesWithoutTellingWhatItCosts) {
  Regions b;
  const ValueId shape = b.falls_back("first", b.input("x", DType::i64, Shape{3}));
  const ValueId turned = b.add1("Gather", "turned", {shape, b.constant_ints("order", {1, 0})});
  b.output(b.falls_back("last", b.add1("Concat", "both", {turned, shape}, {{"axis", int64_t{0}}})));
  EXPECT_EQ(b.on_host(), "first turned both last");
}

TEST(HostRegions, BesideTheNetsInputsAndOutputsToo) {
  Regions b;
  b.output(b.chain(b.falls_back("first", b.add1("Neg", "n", {b.input("x", DType::f32, Shape{64})})), 1));
  EXPECT_EQ(b.on_host(), "n first r0");
}

TEST(HostRegions, AnOperatorThatSavesNothingStays) {
  Regions b;
  const ValueId m = b.heavy("m", b.input("x", DType::f32, Shape{64, 64}));
  b.output(b.heavy("y", b.add1("Neg", "after", {b.falls_back("f", b.add1("Relu", "before", {m}))})));
  EXPECT_EQ(b.on_host(), "f") << "one copy there and one back, wherever Relu and Neg run";
}

TEST(HostRegions, WhatMakesLessOfItIsDoneBeforeItIsCopied) {
  Regions b;
  const ValueId wide = b.falls_back("f", b.input("x", DType::f32, Shape{64, 512}));
  b.output(b.heavy("y", b.add1("MaxPool", "less", {b.add1("Reshape", "r", {wide, b.constant_ints("s", {1, 64, 512})})},
                               {{"kernel_shape", std::vector<int64_t>{8}}, {"strides", std::vector<int64_t>{8}}})));
  EXPECT_EQ(b.on_host(), "f r less");
}

TEST(HostRegions, MuchWorkStays) {
  Regions b;
  b.output(b.falls_back("last", b.heavy("m", b.falls_back("first", b.input("x", DType::f32, Shape{64, 64})))));
  EXPECT_EQ(b.on_host(), "first last");
  EXPECT_EQ(b.said(), "");
}

TEST(HostRegions, WhatNamesADeviceStays) {
  Regions b;
  b.output(b.falls_back("last", b.chain(b.falls_back("first", b.input("x", DType::f32, Shape{64})), 1)));
  for (Node& node : b.net().nodes)
    if (node.name == "r0") node.device = "sim";
  EXPECT_EQ(b.on_host(), "first last");
}

TEST(HostRegions, WhatReadsAVariableStays) {
  Regions b;
  const ValueId x = b.falls_back("first", b.input("x", DType::f32, Shape{64}));
  b.output(b.falls_back("last", b.add1("Add", "biased", {x, b.variable("v", blob(Shape{64}, 1, 1))})));
  EXPECT_EQ(b.on_host(), "first last");
}

TEST(HostRegions, WithoutFallBackNothingMoves) {
  Regions b;
  b.output(b.chain(b.input("x", DType::f32, Shape{64}), 1));
  EXPECT_EQ(b.on_host(), "") << "its input and output are copied, which is what was asked for";
  Regions strict;
  strict.stages.fall_back = false;
  strict.output(strict.falls_back("last", strict.chain(strict.falls_back("first", strict.input("x", DType::f32, Shape{64})), 1)));
  EXPECT_EQ(strict.on_host(), "");
  EXPECT_EQ(strict.said(), "");
}

// ---------------------------------------------------------------- the reference: copies as insert_copies makes them

// A random net of values of several sizes: reductions over whole tensors give small ones, which are broadcast again.
Net random_net(uint32_t seed) {
  std::mt19937 dice(seed);
  const auto under = [&](size_t n) { return static_cast<size_t>(dice() % n); };
  Regions b;
  std::vector<ValueId> values = {b.input("x", DType::f32, Shape{64, 64}), b.input("z", DType::f32, Shape{64, 64})};
  for (int i = 0; i < 40; ++i) {
    const std::string name = "n" + std::to_string(i);
    const ValueId from = values[values.size() - 1 - under(std::min<size_t>(values.size(), 6))];
    switch (under(8)) {
      case 0:
      case 1:
        values.push_back(b.falls_back(name, from));
        break;
      case 2:
        values.push_back(b.heavy(name, b.add1("Add", name + "/wide", {from, values[0]})));
        break;
      case 3:
        values.push_back(b.add1("ReduceMean", name, {from}, {{"keepdims", int64_t{1}}}));
        break;
      case 4:
        values.push_back(b.add1("Add", name, {from, values[under(values.size())]}));
        break;
      default:
        values.push_back(b.add1("Relu", name, {from}));
    }
    if (under(8) == 0) b.output(values.back());
  }
  b.output(values.back());
  return b.finish();
}

int64_t copied_bytes(TypedNet net) {
  auto copied = insert_copies(std::move(net), CompilationTarget("cpu", Limits(), 1));
  EXPECT_TRUE(copied.ok()) << copied.status().text();
  int64_t bytes = 0;
  for (const Node& node : copied->net.nodes)
    if (is_copy(node) && copied->net[node.inputs[0]].kind != Value::Kind::constant) bytes += copied->type(node.outputs[0]).byte_size();
  return bytes;
}

TEST(HostRegions, SavesWhatItSays) {
  Stages stages;
  stages.plugins = {"../sim", "host_only"}, stages.device = "sim:0", stages.fall_back = true;
  int moved = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const Typed made = typed(random_net(seed), stages);
    ASSERT_FALSE(made.findings.failed()) << text_of(made.findings);
    Findings findings, others;
    TypedNet placed = place(made.net, stages.target(), findings), fixed = made.net;
    int64_t saved = 0;
    for (const Diagnostic& d : findings.all())
      if (std::smatch match; d.code == Code::wrong_device && std::regex_search(d.message, match, std::regex("([0-9]+) bytes fewer")))
        saved += std::stoll(match[1]), ++moved;
    // The same net, with a device given to every node that has a kernel there.
    for (Node& node : fixed.net.nodes)
      if (node.type != "Through") node.device = "sim:0";
    fixed = place(std::move(fixed), stages.target(), others);
    EXPECT_EQ(copied_bytes(std::move(fixed)) - copied_bytes(std::move(placed)), saved) << "seed " << seed;
  }
  EXPECT_GT(moved, 30);
}

}  // namespace
}  // namespace heddle
