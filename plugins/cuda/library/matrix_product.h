// One matrix product of cuBLASLt, described and chosen once: cublasLtMatmul with the epilogue that it applies to the product.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "device/cuda_device.h"
#include "heddle/op.h"

namespace heddle::cuda {

// The resource "cuda.cublaslt", one for each device, version 1. It holds no stream, and any number of threads may use it at once (cuBLAS,
// Thread Safety).
class ProductLibrary {
 public:
  explicit ProductLibrary(const plugin::ResourceRequest& request);
  ~ProductLibrary();
  ProductLibrary(const ProductLibrary&) = delete;
  ProductLibrary& operator=(const ProductLibrary&) = delete;
  plugin::Status status() const { return status_; }
  cublasLtHandle_t handle() const { return handle_; }

  static constexpr const char* resource = "cuda.cublaslt";

 private:
  const Device& device_;
  cublasLtHandle_t handle_ = nullptr;
  plugin::Status status_;
};

enum class ProductActivation : uint8_t { none, relu, gelu };  // gelu: the tanh approximation

// The product d = activation(alpha a b + beta c + bias), column by column as in cuBLASLt: a is [m, k], b [k, n], c and d [m, n], bias [m].
// All have one dtype, f16, bf16, f32 or f64; the sums of the first three are in f32.
struct ProductShape {
  struct Matrix {
    bool transposed = false;  // for a and b only: the memory holds the transposed matrix
    int64_t leading = 0;      // elements from one column to the next of the stored matrix
    int64_t step = 0;         // elements from one matrix of the batch to the next
  };
  heddle_dtype dtype = HEDDLE_F32;
  bool tf32 = false;
  int64_t m = 0, n = 0, k = 0, batch = 1;
  Matrix a, b, d;  // c has the layout of d
  bool has_c = false, has_bias = false;
  ProductActivation activation = ProductActivation::none;
  uint32_t alignment = 1;  // of every address, in bytes
};

class MatrixProduct {
 public:
  static constexpr uint64_t max_workspace = uint64_t{32} << 20;  // advised by NVIDIA for its newest devices (cublasSetWorkspace)
  static constexpr uint64_t workspace_alignment = 256;
  static constexpr int64_t given_alignment = 64;  // of addresses that a plan assigns

  MatrixProduct() = default;
  MatrixProduct(MatrixProduct&&) = default;
  MatrixProduct& operator=(MatrixProduct&&) = default;

  // [compile] Chooses an algorithm that gives the same bits in each run and takes at most `budget` bytes of workspace. Errors: unsupported,
  // if cuBLASLt has none.
  plugin::Status choose(Device& device, cublasLtHandle_t handle, const ProductShape& shape, uint64_t budget);
  uint64_t workspace_bytes() const { return workspace_bytes_; }

  struct Operands {
    const void *a = nullptr, *b = nullptr, *c = nullptr, *bias = nullptr;
    void* d = nullptr;
    double alpha = 1, beta = 0;
    void* workspace = nullptr;
  };
  // [compile] Sets the address that the bias has in most runs: then setting it costs no call.
  plugin::Status expect_bias(const void* bias);
  // [run] Thread-safe.
  plugin::Status enqueue(Device& device, cublasLtHandle_t handle, const Operands& operands, cudaStream_t stream) const;

 private:
  // Destroys by cublasLtMatmulDescDestroy and similar functions.
  struct Destroy {
    void operator()(cublasLtMatmulDescOpaque_t* description) const;
    void operator()(cublasLtMatrixLayoutOpaque_t* layout) const;
    void operator()(cublasLtMatmulPreferenceOpaque_t* preference) const;
  };
  using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, Destroy>;

  plugin::Status describe(cublasLtMatmulDesc_t description, const void* bias) const;
  plugin::Status lay_out(const ProductShape::Matrix& matrix, int64_t rows, int64_t columns, Layout* layout) const;
  plugin::Status prefer(uint64_t budget, cublasLtMatmulPreference_t preference) const;

  ProductShape shape_;
  std::unique_ptr<cublasLtMatmulDescOpaque_t, Destroy> description_;
  Layout a_, b_, d_;
  cublasLtMatmulAlgo_t algorithm_ = {};
  uint64_t workspace_bytes_ = 0;
  const void* expected_bias_ = nullptr;
};

}  // namespace heddle::cuda
