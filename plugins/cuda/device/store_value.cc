#include "device/store_value.h"

#include <cstring>

#include "library/program.h"

namespace heddle::cuda {
namespace {

struct Parameters {
  void* destination;
  uint64_t bytes;
  unsigned char value[max_value_bytes];
};

constexpr const char* source = R"(
struct Parameters {
  u8* destination;
  u64 bytes;
  u8 value[64];
};
HEDDLE_KERNEL(store_value, Parameters, p) {
  if (threadIdx.x < p.bytes) p.destination[threadIdx.x] = p.value[threadIdx.x];
}
)";

}  // namespace

plugin::Status prepare_store_value(Device& device) {
  HEDDLE_PLUGIN_CHECK(Program::make(device, source, false, &device.store_program));
  return device.store_program->kernel("store_value", &device.store_kernel);
}

plugin::Status store_value(Device& device, cudaStream_t stream, void* destination, const void* value, uint64_t bytes) {
  if (bytes > max_value_bytes) return plugin::invalid("a value of " + std::to_string(bytes) + " bytes");
  Parameters parameters = {destination, bytes, {}};
  std::memcpy(parameters.value, value, bytes);
  return launch(device, device.store_kernel, {1, max_value_bytes}, &parameters, stream);
}

}  // namespace heddle::cuda
