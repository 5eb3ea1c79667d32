// Nets of Resize, GridSample and RoiAlign on the CUDA device of the stand-in: all of them on the device, with the host's results.
#include <algorithm>
#include <cmath>
#include <set>

#include "conformance/judge.h"
#include "conformance/reference.h"
#include "device_program.h"

namespace heddle::cuda {
namespace {

using namespace testing_standin;
using Ints = std::vector<int64_t>;

std::vector<conformance::Numbers> output_numbers(Prepared& prepared) {
  std::vector<conformance::Numbers> all;
  const Status status = prepared.context.run();
  EXPECT_TRUE(status.ok()) << status.text();
  for (size_t i = 0; status.ok() && i < prepared.context.output_count(); ++i) {
    const TensorView y = prepared.context.output(i);
    all.push_back(conformance::numbers_of(*Blob::copy_of(y.dtype, y.shape, y.data)));
  }
  return all;
}

class CudaSpatial : public StandinTest {
 protected:
  // Compares within the difference between the last bits of a sum in double and one in float.
  static void expect_near(const std::vector<conformance::Numbers>& got, const std::vector<conformance::Numbers>& right, double most) {
    ASSERT_EQ(got.size(), right.size());
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i].shape, right[i].shape) << "output " << i;
      for (size_t k = 0; k < got[i].values.size(); ++k)
        ASSERT_LE(std::fabs(got[i].values[k] - right[i].values[k]), most * (1 + std::fabs(right[i].values[k])))
            << "output " << i << "[" << k << "]";
    }
  }
  void expect_the_hosts(const Net& net, double most = 0) {
    auto host = prepare(cuda_runtime(), Net(net), {});
    ASSERT_TRUE(host.ok()) << host.status().text();
    const auto right = output_numbers(*host);
    for (const int streams : {1, 3}) {
      auto there = prepare(cuda_runtime(), Net(net), on_cuda(streams));
      ASSERT_TRUE(there.ok()) << there.status().text();
      for (const PlanStep& step : there->plan().steps) EXPECT_TRUE(step.on_device || step.type == "Fence") << step.type;
      for (int run = 0; run < 2; ++run) expect_near(output_numbers(*there), right, most);
    }
    EXPECT_EQ(broken(), "");
  }
};

std::shared_ptr<const Blob> blob_of_floats(const std::vector<float>& values) {
  return Blob::copy_of(DType::f32, Shape{static_cast<int64_t>(values.size())}, values.data());
}

TEST_F(CudaSpatial, Resizes) {
  NetBuilder b("resizes");
  const ValueId none;
  for (const DType dtype : {DType::f32, DType::f16, DType::i32}) {
    const std::string of = std::string(" of ") + to_string(dtype);
    const ValueId x = b.input("x" + of, dtype, Shape{2, 3, 5, 7}), scales = b.constant("scales" + of, blob_of_floats({1, 1, 2, 1.3f}));
    for (const char* const mode : {"nearest", "linear", "cubic"}) {
      const std::string name = mode + of;
      b.output(b.add1("Resize", name, {x, none, scales}, {{"mode", std::string(mode)}}));
      b.output(
          b.add1("Resize", "sizes " + name, {x, none, none, b.constant_ints("to " + name, {3, 4})},
                 {{"mode", std::string(mode)}, {"axes", Ints{2, 3}}, {"coordinate_transformation_mode", std::string("align_corners")}}));
      if (mode != std::string("nearest"))
        b.output(b.add1("Resize", "antialias " + name, {x, none, none, b.constant_ints("smaller " + name, {2, 3, 2, 3})},
                        {{"mode", std::string(mode)}, {"antialias", int64_t{1}}}));
    }
  }
  expect_the_hosts(b.finish());
}

// The roi is computed on the device.
TEST_F(CudaSpatial, CropsOfARun) {
  NetBuilder b("crops");
  const ValueId x = b.input("x", DType::f32, Shape{2, 3, 5, 7}), half = b.input("half", DType::f32, Shape{8});
  const ValueId roi = b.add1("Add", "roi", {half, b.constant("rest", blob_of_floats({0, 0, 0.25f, 0.1f, 0, 1, 1, 0.75f}))});
  b.output(roi);
  for (const char* const mode : {"nearest", "linear", "cubic"})
    b.output(b.add1("Resize", mode, {x, roi, ValueId(), b.constant_ints(std::string("to ") + mode, {2, 3, 9, 4})},
                    {{"mode", std::string(mode)},
                     {"coordinate_transformation_mode", std::string("tf_crop_and_resize")},
                     {"extrapolation_value", 1.5}}));
  expect_the_hosts(b.finish(), 1e-6);
}

