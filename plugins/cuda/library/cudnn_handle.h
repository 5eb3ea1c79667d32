// Provides cuDNN's handles as resources: one for each device that plans are made with, and one for each stream that they are run with.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <variant>

#include "device/cuda_device.h"
#include "library/cudnn_graph.h"

namespace heddle::cuda::cudnn {

inline constexpr const char* planner_name = "cuda.cudnn_planner";
inline constexpr const char* stream_name = "cuda.cudnn_stream";

// Returns an empty string, or why cuDNN is not available.
Status check_library();

// A handle, made with its device current.
class Handle {
 public:
  Handle(Device& device, cudaStream_t stream);  // null: none is set
  ~Handle();
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  const Status& status() const { return status_; }
  cudnnHandle_t get() const { return handle_; }

 private:
  Device& device_;
  cudnnHandle_t handle_ = nullptr;
  Status status_;
};

// A handle of device scope, used by one thread at a time.
class Planner {
 public:
  explicit Planner(const plugin::ResourceRequest& request) : device_(device_of(request.device_handle())), handle_(device_, nullptr) {}
  const Status& status() const { return handle_.status(); }
  // [compile] Finishes the graph for the device, and chooses a plan for it.
  Status choose(Graph& graph, const PlanRules& rules, Plan* plan);

 private:
  std::mutex mutex_;
  Device& device_;
  Handle handle_;
};

// A plan that a kernel runs: its tensors by number. Each stream keeps the addresses that it was last run with, for as long as `life` shows
// that the call exists: a pointer alone could be that of a later call at the same address.
struct PlannedCall {
  static constexpr int max_tensors = 12;
  Plan plan;
  int64_t ids[max_tensors] = {};
  int count = 0;
  const std::shared_ptr<const std::monostate> life = std::make_shared<const std::monostate>();
};

// A handle of stream scope; calls for one stream never overlap.
class StreamHandle {
 public:
  explicit StreamHandle(const plugin::ResourceRequest& request)
      : device_(device_of(request.device_handle())), stream_(static_cast<cudaStream_t>(request.stream())), handle_(device_, stream_) {}
  const Status& status() const { return handle_.status(); }
  // Enqueues the call. The addresses set for cuDNN are kept: a next run with the same ones takes a single call of cuDNN.
  Status execute(const PlannedCall& call, void* const* addresses, void* workspace);

 private:
  struct Bound {
    std::weak_ptr<const std::monostate> life;
    VariantPack pack;
  };
  VariantPack& pack_of(const PlannedCall& call);

  Device& device_;
  const cudaStream_t stream_;
  Handle handle_;
  std::map<const void*, Bound> bound_;  // by the call's life; entries of calls that no longer exist are removed when a new one is added
};

}  // namespace heddle::cuda::cudnn
