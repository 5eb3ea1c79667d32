// Dims that ports declare (heddle_port::dims): inputs are compared with them, outputs follow from them.
#include "plugin/declared_dims.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <optional>

#include "operator_runner/operator_runner.h"
#include "plugins.h"
#include "session_plan.h"

namespace heddle {
namespace {

std::shared_ptr<const Blob> ones(const Shape& shape) {
  return floats(shape, std::vector<float>(static_cast<size_t>(shape.element_count()), 1.0f));
}

const Registry& registry() {
  static const Registry& loaded = *[] {
    auto* r = new Registry();
    for (const char* plugin : {"dims", "liars"}) EXPECT_TRUE(r->load(test_plugin(plugin)).ok());
    return r;
  }();
  return loaded;
}

Result<std::vector<std::shared_ptr<const Blob>>> call(const std::string& type, std::vector<std::shared_ptr<const Blob>> inputs) {
  OperatorCall call;
  call.domain = "dims";
  call.type = type;
  call.inputs = std::move(inputs);
  return run_operator(registry(), call);
}

Shape shape_of(const std::string& type, std::vector<std::shared_ptr<const Blob>> inputs) {
  const auto result = call(type, std::move(inputs));
  EXPECT_TRUE(result.ok()) << result.status().text();
  return result.ok() ? (*result)[0]->shape : Shape{};
}
std::string refusal(const std::string& type, std::vector<std::shared_ptr<const Blob>> inputs) {
  const auto result = call(type, std::move(inputs));
  EXPECT_EQ(result.status().code(), Code::shape_mismatch);
  return result.status().diagnostic().message;
}

TEST(DeclaredDims, OutputsFollowFromInputs) {
  EXPECT_EQ(shape_of("Affine", {ones({2, 3}), ones({3})}), (Shape{2, 3}));
  EXPECT_EQ(shape_of("Product", {ones({2, 3}), ones({3, 5})}), (Shape{2, 5}));
  EXPECT_EQ(shape_of("Product", {ones({7, 1, 2, 3}), ones({7, 1, 3, 5})}), (Shape{7, 1, 2, 5}));
  EXPECT_EQ(shape_of("Product", {ones({0, 2, 3}), ones({0, 3, 5})}), (Shape{0, 2, 5}));
  EXPECT_EQ(shape_of("Area", {ones({6, 4})}), (Shape{6}));
}

TEST(DeclaredDims, WhatDoesNotFitIsNamedWithWhoSaidOtherwise) {
  EXPECT_NE(refusal("Affine", {ones({2, 3}), ones({4})}).find(R"(input "scale" is [4], declared as [C]: C is 3 in input "x")"),
            std::string::npos);
  EXPECT_NE(refusal("Affine", {ones({2, 3}), ones({3}), ones({1})}).find(R"(input "shift" is [1], declared as [C]: C is 3 in input "x")"),
            std::string::npos);
  EXPECT_NE(refusal("Affine", {ones({3}), ones({3})}).find(R"(input "x" is [3], declared as [N, C])"), std::string::npos);
  EXPECT_NE(refusal("Area", {ones({2, 5})}).find(R"(input "boxes" is [2, 5], declared as [B, 4])"), std::string::npos);
  EXPECT_NE(refusal("Product", {ones({7, 2, 3}), ones({6, 3, 5})})
                .find(R"(input "b" is [6, 3, 5], declared as [..., K, N]: "..." is [7] in input)"),
            std::string::npos);
  EXPECT_NE(refusal("Product", {ones({3}), ones({3, 5})}).find(R"(input "a" is [3], declared as [..., M, K])"), std::string::npos);
}

// ---------------------------------------------------------------- texts

// An operator with ports that declare these dims.
class Declaration {
 public:
  Declaration(const std::vector<const char*>& inputs, const std::vector<const char*>& outputs) {
    for (const char* dims : inputs) inputs_.push_back(port("x", dims));
    for (const char* dims : outputs) outputs_.push_back(port("y", dims));
    op_.inputs = inputs_.data();
    op_.input_count = static_cast<uint32_t>(inputs_.size());
    op_.outputs = outputs_.data();
    op_.output_count = static_cast<uint32_t>(outputs_.size());
  }
  const heddle_operator& op() const { return op_; }

