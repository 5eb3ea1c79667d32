// The whole state of the stand-in, once for the process, guarded by one lock; and the begin and end of each of NVIDIA's functions here.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cudnn/cudnn_objects.h"
#include "engine.h"
#include "exports.h"
#include "grid/grid.h"
#include "memory.h"
#include "nccl/nccl_objects.h"
#include "rules.h"
#include "settings.h"

namespace heddle::cuda::standin {

// Objects by handles that are no addresses and are never given out again, so that a stale one is recognized.
template <class Handle, class T>
class Table {
 public:
  explicit Table(uintptr_t first) : next_(first) {}
  Handle add(std::shared_ptr<T> object) {
    const uintptr_t number = next_ += 64;
    objects_[number] = std::move(object);
    return reinterpret_cast<Handle>(number);
  }
  // Returns null if there is none by that handle.
  std::shared_ptr<T> find(Handle handle) const {
    const auto found = objects_.find(reinterpret_cast<uintptr_t>(handle));
    return found == objects_.end() ? nullptr : found->second;
  }
  void remove(Handle handle) { objects_.erase(reinterpret_cast<uintptr_t>(handle)); }
  template <class Predicate>
  void remove_if(const Predicate& predicate) {
    std::erase_if(objects_, [&](const auto& entry) { return predicate(entry.second); });
  }
  size_t size() const { return objects_.size(); }
  void clear() { objects_.clear(); }

 private:
  uintptr_t next_;
  std::map<uintptr_t, std::shared_ptr<T>> objects_;
};

struct Library {
  std::shared_ptr<grid::Module> module;
};
struct Kernel {
  std::string name;
  std::shared_ptr<grid::Module> module;
  std::shared_ptr<Library> library;
  uint64_t parameter_bytes = 0;
};

// A program of NVRTC's.
struct Source {
  std::string text, log;
  std::string ptx;    // with its terminating zero; empty: not compiled
  std::string cubin;  // the same; also empty if it was compiled for no real architecture
};

// A pool of memory that is allocated in the order of streams.
struct Pool {
  int device = 0;
  std::set<int> devices;    // other devices that may use it
  uint64_t kept_bytes = 0;  // the release threshold
  uint64_t trims = 0;
};

// Compilations of NVRTC that are in progress, for a test that counts the concurrent ones.
struct Compiling {
  int wanted = 0;  // each waits until that many have met, or for a moment
  int now = 0, most = 0;
};

// Names of the calls, in order.
struct CallLog {
  uint64_t made = 0;  // since the stand-in was loaded
  bool on = false;
  std::vector<const char*> names;   // recorded while it is on
  std::vector<std::string> ranges;  // of NVTX, while it is on: a begin by its name, an end as "end"
};

// Calls that must not happen between the first and the last launch of a run.
class RunWindow {
 public:
  void begin() { *this = {}, runs_ = true; }
  void end() { *this = {}; }
  // Calls noted after the first launch come before another one.
  void launch(BrokenRules& rules) {
    for (const auto& [rule, by] : since_) rules.add(rule, by);
    since_.clear();
    launched_ = runs_;
  }
  void note(Rule rule, const char* call) {
    if (launched_) since_.emplace_back(rule, call);
  }

 private:
  bool runs_ = false, launched_ = false;
  std::vector<std::pair<Rule, std::string>> since_;
};

// Failures that a test requested. 0: none.
struct Faults {
  uint64_t launch = 0;  // this many launches from now, the launch fails when the device reaches it
  cudaError_t launch_error = cudaErrorIllegalAddress;
  uint64_t allocation = 0;  // this many allocations from now, the allocation finds no memory
  std::string call;  // this many calls of this name from now, the call does nothing, returns `answer`, and is the first to report `loss`
  uint64_t call_number = 0;
  int answer = 0;
  cudaError_t loss = cudaSuccess;
  // Returns true if it is the turn of the failing call.
  static bool strikes(uint64_t& left) { return left > 0 && --left == 0; }
};

struct Process {
  static Process& get();

