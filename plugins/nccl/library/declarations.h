// This is what of the interfaces of NCCL (nccl.h of 2.28) and of CUDA's runtime the plugin uses, so that it is built on machines without
// NVIDIA's headers. tests/nccl/declarations_test.cc compares it with the headers where they are.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>

namespace heddle::nccl {

struct Comm;  // a communicator of one device: ncclComm
struct UniqueId {
  char bytes[128];
};

enum class Result : int32_t {
  success = 0,
  unhandled_cuda_error = 1,
  system_error = 2,
  internal_error = 3,
  invalid_argument = 4,
  invalid_usage = 5,
  remote_error = 6,
  in_progress = 7
};

// none: no type or operation of NCCL, which refuses it.
enum class DataType : int32_t { none = -1, i8 = 0, u8 = 1, i32 = 2, u32 = 3, i64 = 4, u64 = 5, f16 = 6, f32 = 7, f64 = 8, bf16 = 9 };
enum class Operation : int32_t { none = -1, sum = 0, prod = 1, max = 2, min = 3, avg = 4 };

// ncclConfig_t, as NCCL_CONFIG_INITIALIZER makes it. A library of another version reads as much of it as it knows.
struct Config {
  size_t size = sizeof(Config);
  uint32_t magic = 0xcafebeef;
  uint32_t version = 22809;
  int32_t blocking = INT_MIN;
  int32_t cga_cluster_size = INT_MIN;
  int32_t min_ctas = INT_MIN;
  int32_t max_ctas = INT_MIN;
  const char* net_name = nullptr;
  int32_t split_share = INT_MIN;
  int32_t traffic_class = INT_MIN;
  const char* comm_name = nullptr;
  int32_t collnet_enable = INT_MIN;
  int32_t cta_policy = INT_MIN;
  int32_t shrink_share = INT_MIN;
  int32_t nvls_ctas = INT_MIN;
  int32_t channels_per_net_peer = INT_MIN;
  int32_t nvlink_centric_sched = INT_MIN;
};

// For CUDA's runtime.
using CudaError = int32_t;  // cudaError_t
inline constexpr CudaError cuda_success = 0, cuda_not_ready = 600;
struct Stream;  // CUstream_st
struct Event;   // CUevent_st
inline constexpr uint32_t stream_non_blocking = 1, event_without_timing = 2;

}  // namespace heddle::nccl