 private:
  const heddle_port* port(const char* name, const char* dims) {
    heddle_port& made = ports_.emplace_back();
    made.name = name;
    made.dims = dims;
    return &made;
  }
  std::deque<heddle_port> ports_;
  std::vector<const heddle_port*> inputs_, outputs_;
  heddle_operator op_ = {};
};

std::string reading(const std::vector<const char*>& inputs, const std::vector<const char*>& outputs = {}) {
  std::string error;
  return DeclaredDims().read(Declaration(inputs, outputs).op(), &error) ? "" : error;
}

TEST(DeclaredDims, TextsAreReadOrRefusedWithTheReason) {
  for (const char* dims : {"", "  ", "...", "N", "N N", "0", "* * 3", "a_1  b", "... 1 2 3 4 5 6 7 8"})
    EXPECT_EQ(reading({dims}), "") << dims;
  EXPECT_EQ(reading({"...", nullptr}, {"... 7", nullptr}), "");
  const auto has = [](const std::string& error, const std::string& what) { return error.find(what) != std::string::npos; };
  EXPECT_TRUE(has(reading({"... N ..."}), "port \"x\" has dims \"... N ...\": \"...\" stands there twice"));
  EXPECT_TRUE(has(reading({"N"}, {"N *"}), "\"*\" does not say an extent"));
  EXPECT_TRUE(has(reading({"N"}, {"M"}), "no input says \"M\""));
  EXPECT_TRUE(has(reading({"N"}, {"..."}), "no input says \"...\""));
  EXPECT_TRUE(has(reading({"-1"}), "an extent below 0"));
  EXPECT_TRUE(has(reading({"N\tC"}), "is no name, no number"));
  EXPECT_TRUE(has(reading({"N,"}), "is no name, no number"));
  EXPECT_TRUE(has(reading({"99999999999999999999"}), "is no name, no number"));
  EXPECT_TRUE(has(reading({"1 2 3 4 5 6 7 8 9"}), "more than 8 dimensions"));
  EXPECT_EQ(reading({"a b c d e f g h", "i j k l m n o p"}), "");
  EXPECT_TRUE(has(reading({"a b c d e f g h", "i j k l m n o p", "q"}), "at most 16 names"));
  EXPECT_EQ(reading({std::string(256, 'n').c_str()}), "");
  EXPECT_TRUE(has(reading({std::string(257, 'n').c_str()}), "too long a text"));
}

// ---------------------------------------------------------------- what is not known

struct Seen {
  Status status;
  Shape output;
};
// Returns the type of the first output for inputs of these shapes; no shape: an absent input.
Seen seen(const Declaration& declaration, const std::vector<std::optional<Shape>>& shapes) {
  DeclaredDims dims;
  std::string error;
  EXPECT_TRUE(dims.read(declaration.op(), &error)) << error;
  std::deque<heddle_tensor> views;
  std::vector<const heddle_tensor*> inputs;
  for (const auto& shape : shapes) inputs.push_back(shape ? &views.emplace_back(tensor_view(DType::f32, *shape, nullptr)) : nullptr);
  DeclaredDims::Bound bound;
  heddle_type type = {};
  Status status = dims.match(inputs, &bound);
  if (status.ok()) status = dims.follow(0, bound, &type);
  return {status, Shape(type.dims, type.rank)};
}

TEST(DeclaredDims, ExtentsThatAreNotKnownMayBeAny) {
  const Declaration product({"... M K", "... K N"}, {"... M N"});
  EXPECT_EQ(seen(product, {Shape{-1, 2, -1}, Shape{7, 3, -1}}).output, (Shape{7, 2, -1}));
  EXPECT_EQ(seen(product, {Shape{-1, -1}, Shape{-1, -1}}).output, (Shape{-1, -1}));
  EXPECT_EQ(seen(product, {Shape{-1, 2, 3}, Shape{3, -1}}).status.code(), Code::shape_mismatch) << "of another rank";
  const Declaration same({"N", "N", "N"}, {"N"});
  EXPECT_EQ(seen(same, {Shape{-1}, Shape{4}, Shape{-1}}).output, (Shape{4}));
  EXPECT_NE(seen(same, {Shape{-1}, Shape{4}, Shape{5}}).status.text().find("N is 4 in input"), std::string::npos);
  EXPECT_EQ(seen(Declaration({"B 4"}, {"B"}), {Shape{-1, -1}}).output, (Shape{-1}));
  EXPECT_EQ(seen(Declaration({"B 4"}, {"B"}), {Shape{-1, 5}}).status.code(), Code::shape_mismatch);
}

TEST(DeclaredDims, TheLastPortOfManyValuesSpeaksOfAll) {
  const Declaration joined({"N", "C"}, {"N C"});
  EXPECT_EQ(seen(joined, {Shape{2}, Shape{3}, Shape{3}, Shape{3}}).output, (Shape{2, 3}));
  EXPECT_EQ(seen(joined, {Shape{2}, Shape{3}, Shape{4}}).status.code(), Code::shape_mismatch);
}

TEST(DeclaredDims, WhatAbsentInputsWouldSayIsRefused) {
  const Declaration optional({"N", "C"}, {"N C"});
  EXPECT_NE(seen(optional, {Shape{2}, {}}).status.text().find("the inputs that say these dimensions are absent"), std::string::npos);
  EXPECT_EQ(seen(Declaration({"N", "N C"}, {"N"}), {Shape{2}, {}}).output, (Shape{2}));
}

TEST(DeclaredDims, OutputsHaveAtMostAsManyDimsAsThereMayBe) {
  const Declaration wider({"..."}, {"... 1"});
  EXPECT_EQ(seen(wider, {Shape{1, 1, 1, 1, 1, 1, 1}}).output.rank(), 8);
  EXPECT_NE(seen(wider, {Shape{1, 1, 1, 1, 1, 1, 1, 1}}).status.text().find("more than 8 dimensions"), std::string::npos);
}

TEST(DeclaredDims, AShapeRuleThatSaysOtherwiseIsAMistakeOfTheOperator) {
  CallEnd end;
  OperatorCall wrong;
  wrong.domain = "liars";
  wrong.type = "Transposed";
  wrong.inputs = {ones({2, 3})};
  const auto result = run_operator(*registry().snapshot(), wrong, &end);
  EXPECT_NE(result.status().text().find(R"(gives output "y" the dims [3, 2], and declares it as [N, C])"), std::string::npos)
      << result.status().text();
  EXPECT_FALSE(end.refused());
}

TEST(DeclaredDims, ADynamicOutputOrAScalarRuleBesideDimsIsAMistakeToo) {
  for (const auto& [type, dims] : {std::pair("Found", "the dims that the run finds"), std::pair("OneForAll", "the dims [],")}) {
    CallEnd end;
    OperatorCall wrong;
    wrong.domain = "liars";
    wrong.type = type;
    wrong.inputs = {ones({3})};
    const auto result = run_operator(*registry().snapshot(), wrong, &end);
    EXPECT_NE(result.status().text().find(dims), std::string::npos) << type << ": " << result.status().text();
    EXPECT_FALSE(end.refused()) << type;
  }
}

// ---------------------------------------------------------------- in nets

// Opens a net with x [24] reshaped to a shape that is drawn in the run: before it only the rank is known, that of `shape`. `nodes` follow.
Result<Session> open_drawn(const std::vector<int>& shape, const std::string& nodes, const std::string& inputs = "",
                           const std::string& values = "") {
  const std::string rank = std::to_string(shape.size());
  std::string list;
  for (const int extent : shape) list += (list.empty() ? "" : ", ") + std::to_string(extent);
  const std::string net = R"({"heddle": 1, "name": "drawn", "inputs": ["x")" + inputs + R"(], "outputs": ["y"], "values": [
    {"name": "x", "kind": "input", "dtype": "f32", "dims": [24]})" +
                          values + R"(,
    {"name": "extents", "kind": "constant", "dtype": "i64", "dims": [)" +
                          rank + R"(], "data": [)" + list + R"(]}], "nodes": [
    {"name": "drawn", "type": "RandomUniform", "inputs": [], "outputs": ["u"], "attributes": {"shape": {"ints": [)" +
                          rank +
                          R"(]}, "low": {"float": 1.1}, "high": {"float": 1.9}}},
    {"name": "ones", "type": "Cast", "inputs": ["u"], "outputs": ["one"], "attributes": {"to": {"int": 7}}},
    {"name": "shape", "type": "Mul", "inputs": ["one", "extents"], "outputs": ["shape"]},
    {"name": "reshaped", "type": "Reshape", "inputs": ["x", "shape"], "outputs": ["r"]}, )" +
                          nodes + "]}";
  static const Runtime& runtime = *[] {
    RuntimeOptions options;
    options.default_plugins = false;
    options.threads = 1;
    options.plugins = {HEDDLE_BINARY_DIR "/lib/cpu.so", test_plugin("dims")};
    return new Runtime(*Runtime::create(options));
  }();
  return runtime.open_bytes(net.data(), net.size(), "");
}
Result<std::vector<Tensor>> run_drawn(Session& session, const Shape& more = {}) {
  static std::vector<float> x = [] {
    std::vector<float> numbers(64);
    std::iota(numbers.begin(), numbers.end(), 0.0f);
    return numbers;
  }();
  std::vector<TensorView> inputs = {TensorView{DType::f32, {24}, x.data()}};
  if (more.rank() > 0) inputs.push_back(TensorView{DType::f32, more, x.data()});
  return session.run(inputs);
}
bool is_late(Session& session, const std::string& node) {
  const auto plan = last_plan(session);
  const auto& steps = plan->steps;
  return std::any_of(steps.begin(), steps.end(), [&](const auto& step) { return step.name == node && step.late; });
}
const std::string area = R"({"name": "area", "domain": "dims", "type": "Area", "inputs": [")";

// A transpose of another rank than 1 would be refused when the net is compiled.
TEST(DeclaredDims, OutputsOfDynamicInputsHaveTheRankThatIsDeclared) {
  const std::string nodes = area + R"(r"], "outputs": ["a"]},
    {"name": "transposed", "type": "Transpose", "inputs": ["a"], "outputs": ["y"], "attributes": {"perm": {"ints": [0]}}})";
  auto session = open_drawn({6, 4}, nodes);
  ASSERT_TRUE(session.ok()) << session.status().text();
  const auto areas = run_drawn(*session);
  ASSERT_TRUE(areas.ok()) << areas.status().text();
  EXPECT_EQ((*areas)[0].shape(), (Shape{6}));
  EXPECT_TRUE(is_late(*session, "area"));
  session = open_drawn({4, 6}, nodes);
  ASSERT_TRUE(session.ok()) << session.status().text();
  const auto refused = run_drawn(*session);
  EXPECT_NE(refused.status().text().find(R"(input "boxes" is [4, 6], declared as [B, 4])"), std::string::npos) << refused.status().text();
}