  std::mutex mutex;  // guards the members below
  Settings settings = Settings::read();
  BrokenRules rules;
  CallLog calls;
  RunWindow run;
  Faults faults;
  Memory memory;
  Engine engine{mutex};
  Table<cudaStream_t, Stream> streams{0x51000000};
  Table<cudaEvent_t, Event> events{0x52000000};
  Table<cudaLibrary_t, Library> libraries{0x53000000};
  Table<cudaKernel_t, Kernel> kernels{0x54000000};
  Table<nvrtcProgram, Source> programs{0x55000000};
  Table<cublasLtHandle_t, int> lt_handles{0x56000000};      // with the device that each is for
  std::map<const void*, std::shared_ptr<void>> lt_objects;  // descriptions, layouts and preferences that were made and not destroyed
  Table<cudnnHandle_t, CudnnHandle> cudnn_handles{0x57000000};
  Table<cudnnBackendDescriptor_t, BackendDescriptor> cudnn_descriptors{0x58000000};
  std::map<int, std::shared_ptr<Stream>> default_streams;  // by device
  std::map<std::pair<int, int>, bool> peers;               // device, and whose memory of cudaMalloc it may use
  Table<cudaMemPool_t, Pool> pools{0x59000000};
  std::map<int, std::pair<cudaMemPool_t, std::shared_ptr<Pool>>> default_pools;  // by device
  Table<nccl::Comm*, NcclComm> nccl_comms{0x5b000000};
  std::vector<std::shared_ptr<NcclBoard>> nccl_boards;  // of ids that were made here
  Compiling compiling;
  std::condition_variable met;              // for compilations
  std::atomic<uint64_t> host_functions{0};  // that streams called, since the stand-in was loaded
  uint64_t resets = 0;

  // Returns the stream, or null after reporting that the rule is broken. For CUDA's own handles it is the default stream of the current
  // device.
  std::shared_ptr<Stream> stream_of(cudaStream_t handle, const char* call);
  std::shared_ptr<Event> event_of(cudaEvent_t handle, const char* call);
  // Returns the pool, made or a device's default; null if there is none by that handle.
  std::shared_ptr<Pool> pool_of(cudaMemPool_t handle) const;
  cudaMemPool_t default_pool(int device);
  // Returns true if the device may use the block.
  bool may_use(int device, const Block& block) const;
  // Records that work of the stream at `place` reads or writes the block.
  void use(Block& block, const Stream& stream, const char* call);
  // Records that the host waits here.
  void wait_on_host(Lock& lock, const Stream& stream, const char* call);
  // Reports "leak: 2 streams", one line for each kind of object that is left.
  void report_leaks();
  // For tests: resets to the state after loading, except for the log.
  void reset(Lock& lock);
};

// The state of the calling thread.
struct ThreadState {
  int device = 0;
  cudaError_t last_error = cudaSuccess;
  // True if the thread has received an error after which CUDA cannot continue, since the last reset.
  bool told = false;
  uint64_t resets = 0;
};
ThreadState& this_thread();

// The purpose of a call. A thread that has received an error after which CUDA cannot continue must not enqueue more work.
enum class CallKind : uint8_t { work, other };

// Counts and logs the call. Returns cudaSuccess, or the error that every call returns by now.
cudaError_t begin_call(Process& process, const char* name, CallKind kind);
cudaError_t end_call(Process& process, cudaError_t error);
// Returns true if a test requested that this call fails, and gives its answer.
bool fails_call(Process& process, const char* name, int* answer);

// The common frame of each function of the runtime: body(process, lock) gives its answer.
template <class Body>
cudaError_t api(const char* name, CallKind kind, const Body& body) {
  Process& process = Process::get();
  Lock lock(process.mutex);
  const cudaError_t before = begin_call(process, name, kind);
  int answer = 0;
  if (before == cudaSuccess && fails_call(process, name, &answer)) return end_call(process, static_cast<cudaError_t>(answer));
  return end_call(process, before != cudaSuccess ? before : body(process, lock));
}

}  // namespace heddle::cuda::standin
