// Compares the gradients of convolutions and pools with differences, in f64.
#include "derive/derived_run.h"

namespace heddle {
namespace {

using namespace testing_derive;
using Ints = std::vector<int64_t>;

// The loss is the sine of the operator's output: no two elements of it have the same weight.
void expect_gradients_of(const std::string& type, const std::vector<Shape>& shapes, const std::vector<Attribute>& attributes) {
  NetBuilder b(type);
  std::vector<ValueId> inputs;
  Values at;
  for (size_t i = 0; i < shapes.size(); ++i) {
    inputs.push_back(b.input("in" + std::to_string(i), DType::f64, shapes[i]));
    at.push_back(numbers(shapes[i], static_cast<int>(i) + 1));
  }
  b.output(b.add1("Sin", "loss", {b.add1(type, "y", inputs, attributes)}));
  expect_gradients(b.finish(), "loss", at);
}

TEST(WindowGradients, Conv) {
  expect_gradients_of("Conv", {{2, 3, 7}, {4, 3, 3}, {4}}, {});
  expect_gradients_of("Conv", {{2, 4, 6, 5}, {6, 2, 3, 2}, {6}},
                      {{"group", int64_t{2}}, {"strides", Ints{2, 3}}, {"pads", Ints{1, 0, 2, 1}}});
  expect_gradients_of("Conv", {{1, 2, 8, 7}, {3, 2, 2, 3}}, {{"strides", Ints{3, 2}}, {"dilations", Ints{2, 2}}});
  expect_gradients_of("Conv", {{1, 2, 5, 4, 3}, {2, 1, 2, 2, 1}, {2}}, {{"group", int64_t{2}}, {"strides", Ints{2, 1, 1}}});
  for (const char* pad : {"SAME_UPPER", "SAME_LOWER"})
    expect_gradients_of("Conv", {{1, 2, 7, 8}, {2, 2, 4, 3}}, {{"auto_pad", std::string(pad)}, {"strides", Ints{2, 3}}});
  expect_gradients_of("Conv", {{1, 1, 5}, {1, 1, 2}}, {{"auto_pad", std::string("VALID")}, {"strides", Ints{2}}});
}

TEST(WindowGradients, ConvTranspose) {
  expect_gradients_of("ConvTranspose", {{2, 3, 4}, {3, 2, 3}, {2}}, {{"strides", Ints{2}}, {"pads", Ints{1, 0}}});
  expect_gradients_of("ConvTranspose", {{2, 4, 3, 2}, {4, 3, 2, 3}, {6}},
                      {{"group", int64_t{2}}, {"strides", Ints{2, 3}}, {"dilations", Ints{3, 2}}, {"output_padding", Ints{1, 2}}});
  // Output padding of one stride or more, as the dilation allows.
  expect_gradients_of("ConvTranspose", {{1, 2, 5}, {2, 3, 3}, {3}}, {{"dilations", Ints{3}}, {"output_padding", Ints{2}}});
  expect_gradients_of("ConvTranspose", {{1, 2, 5, 4}, {2, 3, 3, 2}}, {{"strides", Ints{2, 3}}, {"output_shape", Ints{10, 10}}});
  expect_gradients_of(
      "ConvTranspose", {{1, 2, 5, 4}, {2, 1, 4, 4}},
      {{"strides", Ints{2, 3}}, {"output_shape", Ints{9, 10}}, {"output_padding", Ints{1, 2}}, {"auto_pad", std::string("SAME_LOWER")}});
  expect_gradients_of("ConvTranspose", {{1, 2, 3}, {2, 1, 2}}, {{"strides", Ints{4}}, {"auto_pad", std::string("SAME_UPPER")}});
}

TEST(WindowGradients, Pools) {
  const std::vector<std::pair<Shape, std::vector<Attribute>>> settings = {
      {{2, 3, 7}, {{"kernel_shape", Ints{3}}}},
      {{1, 2, 7, 6}, {{"kernel_shape", Ints{3, 2}}, {"strides", Ints{2, 1}}, {"pads", Ints{1, 0, 1, 1}}}},
      {{1, 2, 9, 7}, {{"kernel_shape", Ints{2, 3}}, {"dilations", Ints{2, 1}}, {"strides", Ints{2, 3}}, {"ceil_mode", int64_t{1}}}},
      {{1, 1, 6, 7}, {{"kernel_shape", Ints{3, 3}}, {"auto_pad", std::string("SAME_LOWER")}, {"strides", Ints{2, 2}}}},
      {{1, 1, 4, 3, 5}, {{"kernel_shape", Ints{2, 2, 3}}, {"pads", Ints{1, 0, 1, 0, 1, 2}}}},
  };
  for (const auto& [shape, attributes] : settings) {
    const auto with = [&attributes = attributes](const char* name, int64_t value) {
      std::vector<Attribute> all = attributes;
      all.push_back({name, value});
      return all;
    };
    expect_gradients_of("MaxPool", {shape}, attributes);
    expect_gradients_of("AveragePool", {shape}, attributes);
    expect_gradients_of("AveragePool", {shape}, with("count_include_pad", 1));
    for (const int64_t p : {1, 2, 3}) expect_gradients_of("LpPool", {shape}, with("p", p));
  }
}

TEST(WindowGradients, GlobalPools) {
  for (const Shape& shape : {Shape{2, 3, 5}, Shape{1, 2, 3, 4}}) {
    for (const char* type : {"GlobalMaxPool", "GlobalAveragePool"}) expect_gradients_of(type, {shape}, {});
    for (const int64_t p : {1, 2, 3}) expect_gradients_of("GlobalLpPool", {shape}, {{"p", p}});
  }
}

// Among several largest elements the first is given all, as in PyTorch.
TEST(WindowGradients, TheFirstOfTheLargestIsGivenAll) {
  for (const char* type : {"MaxPool", "GlobalMaxPool"}) {
    NetBuilder b(type);
    const ValueId x = b.input("x", DType::f64, Shape{1, 1, 3});
    std::vector<Attribute> attributes;
    if (std::string(type) == "MaxPool") attributes.push_back({"kernel_shape", Ints{3}});
    b.output(b.add1(type, "loss", {x}, attributes));
    const auto made = derived(b.finish(), {{"loss"}, {"x"}, {}, {}, true});
    ASSERT_TRUE(made.ok()) << made.status().text();
    Session session = testing_nets::open(testing_nets::runtime(), Net(made->net));
    EXPECT_EQ(outputs_of(session, {Shape{1, 1, 3}}, {{1, 2, 2}})[1], (std::vector<double>{0, 1, 0})) << type;
  }
}

}  // namespace
}  // namespace heddle
