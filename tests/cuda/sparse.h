// Tensors of more than 2^31 elements, almost none of which are ever accessed, and the last blocks of kernels on them.
#pragma once

#include <sys/mman.h>

#include <memory>
#include <string>
#include <vector>

#include "source/plan_run.h"

namespace heddle::cuda::grid_test {

// Returns a tensor of zeros where nothing was written. Null: there is not enough address space.
inline std::shared_ptr<Blob> sparse_tensor(DType dtype, const Shape& shape) {
  const auto bytes = static_cast<size_t>(shape.element_count() * byte_width(dtype));
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto blob = std::make_shared<Blob>();
  blob->dtype = dtype;
  blob->shape = shape;
  blob->data = static_cast<const std::byte*>(memory);
  blob->bytes = static_cast<int64_t>(bytes);
  blob->owner = std::shared_ptr<const void>(memory, [bytes](const void* p) { munmap(const_cast<void*>(p), bytes); });
  return blob;
}
template <class T>
T* elements_of(const Blob& blob) {
  return reinterpret_cast<T*>(const_cast<std::byte*>(blob.data));
}

inline constexpr int64_t beyond = (int64_t{1} << 31) + 4096;

// Runs the last blocks of the launches for the tensors.
inline void run_last(Launches& launches, const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs, uint64_t last = 2) {
  for (const Tensor& tensor : inputs)
    if (!tensor) GTEST_SKIP() << "there are not so many addresses";
  for (const Tensor& tensor : outputs)
    if (!tensor) GTEST_SKIP() << "there are not so many addresses";
  KernelSource source;
  const Operated operated(inputs, outputs);
  const plugin::Status chosen = launches.choose(operated.operands(), false, &source);
  ASSERT_TRUE(chosen.ok()) << chosen.text;
  ASSERT_NE(source.text.find("typedef u64 Index;"), std::string::npos);
  std::string error;
  const auto module = grid::Module::compile(std::string(texts().at("element")) + source.text, grid_cache, &error);
  ASSERT_NE(module, nullptr) << error.substr(0, 4000);
  const auto plan = std::make_unique<LaunchPlan>();
  ASSERT_TRUE(launches.plan(operated.operands(), plan.get()).ok());
  EXPECT_EQ(launch_plan(*module, source, *plan, operated.operands(), grid::Order::ascending, last), "");
}

}  // namespace heddle::cuda::grid_test
