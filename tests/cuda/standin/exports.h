// NVIDIA's declarations, which the definitions here go by: what is declared visible is exported.
#pragma once

#pragma GCC visibility push(default)
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <nvrtc.h>
#pragma GCC visibility pop
