// The base of this plugin's kernels: the device they are for, and launches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "device/cuda_device.h"
#include "device/trace_range.h"
#include "heddle/op.h"
#include "library/program.h"

namespace heddle::cuda {

using namespace heddle::plugin;

// Fails if a kernel needs more scratch than it may have. `what`: that needs it.
inline Status check_scratch(const PrepareContext& context, uint64_t bytes, const char* what = "it needs") {
  if (bytes <= context.scratch_budget()) return {};
  return unsupported(std::string(what) + " " + std::to_string(bytes) + " bytes of scratch, of which it may have " +
                     std::to_string(context.scratch_budget()));
}

class GpuKernel {
 public:
  // Called in run. Nothing is launched for no blocks.
  Status start_kernel(const RunContext& context, cudaKernel_t kernel, LaunchShape shape, const void* parameters) const {
    if (shape.blocks == 0) return {};
    const TraceRange range(trace_name_);
    return launch(*device_, kernel, shape, parameters, static_cast<cudaStream_t>(context.stream));
  }
  // Fills that many bytes with zeros.
  Status fill_zero(const RunContext& context, void* memory, uint64_t bytes) const {
    const auto stream = static_cast<cudaStream_t>(context.stream);
    return enqueue_on(*device_, stream, [&]() -> Status {
      HEDDLE_CUDA_CALL(cudaMemsetAsync, memory, 0, bytes, stream);
      return {};
    });
  }
  // Copies that many bytes of the device; nothing if both are the same place.
  Status copy_within(const RunContext& context, void* to, const void* from, uint64_t bytes) const {
    if (to == from || bytes == 0) return {};
    const auto stream = static_cast<cudaStream_t>(context.stream);
    return enqueue_on(*device_, stream, [&]() -> Status {
      HEDDLE_CUDA_CALL(cudaMemcpyAsync, to, from, bytes, cudaMemcpyDeviceToDevice, stream);
      return {};
    });
  }
  // Returns the number of blocks of `threads` for that many threads' work. Each block takes more than one turn if there would otherwise be
  // many times more blocks than the device runs at once.
  unsigned int blocks_for(int64_t work, unsigned int threads) const {
    const int64_t wanted = (work + threads - 1) / threads;
    return static_cast<unsigned int>(std::min<int64_t>(wanted, int64_t{32} * std::max(device_->multiprocessors, 1)));
  }

 protected:
  // Called in create.
  Status on(const CreateContext& context) {
    const heddle_create_context& c = *context.raw();
    device_ = static_cast<Device*>(c.device_handle);
    trace_name_ = std::string(c.node_name ? c.node_name : "") + " (" + c.op->name + ")";
    return device_ ? Status() : invalid("a kernel for \"cuda\" is created without a device");
  }
  Device& device() const { return *device_; }
  const std::string& trace_name() const { return trace_name_; }

 private:
  Device* device_ = nullptr;
  std::string trace_name_;  // for example "conv1 (Conv)"
};

}  // namespace heddle::cuda
