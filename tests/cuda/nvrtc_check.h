// Compiles kernels' texts with NVIDIA's own compiler, where it is installed: for sm_90, or the architecture that HEDDLE_TEST_ARCHITECTURE
// names (tools/soak.sh --architectures), with nothing but the library (no driver, no device).
//
//   std::string why;
//   const Nvrtc* const compiler = Nvrtc::open(&why);
//   if (!compiler) GTEST_SKIP() << why;
//   EXPECT_EQ(compiler->compile(text), "");
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "ptx_check.h"

namespace heddle::cuda {

class Nvrtc {
 public:
  // Returns null if it is not installed; `why` receives what was tried. Kept while the process lives.
  static const Nvrtc* open(std::string* why) {
    static Nvrtc library;
    static const std::string problem = library.load_any();
    *why = problem;
    return problem.empty() ? &library : nullptr;
  }

  // Returns an empty string, or the compiler's log, including warnings, or the findings of ptx_check.h. `contract`: products and sums round
  // once.
  // NOLINTBEGIN(clang-analyzer-core.CallAndMessage): open() has found every function
  std::string compile(const std::string& text, bool contract = false) const {
    Program program = nullptr;
    if (const int failed = create_(&program, text.c_str(), "text.cu", 0, nullptr, nullptr); failed != 0) return error_(failed);
    // Texts hold functions that not every kernel calls, and templates for signed and unsigned numbers alike.
    const char* const asked = std::getenv("HEDDLE_TEST_ARCHITECTURE");
    const std::string architecture = std::string("--gpu-architecture=") + (asked ? asked : "sm_90");
    const char* const options[] = {architecture.c_str(), contract ? "--fmad=true" : "--fmad=false", "--std=c++17",
                                   "--diag-suppress=177,186"};
    const int failed = compile_(program, 4, options);
    std::string log = text_of(program, log_size_, log_);
    while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
    if (failed != 0) log = std::string(error_(failed)) + "\n" + log;
    if (failed == 0) log += narrowed_choices(text_of(program, ptx_size_, ptx_));
    destroy_(&program);
    return log;
  }
  // NOLINTEND(clang-analyzer-core.CallAndMessage)

 private:
  using Program = void*;
  std::string load_any() {
    std::string problem;
    for (const char* const name : {"libnvrtc.so.13", "/usr/local/cuda/lib64/libnvrtc.so.13", "libnvrtc.so.12"}) {
      void* const handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
      if (handle && load(handle)) return {};
      problem += std::string(problem.empty() ? "NVRTC is not installed: " : "; ") + (handle ? "a function is missing" : dlerror());
    }
    return problem;
  }

  template <class Function>
  static bool find(void* handle, const char* name, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(handle, name));
    return *function != nullptr;
  }
  bool load(void* handle) {
    return find(handle, "nvrtcCreateProgram", &create_) && find(handle, "nvrtcCompileProgram", &compile_) &&
           find(handle, "nvrtcDestroyProgram", &destroy_) && find(handle, "nvrtcGetProgramLogSize", &log_size_) &&
           find(handle, "nvrtcGetProgramLog", &log_) && find(handle, "nvrtcGetPTXSize", &ptx_size_) && find(handle, "nvrtcGetPTX", &ptx_) &&
           find(handle, "nvrtcGetErrorString", &error_);
  }
  static std::string text_of(Program program, int (*size_of)(Program, size_t*), int (*get)(Program, char*)) {
    size_t size = 0;
    std::string text;
    // NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage)
    if (size_of(program, &size) != 0 || size == 0) return text;
    text.resize(size);
    get(program, text.data());
    return text;
  }

  int (*create_)(Program*, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  int (*compile_)(Program, int, const char* const*) = nullptr;
  int (*destroy_)(Program*) = nullptr;
  int (*log_size_)(Program, size_t*) = nullptr;
  int (*log_)(Program, char*) = nullptr;
  int (*ptx_size_)(Program, size_t*) = nullptr;
  int (*ptx_)(Program, char*) = nullptr;
  const char* (*error_)(int) = nullptr;
};

}  // namespace heddle::cuda
