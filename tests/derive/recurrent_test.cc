// Compares the gradients of RNN, GRU and LSTM with differences, in f64.
#include "derive/derived_run.h"

namespace heddle {
namespace {

using namespace testing_derive;

// `outputs`: the outputs that the loss depends on, y, h and c for Y, Y_h and Y_c; `inputs`: the optional inputs that are present, B, h, c,
// P, l for B, initial_h, initial_c, P and sequence_lens.
struct Layer {
  std::string type;
  std::string direction = "forward", inputs = "", outputs = "y";
  std::vector<Attribute> attributes = {};
  bool batch_first = false;
  bool is_open = false;  // the numbers of steps and batch entries are not known when the net is derived

  int64_t gates() const { return type == "LSTM" ? 4 : type == "GRU" ? 3 : 1; }
  bool has(char letter) const { return inputs.find(letter) != std::string::npos; }
};

constexpr int32_t lengths[] = {4, 0, 2};
constexpr int64_t times = 4, batches = 3, width = 2, hidden = 3;

void expect_gradients_of(const Layer& layer) {
  NetBuilder b(layer.type + " " + layer.direction + " " + layer.inputs + " -> " + layer.outputs);
  Values at;
  std::vector<ValueId> inputs;
  std::vector<Shape> shapes;
  const auto input = [&](const char* name, const Shape& shape, const std::string& letters, bool is_given = true) {
    inputs.push_back(ValueId());
    if (!is_given) return;
    DeclaredType type = DeclaredType::of(DType::f64, shape);
    for (size_t d = 0; d < letters.size(); ++d)
      if (layer.is_open && letters[d] != '.') type.dims[d] = Dim::named(std::string(1, letters[d]));
    inputs.back() = b.input(name, type);
    at.push_back(numbers(shape, static_cast<int>(at.size()) + 1, -0.7, 0.7));
    shapes.push_back(shape);
  };
  const int64_t directions = layer.direction == "bidirectional" ? 2 : 1, rows = layer.gates() * hidden;
  const Shape state = layer.batch_first ? Shape{batches, directions, hidden} : Shape{directions, batches, hidden};
  const std::string letters = layer.batch_first ? "b" : ".b";
  input("x", layer.batch_first ? Shape{batches, times, width} : Shape{times, batches, width}, layer.batch_first ? "bt" : "tb");
  input("w", {directions, rows, width}, "");
  input("r", {directions, rows, hidden}, "");
  input("b", {directions, 2 * rows}, "", layer.has('B'));
  inputs.push_back(layer.has('l') ? b.constant("lengths", Blob::copy_of(DType::i32, Shape{batches}, lengths)) : ValueId());
  input("initial_h", state, letters, layer.has('h'));
  if (layer.type == "LSTM") {
    input("initial_c", state, letters, layer.has('c'));
    input("p", {directions, 3 * hidden}, "", layer.has('P'));
  }
  std::vector<Attribute> attributes = layer.attributes;
  attributes.push_back({"direction", layer.direction});
  attributes.push_back({"layout", int64_t{layer.batch_first}});
  const std::string names = "yhc";
  const std::vector<ValueId> made = b.add(layer.type, "made", inputs, layer.type == "LSTM" ? 3 : 2, attributes);
  std::vector<ValueId> losses;
  for (size_t i = 0; i < made.size(); ++i)
    if (layer.outputs.find(names[i]) != std::string::npos)
      losses.push_back(b.add1("ReduceSum", std::string("sum of ") + names[i], {b.add1("Sin", std::string("sin of ") + names[i], {made[i]})},
                              {{"keepdims", int64_t{0}}}));
  b.output(b.add1("Sum", "loss", losses));
  const Net net = b.finish();
  std::vector<std::string> wanted;
  for (const ValueId value : net.inputs) wanted.push_back(net[value].name);
  const auto made_once = derived(net, {{"loss"}, wanted, {}, {}, true});
  ASSERT_TRUE(made_once.ok()) << made_once.status().text();
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_TRUE(made_once->gradients[i].any()) << wanted[i];
  expect_gradients(net, "loss", at, 1e-6, shapes);
}

// Returns a layer with all inputs and outputs that a type has.
Layer whole(const std::string& type) {
  return type == "LSTM" ? Layer{type, "forward", "BhcP", "yhc"} : Layer{type, "forward", "Bh", "yh"};
}
class RecurrentGradients : public ::testing::TestWithParam<const char*> {};

TEST_P(RecurrentGradients, WithoutWhatIsOptional) {
  const std::string type = GetParam();
  for (const char* output : {"y", "h", "c"})
    if (*output != 'c' || type == "LSTM") expect_gradients_of({type, "forward", "", output});
}

TEST_P(RecurrentGradients, Directions) {
  for (const char* direction : {"forward", "reverse", "bidirectional"})
    for (const bool batch_first : {false, true})
      for (const bool lengths : {false, true}) {
        Layer layer = whole(GetParam());
        layer.direction = direction;
        layer.batch_first = batch_first;
        if (lengths) layer.inputs += "l";
        expect_gradients_of(layer);
      }
}

TEST_P(RecurrentGradients, OfOpenExtents) {
  for (const bool batch_first : {false, true}) {
    Layer layer = whole(GetParam());
    layer.direction = "bidirectional";
    layer.batch_first = batch_first;
    layer.is_open = true;
    if (layer.type == "GRU") layer.attributes = {{"linear_before_reset", int64_t{1}}};
    expect_gradients_of(layer);
  }
}

TEST_P(RecurrentGradients, Clip) {
  Layer layer = whole(GetParam());
  layer.attributes = {{"clip", 0.4}};
  expect_gradients_of(layer);
}

// Tests input_forget and linear_before_reset.
TEST(RecurrentVariantGradients, OfGruAndLstm) {
  for (const char* type : {"GRU", "LSTM"})
    for (const char* direction : {"forward", "bidirectional"}) {
      Layer layer = whole(type);
      layer.direction = direction;
      layer.inputs += "l";
      layer.attributes = {{layer.type == "LSTM" ? "input_forget" : "linear_before_reset", int64_t{1}}};
      expect_gradients_of(layer);
      layer.attributes.push_back({"clip", 0.4});
      expect_gradients_of(layer);
    }
}

// Each function in each place where a cell has one, with parameters of its own.
TEST_P(RecurrentGradients, Activations) {
  const std::string type = GetParam();
  const size_t places = type == "LSTM" ? 3 : type == "GRU" ? 2 : 1;
  for (const char* name :
       {"Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu", "Softsign", "Softplus"})
    for (size_t place = 0; place < places; ++place) {
      Layer layer = whole(type);
      std::vector<std::string> names(places, "Tanh");
      names[place] = name;
      layer.attributes = {
          {"activations", names}, {"activation_alpha", std::vector<double>{0.3}}, {"activation_beta", std::vector<double>{0.6}}};
      SCOPED_TRACE(std::string(name) + " in place " + std::to_string(place));
      expect_gradients_of(layer);
    }
}

// A second direction has functions of its own.
TEST_P(RecurrentGradients, ActivationsOfBothDirections) {
  const std::string type = GetParam();
  Layer layer = whole(type);
  layer.direction = "bidirectional";
  std::vector<std::string> names(type == "LSTM" ? 3 : type == "GRU" ? 2 : 1, "Sigmoid");
  const size_t places = names.size();
  names.insert(names.end(), places, "Softsign");
  layer.attributes = {{"activations", names}};
  expect_gradients_of(layer);
}

INSTANTIATE_TEST_SUITE_P(Types, RecurrentGradients, ::testing::Values("RNN", "GRU", "LSTM"),
                         [](const auto& type) { return std::string(type.param); });

}  // namespace
}  // namespace heddle
