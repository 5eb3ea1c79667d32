#include "library/program.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <vector>

#include "device/current_device.h"
#include "device/errors.h"
#include "generate/texts.h"
#include "library/program_cache.h"

namespace heddle::cuda {
namespace {

using plugin::Status;

// The architecture that NVRTC compiles to for a device.
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
      log.pop_back();  // the terminating zero, which is counted
    }
    return failed("nvrtcCompileProgram", result, log);
  }
  size_t size = 0;
  result = target.is_ptx ? api.nvrtcGetPTXSize(program, &size) : api.nvrtcGetCUBINSize(program, &size);
  if (result != NVRTC_SUCCESS) return failed(target.is_ptx ? "nvrtcGetPTXSize" : "nvrtcGetCUBINSize", result, {});
  code->resize(size);  // with its terminating zero, by which the driver finds the end of PTX
  result = target.is_ptx ? api.nvrtcGetPTX(program, code->data()) : api.nvrtcGetCUBIN(program, code->data());
  if (result != NVRTC_SUCCESS) return failed(target.is_ptx ? "nvrtcGetPTX" : "nvrtcGetCUBIN", result, {});
  api.nvrtcDestroyProgram(&program);
  return {};
}

// Returns a text such as "; PTX of NVRTC 13.0, which a driver for CUDA 12.4 may be too old for": a driver that refuses PTX does not say
// why.
std::string versions_of_ptx() {
  const Api& api = Api::get();
  int major = 0, minor = 0, driver = 0;
  if (api.nvrtcVersion(&major, &minor) != NVRTC_SUCCESS || api.cudaDriverGetVersion(&driver) != cudaSuccess) return {};
  return "; it is PTX of NVRTC " + std::to_string(major) + "." + std::to_string(minor) + ", and the driver is one for CUDA " +
         std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10) +
         ": a driver reads no PTX of an NVRTC that is newer than itself; install a newer driver";
}

Status load(const std::string& code, cudaLibrary_t* library) {
  HEDDLE_CUDA_CALL(cudaLibraryLoadData, library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  return {};
}

// Makes the program that `key` names: reads it from the folder of compiled programs, or compiles it by NVRTC and writes it there.
struct Compilation {
  const Device& device;
  const Target& target;
  const std::string& key;
  const std::string& source;
  bool contract;

  Status load_or_compile(cudaLibrary_t* library) const {
    const CurrentDevice current(device.index);
    HEDDLE_PLUGIN_CHECK(current.status());
    std::string code;
    // A cached program that the driver refuses is compiled again.
    if (read_cached(key, &code) && load(code, library).ok()) return {};
    HEDDLE_PLUGIN_CHECK(compile(source, target, contract, &code));
    Status status = load(code, library);
    if (!status.ok() && target.is_ptx) status.text += versions_of_ptx();
    HEDDLE_PLUGIN_CHECK(status);
    write_cached(key, code);
    return {};
  }
};

}  // namespace

// The programs of the process by key, each made by the first thread that requests it; other threads that request it wait for that thread,
// while different programs are made concurrently.
class Programs {
 public:
  static Programs& all() {
    static Programs& programs = *new Programs();
    return programs;
  }

  Status find_or_make(const Compilation& compilation, std::shared_ptr<const Program>* program) {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      Entry& entry = entries_[compilation.key];
      if ((*program = entry.program.lock())) break;
      if (!entry.is_made_now) return make(compilation, lock, program);
      made_.wait(lock);
    }
    use(**program, compilation.device);
    return {};
  }

 private:
  struct Entry {
    std::weak_ptr<const Program> program;
    bool is_made_now = false;
  };

  // Ends the making of a program on every path, so that waiting threads continue: with the program, or by making it themselves.
  class Making {
   public:
    Making(Programs& programs, const std::string& key, std::unique_lock<std::mutex>& lock) : programs_(programs), key_(key), lock_(lock) {
      programs_.entries_[key_].is_made_now = true;
      lock_.unlock();
    }
    ~Making() {
      if (!lock_.owns_lock()) lock_.lock();
      programs_.entries_[key_].is_made_now = false;
      programs_.made_.notify_all();
    }
    Making(const Making&) = delete;
    Making& operator=(const Making&) = delete;

   private:
    Programs& programs_;
    const std::string& key_;
    std::unique_lock<std::mutex>& lock_;
  };

  Status make(const Compilation& compilation, std::unique_lock<std::mutex>& lock, std::shared_ptr<const Program>* program) {
    const Making making(*this, compilation.key, lock);
    cudaLibrary_t library = nullptr;
    HEDDLE_PLUGIN_CHECK(compilation.load_or_compile(&library));
    program->reset(new Program(library));
    lock.lock();
    use(**program, compilation.device);
    // Programs that are no longer used are removed here, so that the table never has many more entries than were in use at once.
    std::erase_if(entries_, [](const auto& entry) { return entry.second.program.expired() && !entry.second.is_made_now; });
    entries_[compilation.key].program = *program;
    return {};
  }

  // REQUIRES: mutex_ is held.
  static void use(const Program& program, const Device& device) {
    auto& losses = program.losses_;
    if (std::find(losses.begin(), losses.end(), device.shared_loss) == losses.end()) losses.push_back(device.shared_loss);
  }

  std::mutex mutex_;  // guards the members below; not held while a program is made
  std::condition_variable made_;
  std::map<std::string, Entry> entries_;
};

Status Program::make(const Device& device, const std::string& source, bool contract, std::shared_ptr<const Program>* program) {
  const Api& api = Api::get();
  // A described device launches nothing, and has no driver to load the program.
  if (api.described) return program->reset(new Program(nullptr)), Status();
  Target target;
  HEDDLE_PLUGIN_CHECK(target_of(device, &target));
  int major = 0, minor = 0;
  if (const nvrtcResult asked = api.nvrtcVersion(&major, &minor); asked != NVRTC_SUCCESS)
    return {HEDDLE_ERROR_INTERNAL, std::string("nvrtcVersion: ") + api.nvrtcGetErrorString(asked)};
  const std::string whole = std::string(texts().at("element")) + source;
  const std::string key =
      target.architecture + "-" + std::to_string(major) + "." + std::to_string(minor) + (contract ? "-c-" : "-") + hash_text(whole);
  return Programs::all().find_or_make({device, target, key, whole, contract}, program);
}

Program::~Program() {
  const bool is_lost = std::any_of(losses_.begin(), losses_.end(), [](const auto& loss) { return static_cast<bool>(*loss); });
  if (library_ && !is_lost) Api::get().cudaLibraryUnload(library_);
}

Status Program::kernel(const char* name, cudaKernel_t* kernel) const {
  *kernel = nullptr;
  if (library_) HEDDLE_CUDA_CALL(cudaLibraryGetKernel, kernel, library_, name);
  return {};
}

Status launch(Device& device, cudaKernel_t kernel, LaunchShape shape, const void* parameters, cudaStream_t stream) {
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
