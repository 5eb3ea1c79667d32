#include "library/api.h"

#include <dlfcn.h>

#include <mutex>
#include <string_view>
#include <vector>

#include "shared/nvidia/nvidia_library.h"

namespace heddle::cuda {

// Symbols are looked up by the names that the headers give functions: some are macros for others.
#define HEDDLE_SYMBOL_(name) #name
#define HEDDLE_SYMBOL(name) HEDDLE_SYMBOL_(name)

void Api::load() {
  const auto open = [&](const char* name, const std::vector<std::string>& files, std::string* missing) {
    std::string why;
    void* const library = operators::open_nvidia_library(files, &why);
    if (!library) *missing = std::string(name) + " can not be opened: " + why;
    return library;
  };
  const auto version = [](const char* name, int number) { return std::string(name) + ".so." + std::to_string(number); };
  const int toolkit = CUDART_VERSION / 1000;
  void* const cudart = open("the CUDA runtime", {version("libcudart", toolkit)}, &missing_[0]);
  void* const nvrtc = open("NVRTC", {version("libnvrtc", toolkit)}, &missing_[1]);
  void* const cublasLt = open("cuBLASLt", {version("libcublasLt", toolkit)}, &missing_[2]);
  void* const cudnn = open("cuDNN", {version("libcudnn", CUDNN_MAJOR)}, &missing_[3]);
  const auto find = [&](void* library, std::string* missing, const char* symbol) -> void* {
    void* const address = library ? dlsym(library, symbol) : nullptr;
    if (library && !address && missing->empty()) *missing = std::string("its library has no function ") + symbol;
    return address;
  };
  std::string* const missing_cudart = &missing_[0];
  std::string* const missing_nvrtc = &missing_[1];
  std::string* const missing_cublasLt = &missing_[2];
  std::string* const missing_cudnn = &missing_[3];
#define HEDDLE_CUDA_FUNCTION(library, function) \
  function = reinterpret_cast<decltype(function)>(find(library, missing_##library, HEDDLE_SYMBOL(function)));
#include "library/functions.inc"
#undef HEDDLE_CUDA_FUNCTION
}

namespace {

std::mutex choice_mutex;              // guards the variables below
bool chosen = false;                  // the table is made, or about to be made
std::string* described_by = nullptr;  // the text of the description
DeviceDescription description;

}  // namespace

const Api& Api::get() {
  static const Api& api = *[] {
    auto* made = new Api();
    const std::lock_guard<std::mutex> lock(choice_mutex);
    chosen = true;
    if (described_by)
      fill(made, description);
    else
      made->load();
    return made;
  }();
  return api;
}

plugin::Status Api::describe(std::string_view text) {
  const std::lock_guard<std::mutex> lock(choice_mutex);
  if (described_by && *described_by == text) return {};
  if (chosen)
    return plugin::invalid(described_by ? "the process works with another description already"
                                        : "the process has asked for the devices that are here already");
  HEDDLE_PLUGIN_CHECK(read_description(text, &description));
  delete described_by;
  described_by = new std::string(text);
  return {};
}

}  // namespace heddle::cuda
