// What the stand-in for NVIDIA's libraries has against those who call it. Needs none of NVIDIA's headers.
#pragma once

#include <dlfcn.h>

#include <string>

#include "cuda/standin/native.h"

namespace heddle::testing_standin {

// One a line, since it was last asked; none where it is not loaded.
inline std::string complaints() {
  void* const library = dlopen(HEDDLE_BINARY_DIR "/lib/test/cuda_standin.so", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (!library) return {};
  const auto broken = reinterpret_cast<decltype(&heddle_standin_broken)>(dlsym(library, "heddle_standin_broken"));
  std::string text = broken();
  dlclose(library);
  return text;
}

}  // namespace heddle::testing_standin
