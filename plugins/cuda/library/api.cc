#include "library/api.h"

#include <dlfcn.h>

#include <cstdlib>
#include <mutex>
#include <string_view>
#include <vector>

namespace heddle::cuda {
namespace {

// Symbols are looked up by the names that the headers give functions: some are macros for others.
#define HEDDLE_SYMBOL_(name) #name
#define HEDDLE_SYMBOL(name) HEDDLE_SYMBOL_(name)

std::vector<std::string> folders_of(const char* list) {
  std::vector<std::string> folders;
  std::string_view rest = list ? list : "";
  while (!rest.empty()) {
    const size_t colon = rest.find(':');
    if (colon != 0) folders.push_back(std::string(rest.substr(0, colon)) + "/");
    rest = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
  }
  return folders;
}

// Looks only in the folders of HEDDLE_CUDA_LIBRARIES; without it, where the loader looks and where the toolkit's installer puts the
// library.
void* open_library(const std::vector<std::string>& names, std::string* why) {
  std::string told;
  const auto attempt = [&](const std::string& file) {
    void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library && told.empty()) told = dlerror();
    return library;
  };
  std::vector<std::string> folders = folders_of(std::getenv("HEDDLE_CUDA_LIBRARIES"));
  if (folders.empty()) folders = {"", "/usr/local/cuda/lib64/"};
  for (const std::string& folder : folders)
    for (const std::string& name : names)
      if (void* const library = attempt(folder + name)) return library;
  *why = told;
  return nullptr;
}

}  // namespace

void Api::load() {
  const char* const standin = std::getenv("HEDDLE_CUDA_STANDIN");
  const auto open = [&](const char* name, const std::vector<std::string>& files, std::string* missing) {
    std::string why;
    void* const library = standin && *standin ? dlopen(standin, RTLD_NOW | RTLD_LOCAL) : open_library(files, &why);
    if (!library && why.empty()) why = dlerror();
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