// Squeeze without axes: the rank is not known before the run, and nothing is refused because of the assumed one.
TEST(DeclaredDims, ARankThatIsAGuessRefusesNothing) {
  const std::string squeezed = R"({"name": "squeezed", "type": "Squeeze", "inputs": ["r"], "outputs": ["s"]}, )";
  auto session = open_drawn({1, 6, 4}, squeezed + area + R"(s"], "outputs": ["y"]})");
  ASSERT_TRUE(session.ok()) << session.status().text();
  auto result = run_drawn(*session);
  ASSERT_TRUE(result.ok()) << result.status().text();
  EXPECT_EQ((*result)[0].shape(), (Shape{6}));
  session =
      open_drawn({1, 24}, squeezed + R"({"name": "affine", "domain": "dims", "type": "Affine", "inputs": ["m", "s"], "outputs": ["y"]})",
                 R"(, "m")", R"(, {"name": "m", "kind": "input", "dtype": "f32", "dims": [2, 24]})");
  ASSERT_TRUE(session.ok()) << session.status().text();
  result = run_drawn(*session, Shape{2, 24});
  ASSERT_TRUE(result.ok()) << result.status().text();
  EXPECT_EQ((*result)[0].shape(), (Shape{2, 24}));
}

// The static matrix gives K: with any other extent, no shapes of the product would fit.
TEST(DeclaredDims, ExtentsThatOtherInputsSayAreTaken) {
  auto session = open_drawn({4, 6}, R"({"name": "product", "domain": "dims", "type": "Product", "inputs": ["r", "m"], "outputs": ["p"]},
    {"name": "transposed", "type": "Transpose", "inputs": ["p"], "outputs": ["y"], "attributes": {"perm": {"ints": [1, 0]}}})",
                            R"(, "m")", R"(, {"name": "m", "kind": "input", "dtype": "f32", "dims": [6, 5]})");
  ASSERT_TRUE(session.ok()) << session.status().text();
  const auto result = run_drawn(*session, Shape{6, 5});
  ASSERT_TRUE(result.ok()) << result.status().text();
  EXPECT_EQ((*result)[0].shape(), (Shape{5, 4}));
}

}  // namespace
}  // namespace heddle
