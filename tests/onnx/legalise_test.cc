// Old opsets are converted to the newest semantics: expected text. Numbers after the slash are since-versions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <sstream>

#include "onnx/model_builder.h"
#include "onnx/operators/operators.h"

namespace heddle {
namespace {

using namespace heddle::testing;

// The model of one node x, inputs... → y.
struct OneNode : ModelBuilder {
  OneNode(int opset, const std::string& type, const Names& inputs = {"x"}, const std::vector<int64_t>& dims = {2, 3, 4, 5})
      : ModelBuilder(opset) {
    graph.input("x", dims);
    node = graph.node(type, inputs, {"y"}, "n");
    graph.output("y");
  }
  ::onnx::NodeProto* node;
};

TEST(Legalise, BroadcastAlongAnAxisUnsqueezes) {
  OneNode m(6, "Add", {"x", "b"});
  m.graph.floats("b", {3}, {1, 2, 3});
  set_int(m.node, "broadcast", 1);
  set_int(m.node, "axis", 1);
  EXPECT_EQ(imported(m),
            "b: f32[3] = [1, 2, 3]\n"
            "n/aligned/axes: i64[2] = [1, 2]\n"
            "n/aligned = Unsqueeze/21(b, n/aligned/axes)\n"
            "y = Add/14(x, n/aligned)\n");
}

TEST(Legalise, BroadcastOfTheLastDimensionsIsNumPys) {
  for (const bool with_axis : {false, true}) {
    OneNode m(6, "Mul", {"x", "b"});
    m.graph.input("b", {4, 5});
    set_int(m.node, "broadcast", 1);
    if (with_axis) set_int(m.node, "axis", 2);
    EXPECT_EQ(imported(m), "y = Mul/14(x, b)\n");
  }
}

TEST(Legalise, BroadcastNeedsRanksThatFit) {
  OneNode m(6, "Sub", {"x", "b"});
  m.graph.input("b", {4, 5});
  set_int(m.node, "broadcast", 1);
  set_int(m.node, "axis", 3);
  EXPECT_EQ(m.failure().code, Code::attribute_mismatch);
}

TEST(Legalise, BroadcastFollowsRanksThroughOperators) {
  ModelBuilder m(6);
  m.graph.input("x", {2, 3, 4}).floats("b", {2}, {1, 2}).output("y");
  set_ints(m.graph.node("Unsqueeze", {"x"}, {"u"}, "u"), "axes", {0});
  m.graph.node("Relu", {"u"}, {"r"});
  auto* add = m.graph.node("Add", {"r", "b"}, {"y"}, "n");
  set_int(add, "broadcast", 1);
  set_int(add, "axis", 1);
  EXPECT_NE(imported(m).find("n/aligned/axes: i64[2] = [1, 2]\n"), std::string::npos) << imported(m);
}

TEST(Legalise, GemmAndConsumedInputsAreDropped) {
  OneNode m(6, "Gemm", {"x", "x", "b"}, {3, 3});
  m.graph.input("b", {3});
  set_int(m.node, "broadcast", 1);
  set_int(m.node, "transB", 1);
  set_ints(m.node, "consumed_inputs", {0, 0, 0});
  EXPECT_EQ(imported(m), "y = Gemm/13(x, x, b) transB=1\n");
}

TEST(Legalise, SlopePerChannelGetsOnes) {
  OneNode m(6, "PRelu", {"x", "s"});
  m.graph.floats("s", {3}, {1, 2, 3});
  EXPECT_EQ(imported(m),
            "s: f32[3] = [1, 2, 3]\nn/slope/axes: i64[2] = [1, 2]\nn/slope = Unsqueeze/21(s, n/slope/axes)\ny = PRelu/16(x, n/slope)\n");
}

TEST(Legalise, AttributesBecomeInputs) {
  OneNode squeeze(11, "Squeeze", {"x"}, {1, 3});
  set_ints(squeeze.node, "axes", {0});
  EXPECT_EQ(imported(squeeze), "n/axes: i64[1] = [0]\ny = Squeeze/21(x, n/axes)\n");
  OneNode sum(6, "ReduceSum");
  set_ints(sum.node, "axes", {1, 2});
  set_int(sum.node, "keepdims", 0);
  EXPECT_EQ(imported(sum), "n/axes: i64[2] = [1, 2]\ny = ReduceSum/13(x, n/axes) keepdims=0\n");
  OneNode mean(17, "ReduceMean");
  set_ints(mean.node, "axes", {-1});
  EXPECT_EQ(imported(mean), "n/axes: i64[1] = [-1]\ny = ReduceMean/18(x, n/axes)\n");
  OneNode clip(6, "Clip");
  set_float(clip.node, "max", 6);
  EXPECT_EQ(imported(clip), "n/max: f32[] = [6]\ny = Clip/13(x, -, n/max)\n");
  OneNode pad(6, "Pad", {"x"}, {2});
  set_ints(pad.node, "pads", {0, 1});
  set_float(pad.node, "value", 3);
  EXPECT_EQ(imported(pad), "n/pads: i64[2] = [0, 1]\nn/value: f32[] = [3]\ny = Pad/21(x, n/pads, n/value)\n");
  OneNode slice(6, "Slice");
  set_ints(slice.node, "starts", {1});
  set_ints(slice.node, "ends", {2});
  EXPECT_EQ(imported(slice), "n/starts: i64[1] = [1]\nn/ends: i64[1] = [2]\ny = Slice/13(x, n/starts, n/ends)\n");
  OneNode top(6, "TopK");
  set_int(top.node, "k", 2);
  EXPECT_EQ(imported(top), "n/k: i64[1] = [2]\ny = TopK/11(x, n/k)\n");
}

TEST(Legalise, TypedScalarsFollowTheInput) {
  OneNode m(6, "Clip");
  m.model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(10);
  set_float(m.node, "min", 0.5f);
  EXPECT_EQ(imported(m), "n/min: f32[] = [0.5]\nn/min/cast = Cast/21(n/min) to=10\ny = Clip/13(x, n/min/cast)\n");
}

TEST(Legalise, SplitSaysHowMany) {
  ModelBuilder m(6);
  m.graph.input("x", {4}).output("a").output("b");
  m.graph.node("Split", {"x"}, {"a", "b"}, "n");
  EXPECT_EQ(imported(m), "a, b = Split/18(x) num_outputs=2\n");
}

TEST(Legalise, SoftmaxWasAMatrixOfRows) {
  OneNode last(6, "Softmax", {"x"}, {2, 3});
  EXPECT_EQ(imported(last), "y = Softmax/13(x) axis=-1\n");
  OneNode middle(12, "LogSoftmax");
  EXPECT_EQ(imported(middle),
            "n/flat = Flatten/21(x) axis=1\n"
            "n/rows = LogSoftmax/13(n/flat) axis=-1\n"
            "n/shape = Shape/21(x)\n"
            "y = Reshape/21(n/rows, n/shape) allowzero=1\n");
  OneNode now(13, "Softmax");
  EXPECT_EQ(imported(now), "y = Softmax/13(x)\n");
}

TEST(Legalise, DropoutOfInferenceIsIdentity) {
  OneNode test(6, "Dropout");
  set_int(test.node, "is_test", 1);
  EXPECT_EQ(imported(test), "y = Identity/21(x)\n");
  OneNode train(6, "Dropout");
  set_float(train.node, "ratio", 0.25f);
  EXPECT_EQ(imported(train), "n/ratio: f32[] = [0.25]\nn/training_mode: bool[] = [1]\ny = Dropout/13(x, n/ratio, n/training_mode)\n");
  OneNode mask(13, "Dropout");
  mask.node->add_output("mask");
  mask.graph.output("mask");
  EXPECT_EQ(imported(mask), "n/mask/shape = Shape/21(x)\nmask = ConstantOfShape/21(n/mask/shape) value=bool[1][1]\ny = Identity/21(x)\n");
}

TEST(Legalise, DropoutOfInferenceStaysForANetThatIsTrained) {
  const auto kept = [](const ModelBuilder& model) {
    ImportOptions options;
    options.keep_dropouts = true;
    return imported(model, options);
  };
  OneNode old(11, "Dropout");
  set_float(old.node, "ratio", 0.25f);
  EXPECT_EQ(kept(old), "n/ratio: f32[] = [0.25]\ny = Dropout/13(x, n/ratio)\n");
  EXPECT_EQ(kept(OneNode(13, "Dropout")), "y = Dropout/13(x)\n");
  OneNode mask(13, "Dropout");  // a mask of ones is no mask of a training
  mask.node->add_output("mask");
  mask.graph.output("mask");
  EXPECT_EQ(kept(mask), imported(mask));
}

TEST(Legalise, BatchNormalisationByItsOutputs) {
  const Names inputs = {"x", "s", "s", "s", "s"};
  OneNode inference(6, "BatchNormalization", inputs);
  inference.graph.input("s", {3});
  set_int(inference.node, "is_test", 1);
  for (const char* extra : {"m", "v"}) inference.node->add_output(extra);
  EXPECT_EQ(imported(inference), "y = BatchNormalization/15(x, s, s, s, s)\n");
  OneNode training(9, "BatchNormalization", inputs);
  training.graph.input("s", {3});
  for (const char* extra : {"m", "v"}) training.node->add_output(extra);
  EXPECT_EQ(imported(training), "y, m, v = BatchNormalization/15(x, s, s, s, s) training_mode=1\n");
  OneNode spatial(7, "BatchNormalization", inputs);
  spatial.graph.input("s", {3});
  set_int(spatial.node, "spatial", 0);
  EXPECT_EQ(spatial.failure().code, Code::unsupported);
}

TEST(Legalise, UpsampleAndResizeOfOldAreAsymmetric) {
  OneNode upsample(7, "Upsample");
  attribute(upsample.node, "scales", ::onnx::AttributeProto::FLOATS)->mutable_floats()->Add(2.0f);
  set_text(upsample.node, "mode", "nearest");
  EXPECT_EQ(imported(upsample),
            "n/scales: f32[1] = [2]\n"
            R"(y = Resize/19(x, -, n/scales) mode="nearest" coordinate_transformation_mode="asymmetric" nearest_mode="floor")"
            "\n");
  OneNode shrinks(10, "Resize", {"x", "s"});
  shrinks.graph.floats("s", {2}, {0.5f, 1});
  const std::string asymmetric = R"(y = Resize/19(x, -, s) coordinate_transformation_mode="asymmetric" nearest_mode="floor_or_ceil")"
                                 "\n";
  EXPECT_EQ(imported(shrinks), "s: f32[2] = [0.5, 1]\n" + asymmetric);
  OneNode at_run_time(10, "Resize", {"x", "s"});
  at_run_time.graph.input("s", {2});
  EXPECT_EQ(imported(at_run_time), asymmetric);
  OneNode empty(11, "Resize", {"x", "roi", "s"});
  empty.graph.floats("roi", {0}, {}).floats("s", {1}, {2});
  EXPECT_EQ(imported(empty), "roi: f32[0] = []\ns: f32[1] = [2]\ny = Resize/19(x, -, s)\n");
}

TEST(Legalise, GroupScalesAreRepeatedPerChannel) {
  OneNode m(18, "GroupNormalization", {"x", "s", "s"});
  m.graph.input("s", {3});
  set_int(m.node, "num_groups", 3);
  const std::string text = imported(m);
  EXPECT_NE(text.find("n/channels = Shape/21(x) start=1 end=2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("y = GroupNormalization/21(x, n/scale, n/bias) num_groups=3\n"), std::string::npos) << text;
}

TEST(Legalise, CastTakesNamesAndRefusesStrings) {
  OneNode named(1, "Cast");
  set_text(named.node, "to", "INT64");
  EXPECT_EQ(imported(named), "y = Cast/21(x) to=7\n");
  OneNode text(13, "Cast");
  set_int(text.node, "to", 8);
  EXPECT_EQ(text.failure().code, Code::unsupported);
}

TEST(Legalise, AttributeOfAnotherTypeIsAnError) {
  OneNode m(6, "Squeeze");
  set_text(m.node, "axes", "0");
  const Diagnostic d = m.failure();
  EXPECT_EQ(d.code, Code::attribute_mismatch);
  EXPECT_EQ(d.node, "n");
  EXPECT_EQ(d.type, "Squeeze");
}

// Every operator that a legaliser emits is one that nets carry.
TEST(OperatorTable, IsSortedAndClosed) {
  for (size_t i = 1; i < importer::operators().size(); ++i) EXPECT_LT(importer::operators()[i - 1].type, importer::operators()[i].type);
  for (const importer::OperatorVersion& row : importer::operators()) {
    EXPECT_EQ(importer::implemented_version(row.type), row.since) << row.type;
    EXPECT_LE(row.since, row.until);
    EXPECT_LE(row.until, importer::newest_opset);
  }
  for (const importer::Legalisation& row : importer::legalisations()) {
    EXPECT_EQ(importer::find_legalisation(row.type, row.first), &row) << row.type;
    EXPECT_LT(row.first, row.before);
  }
  EXPECT_EQ(importer::find_legalisation("Softmax", 13), nullptr);
  EXPECT_EQ(importer::implemented_version("Nonsense"), 0);
}

// Every version of every ONNX operator up to the newest opset that is read is covered by the table or by a legaliser, or the operator is
// refused by name. tests/onnx/since_versions.txt is ONNX's own list.
TEST(OperatorTable, CoversEverySinceVersion) {
  std::ifstream file(std::string(HEDDLE_SOURCE_DIR) + "/tests/onnx/since_versions.txt");
  int operators = 0, newest = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string type;
    words >> type;
    std::vector<int> since;
    for (int version = 0; words >> version;) since.push_back(version);
    ASSERT_FALSE(since.empty()) << line;
    ++operators;
    newest = std::max(newest, since.back());
    const auto row = std::find_if(importer::operators().begin(), importer::operators().end(),
                                  [&](const importer::OperatorVersion& each) { return each.type == type; });
    if (row == importer::operators().end()) {
      const bool is_refused = !importer::why_not(type).empty(), is_rewritten = importer::find_legalisation(type, since.back()) != nullptr;
      EXPECT_TRUE(is_refused || is_rewritten || type == "Constant") << type;
      continue;
    }
    EXPECT_EQ(row->until, since.back()) << type << ": what the newest version changes is to be looked at";
    const auto carried = std::upper_bound(since.begin(), since.end(), importer::carried_opset);
    EXPECT_EQ(row->since, carried == since.begin() ? since.back() : *std::prev(carried)) << type << ", new ones at their newest";
  }
  EXPECT_GT(operators, 200);
  EXPECT_EQ(newest, importer::newest_opset);
}

// One node for each row: the value that nets imply is accepted, and the attribute dropped; any other value is refused by name.
TEST(OperatorTable, AttributesOfNewerOpsetsAreTakenWhereTheySayWhatNetsMean) {
  for (const importer::NewAttribute& row : importer::new_attributes()) {
    SCOPED_TRACE(std::string(row.type));
    const bool is_number = !row.ours.empty() && std::isdigit(static_cast<unsigned char>(row.ours[0]));
    const auto refused = [&](const std::string& text, int64_t number, int opset) {
      OneNode m(opset, std::string(row.type));
      if (row.type == "Cast") set_int(m.node, "to", 1);
      if (is_number)
        set_int(m.node, std::string(row.name).c_str(), number);
      else
        set_text(m.node, std::string(row.name).c_str(), text);
      const Status status = m.import().status();
      if (status.ok()) return std::string();
      return status.diagnostic().attached.empty() ? status.text() : status.diagnostic().attached[0].message;
    };
    const std::string ours(row.ours.empty() ? "anything" : row.ours);
    EXPECT_EQ(refused(ours, is_number ? std::stoi(ours) : 0, row.since), "");
    if (row.ours.empty()) continue;
    const std::string why = refused("other", 7, row.since);
    EXPECT_NE(why.find("new in opset " + std::to_string(row.since)), std::string::npos) << why;
    EXPECT_EQ(refused("other", 7, row.since - 1).find("new in opset"), std::string::npos) << "no such attribute then";
  }
}

TEST(OperatorTable, StandsInTheDocumentation) {
  std::ifstream file(std::string(HEDDLE_SOURCE_DIR) + "/docs/importing_onnx.md");
  const std::string page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_NE(page.find(importer::operator_table()), std::string::npos) << "docs/importing_onnx.md should contain:\n"
                                                                      << importer::operator_table();
}

}  // namespace
}  // namespace heddle
