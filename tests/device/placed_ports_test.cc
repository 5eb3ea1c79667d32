// Inputs and outputs of a net that are on a device: they are not copied to the host.
#include <set>

#include "device_support.h"

namespace heddle {
namespace {

using namespace testing_devices;

HEDDLE_DEVICE_SUITE(PlacedPorts);

Net product() {
  NetBuilder b("product");
  const ValueId x = b.input("x", DType::f32, Shape{4, 4});
  const ValueId y = on(b, device_name(0), b.add1("MatMul", "y", {x, b.constant("w", whole_numbers(Shape{4, 4}, 1, 3))}));
  b.output(y);
  b.output(on(b, device_name(0), b.add1("Relu", "z", {y})));
  return b.finish();
}

SessionOptions placed(std::vector<std::pair<std::string, std::string>> ports) {
  SessionOptions options = silent();
  options.placed_ports = std::move(ports);
  return options;
}

// Memory of a device for 4 x 4 numbers.
struct OnDevice {
  explicit OnDevice(const std::shared_ptr<Device>& of) : device(of) {
    auto made = device->allocate(bytes);
    EXPECT_TRUE(made.ok());
    memory = std::move(*made);
  }
  static constexpr int64_t bytes = 64;
  std::shared_ptr<Device> device;
  ::heddle::DeviceMemory memory;
  std::vector<char> content() const {
    std::vector<char> host(bytes);
    EXPECT_TRUE(device->read(host.data(), memory.get(), bytes).ok());
    return host;
  }
};

TEST_P(PlacedPorts, AreBoundWithoutACopy) {
  std::vector<std::vector<char>> right;
  {
    auto prepared = prepare(device_runtime(), product(), silent());
    ASSERT_TRUE(prepared.ok() && prepared->context.run().ok());
    right = outputs(prepared->context);
  }
  const Runtime runtime = device_runtime(2);
  auto session = runtime.open(product(), placed({{"x", device_name(0)}, {"y", kind().name}, {"z", device_name(0)}}));
  ASSERT_TRUE(session.ok()) << session.status().text();
  auto context = session->prepare();
  ASSERT_TRUE(context.ok()) << context.status().text();
  const Plan& plan = Internals::execution(*context).plan();
  EXPECT_TRUE(plan.copies.empty());
  const OnDevice x(plan.devices[0].device), y(plan.devices[0].device), z(plan.devices[0].device);
  const auto feed = inputs_of(*session);
  ASSERT_TRUE(x.device->write(x.memory.get(), feed[0]->data, OnDevice::bytes).ok());
  ASSERT_TRUE(context->bind_input(0, x.memory.get()).ok());
  ASSERT_TRUE(context->bind_output(0, y.memory.get()).ok());
  ASSERT_TRUE(context->bind_output(1, z.memory.get()).ok());
  for (int run = 0; run < 3; ++run) {
    const Status status = context->run();
    ASSERT_TRUE(status.ok()) << status.text();
    EXPECT_EQ(y.content(), right[0]);
    EXPECT_EQ(z.content(), right[1]);
    EXPECT_EQ(context->output(1).data, z.memory.get());
  }
}

// The output of the net is an input, or a constant.
TEST_P(PlacedPorts, WhatIsHandedThroughIsCopiedOnTheDevice) {
  NetBuilder b("through");
  const ValueId x = b.input("x", DType::f32, Shape{4, 4});
  b.output(x);
  const Runtime runtime = device_runtime(2);
  auto session = runtime.open(b.finish(), placed({{"x", device_name(0)}}));
  ASSERT_TRUE(session.ok()) << session.status().text();
  auto context = session->prepare();
  ASSERT_TRUE(context.ok()) << context.status().text();
  const OnDevice from(Internals::execution(*context).plan().devices[0].device), to(from.device);
  const auto feed = inputs_of(*session);
  ASSERT_TRUE(from.device->write(from.memory.get(), feed[0]->data, OnDevice::bytes).ok());
  ASSERT_TRUE(context->bind_input(0, from.memory.get()).ok());
  ASSERT_TRUE(context->bind_output(0, to.memory.get()).ok());
  ASSERT_TRUE(context->run().ok());
  EXPECT_EQ(to.content(), from.content());
}

// Kernels read and write 16 bytes at once, whatever a value's size.
TEST_P(PlacedPorts, AddressesAreMultiplesOf64) {
  NetBuilder b("odd");
  const ValueId x = b.input("x", DType::f32, Shape{3, 3});
  std::vector<std::pair<std::string, std::string>> ports;
  for (int i = 0; i < 5; ++i) {
    const std::string number = std::to_string(i);
    const ValueId w = b.constant("w" + number, whole_numbers(Shape{3, 2 * i + 1}, i, 3));
    b.output(on(b, device_name(0), b.add1("MatMul", "y" + number, {x, w})));
    ports.emplace_back("y" + number, device_name(0));
  }
  auto prepared = prepare(device_runtime(2), b.finish(), placed(ports));
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  const Status status = prepared->context.run();
  ASSERT_TRUE(status.ok()) << status.text();
  std::set<const void*> addresses;
  for (uint32_t i = 0; i < prepared->plan().values.size(); ++i) {
    const PlanValue& value = prepared->plan().values[i];
    if (value.place.device == 0 || value.place.kind == MemoryPlace::Kind::none) continue;
    const void* const at = Internals::execution(prepared->context).view(ValueId{i}).data;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(at) % 64, 0u) << value.name;
    addresses.insert(at);
  }
  EXPECT_GE(addresses.size(), 11u) << "x, five constants and five products lie apart";
  // Bound memory must begin at a multiple too.
  const OnDevice y(prepared->plan().devices[0].device);
  const Status bound = prepared->context.bind_output(0, static_cast<char*>(y.memory.get()) + 16);
  EXPECT_EQ(bound.code(), Code::invalid_argument);
  EXPECT_NE(bound.text().find("begin at a multiple of 64 bytes"), std::string::npos) << bound.text();
}

TEST_P(PlacedPorts, MistakesAreNamed) {
  NetBuilder b("shape");
  b.output(b.add1("Reshape", "y", {b.input("x", DType::f32, Shape{4}), b.input("shape", DType::i64, Shape{1})}));
  const Runtime runtime = device_runtime();
  const std::string kind_name = kind().name;
  const auto finding = [&](Net net, std::vector<std::pair<std::string, std::string>> ports) {
    auto session = runtime.open(std::move(net), placed(std::move(ports)));
    return session.ok() ? session->prepare().status().text() : session.status().text();
  };
  EXPECT_NE(finding(product(), {{"nobody", device_name(0)}}).find("the net has no input or output \"nobody\""), std::string::npos);
  EXPECT_NE(finding(product(), {{"x", kind_name + ":7"}}).find("device \"" + kind_name + ":7\" does not exist"), std::string::npos);
  EXPECT_NE(finding(product(), {{"x", "nothing"}}).find("\"nothing:0\""), std::string::npos);
  const Net net = b.finish();
  auto session = runtime.open(Net(net), placed({{"y", device_name(0)}}));
  ASSERT_TRUE(session.ok()) << session.status().text();
  auto results =
      session->run({view(*whole_numbers(Shape{4}, 1, 1)), view(*Blob::copy_of(DType::i64, Shape{1}, std::vector<int64_t>{4}.data()))});
  ASSERT_FALSE(results.ok());
  EXPECT_NE(results.status().text().find("output \"y\" lies on a device"), std::string::npos) << results.status().text();
}

}  // namespace
}  // namespace heddle
