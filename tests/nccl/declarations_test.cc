// This is what plugins/nccl declares of NCCL and of CUDA's runtime (plugins/nccl/library/declarations.h, functions.inc), compared with NVIDIA's
// headers.
#include "library/declarations.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

#if defined(HEDDLE_WITH_CUDA) && __has_include(<nccl.h>)
#define HEDDLE_HAS_NCCL_HEADER
#include <cuda_runtime_api.h>
#include <nccl.h>
#endif

namespace heddle::nccl {

#ifdef HEDDLE_HAS_NCCL_HEADER
// It is as the headers declare it, which have templates of the same name beside it.
cudaError_t plain_cudaMallocAsync(void** memory, size_t bytes, cudaStream_t stream);
#endif

namespace {

#ifdef HEDDLE_HAS_NCCL_HEADER

// The type that NVIDIA's headers have for one of ours.
template <class T>
struct Theirs {
  using type = T;
};
template <class T>
using TheirsOf = typename Theirs<T>::type;
template <>
struct Theirs<Result> {
  using type = ncclResult_t;
};
template <>
struct Theirs<DataType> {
  using type = ncclDataType_t;
};
template <>
struct Theirs<Operation> {
  using type = ncclRedOp_t;
};
template <>
struct Theirs<Comm> {
  using type = ncclComm;
};
template <>
struct Theirs<UniqueId> {
  using type = ncclUniqueId;
};
template <>
struct Theirs<Config> {
  using type = ncclConfig_t;
};
template <>
struct Theirs<Stream> {
  using type = CUstream_st;
};
template <>
struct Theirs<Event> {
  using type = CUevent_st;
};
template <class T>
struct Theirs<T*> {
  using type = TheirsOf<T>*;
};
// An enumeration as a function takes it: cudaError_t is CudaError, which is a number.
template <class T>
constexpr bool is_like(T*) {
  return true;
}

// Whether functions are alike, where enumerations count as the numbers that hold them.
template <class T>
using Held = std::conditional_t<std::is_enum_v<T>, int32_t, T>;
template <class Ours, class TheirsFunction>
struct Alike : std::false_type {};
template <class R, class... A, class S, class... B>
struct Alike<R (*)(A...), S (*)(B...)> : std::bool_constant<sizeof...(A) == sizeof...(B) && std::is_same_v<Held<TheirsOf<R>>, Held<S>> &&
                                                            (std::is_same_v<Held<TheirsOf<A>>, Held<B>> && ...)> {};

TEST(NcclDeclarations, AreThoseOfTheHeaders) {
#define cudaMallocAsync heddle::nccl::plain_cudaMallocAsync
#define HEDDLE_NCCL_FUNCTION(library, result, name, parameters) \
  EXPECT_TRUE((Alike<result(*) parameters, decltype(&::name)>::value)) << #name;
#include "library/functions.inc"
#undef HEDDLE_NCCL_FUNCTION
#undef cudaMallocAsync
}

TEST(NcclDeclarations, HaveTheValuesOfTheHeaders) {
  for (const auto& [ours, theirs] :
       {std::pair(Result::success, ncclSuccess), std::pair(Result::unhandled_cuda_error, ncclUnhandledCudaError),
        std::pair(Result::system_error, ncclSystemError), std::pair(Result::internal_error, ncclInternalError),
        std::pair(Result::invalid_argument, ncclInvalidArgument), std::pair(Result::invalid_usage, ncclInvalidUsage),
        std::pair(Result::remote_error, ncclRemoteError), std::pair(Result::in_progress, ncclInProgress)})
    EXPECT_EQ(static_cast<int>(ours), static_cast<int>(theirs));
  for (const auto& [ours, theirs] :
       {std::pair(DataType::i8, ncclInt8), std::pair(DataType::u8, ncclUint8), std::pair(DataType::i32, ncclInt32),
        std::pair(DataType::u32, ncclUint32), std::pair(DataType::i64, ncclInt64), std::pair(DataType::u64, ncclUint64),
        std::pair(DataType::f16, ncclFloat16), std::pair(DataType::f32, ncclFloat32), std::pair(DataType::f64, ncclFloat64),
        std::pair(DataType::bf16, ncclBfloat16)})
    EXPECT_EQ(static_cast<int>(ours), static_cast<int>(theirs));
  for (const auto& [ours, theirs] :
       {std::pair(Operation::sum, ncclSum), std::pair(Operation::prod, ncclProd), std::pair(Operation::max, ncclMax),
        std::pair(Operation::min, ncclMin), std::pair(Operation::avg, ncclAvg)})
    EXPECT_EQ(static_cast<int>(ours), static_cast<int>(theirs));
  EXPECT_EQ(cuda_success, cudaSuccess);
  EXPECT_EQ(cuda_not_ready, cudaErrorNotReady);
  EXPECT_EQ(stream_non_blocking, unsigned{cudaStreamNonBlocking});
  EXPECT_EQ(event_without_timing, unsigned{cudaEventDisableTiming});
}

TEST(NcclDeclarations, HaveTheConfigurationOfTheHeader) {
  const Config ours;
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  EXPECT_EQ(sizeof(UniqueId), sizeof(ncclUniqueId));
  EXPECT_EQ(ours.magic, theirs.magic);
  EXPECT_LE(ours.version, theirs.version) << "the struct of an older version is a part of a newer one";
  EXPECT_LE(sizeof(Config), sizeof(ncclConfig_t));
#define HEDDLE_SAME_PLACE(field, other)                              \
  EXPECT_EQ(offsetof(Config, field), offsetof(ncclConfig_t, other)); \
  EXPECT_EQ(ours.field, theirs.other)
  HEDDLE_SAME_PLACE(blocking, blocking);
  HEDDLE_SAME_PLACE(cga_cluster_size, cgaClusterSize);
  HEDDLE_SAME_PLACE(min_ctas, minCTAs);
  HEDDLE_SAME_PLACE(max_ctas, maxCTAs);
  HEDDLE_SAME_PLACE(net_name, netName);
  HEDDLE_SAME_PLACE(split_share, splitShare);
  HEDDLE_SAME_PLACE(traffic_class, trafficClass);
  HEDDLE_SAME_PLACE(comm_name, commName);
  HEDDLE_SAME_PLACE(collnet_enable, collnetEnable);
  HEDDLE_SAME_PLACE(cta_policy, CTAPolicy);
  HEDDLE_SAME_PLACE(shrink_share, shrinkShare);
  HEDDLE_SAME_PLACE(nvls_ctas, nvlsCTAs);
  HEDDLE_SAME_PLACE(channels_per_net_peer, nChannelsPerNetPeer);
  HEDDLE_SAME_PLACE(nvlink_centric_sched, nvlinkCentricSched);
#undef HEDDLE_SAME_PLACE
}

#else

TEST(NcclDeclarations, AreThoseOfTheHeaders) {
  GTEST_SKIP() << "there are no headers of CUDA and NCCL here";
}

#endif

}  // namespace
}  // namespace heddle::nccl
