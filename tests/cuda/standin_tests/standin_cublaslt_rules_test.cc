// The rules of the stand-in for cuBLASLt; standin_rules_test.cc has the others.
#include <algorithm>

#include "standin_program.h"

namespace heddle::cuda {
namespace {

using namespace testing_standin;
using StandinRule = StandinTest;

// The product d [4, 3] = a [4, 64] b [64, 3], of f32, in which each test makes its mistake.
struct Product {
  explicit Product(const Standin& of) : cuda(of), stream(make_stream(of)) {
    EXPECT_EQ(cuda.cublasLtCreate(&handle), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cuda.cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cuda.cublasLtMatrixLayoutCreate(&a, CUDA_R_32F, 4, 64, 4), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cuda.cublasLtMatrixLayoutCreate(&b, CUDA_R_32F, 64, 3, 64), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cuda.cublasLtMatrixLayoutCreate(&d, CUDA_R_32F, 4, 3, 4), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cuda.cublasLtMatmulPreferenceCreate(&preference), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{1} << 20), CUBLAS_STATUS_SUCCESS);
    at_a = static_cast<char*>(make_memory(cuda, 4 * 64 * 4, stream));
    at_b = static_cast<char*>(make_memory(cuda, 64 * 3 * 4, stream));
    at_d = static_cast<char*>(make_memory(cuda, 4 * 3 * 4 + 64, stream));
    workspace = static_cast<char*>(make_memory(cuda, 1 << 20, stream));
    for (const auto of_operand : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                                  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      EXPECT_EQ(prefer(of_operand, uint32_t{16}), CUBLAS_STATUS_SUCCESS);
  }
  Product(const Product&) = delete;
  // Runs after the test has checked complaints. Objects that the test destroyed itself were set to null.
  ~Product() {
    if (preference) cuda.cublasLtMatmulPreferenceDestroy(preference);
    for (const cublasLtMatrixLayout_t layout : {a, b, d})
      if (layout) cuda.cublasLtMatrixLayoutDestroy(layout);
    if (description) cuda.cublasLtMatmulDescDestroy(description);
    if (handle) cuda.cublasLtDestroy(handle);
  }
  template <class Value>
  cublasStatus_t prefer(cublasLtMatmulPreferenceAttributes_t attribute, const Value& value) const {
    return cuda.cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value));
  }
  template <class Value>
  cublasStatus_t describe(cublasLtMatmulDescAttributes_t attribute, const Value& value) const {
    return cuda.cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof(value));
  }
  cublasStatus_t choose() {
    int count = 0;
    const cublasStatus_t status = cuda.cublasLtMatmulAlgoGetHeuristic(handle, description, a, b, d, d, preference, 1, &chosen, &count);
    EXPECT_EQ(count, status == CUBLAS_STATUS_SUCCESS ? 1 : 0);
    return status;
  }
  cublasStatus_t run(size_t workspace_bytes = 1 << 20) const {
    const float alpha = 1, beta = 0;
    return cuda.cublasLtMatmul(handle, description, &alpha, at_a, a, at_b, b, &beta, at_d, d, at_d, d, &chosen.algo, workspace,
                               workspace_bytes, stream);
  }

  const Standin& cuda;
  cudaStream_t stream;
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatmulHeuristicResult_t chosen = {};
  char *at_a = nullptr, *at_b = nullptr, *at_d = nullptr, *workspace = nullptr;
};

class StandinProduct : public StandinTest {};

TEST_F(StandinProduct, IsDone) {
  Product p(cuda);
  const std::vector<float> ones(256, 1);
  EXPECT_EQ(cuda.cudaMemcpyAsync(p.at_a, ones.data(), 1024, cudaMemcpyHostToDevice, p.stream), cudaSuccess);
  EXPECT_EQ(cuda.cudaMemcpyAsync(p.at_b, ones.data(), 768, cudaMemcpyHostToDevice, p.stream), cudaSuccess);
  EXPECT_EQ(p.choose(), CUBLAS_STATUS_SUCCESS);
  EXPECT_GT(p.chosen.workspaceSize, 0u);
  EXPECT_EQ(p.run(), CUBLAS_STATUS_SUCCESS);
  std::vector<float> got(12);
  EXPECT_EQ(cuda.cudaMemcpyAsync(got.data(), p.at_d, 48, cudaMemcpyDeviceToHost, p.stream), cudaSuccess);
  EXPECT_EQ(got, std::vector<float>(12, 64));
  EXPECT_EQ(broken(), "");
}

