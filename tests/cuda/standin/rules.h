// What the stand-in for NVIDIA's libraries holds its callers to. Each rule has the words of its documentation's place; one that is broken
// is remembered, told on stderr when the process ends, and answered with the error that CUDA gives, or would have led to.
#pragma once

#include <mutex>
#include <string>
#include <vector>

namespace heddle::cuda::standin {

struct Rule {
  const char* name;
  const char* source;  // where NVIDIA says so
};

#define HEDDLE_CUDA_RULES(rule)                                                                                                            \
  rule(default_stream, "no work on the legacy default stream: it waits for all others (Runtime API, Stream synchronization behavior)")     \
      rule(unknown_stream, "a stream that was not made, or is destroyed (Runtime API, cudaStreamDestroy)") rule(                           \
          unknown_event, "an event that was not made, or is destroyed (Runtime API, cudaEventDestroy)")                                    \
          rule(event_of_other_device, "an event is recorded on a stream of its own device (Runtime API, cudaEventRecord)") rule(           \
              wrong_device, "a stream is worked with on its own device (Runtime API, cudaSetDevice; Programming Guide, Device selection)") \
              rule(not_device_memory, "an address that is no memory of the device (Runtime API, cudaMemcpyAsync)")                         \
                  rule(copy_beyond, "a copy that goes beyond an allocation (Runtime API, cudaMemcpyAsync)") rule(                          \
                      copy_direction,                                                                                                      \
                      "a copy whose kind does not fit its addresses (Runtime API, cudaMemcpyAsync, cudaErrorInvalidMemcpyDirection)")      \
                      rule(free_unknown, "memory is freed that was not allocated, or is freed already (Runtime API, cudaFreeAsync)") rule( \
                          free_in_use,                                                                                                     \
                          "memory is freed while work that was enqueued before uses it on another stream (Runtime API, cudaFreeAsync)")    \
                          rule(leak, "memory, streams, events or modules are left when the process ends") rule(                            \
                              launch_configuration,                                                                                        \
                              "a grid or block beyond the limits of the device (Programming Guide, Technical Specifications)")             \
                              rule(launch_parameters,                                                                                      \
                                   "a kernel's parameters are as many bytes as it declares (Programming Guide, 4 KB; Runtime API, "        \
                                   "cudaLaunchKernelExC)")                                                                                 \
                                  rule(unknown_kernel,                                                                                     \
                                       "a kernel of a library that is unloaded, or none at all (Runtime API, cudaLibraryUnload)")          \
                                      rule(host_memory_of_kernel,                                                                          \
                                           "a kernel is given an address of the host's that is not pinned (Programming Guide, Unified "    \
                                           "Memory)") rule(synchronises,                                                                   \
                                                           "the host waits for a device between the first and the last launch of a run")   \
                                          rule(allocates, "memory is allocated or freed between the first and the last launch of a run")   \
                                              rule(host_unregistered,                                                                      \
                                                   "host memory is unregistered that is not registered (Runtime API, cudaHostUnregister)") \
                                                  rule(host_freed_in_use,                                                                  \
                                                       "pinned memory is freed while a copy from or to it is under way (Runtime API, "     \
                                                       "cudaFreeHost)") rule(sticky,                                                       \
                                                                             "a call after an error that ends the context (Runtime API, "  \
                                                                             "cudaErrorIllegalAddress)")

enum class Broken : int {
#define HEDDLE_CUDA_RULE(name, source) name,
  HEDDLE_CUDA_RULES(HEDDLE_CUDA_RULE)
#undef HEDDLE_CUDA_RULE
};

class Rules {
 public:
  static Rules& all() {
    static Rules& rules = *new Rules();
    return rules;
  }
  void broken(Broken rule, const std::string& by);
  // "default_stream: cudaMemcpyAsync", one for each; forgets them.
  std::vector<std::string> take();
  static const Rule& of(Broken rule);

 private:
  std::mutex mutex_;
  std::vector<std::string> broken_;
};

}  // namespace heddle::cuda::standin
