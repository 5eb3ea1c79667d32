#include "library/nccl_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string_view>
#include <vector>

#include "shared/nvidia/nvidia_library.h"

namespace heddle::nccl {
namespace {

// The runtime that the process uses already, for its devices; else one that is here.
void* open_cudart(std::string* why) {
  const std::vector<std::string> names = {"libcudart.so.13", "libcudart.so.12"};
  const char* const standin = std::getenv("HEDDLE_CUDA_STANDIN");
  for (const std::string& name : names)
    if (void* const loaded = standin && *standin ? nullptr : dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) return loaded;
  return operators::open_nvidia_library(names, why);
}

}  // namespace

void Library::load() {
  if (const char* const setting = std::getenv("HEDDLE_NCCL"); setting && std::string_view(setting) == "off") {
    missing_ = "HEDDLE_NCCL is off";
    return;
  }
  std::string why;
  void* const nccl = operators::open_nvidia_library({"libnccl.so.2"}, &why);
  if (!nccl) missing_ = "NCCL can not be opened: " + why;
  void* const cudart = nccl ? open_cudart(&why) : nullptr;
  if (nccl && !cudart) missing_ = "the CUDA runtime can not be opened: " + why;
  if (!missing_.empty()) return;
  const auto find = [&](void* library, const char* name) {
    void* const address = dlsym(library, name);
    if (!address && missing_.empty()) missing_ = std::string("its library has no function ") + name;
    return address;
  };
#define HEDDLE_NCCL_FUNCTION(library, result, name, parameters) name = reinterpret_cast<decltype(name)>(find(library, #name));
#include "library/functions.inc"
#undef HEDDLE_NCCL_FUNCTION
  if (ncclGetVersion) ncclGetVersion(&version_);
  if (!missing_.empty() && version_ > 0) missing_ += ": it is NCCL " + version_text(version_);
}

const Library& Library::get() {
  static const Library& table = *[] {
    auto* made = new Library();  // never destroyed: NVIDIA's libraries do not survive being closed
    made->load();
    return made;
  }();
  return table;
}

// A setting that is none of these is refused where the communicator is made.
LoadedLibrary::LoadedLibrary(const plugin::ResourceRequest&) {
  (void)read_sums(&sums_of_library);
}

Status read_sums(bool* of_library) {
  const char* const setting = std::getenv("HEDDLE_NCCL_SUMS");
  const std::string_view value = setting ? setting : "";
  *of_library = value == "library";
  if (value.empty() || value == "fixed" || *of_library) return {};
  return plugin::invalid("HEDDLE_NCCL_SUMS is \"" + std::string(value) +
                         "\": give \"fixed\", for the order of sums that the host has, or " + "\"library\", for NCCL's");
}

Status LoadedLibrary::status() {
  const std::string& missing = Library::get().missing();
  return missing.empty() ? Status() : plugin::unsupported(missing);
}

std::string version_text(int32_t version) {
  return std::to_string(version / 10000) + '.' + std::to_string(version / 100 % 100) + '.' + std::to_string(version % 100);
}

Status failed(const char* call, Result result) {
  const Library& library = Library::get();
  std::string text = std::string(call) + ": " + library.ncclGetErrorString(result);
  if (const char* const last = library.ncclGetLastError(nullptr); last && *last)
    text += std::string(" (the last message of NCCL: ") + last + ')';
  return {HEDDLE_ERROR_DEVICE, std::move(text)};
}

// CUDA keeps the error for the next caller of cudaGetLastError, which may be the embedding program.
Status failed(const char* call, CudaError error) {
  const Library& library = Library::get();
  library.cudaGetLastError();
  return {HEDDLE_ERROR_DEVICE, std::string(call) + ": " + library.cudaGetErrorString(error) + " (" + library.cudaGetErrorName(error) + ')'};
}

Status CurrentDevice::enter(int32_t device) {
  int32_t before = -1;
  HEDDLE_NCCL_CUDA_CALL(cudaGetDevice, &before);
  if (before == device) return {};
  HEDDLE_NCCL_CUDA_CALL(cudaSetDevice, device);
  before_ = before;
  return {};
}

CurrentDevice::~CurrentDevice() {
  if (before_ >= 0) Library::get().cudaSetDevice(before_);
}

}  // namespace heddle::nccl
