// Nets whose extents are found on the CUDA device of the stand-in: the host's elements, the same number of them, and the operators that
// follow.
#include "device_program.h"

namespace heddle::cuda {
namespace {

using namespace testing_standin;
using CudaCompact = StandinTest;

Net finding_net() {
  NetBuilder b("found");
  const ValueId x = b.input("x", DType::f32, Shape{9, 70}), condition = b.input("condition", DType::boolean, Shape{8});
  const ValueId places = b.add1("NonZero", "places", {x});
  b.output(places);
  b.output(b.add1("Transpose", "turned", {places}));
  const ValueId rows = b.add1("Compress", "rows", {x, condition}, {{"axis", int64_t{0}}});
  b.output(rows);
  b.output(b.add1("Neg", "negative", {rows}));
  b.output(b.add1("Compress", "some", {x, condition}));
  const uint8_t known[3] = {1, 0, 1};
  b.output(b.add1("Compress", "known", {x, b.constant("which", Blob::copy_of(DType::boolean, Shape{3}, known))}, {{"axis", int64_t{-1}}}));
  return b.finish();
}

TEST_F(CudaCompact, ExtentsAreFoundThere) {
  auto host = prepare(cuda_runtime(), finding_net(), {});
  ASSERT_TRUE(host.ok()) << host.status().text();
  for (const int streams : {1, 3}) {
    auto there = prepare(cuda_runtime(), finding_net(), on_cuda(streams));
    ASSERT_TRUE(there.ok()) << there.status().text();
    for (const PlanStep& step : there->plan().steps)
      EXPECT_TRUE(step.on_device || step.type == "Fence" || step.type == "Extents") << step.name << " is on the host";
    for (uint64_t seed = 1; seed < 6; ++seed) {
      const auto x = seed == 4 ? Blob::copy_of(DType::f32, Shape{9, 70}, std::vector<float>(630).data())
                               : small_numbers(DType::f32, Shape{9, 70}, seed);
      const auto condition = seed == 5 ? Blob::copy_of(DType::boolean, Shape{8}, std::vector<uint8_t>(8).data())
                                       : small_numbers(DType::boolean, Shape{8}, seed);
      for (Prepared* const one : {&*host, &*there}) {
        ASSERT_TRUE(one->context.bind_input(0, x->data).ok() && one->context.bind_input(1, condition->data).ok());
        const Status status = one->context.run();
        ASSERT_TRUE(status.ok()) << status.text();
      }
      for (size_t i = 0; i < host->context.output_count(); ++i) {
        EXPECT_EQ(there->context.output(i).shape, host->context.output(i).shape) << i;
        EXPECT_EQ(there->outputs()[i], host->outputs()[i]) << i;
      }
    }
  }
  EXPECT_EQ(broken(), "");
}

// Nothing is chosen, and the extent is still written, by kernels whose scratch is not empty.
TEST_F(CudaCompact, OfNothingIsNothing) {
  const auto net = [] {
    NetBuilder b("nothing");
    const ValueId x = b.input("x", DType::f16, Shape{0}), condition = b.input("condition", DType::boolean, Shape{0});
    const ValueId rows = b.input("rows", DType::f32, Shape{3, 0});
    b.output(b.add1("Compress", "some", {x, condition}));
    b.output(b.add1("Compress", "rows_some", {rows, condition}, {{"axis", int64_t{1}}}));
    b.output(b.add1("NonZero", "places", {x}));
    b.output(b.add1("NonZero", "places_of_rows", {rows}));
    return b.finish();
  };
  auto host = prepare(cuda_runtime(), net(), {});
  auto there = prepare(cuda_runtime(), net(), on_cuda());
  ASSERT_TRUE(host.ok() && there.ok()) << host.status().text() << there.status().text();
  for (Prepared* const one : {&*host, &*there}) {
    const Status status = one->context.run();
    ASSERT_TRUE(status.ok()) << status.text();
  }
  for (const PlanStep& step : there->plan().steps)
    EXPECT_TRUE(step.on_device || step.type == "Fence" || step.type == "Extents") << step.name << " is on the host";
  for (size_t i = 0; i < host->context.output_count(); ++i) EXPECT_EQ(there->context.output(i).shape, host->context.output(i).shape) << i;
  EXPECT_EQ(broken(), "");
}

}  // namespace
}  // namespace heddle::cuda
