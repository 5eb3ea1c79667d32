// The state that the CUDA plugin leaves when a stream is destroyed, or a call of NVIDIA's libraries fails.
#include <atomic>
#include <thread>

#include "cuda/standin_tests/standin_program.h"
#include "device_program.h"

namespace heddle::cuda {
namespace {

using namespace testing_standin;
using CudaFailures = StandinTest;

std::shared_ptr<Device> first_device(const Runtime& runtime) {
  auto device = Internals::of(runtime).devices.open(*Internals::of(runtime).registry.snapshot(), "cuda:0");
  EXPECT_TRUE(device.ok()) << device.status().text();
  return *device;
}

// Enqueues a copy that is not waited for, of memory that is not pinned.
heddle_status enqueue_copy(Device& device, void* stream, int32_t kind, void* destination, const void* source, size_t bytes) {
  const heddle_copy copy = {sizeof(copy), kind, destination, source, bytes, nullptr};
  heddle_work work = {};
  work.struct_size = sizeof(work);
  work.copy = &copy;
  work.flags = HEDDLE_WORK_ENTERS;
  HostCall call;
  return device.enqueue(stream, work, &call);
}

// Multiplies [4, depth] by [depth, 5]; with depth 0 the output is filled with zeros.
Net product_net(int64_t depth) {
  NetBuilder b("product");
  b.output(b.add1("MatMul", "y", {b.input("a", DType::f32, Shape{4, depth}), b.input("b", DType::f32, Shape{depth, 5})}));
  return b.finish();
}
Net convolution_net() {
  NetBuilder b("convolution");
  b.output(b.add1("Conv", "y", {b.input("x", DType::f32, Shape{1, 3, 9, 8}), b.input("w", DType::f32, Shape{5, 3, 3, 3})}));
  return b.finish();
}

// ---------------------------------------------------------------- memory and streams

// The stream's buffers are in use until its copies are done.
TEST_F(CudaFailures, AStreamGoesWithItsBuffersWhenItsCopiesAreDone) {
  const std::shared_ptr<Device> device = first_device(cuda_runtime());
  constexpr size_t bytes = (size_t{5} << 20) + 77;
  auto memory = device->allocate(bytes);
  ASSERT_TRUE(memory.ok()) << memory.status().text();
  const std::vector<char> from(bytes, 'x');
  std::vector<char> to(bytes);
  {
    auto stream = device->create_stream();
    ASSERT_TRUE(stream.ok()) << stream.status().text();
    const Hold hold(cuda);
    ASSERT_EQ(enqueue_copy(*device, stream->get(), HEDDLE_COPY_HOST_TO_DEVICE, memory->get(), from.data(), bytes), HEDDLE_OK);
    ASSERT_EQ(enqueue_copy(*device, stream->get(), HEDDLE_COPY_DEVICE_TO_HOST, to.data(), memory->get(), bytes), HEDDLE_OK);
    cuda.log(1);
    std::atomic<bool> is_gone = false;
    std::thread opens([&] {
      const auto is_going = [&] {
        const std::string calls = cuda.logged();
        return calls.find("cudaStreamSynchronize") != std::string::npos || calls.find("cudaFreeHost") != std::string::npos;
      };
      while (!is_gone && !is_going()) std::this_thread::yield();
      hold.open();
    });
    *stream = DeviceStream();
    is_gone = true;
    opens.join();
    cuda.log(0);
  }
  EXPECT_EQ(to, from);
  EXPECT_EQ(broken(), "");
}

TEST_F(CudaFailures, AnAllocationThatIsNotWaitedForIsGivenBack) {
  const std::shared_ptr<Device> device = first_device(cuda_runtime());
  cuda.fail_call("cudaStreamSynchronize", 1, cudaErrorNotSupported, cudaSuccess);
  const Status status = device->allocate(1 << 20).status();
  EXPECT_EQ(status.code(), Code::device_failed) << status.text();
  size_t available = 0, total = 0;
  EXPECT_EQ(cuda.cudaMemGetInfo(&available, &total), cudaSuccess);
  EXPECT_EQ(available, total);
  EXPECT_TRUE(device->allocate(1 << 20).ok());
  EXPECT_EQ(broken(), "");
}

// The failing copy comes before one that works: the piece that was not used is available to the next copy.
TEST_F(CudaFailures, ACopyThatIsNotTakenLeavesTheStreamAsItWas) {
  const std::shared_ptr<Device> device = first_device(cuda_runtime());
  constexpr size_t bytes = size_t{1} << 20;
  auto memory = device->allocate(bytes);
  auto stream = device->create_stream();
  ASSERT_TRUE(memory.ok() && stream.ok());
  const std::vector<char> from(bytes, 'x');
  cuda.fail_call("cudaLaunchHostFunc", 1, cudaErrorNotSupported, cudaSuccess);
  EXPECT_EQ(enqueue_copy(*device, stream->get(), HEDDLE_COPY_HOST_TO_DEVICE, memory->get(), from.data(), bytes), HEDDLE_ERROR_DEVICE);
  EXPECT_EQ(enqueue_copy(*device, stream->get(), HEDDLE_COPY_HOST_TO_DEVICE, memory->get(), from.data(), bytes), HEDDLE_OK);
  HostCall call;
  EXPECT_EQ(device->synchronize(stream->get(), &call), HEDDLE_OK);
  std::vector<char> to(bytes);
  EXPECT_TRUE(device->read(to.data(), memory->get(), bytes).ok());
  EXPECT_EQ(to, from);
  EXPECT_EQ(cuda.cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(broken(), "");
}

TEST_F(CudaFailures, AnNvrtcThatDoesNotTellItsVersionIsAnError) {
  cuda.fail_call("nvrtcVersion", 1, NVRTC_ERROR_INTERNAL_ERROR, cudaSuccess);
  const Status status = prepare(cuda_runtime(), product_net(3), on_cuda()).status();
  EXPECT_NE(status.text().find("nvrtcVersion: "), std::string::npos) << status.text();
}

// ---------------------------------------------------------------- the device is lost

// The plugin first sees the fault as an error of a library, or of a fill.
TEST_F(CudaFailures, AFaultOfTheDeviceIsLossWhoeverTellsOfIt) {
  struct Teller {
    const char* call;
    int answer;
    Net net;
  };
  Teller tellers[] = {{"cublasLtMatmul", CUBLAS_STATUS_EXECUTION_FAILED, product_net(3)},
                      {"cudnnBackendExecute", CUDNN_STATUS_EXECUTION_FAILED, convolution_net()},
                      {"cudaMemsetAsync", cudaErrorIllegalAddress, product_net(0)}};
  for (Teller& teller : tellers) {
    SCOPED_TRACE(teller.call);
    cuda.reset();
    {
      const Runtime runtime = cuda_runtime();
      auto there = prepare(runtime, std::move(teller.net), on_cuda());
      ASSERT_TRUE(there.ok() && there->context.run().ok()) << there.status().text();
      cuda.fail_call(teller.call, 1, teller.answer, cudaErrorIllegalAddress);
      const Status lost = there->context.run();
      EXPECT_EQ(lost.code(), Code::device_lost) << lost.text();
      EXPECT_NE(lost.text().find("an illegal memory access was encountered (cudaErrorIllegalAddress)"), std::string::npos) << lost.text();
      EXPECT_EQ(there->context.run().code(), Code::device_lost);
    }
    EXPECT_EQ(broken(), "") << "nothing more was asked of it";
  }
}

// Every call fails then, and some calls of the libraries block.
TEST_F(CudaFailures, NothingOfALostDeviceIsGivenBack) {
  std::string calls;
  {
    const Runtime runtime = cuda_runtime();
    auto product = prepare(runtime, product_net(3), on_cuda()), convolution = prepare(runtime, convolution_net(), on_cuda());
    ASSERT_TRUE(product.ok() && product->context.run().ok()) << product.status().text();
    ASSERT_TRUE(convolution.ok() && convolution->context.run().ok()) << convolution.status().text();
    std::vector<char> bytes(size_t{5} << 20);
    const std::shared_ptr<Device> device = first_device(runtime);
    auto memory = device->allocate(static_cast<int64_t>(bytes.size()));
    ASSERT_TRUE(memory.ok() && device->write(memory->get(), bytes.data(), static_cast<int64_t>(bytes.size())).ok());
    cuda.fail_call("cublasLtMatmul", 1, CUBLAS_STATUS_EXECUTION_FAILED, cudaErrorIllegalAddress);
    EXPECT_EQ(product->context.run().code(), Code::device_lost);
    cuda.log(1);
  }
  calls = cuda.logged();
  cuda.log(0);
  for (const char* never : {"cudnnDestroy", "cublasLtDestroy", "cudaLibraryUnload", "cudaFreeHost", "cudaFreeAsync", "cudaMemPoolDestroy",
                            "cudaStreamDestroy", "cudaEventDestroy"})
    EXPECT_EQ(calls.find(never), std::string::npos) << never << " in " << calls;
}

TEST_F(CudaFailures, AnErrorOfALibraryAloneIsNoLoss) {
  auto there = prepare(cuda_runtime(), product_net(3), on_cuda());
  ASSERT_TRUE(there.ok() && there->context.run().ok()) << there.status().text();
  cuda.fail_call("cublasLtMatmul", 1, CUBLAS_STATUS_EXECUTION_FAILED, cudaSuccess);
  const Status failed = there->context.run();
  EXPECT_EQ(failed.code(), Code::device_failed) << failed.text();
  EXPECT_NE(failed.text().find("cublasLtMatmul: "), std::string::npos) << failed.text();
  EXPECT_TRUE(there->context.run().ok());
  EXPECT_EQ(cuda.cudaGetLastError(), cudaSuccess);
}

// ---------------------------------------------------------------- cuDNN's plans

// The first three queries by which a plan is chosen: the heuristics' offers, and the engine of the first offer.
TEST_F(CudaFailures, OnlyWhatCudnnDoesNotSupportIsDoneAnotherWay) {
  for (const uint64_t question : {1, 2, 3}) {
    SCOPED_TRACE(question);
    const auto planned = [&](cudnnStatus_t answer) {
      cuda.reset();
      const Runtime runtime = cuda_runtime();
      cuda.fail_call("cudnnBackendGetAttribute", question, answer, cudaSuccess);
      return prepare(runtime, convolution_net(), on_cuda()).status();
    };
    const Status memory = planned(CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED);
    EXPECT_EQ(memory.code(), Code::out_of_memory) << memory.text();
    const Status fault = planned(CUDNN_STATUS_EXECUTION_FAILED);
    EXPECT_EQ(fault.code(), Code::device_failed) << fault.text();
    const Status other = planned(CUDNN_STATUS_NOT_SUPPORTED_SHAPE);
    EXPECT_TRUE(other.ok()) << other.text();
  }
}

}  // namespace
}  // namespace heddle::cuda
