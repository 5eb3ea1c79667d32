// The content of cuBLASLt's descriptions in the stand-in. Their bytes are the caller's, with NVIDIA's size: each begins with a mark, by
// which a description that was never made, or is destroyed, is recognized.
#pragma once

#include <cstdint>

#include "standin/exports.h"

namespace heddle::cuda::standin {

struct LtDescription {
  static constexpr uint32_t made = 0x4c744465;
  uint32_t mark = made;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType scale = CUDA_R_32F;
  cublasOperation_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;

  bool has_bias() const { return (epilogue & CUBLASLT_EPILOGUE_BIAS) != 0; }
};

struct LtLayout {
  static constexpr uint32_t made = 0x4c744c61;
  uint32_t mark = made;
  int32_t batch = 1;
  cudaDataType type = CUDA_R_32F;
  uint64_t rows = 0, columns = 0;
  int64_t leading = 0, step = 0;
};

struct LtPreference {
  static constexpr uint32_t made = 0x4c745072;
  uint32_t mark = made;
  uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_MASK;
  uint32_t alignment[4] = {256, 256, 256, 256};  // of a, b, c, d
  uint64_t workspace = 0;
};

struct LtAlgorithm {
  static constexpr uint32_t made = 0x4c74416c;
  uint32_t mark = made;
  uint32_t alignment[4] = {};
  uint64_t workspace = 0;
  uint64_t of = 0;  // shape_of() that it was chosen for
};

// One product, with the arguments of cublasLtMatmul. Column by column.
struct LtProduct {
  LtDescription description;
  LtLayout a, b, c, d;
  const void *at_a = nullptr, *at_b = nullptr, *at_c = nullptr;
  void* at_d = nullptr;
  double alpha = 1, beta = 0;
};

uint64_t bytes_of(cudaDataType type);  // 0: the type is not known here
// Computes by plain loops, with sums in f32, or in f64 if that is the type of the computation.
void compute(const LtProduct& product);

}  // namespace heddle::cuda::standin
