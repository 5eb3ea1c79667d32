#include "library/program.h"

#include <map>
#include <mutex>

#include "device/errors.h"
#include "generate/texts.h"
#include "library/program_cache.h"

namespace heddle::cuda {
namespace {

using plugin::Status;

Status compile(const std::string& source, const std::string& architecture, bool contract, std::string* code) {
  const Api& api = Api::get();
  nvrtcProgram program = nullptr;
  const auto failed = [&](const char* call, nvrtcResult result, const std::string& log) -> Status {
    if (program) api.nvrtcDestroyProgram(&program);
    return {HEDDLE_ERROR_INTERNAL,
            std::string(call) + ": " + api.nvrtcGetErrorString(result) + (log.empty() ? "" : ": " + log.substr(0, 1000))};
  };
  nvrtcResult result = api.nvrtcCreateProgram(&program, source.c_str(), "heddle.cu", 0, nullptr, nullptr);
  if (result != NVRTC_SUCCESS) return failed("nvrtcCreateProgram", result, {});
  const std::string arch = "--gpu-architecture=" + architecture;
  const char* const options[] = {arch.c_str(), contract ? "--fmad=true" : "--fmad=false", "--std=c++17", "--disable-warnings"};
  result = api.nvrtcCompileProgram(program, 4, options);
  if (result != NVRTC_SUCCESS) {
    size_t size = 0;
    std::string log;
    if (api.nvrtcGetProgramLogSize(program, &size) == NVRTC_SUCCESS && size > 1) {
      log.resize(size);
      api.nvrtcGetProgramLog(program, log.data());
      log.pop_back();  // the last zero, which counts
    }
    return failed("nvrtcCompileProgram", result, log);
  }
  size_t size = 0;
  result = api.nvrtcGetCUBINSize(program, &size);
  if (result != NVRTC_SUCCESS) return failed("nvrtcGetCUBINSize", result, {});
  code->resize(size);
  result = api.nvrtcGetCUBIN(program, code->data());
  if (result != NVRTC_SUCCESS) return failed("nvrtcGetCUBIN", result, {});
  api.nvrtcDestroyProgram(&program);
  return {};
}

Status load(const std::string& code, cudaLibrary_t* library) {
  HEDDLE_CUDA_CALL(cudaLibraryLoadData, library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  return {};
}

// Loaded programs of all devices that are in use, by device and key.
struct Loaded {
  std::mutex mutex;
  std::map<std::pair<int, std::string>, std::weak_ptr<const Program>> programs;
};
Loaded& loaded() {
  static Loaded& all = *new Loaded();
  return all;
}

}  // namespace

Status Program::make(const Device& device, const std::string& source, bool contract, std::shared_ptr<const Program>* program) {
  const Api& api = Api::get();
  const std::string architecture = "sm_" + std::to_string(device.major) + std::to_string(device.minor);
  int major = 0, minor = 0;
  api.nvrtcVersion(&major, &minor);
  const std::string whole = std::string(texts().at("element")) + source;
  const std::string key =
      architecture + "-" + std::to_string(major) + "." + std::to_string(minor) + (contract ? "-c-" : "-") + hash_text(whole);
  // Nothing of what is described is launched, and there is no driver to load it.
  if (api.described) return program->reset(new Program(nullptr)), Status();
  Loaded& all = loaded();
  // One at a time: nets have many nodes of one source, and each is compiled once.
  const std::lock_guard<std::mutex> lock(all.mutex);
  std::weak_ptr<const Program>& known = all.programs[{device.index, key}];
  if ((*program = known.lock())) return {};
  HEDDLE_CUDA_CALL(cudaSetDevice, device.index);
  std::string code;
  cudaLibrary_t library = nullptr;
  // A cached one that the driver does not take is none.
  if (!read_cached(key, &code) || !load(code, &library).ok()) {
    HEDDLE_PLUGIN_CHECK(compile(whole, architecture, contract, &code));
    HEDDLE_PLUGIN_CHECK(load(code, &library));
    write_cached(key, code);
  }
  program->reset(new Program(library));
  known = *program;
  return {};
}

Program::~Program() {
  if (library_) Api::get().cudaLibraryUnload(library_);
}

Status Program::kernel(const char* name, cudaKernel_t* kernel) const {
  *kernel = nullptr;
  if (library_) HEDDLE_CUDA_CALL(cudaLibraryGetKernel, kernel, library_, name);
  return {};
}

Status launch(Device& device, cudaKernel_t kernel, Launch shape, const void* parameters, cudaStream_t stream) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(shape.blocks);
  config.blockDim = dim3(shape.threads);
  config.stream = stream;
  void* arguments[] = {const_cast<void*>(parameters)};
  Status status = enqueue_on(device, stream, [&]() -> Status {
    HEDDLE_CUDA_CALL(cudaSetDevice, device.index);
    HEDDLE_CUDA_CALL(cudaLaunchKernelExC, &config, reinterpret_cast<const void*>(kernel), arguments);
    return {};
  });
  if (status.code == HEDDLE_ERROR_DEVICE_LOST) device.loss.happened(status.text);
  return status;
}

}  // namespace heddle::cuda
