#include "library/matrix_product.h"

#include <algorithm>
#include <string>

#include "device/current_device.h"

namespace heddle::cuda {

using plugin::Status;

namespace {

Status failed(const char* call, cublasStatus_t status) {
  const heddle_status code = status == CUBLAS_STATUS_ALLOC_FAILED    ? HEDDLE_ERROR_OUT_OF_MEMORY
                             : status == CUBLAS_STATUS_NOT_SUPPORTED ? HEDDLE_ERROR_UNSUPPORTED
                             : status == CUBLAS_STATUS_ARCH_MISMATCH ? HEDDLE_ERROR_UNSUPPORTED
                                                                     : HEDDLE_ERROR_DEVICE;
  return {code, std::string(call) + ": " + Api::get().cublasLtGetStatusString(status)};
}

#define HEDDLE_CUBLAS_CALL(name, ...)                                                                \
  do {                                                                                               \
    const cublasStatus_t heddle_cublas_status_ = Api::get().name(__VA_ARGS__);                       \
    if (heddle_cublas_status_ != CUBLAS_STATUS_SUCCESS) return failed(#name, heddle_cublas_status_); \
  } while (false)

template <class Value>
Status set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute, const Value& value) {
  HEDDLE_CUBLAS_CALL(cublasLtMatmulDescSetAttribute, description, attribute, &value, sizeof(value));
  return {};
}
template <class Value>
Status set(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, const Value& value) {
  HEDDLE_CUBLAS_CALL(cublasLtMatrixLayoutSetAttribute, layout, attribute, &value, sizeof(value));
  return {};
}
template <class Value>
Status set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, const Value& value) {
  HEDDLE_CUBLAS_CALL(cublasLtMatmulPreferenceSetAttribute, preference, attribute, &value, sizeof(value));
  return {};
}

cudaDataType data_type(heddle_dtype dtype) {
  return dtype == HEDDLE_F16 ? CUDA_R_16F : dtype == HEDDLE_BF16 ? CUDA_R_16BF : dtype == HEDDLE_F64 ? CUDA_R_64F : CUDA_R_32F;
}
cublasComputeType_t compute_type(const ProductShape& shape) {
  if (shape.dtype == HEDDLE_F64) return CUBLAS_COMPUTE_64F;
  return shape.dtype == HEDDLE_F32 && shape.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}
cudaDataType scale_type(const ProductShape& shape) {
  return shape.dtype == HEDDLE_F64 ? CUDA_R_64F : CUDA_R_32F;
}

cublasLtEpilogue_t epilogue_of(const ProductShape& shape) {
  switch (shape.activation) {
    case ProductActivation::relu:
      return shape.has_bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case ProductActivation::gelu:
      return shape.has_bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    default:
      return shape.has_bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  }
}

}  // namespace

ProductLibrary::ProductLibrary(const plugin::ResourceRequest& request) : device_(device_of(request.device_handle())) {
  const Api& api = Api::get();
  if (!api.missing_cublasLt().empty()) {
    status_ = plugin::unsupported(api.missing_cublasLt());
    return;
  }
  const CurrentDevice current(device_.index);
  if (!current.status().ok()) {
    status_ = current.status();
    return;
  }
  const cublasStatus_t status = api.cublasLtCreate(&handle_);
  if (status != CUBLAS_STATUS_SUCCESS) status_ = failed("cublasLtCreate", status);
}

ProductLibrary::~ProductLibrary() {
  if (!handle_ || device_.loss) return;
  const CurrentDevice current(device_.index);
  Api::get().cublasLtDestroy(handle_);
}

void MatrixProduct::Destroy::operator()(cublasLtMatmulDescOpaque_t* description) const {
  Api::get().cublasLtMatmulDescDestroy(description);
}
void MatrixProduct::Destroy::operator()(cublasLtMatrixLayoutOpaque_t* layout) const {
  Api::get().cublasLtMatrixLayoutDestroy(layout);
}
void MatrixProduct::Destroy::operator()(cublasLtMatmulPreferenceOpaque_t* preference) const {
  Api::get().cublasLtMatmulPreferenceDestroy(preference);
}

Status MatrixProduct::describe(cublasLtMatmulDesc_t description, const void* bias) const {
  const cublasOperation_t operations[] = {CUBLAS_OP_N, CUBLAS_OP_T};
  HEDDLE_PLUGIN_CHECK(set(description, CUBLASLT_MATMUL_DESC_TRANSA, operations[shape_.a.transposed]));
  HEDDLE_PLUGIN_CHECK(set(description, CUBLASLT_MATMUL_DESC_TRANSB, operations[shape_.b.transposed]));
  const cublasLtEpilogue_t epilogue = epilogue_of(shape_);
  if (epilogue != CUBLASLT_EPILOGUE_DEFAULT) HEDDLE_PLUGIN_CHECK(set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue));
  if (shape_.has_bias && bias) HEDDLE_PLUGIN_CHECK(set(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias));
  return {};
}

