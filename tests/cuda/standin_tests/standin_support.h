// Loads the stand-in for NVIDIA's libraries: their functions by name, and its own (standin/native.h).
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "cuda/standin/native.h"
#include "library/api.h"

namespace heddle::cuda::testing_standin {

inline const std::string standin_file = HEDDLE_BINARY_DIR "/lib/test/cuda_standin.so";

struct Standin {
#define HEDDLE_CUDA_FUNCTION(library, name) decltype(&::name) name = nullptr;
#include "library/functions.inc"
#undef HEDDLE_CUDA_FUNCTION
#define HEDDLE_STANDIN_FUNCTIONS(function)                                                                                                \
  function(rules) function(broken) function(look_for_leaks) function(calls) function(log) function(logged) function(ranges) function(run) \
      function(fail) function(fail_call) function(reset) function(meet) function(met) function(hold_transfers) function(host_functions)
#define HEDDLE_STANDIN_POINTER(name) decltype(&::heddle_standin_##name) name = nullptr;
  HEDDLE_STANDIN_FUNCTIONS(HEDDLE_STANDIN_POINTER)
#undef HEDDLE_STANDIN_POINTER

  // Functions that the plugin does not use, but embedding programs do.
#define HEDDLE_EMBEDDERS_FUNCTIONS(function) \
  function(cudaMalloc) function(cudaFree) function(cudaStreamCreateWithFlags) function(cudaMallocAsync) function(cudaDeviceGetMemPool)
#define HEDDLE_EMBEDDERS_POINTER(name) decltype(&::name) name = nullptr;
  HEDDLE_EMBEDDERS_FUNCTIONS(HEDDLE_EMBEDDERS_POINTER)
#undef HEDDLE_EMBEDDERS_POINTER

  // Returns the stand-in; the plugin, which gets the same file, uses the same one.
  static const Standin& get() {
    static const Standin& loaded = *new Standin();
    return loaded;
  }

 private:
  Standin() {
    ::setenv("HEDDLE_CUDA_STANDIN", standin_file.c_str(), 1);
    ::setenv("HEDDLE_CUDA_CACHE", "off", 1);
    ::setenv("NVTX_INJECTION64_PATH", standin_file.c_str(), 1);
    void* const library = dlopen(standin_file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) ADD_FAILURE() << dlerror();
    if (!library) return;
#define HEDDLE_SYMBOL_OF_(name) #name
#define HEDDLE_SYMBOL_OF(name) HEDDLE_SYMBOL_OF_(name)
#define HEDDLE_CUDA_FUNCTION(where, name) name = reinterpret_cast<decltype(name)>(dlsym(library, HEDDLE_SYMBOL_OF(name)));
#include "library/functions.inc"
#undef HEDDLE_CUDA_FUNCTION
#define HEDDLE_EMBEDDERS_LOADED(name) name = reinterpret_cast<decltype(name)>(dlsym(library, #name));
    HEDDLE_EMBEDDERS_FUNCTIONS(HEDDLE_EMBEDDERS_LOADED)
#undef HEDDLE_EMBEDDERS_LOADED
#define HEDDLE_STANDIN_LOADED(name) name = reinterpret_cast<decltype(name)>(dlsym(library, "heddle_standin_" #name));
    HEDDLE_STANDIN_FUNCTIONS(HEDDLE_STANDIN_LOADED)
#undef HEDDLE_STANDIN_LOADED
  }
};

// Sets a setting of the stand-in, such as "DEVICES", while this lives.
class StandinSetting {
 public:
  StandinSetting(const std::string& name, const std::string& value) : name_("HEDDLE_CUDA_STANDIN_" + name) {
    ::setenv(name_.c_str(), value.c_str(), 1);
  }
  ~StandinSetting() { ::unsetenv(name_.c_str()); }
  StandinSetting(const StandinSetting&) = delete;
  StandinSetting& operator=(const StandinSetting&) = delete;

 private:
  const std::string name_;
};

// Resets the stand-in to its state after loading for each test.
class StandinTest : public ::testing::Test {
 protected:
  StandinTest() : cuda(Standin::get()) {
    cuda.reset();
    cudaDeviceProp properties = {};
    EXPECT_EQ(cuda.cudaGetDeviceProperties(&properties, 0), cudaSuccess);  // it reads its settings
    EXPECT_EQ(cuda.cudaSetDevice(0), cudaSuccess);
    cuda.cudaGetLastError();
  }
  ~StandinTest() override { cuda.reset(); }
  // Returns the rules that were broken since, one per line.
  std::string broken() const { return cuda.broken(); }

  const Standin& cuda;
};

}  // namespace heddle::cuda::testing_standin
