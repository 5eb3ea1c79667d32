// The nccl plugin: collectives of GPUs by NVIDIA's NCCL, for the kernels of plugins/cuda. It publishes the resources "nccl.library" and
// "nccl.communicator" (shared/ranks/device_collectives.h). NCCL is opened when it is needed first. docs/cuda.md.
#include "communicator/nccl_communicator.h"
#include "library/nccl_library.h"

namespace {

heddle_status describe(const heddle_host* host, const heddle_call* call) {
  using heddle::nccl::Library;
  const std::string& missing = Library::get().missing();
  const std::string text = missing.empty() ? "NCCL " + heddle::nccl::version_text(Library::get().version()) : missing;
  host->set_error(call, HEDDLE_OK, text.data(), text.size());
  return missing.empty() ? HEDDLE_OK : HEDDLE_ERROR_UNSUPPORTED;
}

}  // namespace

HEDDLE_PLUGIN("nccl", "0.1.0", plugin) {
  plugin.resource<heddle::nccl::LoadedLibrary, heddle::operators::DeviceLibrary>("nccl.library", HEDDLE_SCOPE_RUNTIME, 1);
  plugin.resource<heddle::nccl::NcclCommunicator, heddle::operators::DeviceCollectives>("nccl.communicator", HEDDLE_SCOPE_COMMUNICATOR, 1);
  plugin.describe(describe);
}
