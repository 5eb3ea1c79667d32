// cuBLASLt is there and can do nothing: each function says so.
#include "process.h"

namespace {

// Each call is counted, as those of the runtime are.
cublasStatus_t not_supported(const char* name) {
  heddle::cuda::standin::Process& process = heddle::cuda::standin::Process::get();
  const heddle::cuda::standin::Lock lock(process.mutex);
  heddle::cuda::standin::begin_call(process, name, heddle::cuda::standin::CallKind::other);
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

}  // namespace

size_t cublasLtGetVersion() {
  return 0;
}
const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_NOT_SUPPORTED: the stand-in has no cuBLASLt";
}
cublasStatus_t cublasLtCreate(cublasLtHandle_t*) {
  return not_supported(__func__);
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) {
  return not_supported(__func__);
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t*, cublasComputeType_t, cudaDataType_t) {
  return not_supported(__func__);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t) {
  return not_supported(__func__);
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, const void*, size_t) {
  return not_supported(__func__);
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t*, cudaDataType, uint64_t, uint64_t, int64_t) {
  return not_supported(__func__);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t) {
  return not_supported(__func__);
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t, const void*, size_t) {
  return not_supported(__func__);
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t*) {
  return not_supported(__func__);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t) {
  return not_supported(__func__);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t, const void*, size_t) {
  return not_supported(__func__);
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int,
                                              cublasLtMatmulHeuristicResult_t*, int*) {
  return not_supported(__func__);
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t, const void*, const void*, cublasLtMatrixLayout_t, const void*,
                              cublasLtMatrixLayout_t, const void*, const void*, cublasLtMatrixLayout_t, void*, cublasLtMatrixLayout_t,
                              const cublasLtMatmulAlgo_t*, void*, size_t, cudaStream_t) {
  return not_supported(__func__);
}