TEST_F(CudaSpatial, Samples) {
  NetBuilder b("samples");
  const ValueId grid = b.input("grid", DType::f32, Shape{2, 6, 5, 2}), volume_grid = b.input("places", DType::f32, Shape{2, 3, 2, 4, 3});
  for (const DType dtype : {DType::f32, DType::f16}) {
    const std::string of = std::string(" of ") + to_string(dtype);
    const ValueId x = b.input("x" + of, dtype, Shape{2, 3, 5, 7}), volume = b.input("volume" + of, dtype, Shape{2, 3, 2, 3, 4});
    for (const char* const mode : {"nearest", "linear", "cubic"})
      for (const char* const padding : {"zeros", "border", "reflection"}) {
        const std::vector<Attribute> how = {{"mode", std::string(mode)}, {"padding_mode", std::string(padding)}};
        b.output(b.add1("GridSample", mode + std::string(padding) + of, {x, grid}, how));
        b.output(b.add1("GridSample", std::string("in space ") + mode + padding + of, {volume, volume_grid}, how));
      }
  }
  expect_the_hosts(b.finish(), 1e-3);
}

TEST_F(CudaSpatial, Regions) {
  NetBuilder b("regions");
  const ValueId x = b.input("x", DType::f32, Shape{2, 3, 9, 8}), moved = b.input("moved", DType::f32, Shape{3, 4});
  const ValueId rois = b.add1("Add", "rois", {moved, b.constant("edges", blob_of_floats({1, 2, 6, 7}))});
  const ValueId batches = b.constant_ints("batches", {1, 0, 1});
  for (const char* const mode : {"avg", "max"})
    for (const int64_t ratio : {0, 2})
      b.output(
          b.add1("RoiAlign", mode + std::to_string(ratio), {x, rois, batches},
                 {{"mode", std::string(mode)}, {"sampling_ratio", ratio}, {"output_height", int64_t{3}}, {"output_width", int64_t{2}}}));
  expect_the_hosts(b.finish(), 1e-6);
}

// Scales that only a run knows: if the output's extents differ from the prepared ones, the step is prepared again.
TEST_F(CudaSpatial, SizesOfARun) {
  for (const char* const mode : {"nearest", "linear"}) {
    const auto net = [&] {
      NetBuilder b("late");
      const ValueId x = b.input("x", DType::f32, Shape{2, 3, 6, 8}), n = b.input("n", DType::i64, Shape{2});
      b.output(b.add1("Resize", "resize", {x, ValueId(), ValueId(), n},
                      {{"mode", std::string(mode)}, {"axes", Ints{2, 3}}, {"antialias", int64_t{1}}}));
      return b.finish();
    };
    auto host = prepare(cuda_runtime(), net(), {});
    auto there = prepare(cuda_runtime(), net(), on_cuda());
    ASSERT_TRUE(host.ok()) << host.status().text();
    ASSERT_TRUE(there.ok()) << there.status().text();
    const std::vector<PlanStep>& steps = there->plan().steps;
    EXPECT_TRUE(std::any_of(steps.begin(), steps.end(), [](const PlanStep& step) { return step.type == "Resize" && step.on_device; }));
    for (const Ints& sizes : {Ints{3, 4}, Ints{12, 5}, Ints{6, 8}, Ints{0, 4}, Ints{1, 1}}) {
      const auto bound = Blob::copy_of(DType::i64, Shape{2}, sizes.data());
      for (Prepared* const one : {&*host, &*there}) ASSERT_TRUE(one->context.bind_input(1, bound->data).ok());
      expect_near(output_numbers(*there), output_numbers(*host), 0);
    }
  }
  EXPECT_EQ(broken(), "");
}

}  // namespace
}  // namespace heddle::cuda
