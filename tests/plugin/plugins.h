// The paths of the tests' plugins, and which of them are mapped into the process.
#pragma once

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "net/net.h"

namespace heddle {

inline const std::string example_plugin = HEDDLE_BINARY_DIR "/lib/example.so";

inline std::string test_plugin(const std::string& name) {
  return HEDDLE_BINARY_DIR "/lib/test/" + name + ".so";
}

// Returns whether a file whose name contains `name` + ".so" is mapped into this process.
inline bool is_mapped(const std::string& name) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("/" + name + ".so") != std::string::npos) return true;
  return false;
}

inline std::shared_ptr<const Blob> floats(const Shape& shape, const std::vector<float>& values) {
  return Blob::copy_of(DType::f32, shape, values.data());
}

inline std::vector<float> to_floats(const Blob& blob) {
  const auto* data = reinterpret_cast<const float*>(blob.data);
  return {data, data + blob.shape.element_count()};
}

}  // namespace heddle
