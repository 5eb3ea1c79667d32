// device_loop NET.json: a program with values on a GPU and a stream of its own, which has a net compute its next state from its last.
//
// The state never leaves the GPU. The program only enqueues: what makes a state before a run, and what moves it behind one, is ordered with
// the net's work by the GPU, and the program waits for its stream once, at the end. For nets of one input and one output of the same f32
// shape, such as relax.json.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "heddle/session.h"

namespace {

const char* const gpu = "cuda:0";

heddle::Status checked(cudaError_t error) {
  if (error == cudaSuccess) return {};
  return {heddle::Code::device_failed, std::string("CUDA: ") + cudaGetErrorString(error), "see heddle devices"};
}

struct DeviceMemory {
  void* data = nullptr;
  DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() { cudaFree(data); }
};

struct Stream {
  cudaStream_t handle = nullptr;
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    if (handle) cudaStreamDestroy(handle);
  }
};

heddle::Status relax(const char* net) {
  HEDDLE_CHECK(checked(cudaSetDevice(0)));
  DeviceMemory now, next;  // these and the stream stay longer than the context that is given them
  Stream own;
  HEDDLE_CHECK(checked(cudaStreamCreateWithFlags(&own.handle, cudaStreamNonBlocking)));

  HEDDLE_TRY(const heddle::Runtime runtime, heddle::Runtime::create({}));
  heddle::SessionOptions options;
  options.device = gpu;
  options.copies = heddle::Copies::strict;  // a net that would cross to the host is refused
  options.placed_ports = {{"now", gpu}, {"next", gpu}};
  HEDDLE_TRY(heddle::Session session, runtime.open(net, options));
  HEDDLE_TRY(heddle::Context context, session.prepare());
  const auto bytes = static_cast<size_t>(context.input(0).byte_size());
  HEDDLE_CHECK(checked(cudaMalloc(&now.data, bytes)));
  HEDDLE_CHECK(checked(cudaMalloc(&next.data, bytes)));
  HEDDLE_CHECK(context.bind_input(0, now.data));
  HEDDLE_CHECK(context.bind_output(0, next.data));

  std::vector<float> state(bytes / sizeof(float), 100.0f);
  HEDDLE_CHECK(checked(cudaMemcpyAsync(now.data, state.data(), bytes, cudaMemcpyHostToDevice, own.handle)));
  const heddle::CallerStream made_on = {gpu, own.handle};  // what a run reads has been enqueued there
  heddle::RunOptions run;
  run.streams = &made_on;
  run.stream_count = 1;
  for (int step = 0; step < 30; ++step) {
    HEDDLE_CHECK(context.run(run));
    HEDDLE_CHECK(checked(cudaMemcpyAsync(now.data, next.data, bytes, cudaMemcpyDeviceToDevice, own.handle)));
  }
  HEDDLE_CHECK(checked(cudaMemcpyAsync(state.data(), now.data, bytes, cudaMemcpyDeviceToHost, own.handle)));
  HEDDLE_CHECK(checked(cudaStreamSynchronize(own.handle)));

  float farthest = 0;
  for (const float number : state) farthest = std::max(farthest, std::abs(number - 2));
  std::printf("%zu numbers, at most %g from 2\n", state.size(), static_cast<double>(farthest));
  if (farthest <= 1e-6f) return {};
  return {heddle::Code::internal, "the numbers did not arrive"};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: device_loop NET.json\n"), 2;
  const heddle::Status status = relax(argv[1]);
  if (!status.ok()) return std::fprintf(stderr, "%s\n", status.text().c_str()), 1;
  return 0;
}
