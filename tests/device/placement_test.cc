// Placement of operators and values, the copies that it takes, and the findings about it.
#include "device_support.h"

namespace heddle {
namespace {

using namespace testing_devices;

HEDDLE_DEVICE_SUITE(DevicePlacement);

TEST_P(DevicePlacement, StrictRefusesWhatCrosses) {
  const Runtime runtime = device_runtime();
  SessionOptions options;
  options.copies = Copies::strict;
  const Status status = prepare(runtime, mixed_net(), options).status();
  ASSERT_EQ(status.code(), Code::wrong_device) << status.text();
  EXPECT_EQ(exit_status(status.code()), 3);
  // turned reads r, right reads turned, z reads left: all are reported at once, with operator, input, both devices and the fix.
  EXPECT_EQ(status.diagnostic().attached.size(), 2u) << status.text();
  EXPECT_EQ(status.diagnostic().node, "turned");
  EXPECT_EQ(status.diagnostic().message, "runs on \"cpu:0\" but input \"r\" is on \"" + device_name(0) + "\", where \"r\" runs");
  EXPECT_NE(status.diagnostic().hint.find("SessionOptions::copies = Copies::automatic"), std::string::npos);
}

TEST_P(DevicePlacement, StrictTakesANetThatLivesOnOneDevice) {
  const std::string device = device_name(kind().devices - 1);
  NetBuilder b("device");
  const ValueId x = b.input("x", DType::f32, Shape{4, 4});
  b.output(on(b, device, b.add1("Relu", "y", {on(b, device, b.add1("MatMul", "m", {x, b.constant("w", whole_numbers({4, 4}, 1, 1))}))})));
  const Runtime runtime = device_runtime();
  SessionOptions options;
  options.copies = Copies::strict;
  auto prepared = prepare(runtime, b.finish(), options);
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  EXPECT_TRUE(prepared->context.run().ok());
  // The input is copied there, the output is copied back, the constant is there already.
  ASSERT_EQ(prepared->plan().copies.size(), 2u);
  EXPECT_EQ(prepared->plan().copies[0].from, "cpu:0");
  EXPECT_EQ(prepared->plan().copies[0].to, device);
  EXPECT_EQ(prepared->plan().copies[1].to, "cpu:0");
  EXPECT_EQ(prepared->plan().copies[1].bytes, 64);
  ASSERT_EQ(prepared->plan().devices.size(), 1u);
  EXPECT_EQ(prepared->plan().devices[0].memory.persistent_bytes, 64);
}

TEST_P(DevicePlacement, WarnsOfEachCrossingAndAutoKeepsQuiet) {
  const Runtime runtime = device_runtime();
  auto warned = prepare(runtime, mixed_net(), {});
  ASSERT_TRUE(warned.ok()) << warned.status().text();
  ASSERT_EQ(warned->plan().warnings.size(), 3u);
  for (const Diagnostic& d : warned->plan().warnings) {
    EXPECT_EQ(d.severity, Severity::warning);
    EXPECT_EQ(d.code, Code::wrong_device);
  }
  auto quiet = prepare(runtime, mixed_net(), silent());
  ASSERT_TRUE(quiet.ok());
  EXPECT_TRUE(quiet->plan().warnings.empty());
  EXPECT_EQ(quiet->plan().copies.size(), warned->plan().copies.size());
}

TEST_P(DevicePlacement, EachValueIsCopiedToEachDeviceOnce) {
  HEDDLE_DEVICES_NEEDED(2);
  NetBuilder b("fan");
  const ValueId x = b.input("x", DType::f32, Shape{16});
  const ValueId a = on(b, device_name(0), b.add1("Relu", "a", {x}));
  for (int i = 0; i < 3; ++i) b.output(on(b, device_name(1), b.add1("Add", "b" + std::to_string(i), {a, x})));
  b.output(a);
  const Runtime runtime = device_runtime();
  auto prepared = prepare(runtime, b.finish(), silent());
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  // x goes to both, a to the host (for the output, and as an intermediate stop) and on to the other device, three outputs go back.
  EXPECT_EQ(prepared->plan().copies.size(), 7u);
  EXPECT_TRUE(prepared->context.run().ok());
}

TEST_P(DevicePlacement, ShapeOperandsAndHostPortsStayOnTheHost) {
  NetBuilder b("views");
  const ValueId x = b.input("x", DType::f32, Shape{4, 8});
  const ValueId a = on(b, device_name(0), b.add1("Relu", "a", {x}));
  const ValueId shape = b.constant_ints("shape", {8, 4});
  const ValueId r = on(b, device_name(0), b.add1("Reshape", "r", {a, shape}));
  b.output(on(b, device_name(0), b.add1("MatMul", "y", {r, x})));
  const Runtime runtime = device_runtime();
  auto prepared = prepare(runtime, b.finish(), silent());
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  EXPECT_EQ(prepared->plan().copies.size(), 2u) << "x there, y back: the reshape is a view on the device";
  EXPECT_TRUE(prepared->context.run().ok());
}

TEST_P(DevicePlacement, AnExplicitCopyIsNoCrossing) {
  HEDDLE_DEVICES_NEEDED(2);
  NetBuilder b("copy");
  const ValueId x = b.input("x", DType::f32, Shape{16});
  const ValueId a = on(b, device_name(0), b.add1("Relu", "a", {x}));
  const ValueId there = on(b, device_name(1), b.add1("Copy", "there", {b.add1("Copy", "back", {a}, {}, "heddle")}, {}, "heddle"));
  b.output(on(b, device_name(1), b.add1("Add", "y", {there, there})));
  const Runtime runtime = device_runtime();
  SessionOptions options;
  options.copies = Copies::strict;
  auto prepared = prepare(runtime, b.finish(), options);
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  ASSERT_TRUE(prepared->context.run().ok());
  EXPECT_EQ(prepared->plan().copies.size(), 4u);
}

// Values that are known before the run are not copied, wherever they are read and whatever they were computed from.
TEST_P(DevicePlacement, ShapeArithmeticIsFoldedAndCrossesNothing) {
  NetBuilder b("shapes");
  const ValueId x = b.input("x", DType::f32, Shape{2, 3});
  const ValueId a = b.add1("Relu", "a", {x});
  const ValueId turned = b.add1("Gather", "turned", {b.add1("Shape", "shape", {a}), b.constant_ints("order", {1, 0})});
  b.output(b.add1("Relu", "y", {b.add1("Reshape", "reshaped", {a, turned})}));
  SessionOptions options;
  options.copies = Copies::strict;
  options.device = device_name(0);
  auto prepared = prepare(device_runtime(), b.finish(), options);
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  const std::vector<float> content = {1, -2, 3, -4, 5, -6};
  ASSERT_TRUE(prepared->context.bind_input(0, content.data()).ok());
  const Status ran = prepared->context.run();
  ASSERT_TRUE(ran.ok()) << ran.text();
  EXPECT_EQ(prepared->context.output(0).shape, (Shape{3, 2}));
  EXPECT_EQ(static_cast<const float*>(prepared->context.output(0).data)[4], 5);
}

// x -> Through -> Relu -> Through -> MatMul
Net fallen_back_net() {
  NetBuilder b("fallen back");
  const auto falls_back = [&](const char* name, ValueId x) { return b.add1("Through", name, {x}, {}, "host_only"); };
  const ValueId first = falls_back("first", b.input("x", DType::f32, Shape{64, 64}));
  const ValueId last = falls_back("last", b.add1("Relu", "between", {first}));
  b.output(b.add1("MatMul", "y", {last, b.constant("w", whole_numbers({64, 64}, 1, 1))}));
  return b.finish();
}

TEST_P(DevicePlacement, WhatOnlyCopiesBetweenFallBacksRunsOnTheHost) {
  const Runtime runtime = device_runtime();
  SessionOptions options = silent();
  options.device = device_name(0);
  auto prepared = prepare(runtime, fallen_back_net(), options);
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  std::map<std::string, std::string> device;
  for (const PlanStep& step : prepared->plan().steps) device[step.name] = prepared->plan().device_of(step);
  EXPECT_EQ(device["between"], "cpu:0");
  EXPECT_EQ(device["y"], device_name(0));
  EXPECT_EQ(prepared->plan().copies.size(), 2u) << "there and back for the MatMul";
  // It is reported like a fallback: a note if copies were requested, else a warning.
  const auto said = [](Prepared& of) -> Severity {
    for (const Diagnostic& d : of.plan().warnings)
      if (d.node == "between" && d.message.find("32768 bytes fewer") != std::string::npos) return d.severity;
    return Severity::error;
  };
  EXPECT_EQ(said(*prepared), Severity::note);
  ASSERT_TRUE(prepared->context.run().ok());
  options.copies = Copies::warn;
  auto warned = prepare(runtime, fallen_back_net(), options);
  ASSERT_TRUE(warned.ok()) << warned.status().text();
  EXPECT_EQ(said(*warned), Severity::warning);
  // The bits are the same as on the host, and an operator with a named device stays there.
  auto host = prepare(runtime, fallen_back_net(), {});
  ASSERT_TRUE(host.ok() && host->context.run().ok());
  EXPECT_EQ(outputs(prepared->context), outputs(host->context));
  Net named = fallen_back_net();
  named.nodes[1].device = device_name(0);
  options.copies = Copies::automatic;
  auto stays = prepare(runtime, named, options);
  ASSERT_TRUE(stays.ok()) << stays.status().text();
  EXPECT_EQ(stays->plan().copies.size(), 4u);
}

// Operators that allow the host beside their device are placed like those that name none.
TEST_P(DevicePlacement, OperatorsThatAllowTheHostFallBackToo) {
  const Runtime runtime = device_runtime();
  Net net = fallen_back_net();
  for (Node& node : net.nodes) node.device = device_name(kind().devices - 1) + "|cpu";
  auto prepared = prepare(runtime, net, silent());
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  std::map<std::string, std::string> device;
  for (const PlanStep& step : prepared->plan().steps) device[step.name] = prepared->plan().device_of(step);
  EXPECT_EQ(device["between"], "cpu:0");
  EXPECT_EQ(device["y"], device_name(kind().devices - 1));
  SessionOptions options;
  options.copies = Copies::strict;
  EXPECT_FALSE(prepare(runtime, net, options).ok());
  // No other device may take its place.
  for (Node& node : net.nodes) node.device = device_name(0) + "|" + device_name(0);
  EXPECT_EQ(prepare(runtime, net, silent()).status().code(), Code::no_such_device);
}

TEST_P(DevicePlacement, ArenasArePackedOnEachDevice) {
  HEDDLE_DEVICE_NEEDS(counts_memory);
  NetBuilder b("chain");
  const Shape shape{1024};
  ValueId v = b.input("x", DType::f32, shape);
  for (int i = 0; i < 12; ++i) v = on(b, device_name(0), b.add1("Add", "n" + std::to_string(i), {v, v}));
  b.output(v);
  const Runtime runtime = device_runtime(2);
  const auto opened = Internals::of(runtime).devices.open(*Internals::of(runtime).registry.snapshot(), device_name(0));
  ASSERT_TRUE(opened.ok()) << opened.status().text();
  int64_t free = 0, free_before = 0, total = 0;
  ASSERT_TRUE((*opened)->memory_info(&free_before, &total).ok());
  auto prepared = prepare(runtime, b.finish(), silent(2));
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  const PlanDevice& device = prepared->plan().devices[0];
  if (kind().has_few_kernels) {  // other kinds fuse the chain, and have scratch
    EXPECT_EQ(device.arena_bytes, 2 * 4096);
    EXPECT_EQ(device.memory.sum_bytes, 13 * 4096);
  }
  EXPECT_EQ(device.memory.lower_bound_bytes, device.arena_bytes);
  EXPECT_EQ(device.memory.peak_bytes, device.arena_bytes);
  ASSERT_TRUE(device.device->memory_info(&free, &total).ok());
  EXPECT_EQ(free_before - free, device.arena_bytes) << "exactly what was planned is allocated";
}

TEST_P(DevicePlacement, ANetHasSoManyDevicesAndNoMore) {
  HEDDLE_DEVICE_NEEDS(has_settings);
  const DeviceSetting devices("DEVICES", "300");
  NetBuilder b("wide");
  const ValueId x = b.input("x", DType::f32, Shape{4});
  for (int i = 0; i <= max_devices; ++i) b.output(on(b, device_name(i), b.add1("Relu", "r" + std::to_string(i), {x})));
  const Status status = prepare(device_runtime(), b.finish(), silent()).status();
  EXPECT_EQ(status.code(), Code::limit_exceeded) << status.text();
  EXPECT_NE(status.text().find("the net names 255 devices, at most 254 are possible"), std::string::npos) << status.text();
}

TEST_P(DevicePlacement, UnloadingThePluginClosesItsDevices) {
  Runtime runtime = device_runtime();
  {
    auto prepared = prepare(runtime, mixed_net(), silent());
    ASSERT_TRUE(prepared.ok());
    ASSERT_TRUE(runtime.unload_plugin(kind().name).ok());
    EXPECT_TRUE(prepared->context.run().ok()) << "plans keep what they use";
  }
  EXPECT_EQ(prepare(runtime, mixed_net(), silent()).status().code(), Code::no_such_device);
}

}  // namespace
}  // namespace heddle
