// Nets of operators that move, pick, fill and scatter elements, on the CUDA device of the stand-in: all of them on the device, with the
// host's bits.
#include <algorithm>
#include <map>
#include <set>

#include "device_program.h"

namespace heddle::cuda {
namespace {

using namespace testing_standin;
using CudaMoves = StandinTest;

std::vector<std::vector<char>> outputs_of(Prepared& prepared) {
  const Status status = prepared.context.run();
  EXPECT_TRUE(status.ok()) << status.text();
  return status.ok() ? prepared.outputs() : std::vector<std::vector<char>>();
}

// Returns the types of the steps on the host, except those that only wait.
std::set<std::string> on_host(Prepared& prepared) {
  std::set<std::string> types;
  for (const PlanStep& step : prepared.plan().steps)
    if (!step.on_device && step.type != "Fence") types.insert(step.type);
  return types;
}

void expect_the_hosts_bits(const Net& net) {
  auto host = prepare(cuda_runtime(), Net(net), {});
  ASSERT_TRUE(host.ok()) << host.status().text();
  const auto right = outputs_of(*host);
  for (const int streams : {1, 3}) {
    auto there = prepare(cuda_runtime(), Net(net), on_cuda(streams));
    ASSERT_TRUE(there.ok()) << there.status().text();
    EXPECT_EQ(on_host(*there), std::set<std::string>()) << net.name;
    for (int run = 0; run < 2; ++run) EXPECT_EQ(outputs_of(*there), right) << net.name;
  }
}

TEST_F(CudaMoves, ByPositions) {
  NetBuilder b("positions");
  const ValueId x = b.input("x", DType::f32, Shape{2, 8, 6, 10}), h = b.input("h", DType::f16, Shape{3, 33});
  const ValueId turned = b.add1("Transpose", "turned", {x}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
  const ValueId slice = b.add1("Slice", "slice",
                               {turned, b.constant_ints("starts", {5, -1}), b.constant_ints("ends", {0, -9}),
                                b.constant_ints("axes", {1, 2}), b.constant_ints("steps", {-2, -3})});
  b.output(slice);
  const ValueId flat = b.add1("Reshape", "flat", {slice, b.constant_ints("shape", {2, -1})});
  const std::vector<ValueId> parts = b.add("Split", "split", {flat, b.constant_ints("sizes", {5, 0, 67})}, 3, {{"axis", int64_t{1}}});
  b.output(b.add1("Concat", "concat", {parts[2], parts[0], flat, parts[1]}, {{"axis", int64_t{-1}}}));
  b.output(b.add1("Expand", "expand", {h, b.constant_ints("to", {4, 1, 33})}));
  b.output(b.add1("Tile", "tile", {h, b.constant_ints("repeats", {2, 3})}));
  b.output(b.add1("SpaceToDepth", "deep", {b.add1("DepthToSpace", "wide", {x}, {{"blocksize", int64_t{2}}, {"mode", std::string("CRD")}})},
                  {{"blocksize", int64_t{2}}}));
  b.output(b.add1("Trilu", "lower", {x, b.constant_ints("k", {1})}, {{"upper", int64_t{0}}}));
  for (const char* const mode : {"constant", "edge", "reflect", "wrap"})
    b.output(b.add1("Pad", mode, {h, b.constant_ints(std::string("pads of ") + mode, {1, 40, 2, -3})}, {{"mode", std::string(mode)}}));
  expect_the_hosts_bits(b.finish());
}

TEST_F(CudaMoves, ByIndices) {
  NetBuilder b("indices");
  const ValueId x = b.input("x", DType::f32, Shape{6, 20});
  const ValueId which = b.constant_ints("which", {5, 0, -6, 3, 3, 3, 1, -1});
  const ValueId pairs = b.add1("Reshape", "pairs", {which, b.constant_ints("by 2", {4, 2})});
  const ValueId rows = b.add1("Gather", "rows", {x, which});
  b.output(rows);
  b.output(b.add1("Gather", "columns", {x, pairs}, {{"axis", int64_t{1}}}));
  b.output(b.add1("GatherND", "tuples", {x, pairs}));
  const ValueId table =
      b.add1("Expand", "table", {b.add1("Unsqueeze", "column", {which, b.constant_ints("1", {1})}), b.constant_ints("by 20", {8, 20})});
  b.output(b.add1("GatherElements", "elements", {x, table}));
  b.output(b.add1("OneHot", "hot", {x, b.constant_ints("depth", {3}), b.constant("values", small_numbers(DType::f32, Shape{2}, 5))}));
  b.output(
      b.add1("ReverseSequence", "reversed", {x, b.constant_ints("lengths", {6, 0, 1, 2, 3, 4, 5, 6, 6, 6, 6, 6, 0, 0, 1, 1, 2, 3, 4, 5})}));
  for (const char* const reduction : {"none", "add", "mul", "max", "min"}) {
    const std::vector<Attribute> how = {{"reduction", std::string(reduction)}};
    b.output(b.add1("ScatterElements", std::string("elements by ") + reduction, {x, table, rows}, how));
    b.output(b.add1(
        "ScatterND", std::string("rows by ") + reduction,
        {x, b.add1("Unsqueeze", std::string("which ") + reduction, {which, b.constant_ints(std::string("last ") + reduction, {1})}), rows},
        how));
  }
  expect_the_hosts_bits(b.finish());
}

TEST_F(CudaMoves, OfNothing) {
  NetBuilder b("fills");
  const ValueId x = b.input("x", DType::f32, Shape{5, 9});
  b.output(b.add1("Add", "eye", {x, b.add1("EyeLike", "ones", {x}, {{"k", int64_t{-1}}})}));
  expect_the_hosts_bits(b.finish());
}

// Operands known only during the run decide where elements come from, and also the extents of outputs if those depend on them.
TEST_F(CudaMoves, ByOperandsOfARun) {
  const auto net = [] {
    NetBuilder b("late");
    const ValueId x = b.input("x", DType::f32, Shape{6, 8}), n = b.input("n", DType::i64, Shape{1});
    const ValueId zero = b.constant_ints("zero", {0});
    const ValueId some = b.add1("Slice", "some", {x, zero, n, zero});
    const ValueId flat = b.add1("Reshape", "flat", {b.add1("Transpose", "turned", {some}), b.constant_ints("any", {-1})});
    b.output(b.add1("Concat", "twice", {flat, flat}, {{"axis", int64_t{0}}}));
    b.output(b.add1("Tile", "tile", {some, b.add1("Concat", "repeats", {n, n}, {{"axis", int64_t{0}}})}));
    b.output(b.add1("Expand", "repeated",
                    {b.add1("Unsqueeze", "front", {some, zero}),
                     b.add1("Concat", "shape", {n, b.constant_ints("ones", {1, 1})}, {{"axis", int64_t{0}}})}));
    b.output(b.add1("ConstantOfShape", "zeros", {n}));
    return b.finish();
  };
  auto host = prepare(cuda_runtime(), net(), {});
  auto there = prepare(cuda_runtime(), net(), on_cuda());
  ASSERT_TRUE(host.ok()) << host.status().text();
  ASSERT_TRUE(there.ok()) << there.status().text();
  std::map<std::string, bool> placed;
  for (const PlanStep& step : there->plan().steps) placed[step.name] = step.on_device != nullptr;
  for (const char* const name : {"some", "turned", "twice", "tile", "repeated", "zeros"}) EXPECT_TRUE(placed[name]) << name;
  for (const int64_t rows : {4, 6, 0, 1, 5}) {
    const auto count = Blob::copy_of(DType::i64, Shape{1}, &rows);
    for (Prepared* const one : {&*host, &*there}) ASSERT_TRUE(one->context.bind_input(1, count->data).ok());
    EXPECT_EQ(outputs_of(*there), outputs_of(*host)) << rows;
  }
}

}  // namespace
}  // namespace heddle::cuda
