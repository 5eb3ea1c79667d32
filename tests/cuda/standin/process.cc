#include "process.h"

#include <csignal>
#include <cstdio>

#include "native.h"

namespace heddle::cuda::standin {

Process& Process::get() {
  static Process& process = *new Process();  // never destroyed: other threads use it until the process ends
  return process;
}

ThreadState& this_thread() {
  static thread_local ThreadState state;
  return state;
}

// "This leaves the process in an inconsistent state and any further CUDA work will return the same error" (Runtime API,
// cudaErrorIllegalAddress).
cudaError_t begin_call(Process& process, const char* name, CallKind kind) {
  ++process.calls.made;
  if (process.calls.on) process.calls.names.push_back(name);
  const cudaError_t lost = process.engine.lost();
  ThreadState& thread = this_thread();
  if (lost != cudaSuccess && thread.told && thread.resets == process.resets && kind == CallKind::work)
    process.rules.add(Rule::sticky, name);
  return lost;
}

bool fails_call(Process& process, const char* name, int* answer) {
  Faults& faults = process.faults;
  if (faults.call != name || !Faults::strikes(faults.call_number)) return false;
  if (faults.answer == HEDDLE_STANDIN_STOP) return ::raise(SIGSTOP), false;
  if (faults.loss != cudaSuccess) process.engine.lose(faults.loss);
  return *answer = faults.answer, true;
}

cudaError_t end_call(Process& process, cudaError_t error) {
  ThreadState& thread = this_thread();
  if (process.engine.lost() != cudaSuccess) {
    error = process.engine.lost();
    thread.told = true;
    thread.resets = process.resets;
  }
  if (error != cudaSuccess) thread.last_error = error;
  return error;
}

std::shared_ptr<Stream> Process::stream_of(cudaStream_t handle, const char* call) {
  if (handle == nullptr || handle == cudaStreamLegacy || handle == cudaStreamPerThread) {
    rules.add(Rule::default_stream, call);
    std::shared_ptr<Stream>& stream = default_streams[this_thread().device];
    if (!stream) stream = engine.make_stream(this_thread().device, true, true);
    return stream;
  }
  std::shared_ptr<Stream> stream = streams.find(handle);
  if (!stream) rules.add(Rule::unknown_stream, call);
  if (stream && stream->nccl_calls > 0) rules.add(Rule::nccl_stream_busy, call);
  for (const NcclPending& p : this_nccl_group().calls)
    if (stream && p.stream == stream) rules.add(Rule::nccl_group_open, call);
  return stream;
}

std::shared_ptr<Event> Process::event_of(cudaEvent_t handle, const char* call) {
  std::shared_ptr<Event> event = events.find(handle);
  if (!event) rules.add(Rule::unknown_event, call);
  return event;
}

std::shared_ptr<Pool> Process::pool_of(cudaMemPool_t handle) const {
  if (std::shared_ptr<Pool> pool = pools.find(handle)) return pool;
  for (const auto& [device, known] : default_pools)
    if (known.first == handle) return known.second;
  return nullptr;
}

cudaMemPool_t Process::default_pool(int device) {
  auto& [handle, pool] = default_pools[device];
  if (!pool) {
    pool = std::make_shared<Pool>();
    pool->device = device;
    handle = reinterpret_cast<cudaMemPool_t>(uintptr_t{0x5a000000} + static_cast<uintptr_t>(device));
  }
  return handle;
}

bool Process::may_use(int device, const Block& block) const {
  if (device == block.device) return true;
  if (block.pool) {
    const std::shared_ptr<Pool> pool = pool_of(block.pool);
    return pool && pool->devices.count(device) > 0;
  }
  const auto found = peers.find({device, block.device});
  return found != peers.end() && found->second;
}

void Process::use(Block& block, const Stream& stream, const char* call) {
  if (!stream.before.covers(block.allocated) && !engine.known_to_host().covers(block.allocated))
    rules.add(Rule::used_before_allocated, call);
  block.uses.add(stream.place());
}

void Process::wait_on_host(Lock& lock, const Stream& stream, const char* call) {
  run.note(Rule::synchronises, call);
  engine.wait_on_host(lock, stream);
}

void Process::report_leaks() {
  const auto left = [&](size_t number, const char* what) {
    if (number > 0) rules.add(Rule::leak, std::to_string(number) + " " + what);
  };
  left(memory.blocks(), "pieces of device memory");
  left(memory.host_blocks(), "pieces of host memory");
  left(pools.size(), "pools of device memory");
  left(streams.size(), "streams");
  left(events.size(), "events");
  left(libraries.size(), "libraries");
  left(programs.size(), "programs of NVRTC's");
  left(lt_handles.size(), "handles of cuBLASLt's");
  left(lt_objects.size(), "descriptions of cuBLASLt's");
  left(nccl_comms.size(), "communicators of NCCL");
  left(cudnn_handles.size(), "handles of cuDNN's");
  left(cudnn_descriptors.size(), "descriptors of cuDNN's");
}

void Process::reset(Lock& lock) {
  engine.reset(lock);
  ++resets;
  rules.take();
  run.end();
  faults = {};
  for (auto& [device, stream] : default_streams) engine.let_go(stream);
  default_streams.clear();
  streams.remove_if([&](const std::shared_ptr<Stream>& stream) { return engine.let_go(stream), true; });
  events.clear();
  kernels.clear();
  libraries.clear();
  programs.clear();
  lt_handles.clear();
  lt_objects.clear();
  cudnn_handles.clear();
  cudnn_descriptors.clear();
  memory.clear();
  peers.clear();
  pools.clear();
  default_pools.clear();
  nccl_comms.remove_if([](const std::shared_ptr<NcclComm>& comm) { return comm->ended = true; });
  nccl_boards.clear();
  std::erase(open_nccl_groups(), &this_nccl_group());
  this_nccl_group() = {};
  compiling = {};
}

namespace {

// Runs when the process ends, or the library is closed.
[[gnu::destructor]] void say_what_was_broken() {
  Process& process = Process::get();
  const Lock lock(process.mutex);
  if (process.engine.lost() == cudaSuccess) process.report_leaks();
  for (const std::string& line : process.rules.take()) {
    const std::string name = line.substr(0, line.find(':'));
    for (const RuleText& text : rule_texts())
      if (name == text.name) std::fprintf(stderr, "cuda stand-in: %s (%s; %s)\n", line.c_str(), text.what, text.source);
  }
}

}  // namespace

}  // namespace heddle::cuda::standin
