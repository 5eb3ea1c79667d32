// optimize: all transforms in their order.
#include "stages.h"

namespace heddle {
namespace {

using namespace testing_nets;
using namespace testing_stages;

TEST(Transform, AConvolutionalNet) {
  EXPECT_EQ(transformed(convolution_net(), {"optimize"}), R"net(convolution(x: f32[1, 8, 14, 14]) -> (softmax)
w2: f32[8, 8, 3, 3] = [0.1, 0.097, 0.094000004, 0.091000006, ...]
b2: f32[8] = [0, 0.02, 0.04, 0.06, 0.08, 0.099999994, 0.12, 0.14]
w3: f32[8, 5] = [-0.5, -0.48, -0.46, -0.44, ...]
b3: f32[5] = [0.1, 0.2, 0.3, 0.4, 0.5]
conv1/folded/weights: f32[8, 8, 3, 3] = [-0.0999995, -0.09749951, -0.09499952, -0.09249954, ...]
conv1/folded/bias: f32[8] = [-0.34999976, -0.26292828, -0.17668085, -0.09121369, -0.006489061, 0.077525906, 0.16086023, 0.24353957]
relu1: f32[1, 8, 14, 14] = Conv(x, conv1/folded/weights, conv1/folded/bias) pads=[1, 1, 1, 1] then Relu(max(acc, 0)) # conv1
relu2: f32[1, 8, 14, 14] = Conv(relu1, w2, b2, relu1) pads=[1, 1, 1, 1] then Add(add(acc, operand)) operand=relu1 same shape then Relu(max(acc, 0)) # conv2
pool: f32[1, 8, 1, 1] = GlobalAveragePool(relu2)
flatten: f32[1, 8] = Flatten(pool)
fc: f32[1, 5] = Gemm(flatten, w3, b3)
softmax: f32[1, 5] = Softmax(fc)
)net");
}

// A transform that changes nothing returns the net as it was.
TEST(Transform, EachAloneKeepsANetThatItHasNothingFor) {
  NetBuilder b("plain");
  const ValueId x = b.input("x", DType::f32, Shape{2, 2});
  b.output(b.add1("Softmax", "y", {b.add1("MatMul", "product", {x, x})}));
  const std::string before = transformed(b.net(), {});
  for (const char* name : {"prune", "lower_einsum", "fold_constants", "fold_batch_normalization", "apply_rules", "fuse_epilogues",
                           "fuse_pointwise", "lower_pointwise", "insert_copies", "place", "optimize"})
    EXPECT_EQ(transformed(b.net(), {name}), before) << name;
}

// An activation that reads its operand twice is no epilogue before it has become one operator.
TEST(Transform, AnActivationThatReadsTwiceBecomesAnEpilogue) {
  NetBuilder b("silu");
  const ValueId product = b.add1("MatMul", "product", {b.input("x", DType::f32, Shape{4, 3}), b.input("w", DType::f32, Shape{3, 5})});
  b.output(b.add1("Mul", "y", {product, b.add1("Sigmoid", "gate", {product})}));
  EXPECT_EQ(transformed(b.finish(), {"optimize"}), R"net(silu(x: f32[4, 3], w: f32[3, 5]) -> (y)
y: f32[4, 5] = MatMul(x, w) then Pointwise(mul(acc, sigmoid(acc))) # product
)net");
}

// The same net gives the same text, and a transformed net has nothing more to transform.
TEST(Transform, TwiceIsAsOnce) {
  const std::string once = transformed(convolution_net(), {"optimize"});
  EXPECT_EQ(transformed(convolution_net(), {"optimize"}), once);
  EXPECT_EQ(transformed(convolution_net(), {"optimize", "optimize"}), once);
}

TEST(Transform, NamesVariablesAndSparseLinksOfTheNetItWasGiven) {
  NetBuilder b("training");
  const ValueId w = b.variable("w", blob(Shape{3, 2}, 1, 1), true);
  const ValueId rows = b.input("rows", DType::i64, Shape{2}), values = b.add1("Neg", "values", {b.input("g", DType::f32, Shape{2, 2})});
  b.constant("dead", blob(Shape{1}, 0, 0));
  b.output(b.add1("Gather", "y", {w, rows}));
  b.output(values);
  b.add1("AccumulateAdd", "next", {w, b.input("d", DType::f32, Shape{3, 2})}, {}, "heddle");
  b.net().sparse_links = {{w, "rows", rows, values, 3, true, false}};
  EXPECT_EQ(transformed(b.finish(), {"optimize"}), R"net(training(rows: i64[2], g: f32[2, 2], d: f32[3, 2]) -> (y, values)
variable w: f32[3, 2] = [1, 2, 3, 4, 5, 6] trainable -> w@1
values: f32[2, 2] = heddle::Pointwise/1(g) program="neg(x0)"
y: f32[2, 2] = Gather(w@0, rows)
w@1: f32[3, 2] = heddle::AccumulateAdd(w@0, d) # next
sparse rows of w@0: indices=rows values=values rows=3 unique
)net");
}

}  // namespace
}  // namespace heddle
