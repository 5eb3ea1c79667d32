// Implements cudart: libraries of kernels, and launches.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "cubin.h"
#include "process.h"
#include "system_memory.h"

namespace standin = heddle::cuda::standin;
using standin::Block;
using standin::CallKind;
using standin::HostBlock;
using standin::Job;
using standin::Kernel;
using standin::Library;
using standin::Lock;
using standin::Process;
using standin::Rule;
using standin::Stream;
using standin::this_thread;

namespace {

constexpr uint64_t max_parameter_bytes = 4096;
constexpr int own_architecture = 90;  // as in devices.cc

// Returns true if the device can run the code. A cubin is for its architecture alone. For PTX the driver makes code for a device of its
// architecture or a later one (Programming Guide, PTX Compatibility).
bool runs_on(const std::string& architecture) {
  const std::string ptx = "compute_";
  if (architecture.rfind(ptx, 0) != 0) return architecture == "sm_" + std::to_string(own_architecture);
  return std::atoi(architecture.c_str() + ptx.size()) <= own_architecture;
}

// Returns true if compute capability 9.0 allows the grid, as in devices.cc.
bool is_possible(const dim3& grid, const dim3& block) {
  const bool grid_fits = grid.x >= 1 && grid.x <= 2147483647u && grid.y >= 1 && grid.y <= 65535 && grid.z >= 1 && grid.z <= 65535;
  const bool block_fits = block.x >= 1 && block.x <= 1024 && block.y >= 1 && block.y <= 1024 && block.z >= 1 && block.z <= 64;
  return grid_fits && block_fits && uint64_t{block.x} * block.y * block.z <= 1024;
}

// The addresses among a kernel's parameters, that is, the words that it may access.
struct Addresses {
  std::vector<Block*> blocks;
  std::vector<HostBlock*> pinned;
  std::vector<Rule> broken;
};

Addresses addresses_in(Process& process, const std::vector<std::byte>& parameters, int device) {
  Addresses found;
  for (size_t at = 0; at + sizeof(uintptr_t) <= parameters.size(); at += sizeof(uintptr_t)) {
    void* address = nullptr;
    std::memcpy(&address, parameters.data() + at, sizeof(address));
    if (Block* const block = process.memory.block_at(address)) {
      found.blocks.push_back(block);
      if (!process.may_use(device, *block)) found.broken.push_back(Rule::memory_of_other_device);
    } else if (HostBlock* const pinned = process.memory.host_block_at(address)) {
      found.pinned.push_back(pinned);
    } else if (standin::is_host_memory(address)) {
      found.broken.push_back(Rule::host_memory_of_kernel);
    }
  }
  return found;
}

// Runs when the stream reaches it, without any lock held.
cudaError_t run(const Kernel& kernel, const dim3& grid, const dim3& block, const std::vector<std::byte>& parameters, uint64_t seed) {
  using heddle::cuda::grid::Order;
  const std::string wrong = kernel.module->launch(kernel.name, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, parameters.data(),
                                                  seed == 0 ? Order::ascending : Order::random, seed);
  if (wrong.empty()) return cudaSuccess;
  Process& process = Process::get();
  const Lock lock(process.mutex);
  process.rules.add(Rule::barrier, "cudaLaunchKernelExC: " + wrong);
  return cudaErrorLaunchTimeout;
}

cudaError_t launch(Process& process, Stream& stream, const std::shared_ptr<Kernel>& kernel, const cudaLaunchConfig_t& config, void** args) {
  constexpr const char* call = "cudaLaunchKernelExC";
  const auto* const given = static_cast<const std::byte*>(args[0]);
  std::vector<std::byte> parameters(given, given + kernel->parameter_bytes);
  const Addresses addresses = addresses_in(process, parameters, stream.device);
  process.run.launch(process.rules);
  const bool fails = process.faults.strikes(process.faults.launch);
  // An access to such an address is found when the kernel runs.
  const cudaError_t error = fails ? process.faults.launch_error : addresses.broken.empty() ? cudaSuccess : cudaErrorIllegalAddress;
  for (const Rule rule : addresses.broken) process.rules.add(rule, std::string(call) + ": " + kernel->name);
  process.engine.enqueue(
      stream, Job::Kind::work,
      [=, parameters = std::move(parameters), grid = config.gridDim, block = config.blockDim, seed = process.settings.seed] {
        return error != cudaSuccess ? error : run(*kernel, grid, block, parameters, seed);
      });
  for (Block* const block : addresses.blocks) process.use(*block, stream, call);
  for (HostBlock* const block : addresses.pinned) block->uses.add(stream.place());
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption*, void**, unsigned int jit_options,
                                cudaLibraryOption*, void**, unsigned int library_options) {
  return standin::api(__func__, CallKind::other, [&](Process& process, Lock&) {
    if (jit_options != 0 || library_options != 0) return cudaErrorNotSupported;
    std::string architecture, file, error;
    if (!standin::read_cubin(static_cast<const char*>(code), &architecture, &file)) return cudaErrorInvalidKernelImage;
    if (!runs_on(architecture)) return cudaErrorNoKernelImageForDevice;
    auto made = std::make_shared<Library>();
    made->module = heddle::cuda::grid::Module::open(file, &error);
    if (!made->module) return cudaErrorInvalidKernelImage;
    return *library = process.libraries.add(std::move(made)), cudaSuccess;
  });
}

cudaError_t cudaLibraryUnload(cudaLibrary_t handle) {
  return standin::api(__func__, CallKind::other, [&](Process& process, Lock&) {
    const std::shared_ptr<Library> library = process.libraries.find(handle);
    if (!library) return process.rules.add(Rule::unknown_library, "cudaLibraryUnload"), cudaErrorInvalidValue;
    process.kernels.remove_if([&](const std::shared_ptr<Kernel>& kernel) { return kernel->library == library; });
    return process.libraries.remove(handle), cudaSuccess;
  });
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t handle, const char* name) {
  return standin::api(__func__, CallKind::other, [&](Process& process, Lock&) {
    const std::shared_ptr<Library> library = process.libraries.find(handle);
    if (!library) return process.rules.add(Rule::unknown_library, "cudaLibraryGetKernel"), cudaErrorInvalidResourceHandle;
    const uint64_t bytes = library->module->parameter_bytes(name);
    if (bytes == 0) return cudaErrorSymbolNotFound;
    *kernel = process.kernels.add(std::make_shared<Kernel>(Kernel{name, library->module, library, bytes}));
    return cudaSuccess;
  });
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** args) {
  return standin::api(__func__, CallKind::work, [&](Process& process, Lock&) {
    constexpr const char* call = "cudaLaunchKernelExC";
    const std::shared_ptr<Stream> stream = process.stream_of(config->stream, call);
    if (!stream) return cudaErrorInvalidResourceHandle;
    const std::shared_ptr<Kernel> kernel = process.kernels.find(static_cast<cudaKernel_t>(const_cast<void*>(function)));
    if (!kernel) return process.rules.add(Rule::unknown_kernel, call), cudaErrorInvalidDeviceFunction;
    if (config->numAttrs != 0 || config->dynamicSmemBytes != 0) return cudaErrorNotSupported;
    if (!is_possible(config->gridDim, config->blockDim))
      return process.rules.add(Rule::launch_configuration, call), cudaErrorInvalidConfiguration;
    if (!args || !args[0] || kernel->parameter_bytes > max_parameter_bytes)
      return process.rules.add(Rule::launch_parameters, call), cudaErrorInvalidValue;
    // "A kernel launch will fail if it is issued to a stream that is not associated to the current device"
    if (stream->device != this_thread().device) return process.rules.add(Rule::wrong_device, call), cudaErrorInvalidResourceHandle;
    return launch(process, *stream, kernel, *config, args);
  });
}
