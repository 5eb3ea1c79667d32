// Acts as a profiler for NVTX: named by NVTX_INJECTION64_PATH, it is notified of the ranges that begin and end.
#if __has_include(<nvtx3/nvToolsExt.h>)
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

#include "process.h"

namespace {

using heddle::cuda::standin::CallLog;
using heddle::cuda::standin::Lock;
using heddle::cuda::standin::Process;

int begin_range(const char* name) {
  Process& process = Process::get();
  const Lock lock(process.mutex);
  if (process.calls.on) process.calls.ranges.push_back(name);
  return 0;
}

int end_range() {
  Process& process = Process::get();
  const Lock lock(process.mutex);
  if (process.calls.on) process.calls.ranges.emplace_back("end");
  return 0;
}

}  // namespace

// NVTX looks it up by this name.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t table_of) {
  const auto* const callbacks = static_cast<const NvtxExportTableCallbacks*>(table_of(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable functions = nullptr;
  unsigned int count = 0;
  if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &functions, &count) || count <= NVTX_CBID_CORE_RangePop)
    return 0;
  *functions[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(begin_range);
  *functions[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(end_range);
  return 1;
}
#endif
