// compiling_device.so stands in for NVIDIA's libraries (HEDDLE_CUDA_STANDIN) where there is no GPU, to compile kernels for one that is not
// here: the H200 of plugins/cuda/devices/h200.json. NVRTC is NVIDIA's own, as HEDDLE_CUDA_LIBRARIES or the loader finds it; everything else
// succeeds without doing anything. What is prepared or run on this device fills HEDDLE_CUDA_CACHE with the programs that the real one would
// look up, and its numbers mean nothing: what is copied from it is zeros. HEDDLE_COMPILING_LOG names a file that gets a line for each
// program that was compiled, with its milliseconds. tools/gpu/warm_kernels.sh uses it:
//
//   export HEDDLE_CUDA_STANDIN=build/dev/lib/test/compiling_device.so HEDDLE_CUDA_CACHE=kernels
//   heddle plan net.heddle --device cuda:0 --copies auto
#include <dlfcn.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "library/api.h"

namespace heddle::cuda {
namespace {

void* open_nvrtc() {
  const std::string name = fmt::format("libnvrtc.so.{}", CUDART_VERSION / 1000);
  const char* const given = std::getenv("HEDDLE_CUDA_LIBRARIES");
  std::string folders = given ? given : "";
  for (folders += "::/usr/local/cuda/lib64:"; !folders.empty(); folders.erase(0, folders.find(':') + 1)) {
    const std::string folder = folders.substr(0, folders.find(':'));
    if (void* const library = dlopen((folder.empty() ? name : folder + "/" + name).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  std::fprintf(stderr, "compiling_device: NVRTC can not be opened: %s\n", dlerror());
  std::exit(1);
}

// Addresses of the described device's memory are far above those of the process.
bool is_on_device(const void* address) {
  return (reinterpret_cast<uintptr_t>(address) >> 56) != 0;
}

decltype(&::nvrtcCompileProgram) nvidias_compile = nullptr;

nvrtcResult compile(nvrtcProgram program, int count, const char* const* options) {
  const auto begin = std::chrono::steady_clock::now();
  const nvrtcResult result = nvidias_compile(program, count, options);
  const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - begin;
  if (const char* const log = std::getenv("HEDDLE_COMPILING_LOG")) {
    // One write for each line: several processes share the file.
    if (std::FILE* const file = std::fopen(log, "a")) {
      std::fprintf(file, "%.1f\n", spent.count());
      std::fclose(file);
    }
  }
  return result;
}

Api* make_table() {
  static DeviceDescription description;
  if (const plugin::Status status = read_description({}, &description); !status.ok()) {
    std::fprintf(stderr, "compiling_device: %s\n", status.text.c_str());
    std::exit(1);
  }
  auto* const table = new Api();
  fill(table, description);
  table->cudaRuntimeGetVersion = table->cudaDriverGetVersion = [](int* version) { return *version = CUDART_VERSION, cudaSuccess; };
  // The host reads extents and positions from it.
  table->cudaMemcpyAsync = [](void* to, const void*, size_t bytes, cudaMemcpyKind, cudaStream_t) {
    if (!is_on_device(to)) std::memset(to, 0, bytes);
    return cudaSuccess;
  };
  void* const nvrtc = open_nvrtc();
#define HEDDLE_CUDA_FUNCTION(library, name) \
  if (std::string_view(#library) == "nvrtc") table->name = reinterpret_cast<decltype(table->name)>(dlsym(nvrtc, #name));
#include "library/functions.inc"
#undef HEDDLE_CUDA_FUNCTION
  nvidias_compile = std::exchange(table->nvrtcCompileProgram, compile);
  return table;
}

Api& table() {
  static Api& made = *make_table();
  return made;
}

// The function of the table that a pointer to its member names, for callers of the library.
template <auto member>
struct Exported;
template <class Result, class... Arguments, Result (*Api::*member)(Arguments...)>
struct Exported<member> {
  static Result call(Arguments... arguments) { return (table().*member)(arguments...); }
};

}  // namespace
}  // namespace heddle::cuda

// Each function under its own symbol, which a macro of the header may have renamed. The loader asks the resolver where it is, which spares
// writing its parameters here.
using Function = void();
#define HEDDLE_SYMBOL_(name) #name
#define HEDDLE_SYMBOL(name) HEDDLE_SYMBOL_(name)
#define HEDDLE_CUDA_FUNCTION(library, name)                                                      \
  extern "C" __attribute__((used)) Function* heddle_resolve_##name() {                           \
    return reinterpret_cast<Function*>(&heddle::cuda::Exported<&heddle::cuda::Api::name>::call); \
  }                                                                                              \
  extern "C"                                                                                     \
      __attribute__((ifunc("heddle_resolve_" #name), visibility("default"))) void heddle_export_##name() __asm__(HEDDLE_SYMBOL(name));
#include "library/functions.inc"
#undef HEDDLE_CUDA_FUNCTION
