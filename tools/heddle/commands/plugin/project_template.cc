#include "commands/plugin/project_template.h"

namespace heddle::tool {
namespace {

constexpr const char* build_file = R"(cmake_minimum_required(VERSION 3.25)
project(@NAME@ LANGUAGES CXX)
find_package(heddle REQUIRED)
heddle_add_plugin(@NAME@ @NAME@.cc)
)";

constexpr const char* cuda_build_file = R"(cmake_minimum_required(VERSION 3.25)
project(@NAME@ LANGUAGES CXX)
find_package(heddle REQUIRED)
set(sources @NAME@.cc)
# The kernel for GPUs, where there is NVIDIA's compiler.
include(CheckLanguage)
check_language(CUDA)
if(CMAKE_CUDA_COMPILER)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES all-major)  # "native": this machine's GPU alone, which builds faster
  endif()
  set(CMAKE_CUDA_STANDARD 17)
  enable_language(CUDA)
  list(APPEND sources @NAME@_cuda.cu)
  add_compile_definitions(WITH_CUDA)
else()
  message(STATUS "@NAME@: there is no CUDA compiler here, it is built without its kernel for GPUs")
endif()
heddle_add_plugin(@NAME@ ${sources})
)";

constexpr const char* source_file = R"(// The operators of plugin @NAME@.
#include <heddle/op.h>
@CUDA_INCLUDE@using namespace heddle::plugin;

struct Factor {
  explicit Factor(const Attributes& attributes) : value(static_cast<float>(attributes.f("factor"))) {}
  float value;
};

// y[i] = factor * x[i]
static Status scale(In<float> x, const Factor& factor, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = factor.value * x[i];
  return {};
}

HEDDLE_PLUGIN("@NAME@", "0.1.0", plugin) {
  plugin.add(Op("Scale", "@NAME@")
                 .doc("Multiplies each element with factor.")
                 .formula("y = factor x")
                 .in("x", dtypes<float>())
                 .out("y", same_as("x"))
                 .attribute("factor", 1.0)
                 .in_place("y", "x")
                 .gradient("Scale", {"dy"}, {"dx"})
@CUDA_KERNEL@                 .cpu<scale>()
                 .elementwise());
}
)";

constexpr const char* cuda_include = R"(#ifdef WITH_CUDA
#include "@NAME@_cuda.h"
#endif
)";

constexpr const char* cuda_kernel = R"(#ifdef WITH_CUDA
                 .kernel<ScaleOnGpu>("cuda")
#endif
)";

constexpr const char* cuda_header = R"(// Scale's kernel for NVIDIA's GPUs.
#pragma once

#include <heddle/op.h>

class ScaleOnGpu {
 public:
  // Once per node and plan, also where plans are made without a GPU: it calls nothing of CUDA's.
  heddle::plugin::Status create(const heddle::plugin::CreateContext& context);
  // Launches on context.stream and returns: it waits for nothing, allocates nothing and uses no other stream. Memory to work in is asked
  // for in prepare(PrepareContext&), by set_scratch, and lies on the device: context.scratch.
  heddle::plugin::Status run(const heddle::plugin::RunContext& context, int64_t begin, int64_t end) const;

 private:
  int device_ = 0;
  float factor_ = 1;
};
)";

constexpr const char* cuda_source_file = R"(// Scale on a GPU, compiled by NVIDIA's nvcc.
#include "@NAME@_cuda.h"

#include <algorithm>
using namespace heddle::plugin;

// x and y may be the same memory: in_place("y", "x").
static __global__ void scale_elements(const float* x, float factor, int64_t size, float* y) {
  const int64_t threads = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size; i += threads) y[i] = factor * x[i];
}

Status ScaleOnGpu::create(const CreateContext& context) {
  device_ = context.device_index();
  factor_ = static_cast<float>(context.attributes.f("factor"));
  return {};
}

Status ScaleOnGpu::run(const RunContext& context, int64_t, int64_t) const {
  const In<float> x = input<float>(context, 0);
  const Out<float> y = output<float>(context, 0);
  if (x.size == 0) return {};
  cudaError_t error = cudaSetDevice(device_);  // of this thread, which may have worked for another GPU
  if (error == cudaSuccess) {
    constexpr int threads = 256;
    const int64_t blocks = std::min<int64_t>((x.size + threads - 1) / threads, 4096);
    const auto stream = static_cast<cudaStream_t>(context.stream);
    scale_elements<<<static_cast<unsigned int>(blocks), threads, 0, stream>>>(x.data, factor_, x.size, y.data);
    error = cudaGetLastError();
  }
  if (error != cudaSuccess) return {HEDDLE_ERROR_DEVICE, cudaGetErrorString(error)};
  return {};
}
)";

constexpr const char* readme_file = R"(# @NAME@

    cmake -B build -S . && cmake --build build
    heddle plugin check build/@NAME@.so
    heddle plugin run @NAME@::Scale --plugin build/@NAME@.so --shape 2x3
)";

constexpr const char* cuda_readme = R"(
The kernel for GPUs, `@NAME@_cuda.cu`, is built where cmake finds nvcc. With a GPU, compare it with that for the host:

    heddle inspect build/@NAME@.so
    heddle plugin check build/@NAME@.so --device cuda:0

An operator that is a pointwise text, such as `.pointwise("factor * x")`, needs no kernel at all: Heddle writes one for each device.
)";

std::string replaced(std::string text, const std::string& mark, const std::string& by) {
  for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + by.size())) text.replace(at, mark.size(), by);
  return text;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> project_template(const std::string& plugin, bool cuda) {
  const std::string source = replaced(source_file, "@CUDA_INCLUDE@", cuda ? cuda_include : "");
  std::vector<std::pair<std::string, std::string>> files = {
      {"CMakeLists.txt", cuda ? cuda_build_file : build_file},
      {plugin + ".cc", replaced(source, "@CUDA_KERNEL@", cuda ? cuda_kernel : "")},
      {"README.md", std::string(readme_file) + (cuda ? cuda_readme : "")},
  };
  if (cuda) {
    files.emplace_back(plugin + "_cuda.h", cuda_header);
    files.emplace_back(plugin + "_cuda.cu", cuda_source_file);
  }
  for (auto& [name, text] : files) text = replaced(std::move(text), "@NAME@", plugin);
  return files;
}

}  // namespace heddle::tool
