#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "cublaslt_objects.h"

namespace heddle::cuda::standin {

uint64_t bytes_of(cudaDataType type) {
  switch (type) {
    case CUDA_R_16F:
    case CUDA_R_16BF:
      return 2;
    case CUDA_R_32F:
      return 4;
    case CUDA_R_64F:
      return 8;
    default:
      return 0;
  }
}

namespace {

template <class T>
T load(const void* data, cudaDataType type, int64_t i) {
  switch (type) {
    case CUDA_R_16F:
      return static_cast<T>(__half2float(static_cast<const __half*>(data)[i]));
    case CUDA_R_16BF:
      return static_cast<T>(__bfloat162float(static_cast<const __nv_bfloat16*>(data)[i]));
    case CUDA_R_32F:
      return static_cast<T>(static_cast<const float*>(data)[i]);
    default:
      return static_cast<T>(static_cast<const double*>(data)[i]);
  }
}

template <class T>
void store(void* data, cudaDataType type, int64_t i, T value) {
  switch (type) {
    case CUDA_R_16F:
      static_cast<__half*>(data)[i] = __float2half(static_cast<float>(value));
      return;
    case CUDA_R_16BF:
      static_cast<__nv_bfloat16*>(data)[i] = __float2bfloat16(static_cast<float>(value));
      return;
    case CUDA_R_32F:
      static_cast<float*>(data)[i] = static_cast<float>(value);
      return;
    default:
      static_cast<double*>(data)[i] = static_cast<double>(value);
  }
}

template <class T>
T behind(const LtDescription& description, T value, int64_t row, cudaDataType type) {
  if (description.has_bias()) value += load<T>(description.bias, type, row);
  if (description.epilogue & CUBLASLT_EPILOGUE_RELU) value = value < 0 ? T(0) : value;
  if ((description.epilogue & CUBLASLT_EPILOGUE_GELU) == CUBLASLT_EPILOGUE_GELU)
    value = T(0.5) * value * (T(1) + std::tanh(T(0.7978845608028654) * (value + T(0.044715) * value * value * value)));
  return value;
}

template <class T>
[[gnu::optimize("O3")]] void multiply_one(const LtProduct& p, int64_t image) {
  const auto m = static_cast<int64_t>(p.d.rows), n = static_cast<int64_t>(p.d.columns);
  const bool a_over = p.description.transpose_a != CUBLAS_OP_N, b_over = p.description.transpose_b != CUBLAS_OP_N;
  const auto k = static_cast<int64_t>(a_over ? p.a.rows : p.a.columns);
  // Products are added in stretches, as tiles of a GPU are: one sum of millions would lose the last terms.
  constexpr int64_t stretch = 512;
  std::vector<T> a(static_cast<size_t>(m * k)), sums(static_cast<size_t>(m)), part(static_cast<size_t>(m));
  for (int64_t l = 0; l < k; ++l)
    for (int64_t i = 0; i < m; ++i)
      a[static_cast<size_t>(l * m + i)] =
          load<T>(p.at_a, p.a.type, image * p.a.step + (a_over ? i * p.a.leading + l : l * p.a.leading + i));
  for (int64_t j = 0; j < n; ++j) {
    sums.assign(static_cast<size_t>(m), T(0));
    part.assign(static_cast<size_t>(m), T(0));
    for (int64_t l = 0; l < k; ++l) {
      const T b = load<T>(p.at_b, p.b.type, image * p.b.step + (b_over ? l * p.b.leading + j : j * p.b.leading + l));
      const T* const column = a.data() + l * m;
      T* const to = part.data();
      for (int64_t i = 0; i < m; ++i) to[i] += column[i] * b;
      if (l + 1 < k && (l + 1) % stretch != 0) continue;
      for (int64_t i = 0; i < m; ++i) sums[static_cast<size_t>(i)] += std::exchange(to[i], T(0));
    }
    for (int64_t i = 0; i < m; ++i) {
      T value = static_cast<T>(p.alpha) * sums[static_cast<size_t>(i)];
      // "if beta is zero, C does not have to be valid" (cuBLAS, cublas<t>gemm)
      if (p.beta != 0) value += static_cast<T>(p.beta) * load<T>(p.at_c, p.c.type, image * p.c.step + j * p.c.leading + i);
      store(p.at_d, p.d.type, image * p.d.step + j * p.d.leading + i, behind(p.description, value, i, p.d.type));
    }
  }
}

}  // namespace

void compute(const LtProduct& product) {
  for (int64_t image = 0; image < product.d.batch; ++image) {
    if (product.d.type == CUDA_R_64F)
      multiply_one<double>(product, image);
    else
      multiply_one<float>(product, image);
  }
}

}  // namespace heddle::cuda::standin