TEST_F(StandinRule, lt_unknown) {
  Product p(cuda);
  EXPECT_EQ(p.run(), CUBLAS_STATUS_INVALID_VALUE) << "no algorithm was chosen";
  EXPECT_EQ(broken(), "lt_unknown: cublasLtMatmul");
  EXPECT_EQ(p.choose(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cuda.cublasLtDestroy(p.handle), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(p.run(), CUBLAS_STATUS_NOT_INITIALIZED);
  EXPECT_EQ(broken(), "lt_unknown: cublasLtMatmul");
  p.handle = nullptr;
}

TEST_F(StandinRule, lt_attribute) {
  const Product p(cuda);
  EXPECT_EQ(p.describe(CUBLASLT_MATMUL_DESC_TRANSA, uint64_t{1}), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(broken(), "lt_attribute: cublasLtMatmulDescSetAttribute");
  EXPECT_EQ(p.prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint32_t{1}), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(broken(), "lt_attribute: cublasLtMatmulPreferenceSetAttribute");
}

TEST_F(StandinRule, lt_extents) {
  Product p(cuda);
  EXPECT_EQ(p.describe(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_T), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(p.choose(), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(broken(), "lt_extents: cublasLtMatmulAlgoGetHeuristic: extents that do not fit");
  EXPECT_EQ(p.describe(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N), CUBLAS_STATUS_SUCCESS);
  const int32_t two = 2;
  EXPECT_EQ(cuda.cublasLtMatrixLayoutSetAttribute(p.a, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &two, sizeof(two)), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(p.choose(), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(broken(), "lt_extents: cublasLtMatmulAlgoGetHeuristic: batches of different lengths");
}

TEST_F(StandinRule, lt_leading) {
  Product p(cuda);
  EXPECT_EQ(cuda.cublasLtMatrixLayoutDestroy(p.a), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cuda.cublasLtMatrixLayoutCreate(&p.a, CUDA_R_32F, 4, 64, 3), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(p.choose(), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(broken(), "lt_leading: cublasLtMatmulAlgoGetHeuristic: columns that overlap");
}

TEST_F(StandinRule, lt_algorithm) {
  Product p(cuda);
  EXPECT_EQ(p.choose(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(p.describe(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_RELU), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(p.run(), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(broken(), "lt_algorithm: cublasLtMatmul");
}

TEST_F(StandinRule, lt_alignment) {
  Product p(cuda);
  EXPECT_EQ(p.choose(), CUBLAS_STATUS_SUCCESS);
  p.at_d += 4;
  EXPECT_EQ(p.run(), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(broken(), "lt_alignment: cublasLtMatmul: d");
  p.at_d += 12;
  EXPECT_EQ(p.run(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(broken(), "");
}

TEST_F(StandinRule, lt_workspace) {
  Product p(cuda);
  EXPECT_EQ(p.choose(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(p.run(p.chosen.workspaceSize - 1), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(broken(), "lt_workspace: cublasLtMatmul: less than the algorithm takes");
}

TEST_F(StandinRule, lt_beyond) {
  Product p(cuda);
  EXPECT_EQ(p.choose(), CUBLAS_STATUS_SUCCESS);
  p.at_a += 16;
  EXPECT_EQ(p.run(), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(broken(), "lt_beyond: cublasLtMatmul: a");
}

TEST_F(StandinRule, lt_bias) {
  Product p(cuda);
  EXPECT_EQ(p.describe(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(p.choose(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(p.run(), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(broken(), "lt_bias: cublasLtMatmul: no address of the bias");
}

TEST_F(StandinRule, lt_overlap) {
  Product p(cuda);
  EXPECT_EQ(p.choose(), CUBLAS_STATUS_SUCCESS);
  p.at_d = p.at_b + 16;
  EXPECT_EQ(p.run(), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(broken(), "lt_overlap: cublasLtMatmul: d lies over an operand");
}

}  // namespace
}  // namespace heddle::cuda
