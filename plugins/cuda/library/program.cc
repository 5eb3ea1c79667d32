#include "library/program.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "device/errors.h"
#include "generate/texts.h"
#include "library/program_cache.h"

namespace heddle::cuda {
namespace {

using plugin::Status;

// What NVRTC compiles to for a device.
struct Target {
  std::string architecture;  // "sm_90", or "compute_90" of PTX
  bool is_ptx = false;
};

Status read_architectures(std::vector<int>* architectures) {
  const Api& api = Api::get();
  int count = 0;
  nvrtcResult result = api.nvrtcGetNumSupportedArchs(&count);
  architectures->assign(static_cast<size_t>(std::max(count, 0)), 0);
  if (result == NVRTC_SUCCESS && count > 0) result = api.nvrtcGetSupportedArchs(architectures->data());
  if (result == NVRTC_SUCCESS) return {};
  return {HEDDLE_ERROR_INTERNAL, std::string("nvrtcGetSupportedArchs: ") + api.nvrtcGetErrorString(result)};
}

std::string capability_text(int architecture) {
  return std::to_string(architecture / 10) + "." + std::to_string(architecture % 10);
}

Status target_of(const Device& device, Target* target) {
  std::vector<int> known;
  HEDDLE_PLUGIN_CHECK(read_architectures(&known));
  const int own = 10 * device.major + device.minor;
  if (std::find(known.begin(), known.end(), own) != known.end()) return *target = {"sm_" + std::to_string(own), false}, Status();
  int below = 0, least = 0;
  for (const int architecture : known) {
    if (architecture < own) below = std::max(below, architecture);
    least = least == 0 ? architecture : std::min(least, architecture);
  }
  if (below > 0) return *target = {"compute_" + std::to_string(below), true}, Status();
  return plugin::unsupported("NVRTC compiles for compute capability " + capability_text(least) + " and above, and the device has " +
                             capability_text(own));
}

Status compile(const std::string& source, const Target& target, bool contract, std::string* code) {
  const Api& api = Api::get();
  nvrtcProgram program = nullptr;
  const auto failed = [&](const char* call, nvrtcResult result, const std::string& log) -> Status {
    if (program) api.nvrtcDestroyProgram(&program);
    return {HEDDLE_ERROR_INTERNAL,
            std::string(call) + ": " + api.nvrtcGetErrorString(result) + (log.empty() ? "" : ": " + log.substr(0, 1000))};
  };
  nvrtcResult result = api.nvrtcCreateProgram(&program, source.c_str(), "heddle.cu", 0, nullptr, nullptr);
  if (result != NVRTC_SUCCESS) return failed("nvrtcCreateProgram", result, {});
  const std::string arch = "--gpu-architecture=" + target.architecture;
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
  result = target.is_ptx ? api.nvrtcGetPTXSize(program, &size) : api.nvrtcGetCUBINSize(program, &size);
  if (result != NVRTC_SUCCESS) return failed(target.is_ptx ? "nvrtcGetPTXSize" : "nvrtcGetCUBINSize", result, {});
  code->resize(size);  // of PTX with its last zero, by which the driver knows its end
  result = target.is_ptx ? api.nvrtcGetPTX(program, code->data()) : api.nvrtcGetCUBIN(program, code->data());
  if (result != NVRTC_SUCCESS) return failed(target.is_ptx ? "nvrtcGetPTX" : "nvrtcGetCUBIN", result, {});
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
  // Nothing of what is described is launched, and there is no driver to load it.
  if (api.described) return program->reset(new Program(nullptr)), Status();
  Target target;
  HEDDLE_PLUGIN_CHECK(target_of(device, &target));
  int major = 0, minor = 0;
  if (const nvrtcResult asked = api.nvrtcVersion(&major, &minor); asked != NVRTC_SUCCESS)
    return {HEDDLE_ERROR_INTERNAL, std::string("nvrtcVersion: ") + api.nvrtcGetErrorString(asked)};
  const std::string whole = std::string(texts().at("element")) + source;
  const std::string key =
      target.architecture + "-" + std::to_string(major) + "." + std::to_string(minor) + (contract ? "-c-" : "-") + hash_text(whole);
  Loaded& all = loaded();
  // One at a time: nets have many nodes of one source, and each is compiled once.
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto known = all.programs.find({device.index, key});
  if (known != all.programs.end() && (*program = known->second.lock())) return {};
  HEDDLE_CUDA_CALL(cudaSetDevice, device.index);
  std::string code;
  cudaLibrary_t library = nullptr;
  // A cached one that the driver does not take is none.
  if (!read_cached(key, &code) || !load(code, &library).ok()) {
    HEDDLE_PLUGIN_CHECK(compile(whole, target, contract, &code));
    HEDDLE_PLUGIN_CHECK(load(code, &library));
    write_cached(key, code);
  }
  program->reset(new Program(library));
  // Programs whose users are gone are forgotten here, so that the table never has many more than were in use at once.
  std::erase_if(all.programs, [](const auto& entry) { return entry.second.expired(); });
  all.programs[{device.index, key}] = *program;
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
  return enqueue_on(device, stream, [&]() -> Status {
    HEDDLE_CUDA_CALL(cudaLaunchKernelExC, &config, reinterpret_cast<const void*>(kernel), arguments);
    return {};
  });
}

}  // namespace heddle::cuda
