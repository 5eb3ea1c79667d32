// NVIDIA's declarations, which the definitions here must match: functions declared visible are exported.
#pragma once

#pragma GCC visibility push(default)
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <nvrtc.h>
#pragma GCC visibility pop
