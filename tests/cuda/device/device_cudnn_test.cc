// Graphs of convolutions, planned by NVIDIA's own cuDNN where it is installed: it accepts the descriptors, offers engines for them, and
// finalizes plans for a described device. Nothing is run, so no device is needed.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "library/cudnn_graph.h"

namespace heddle::cuda::cudnn {
namespace {

// The properties of a device that cuDNN reads, for an H100.
constexpr char h100[] =
    R"({"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,"multiProcessorCount":132,)"
    R"("smClockRateKHz":1980000,"memClockRateKHz":2619000,"l2CacheSize":52428800,"warpSize":32,"maxSharedMemoryPerBlock":49152,)"
    R"("maxSharedMemoryPerBlockOptin":232448,"reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"pciDeviceId":0,)"
    R"("maxCtasPerSM":32,"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"isTccDriver":0,"supportCoopLaunch":1,"deviceVer":900,)"
    R"("driverVer":13000,"driverVersion":13000,"cudaDeviceId":0,"totalGlobalMem":85014216704,"deviceName":"NVIDIA H100 80GB HBM3",)"
    R"("deviceId":0})";

Status h100_properties(Descriptor* properties) {
  HEDDLE_PLUGIN_CHECK(Descriptor::make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "device", properties));
  HEDDLE_CUDNN_SET(*properties, DEVICEPROP_JSON_REPRESENTATION, CHAR, sizeof(h100) - 1, h100);
  return properties->finalize();
}

struct Wanted {
  cudnnDataType_t dtype = CUDNN_DATA_FLOAT;
  bool channels_last = false, of_data = false;
  int64_t groups = 1;
  int fused = 0;  // bias, relu
  int spatial = 2;
  bool is_corner = false;   // the output has the strides of a larger tensor
  bool is_widened = false;  // f32 whose values are those of 16-bit numbers
};

TensorShape shape_of(const Wanted& wanted, std::array<int64_t, max_dims> dims, bool channels_last, bool between = false) {
  TensorShape shape;
  shape.rank = wanted.spatial + 2;
  for (int i = 0; i < shape.rank; ++i) shape.dims[i] = dims[static_cast<size_t>(i)];
  shape.dtype = between && wanted.dtype != CUDNN_DATA_DOUBLE ? CUDNN_DATA_FLOAT : wanted.dtype;
  shape.is_virtual = between;
  set_dense_strides(channels_last, &shape);
  return shape;
}

Status plan(const Wanted& wanted, const Descriptor& properties) {
  Graph graph;
  Plan plan;
  int64_t x = 0, w = 0, y = 0, bias = 0, sum = 0, biased = 0;
  const bool last = wanted.channels_last;
  const TensorShape small = shape_of(wanted, {2, 16, 12, 12, 12}, last),
                    filter = shape_of(wanted, {32, 16 / wanted.groups, 3, 3, 3}, false);
  const TensorShape large = shape_of(wanted, {2, 32, 12, 12, 12}, last);
  const TensorShape virtual_one =
      shape_of(wanted, wanted.of_data ? std::array<int64_t, max_dims>{2, 16, 12, 12, 12} : std::array<int64_t, max_dims>{2, 32, 12, 12, 12},
               last, true);
  HEDDLE_PLUGIN_CHECK(graph.add_tensor(wanted.of_data ? large : small, &x));
  HEDDLE_PLUGIN_CHECK(graph.add_tensor(filter, &w));
  TensorShape written = wanted.of_data ? small : large;
  if (wanted.is_corner) {
    written = shape_of(wanted, {2, 16, 14, 15, 13}, last);
    for (int i = 2; i < written.rank; ++i) written.dims[i] = 12;
  }
  HEDDLE_PLUGIN_CHECK(graph.add_tensor(written, &y));
  sum = y;
  if (wanted.fused > 0) HEDDLE_PLUGIN_CHECK(graph.add_tensor(virtual_one, &sum));
  ConvolutionShape convolution;
  convolution.spatial = wanted.spatial;
  for (int i = 0; i < wanted.spatial; ++i) convolution.pad_begin[i] = convolution.pad_end[i] = 1;
  convolution.compute = virtual_one.dtype;
  convolution.of_data = wanted.of_data;
  HEDDLE_PLUGIN_CHECK(wanted.of_data ? graph.add_convolution(convolution, sum, w, x) : graph.add_convolution(convolution, x, w, sum));
  if (wanted.fused > 0) {
    HEDDLE_PLUGIN_CHECK(graph.add_tensor(shape_of(wanted, {1, wanted.of_data ? 16 : 32, 1, 1, 1}, last), &bias));
    biased = y;
    if (wanted.fused > 1) HEDDLE_PLUGIN_CHECK(graph.add_tensor(virtual_one, &biased));
    PointwiseShape pointwise;
    pointwise.compute = convolution.compute;
    HEDDLE_PLUGIN_CHECK(graph.add_pointwise(pointwise, sum, bias, biased));
    pointwise.mode = CUDNN_POINTWISE_RELU_FWD;
    if (wanted.fused > 1) HEDDLE_PLUGIN_CHECK(graph.add_pointwise(pointwise, biased, -1, y));
  }
  const Target target = {nullptr, &properties};
  PlanRules rules;
  rules.converts = wanted.dtype == CUDNN_DATA_HALF || wanted.dtype == CUDNN_DATA_BFLOAT16;
  rules.tensor_cores = rules.converts || wanted.is_widened;
  rules.max_workspace_bytes = uint64_t{1} << 30;
  HEDDLE_PLUGIN_CHECK(graph.finish(target));
  return plan.choose(graph, target, rules);
}