Status MatrixProduct::lay_out(const ProductShape::Matrix& matrix, int64_t rows, int64_t columns, Layout* layout) const {
  if (matrix.transposed) std::swap(rows, columns);
  cublasLtMatrixLayout_t made = nullptr;
  HEDDLE_CUBLAS_CALL(cublasLtMatrixLayoutCreate, &made, data_type(shape_.dtype), static_cast<uint64_t>(rows),
                     static_cast<uint64_t>(columns), std::max(matrix.leading, rows));
  layout->reset(made);
  if (shape_.batch == 1) return {};
  HEDDLE_PLUGIN_CHECK(set(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(shape_.batch)));
  return set(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, matrix.step);
}

// Allows only sums of parts that are kept in the type of the computation and added in a fixed order, not those kept in the output's type.
Status MatrixProduct::prefer(uint64_t budget, cublasLtMatmulPreference_t preference) const {
  HEDDLE_PLUGIN_CHECK(set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, budget));
  const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  HEDDLE_PLUGIN_CHECK(set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes));
  for (const cublasLtMatmulPreferenceAttributes_t of :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    HEDDLE_PLUGIN_CHECK(set(preference, of, shape_.alignment));
  return {};
}

Status MatrixProduct::choose(Device& device, cublasLtHandle_t handle, const ProductShape& shape, uint64_t budget) {
  shape_ = shape;
  expected_bias_ = nullptr;
  if (std::max({shape.m, shape.n, shape.k, shape.batch}) > INT32_MAX)
    return plugin::unsupported("a product of matrices of more than 2^31 rows, columns or images");
  const CurrentDevice current(device.index);
  HEDDLE_PLUGIN_CHECK(current.status());
  cublasLtMatmulDesc_t description = nullptr;
  HEDDLE_CUBLAS_CALL(cublasLtMatmulDescCreate, &description, compute_type(shape), scale_type(shape));
  description_.reset(description);
  HEDDLE_PLUGIN_CHECK(describe(description, nullptr));
  HEDDLE_PLUGIN_CHECK(lay_out(shape.a, shape.m, shape.k, &a_));
  HEDDLE_PLUGIN_CHECK(lay_out(shape.b, shape.k, shape.n, &b_));
  HEDDLE_PLUGIN_CHECK(lay_out(shape.d, shape.m, shape.n, &d_));
  cublasLtMatmulPreference_t preference = nullptr;
  HEDDLE_CUBLAS_CALL(cublasLtMatmulPreferenceCreate, &preference);
  const std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, Destroy> owned(preference);
  HEDDLE_PLUGIN_CHECK(prefer(budget, preference));
  cublasLtMatmulHeuristicResult_t best = {};
  int count = 0;
  const cublasStatus_t status =
      Api::get().cublasLtMatmulAlgoGetHeuristic(handle, description, a_.get(), b_.get(), d_.get(), d_.get(), preference, 1, &best, &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && (count == 0 || best.state != CUBLAS_STATUS_SUCCESS)))
    return plugin::unsupported("cuBLASLt has no algorithm for a product of [" + std::to_string(shape.n) + ", " + std::to_string(shape.k) +
                               "] and [" + std::to_string(shape.k) + ", " + std::to_string(shape.m) + "] within " + std::to_string(budget) +
                               " bytes of workspace");
  if (status != CUBLAS_STATUS_SUCCESS) return failed("cublasLtMatmulAlgoGetHeuristic", status);
  algorithm_ = best.algo;
  workspace_bytes_ = best.workspaceSize;
  return {};
}

Status MatrixProduct::expect_bias(const void* bias) {
  expected_bias_ = bias;
  return set(description_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
}

// Other contexts run the same product at the same time, so a bias that differs for this run is set in a separate copy of the description.
Status MatrixProduct::enqueue(Device& device, cublasLtHandle_t handle, const Operands& operands, cudaStream_t stream) const {
  cublasLtMatmulDescOpaque_t own = {};
  cublasLtMatmulDesc_t description = description_.get();
  if (shape_.has_bias && operands.bias != expected_bias_) {
    HEDDLE_CUBLAS_CALL(cublasLtMatmulDescInit_internal, &own, sizeof(own), compute_type(shape_), scale_type(shape_));
    HEDDLE_PLUGIN_CHECK(describe(&own, operands.bias));
    description = &own;
  }
  const auto alpha = static_cast<float>(operands.alpha), beta = static_cast<float>(shape_.has_c ? operands.beta : 0);
  const double wide_alpha = operands.alpha, wide_beta = shape_.has_c ? operands.beta : 0;
  const bool wide = shape_.dtype == HEDDLE_F64;
  const void* const c = shape_.has_c ? operands.c : operands.d;
  return enqueue_on(device, stream, [&]() -> Status {
    HEDDLE_CUBLAS_CALL(cublasLtMatmul, handle, description, wide ? static_cast<const void*>(&wide_alpha) : &alpha, operands.a, a_.get(),
                       operands.b, b_.get(), wide ? static_cast<const void*>(&wide_beta) : &beta, c, d_.get(), operands.d, d_.get(),
                       &algorithm_, operands.workspace, workspace_bytes_, stream);
    return {};
  });
}

}  // namespace heddle::cuda
