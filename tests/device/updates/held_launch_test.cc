// A device that runs kernels of another kind obeys the holds of an update itself: the kernel is not called unless all are 0.
#include <array>
#include <cstring>

#include "device/device_support.h"
#include "plugin/host.h"
#include "run/device/entered_device.h"

namespace heddle {
namespace {

using namespace testing_devices;

HEDDLE_DEVICE_SUITE(HeldLaunch);

heddle_status set_to_seven(const heddle_run_context* context, int64_t, int64_t) {
  *static_cast<float*>(context->outputs[0]->data) = 7;
  return HEDDLE_OK;
}

TEST_P(HeldLaunch, IsDoneWithoutACallOfTheKernel) {
  HEDDLE_DEVICE_NEEDS(runs_host_kernels);
  auto prepared = prepare(device_runtime(), mixed_net(), silent());  // keeps the device open
  ASSERT_TRUE(prepared.ok()) << prepared.status().text();
  Device& device = *prepared->plan().devices[0].device;
  auto memory = device.allocate(64), holds = device.allocate(64);
  auto stream = device.create_stream();
  ASSERT_TRUE(memory.ok() && holds.ok() && stream.ok());

  heddle_kernel kernel = {};
  kernel.struct_size = sizeof(kernel);
  kernel.operator_name = "SetToSeven";
  kernel.run = set_to_seven;
  heddle_tensor output = {};
  output.struct_size = sizeof(output);
  output.dtype = HEDDLE_F32;
  output.data = memory->get();
  output.element_count = 1;
  output.byte_size = sizeof(float);
  output.extent_axis = -1;
  output.space = HEDDLE_SPACE_DEVICE;
  heddle_tensor* outputs[] = {&output};
  heddle_run_context context = {};
  context.struct_size = sizeof(context);
  context.outputs = outputs;
  context.output_count = 1;
  context.holds = static_cast<const uint64_t*>(holds->get());
  context.hold_count = 2;
  heddle_launch launch = {};
  launch.struct_size = sizeof(launch);
  launch.kernel = &kernel;
  launch.context = &context;
  launch.tiles = 1;
  heddle_work work = {};
  work.struct_size = sizeof(work);
  work.launch = &launch;
  for (const std::array<uint64_t, 2> held : {std::array<uint64_t, 2>{0, 3}, std::array<uint64_t, 2>{1, 0}, std::array<uint64_t, 2>{0, 0}}) {
    float value = 1;
    ASSERT_TRUE(device.write(holds->get(), held.data(), sizeof(held)).ok());
    ASSERT_TRUE(device.write(memory->get(), &value, sizeof(value)).ok());
    HostCall call;
    context.call = &call;
    ASSERT_EQ(enqueue_entering(device, stream->get(), work, false, &call), HEDDLE_OK) << call.error.text;
    ASSERT_EQ(device.synchronize(stream->get(), &call), HEDDLE_OK) << call.error.text;
    ASSERT_TRUE(device.read(&value, memory->get(), sizeof(value)).ok());
    EXPECT_EQ(value, held[0] + held[1] == 0 ? 7 : 1);
  }
}

}  // namespace
}  // namespace heddle