// Checks that cuDNN accepts the graph. Its engines for it are compiled where there is a driver, which there is not here.
Status describe_attention(cudnnDataType_t dtype, bool splits_heads) {
  Graph graph;
  const auto tensor = [&](int64_t rows, int64_t columns, int64_t* id) {
    TensorShape shape;
    shape.rank = 4;
    shape.dtype = dtype;
    const int64_t dims[] = {2, 12, rows, columns}, merged[] = {rows * 12 * columns, columns, 12 * columns, 1},
                  apart[] = {12 * rows * columns, rows * columns, columns, 1};
    std::copy_n(dims, 4, shape.dims);
    std::copy_n(splits_heads ? merged : apart, 4, shape.strides);
    return graph.add_tensor(shape, id);
  };
  int64_t query = 0, key = 0, value = 0, factor = 0, output = 0;
  HEDDLE_PLUGIN_CHECK(tensor(7, 64, &query));
  HEDDLE_PLUGIN_CHECK(tensor(13, 64, &key));
  HEDDLE_PLUGIN_CHECK(tensor(13, 32, &value));
  TensorShape one;
  one.rank = 4;
  std::fill_n(one.dims, 4, 1);
  std::fill_n(one.strides, 4, 1);
  one.is_by_value = true;
  HEDDLE_PLUGIN_CHECK(graph.add_tensor(one, &factor));
  HEDDLE_PLUGIN_CHECK(tensor(7, 32, &output));
  HEDDLE_PLUGIN_CHECK(graph.add_attention(query, key, value, factor, output));
  return graph.finish({});
}

std::string name_of(const Wanted& wanted) {
  return "dtype " + std::to_string(wanted.dtype) + (wanted.channels_last ? ", channels last" : ", channels first") + ", " +
         std::to_string(wanted.groups) + " groups, " + std::to_string(wanted.spatial) + " dimensions, " + std::to_string(wanted.fused) +
         " epilogue ops" + (wanted.is_corner ? ", into a corner" : "") + (wanted.is_widened ? ", widened" : "") +
         (wanted.of_data ? ", of data: " : ": ");
}

// Returns lines that describe failures. cuDNN fuses nothing into the gradient of data: the kernel plans without epilogue ops there.
std::string try_all() {
  ::unsetenv("HEDDLE_CUDA_STANDIN");
  if (const std::string& missing = Api::get().missing_cudnn(); !missing.empty()) return "missing: " + missing;
  Descriptor properties;
  Status status = h100_properties(&properties);
  if (!status.ok()) return "missing: plans without a device: " + status.text;
  std::string wrong;
  for (const cudnnDataType_t dtype : {CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16})
    for (const bool splits_heads : {false, true}) {
      status = describe_attention(dtype, splits_heads);
      if (!status.ok()) wrong += "attention: " + status.text + "\n";
    }
  for (const cudnnDataType_t dtype : {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16, CUDNN_DATA_DOUBLE})
    for (const bool last : {false, true})
      for (const bool of_data : {false, true})
        for (const int64_t groups : {1, 16})
          for (const int spatial : {2, 3})
            for (const int fused : {-1, 0, 1, 2}) {
              const bool is_corner = fused < 0;
              if (is_corner && !of_data) continue;
              const Wanted wanted = {dtype, last, of_data, groups, std::max(fused, 0), spatial, is_corner};
              if (dtype == CUDNN_DATA_FLOAT && fused <= 0) {
                Wanted widened = wanted;
                widened.is_widened = true;
                status = plan(widened, properties);
                if (!status.ok()) wrong += name_of(widened) + status.text + "\n";
              }
              status = plan(wanted, properties);
              const bool may_refuse = fused > 0 && of_data && status.code == HEDDLE_ERROR_UNSUPPORTED;
              if (!status.ok() && !may_refuse) wrong += name_of(wanted) + status.text + "\n";
            }
  return wrong;
}

// Runs in a process of its own, because the other tests here must not load NVIDIA's libraries.
TEST(CudnnGraphs, AreTakenByNvidiasLibrary) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string text = try_all();
    const ssize_t written = ::write(ends[1], text.data(), text.size());
    ::_exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text;
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t n = ::read(ends[0], buffer.data(), buffer.size());
    if (n <= 0) break;
    text.append(buffer.data(), static_cast<size_t>(n));
  }
  ::close(ends[0]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  if (text.rfind("missing: ", 0) == 0) GTEST_SKIP() << text;
  EXPECT_EQ(text, "");
}

}  // namespace
}  // namespace heddle::cuda::cudnn
