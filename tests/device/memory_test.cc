// Memory of runs on a device: shared by contexts as on the host, freed when it is no longer used.
#include "device_support.h"

namespace heddle {
namespace {

using namespace testing_devices;

HEDDLE_DEVICE_SUITE(DeviceMemory);

// A chain on a device whose arena on that device grows with `size`.
Net chain(int64_t size) {
  NetBuilder b("chain");
  const Shape shape{size};
  ValueId x = b.input("x", DType::f32, shape);
  for (int i = 0; i < 3; ++i) x = on(b, device_name(0), b.add1("Add", "n" + std::to_string(i), {x, x}));
  b.output(x);
  return b.finish();
}

Session open(const Runtime& runtime, Net net) {
  auto session = runtime.open(std::move(net), silent());
  EXPECT_TRUE(session.ok()) << session.status().text();
  return *session;
}

struct Chain {
  Chain(const Runtime& runtime, int64_t size)
      : session(open(runtime, chain(size))), input(static_cast<size_t>(size)), expected(static_cast<size_t>(size)) {
    for (size_t i = 0; i < input.size(); ++i) expected[i] = 8 * (input[i] = static_cast<float>(i % 17));
  }
  Session session;
  std::vector<float> input, expected;
};

Status run(Context& context, const Chain& chain) {
  HEDDLE_CHECK(context.bind_input(0, chain.input.data()));
  HEDDLE_CHECK(context.run());
  const TensorView out = context.output(0);
  EXPECT_EQ(std::vector<float>(static_cast<const float*>(out.data), static_cast<const float*>(out.data) + chain.expected.size()),
            chain.expected);
  return {};
}

const Device& device_of(const Context& context) {
  return *Internals::execution(const_cast<Context&>(context)).plan().devices[0].device;
}
int64_t planned_on_device(const Context& context) {
  return Internals::execution(const_cast<Context&>(context)).plan().devices[0].arena_bytes;
}

// The sizes exceed 32 bits, and are reduced by the memory that a context holds.
TEST_P(DeviceMemory, IsToldInBytes) {
  HEDDLE_DEVICE_NEEDS(has_settings);
  HEDDLE_DEVICE_NEEDS(counts_memory);
  const DeviceSetting memory("MEMORY", std::to_string(int64_t{40} << 30));
  const Runtime runtime = device_runtime();
  const auto before = runtime.device_info(kind().name);
  ASSERT_TRUE(before.ok()) << before.status().text();
  EXPECT_EQ(before->name, device_name(0));
  EXPECT_EQ(before->total_bytes, int64_t{40} << 30);
  EXPECT_EQ(before->free_bytes, before->total_bytes);
  EXPECT_FALSE(before->description.empty());
  EXPECT_FALSE(before->described);
  {
    const Chain net(runtime, 5000);
    auto context = Session(net.session).prepare();
    ASSERT_TRUE(context.ok()) << context.status().text();
    const auto held = runtime.device_info(device_name(0));
    ASSERT_TRUE(held.ok());
    EXPECT_LE(held->free_bytes, before->free_bytes - planned_on_device(*context));
  }
  EXPECT_EQ(runtime.device_info("nowhere:0").status().code(), Code::no_such_device);
  EXPECT_EQ(runtime.device_info("cpu").status().code(), Code::no_such_device);
}

TEST_P(DeviceMemory, ARunContextHoldsTheMaximumOfItsContextsOnEachDevice) {
  const Runtime runtime = device_runtime();
  const Chain small(runtime, 100), large(runtime, 5000);
  const SharedMemory memory;
  auto first = Session(small.session).prepare_on(memory);
  ASSERT_TRUE(first.ok()) << first.status().text();
  const Workspace& workspace = *Internals::workspace(memory);
  EXPECT_EQ(workspace.bytes_on(device_of(*first)), planned_on_device(*first));
  ASSERT_TRUE(run(*first, small).ok());
  // The arena on the device grows and moves; the first context follows.
  auto second = Session(large.session).prepare_on(memory);
  ASSERT_TRUE(second.ok()) << second.status().text();
  EXPECT_GT(planned_on_device(*second), planned_on_device(*first));
  EXPECT_EQ(workspace.bytes_on(device_of(*second)), planned_on_device(*second));
  EXPECT_EQ(memory.bytes(), workspace.host_bytes() + planned_on_device(*second));
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(run(*first, small).ok());
    EXPECT_TRUE(run(*second, large).ok());
  }
}

TEST_P(DeviceMemory, RunsOneAfterTheOtherUseOneArena) {
  const Runtime runtime = device_runtime();
  const Chain open_all_along(runtime, 8);  // idle memory goes with the last session
  // Memory is reused for about the same size: a size that differs by more than a factor of two has memory of its own.
  const auto idle_after = [&](std::initializer_list<int64_t> sizes) {
    int64_t largest = 0, largest_on_host = 0;
    for (const int64_t size : sizes) {
      const Chain c(runtime, size);
      auto context = Session(c.session).prepare();
      EXPECT_TRUE(context.ok()) << context.status().text();
      EXPECT_TRUE(run(*context, c).ok());
      EXPECT_LE(context->held_bytes(1), 2 * (planned_on_device(*context) + context->planned_bytes()));
      largest = std::max(largest, planned_on_device(*context));
      largest_on_host = std::max(largest_on_host, context->planned_bytes());
    }
    return largest + largest_on_host;
  };
  const int64_t near = idle_after({3000, 4000, 3500});
  EXPECT_EQ(Internals::of(runtime).workspaces.idle_bytes(), near);
  const int64_t small = idle_after({300});
  EXPECT_EQ(Internals::of(runtime).workspaces.idle_bytes(), near + small);
  // Idle memory would keep the plugin in the process.
  Runtime same = runtime;
  ASSERT_TRUE(same.unload_plugin(kind().name).ok());
  EXPECT_EQ(Internals::of(runtime).workspaces.idle_bytes(), 0);
}

TEST_P(DeviceMemory, NothingOfAnUnloadedPluginIsKeptForLater) {
  Runtime runtime = device_runtime();
  {
    const Chain c(runtime, 300);
    auto context = Session(c.session).prepare();
    ASSERT_TRUE(context.ok()) << context.status().text();
    ASSERT_TRUE(runtime.unload_plugin(kind().name).ok());
    ASSERT_TRUE(run(*context, c).ok());
  }
  EXPECT_EQ(Internals::of(runtime).workspaces.idle_bytes(), 0);
}

TEST_P(DeviceMemory, GrowthThatFailsLeavesTheOtherContextsUsable) {
  HEDDLE_DEVICE_NEEDS(has_settings);
  const DeviceSetting little("MEMORY", "16384");
  const Runtime runtime = device_runtime();
  const Chain small(runtime, 100), large(runtime, 5000);
  const SharedMemory memory;
  auto first = Session(small.session).prepare_on(memory);
  ASSERT_TRUE(first.ok()) << first.status().text();
  ASSERT_TRUE(run(*first, small).ok());
  auto second = Session(large.session).prepare_on(memory);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), Code::out_of_memory) << second.status().text();
  const Status again = run(*first, small);
  EXPECT_TRUE(again.ok()) << again.text();
}

TEST_P(DeviceMemory, OverTheCallersBufferTheDevicesPartIsTheContextsOwn) {
  const Runtime runtime = device_runtime();
  const Chain c(runtime, 300);
  Session session = c.session;
  const auto bytes = session.transient_bytes();
  ASSERT_TRUE(bytes.ok());
  std::byte* buffer = nullptr;
  const auto blob = Blob::allocate(DType::u8, Shape{*bytes}, &buffer);
  auto context = session.prepare_in(buffer, *bytes);
  ASSERT_TRUE(context.ok()) << context.status().text();
  EXPECT_TRUE(run(*context, c).ok());
  EXPECT_EQ(context->held_bytes(1), planned_on_device(*context));
}

}  // namespace
}  // namespace heddle
