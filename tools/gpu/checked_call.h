// How the probes of a machine call its libraries: a call that fails is said, and ends the probe with 1.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <cudnn.h>

#include <cstdio>
#include <cstdlib>

inline void must(bool succeeded, const char* call, const char* error) {
  if (succeeded) return;
  std::printf("failed: %s: %s\n", call, error);
  std::exit(1);
}
#define MUST(call)                                                \
  do {                                                            \
    const cudaError_t error_ = (call);                            \
    must(error_ == cudaSuccess, #call, cudaGetErrorName(error_)); \
  } while (0)
#define MUST_BLAS(call) must((call) == CUBLAS_STATUS_SUCCESS, #call, "cuBLASLt")
#define MUST_DNN(call) must((call) == CUDNN_STATUS_SUCCESS, #call, "cuDNN")
