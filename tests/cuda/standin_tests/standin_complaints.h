// The rules that callers of the stand-in for NVIDIA's libraries have broken. Needs none of NVIDIA's headers.
#pragma once

#include <dlfcn.h>

#include <string>

#include "cuda/standin/native.h"

namespace heddle::testing_standin {

// Returns the complaints since the last call, one per line; none if the stand-in is not loaded.
inline std::string complaints() {
  void* const library = dlopen(HEDDLE_BINARY_DIR "/lib/test/cuda_standin.so", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (!library) return {};
  const auto broken = reinterpret_cast<decltype(&heddle_standin_broken)>(dlsym(library, "heddle_standin_broken"));
  std::string text = broken();
  dlclose(library);
  return text;
}

}  // namespace heddle::testing_standin
