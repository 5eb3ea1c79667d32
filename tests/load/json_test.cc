// The text form as people write it: what may be left out, and which errors mistakes give.
#include <gtest/gtest.h>

#include "load/load.h"
#include "load/sample_net.h"
#include "load/save.h"
#include "load/temporary_folder.h"

namespace heddle {
namespace {

using testing::bytes_of;

Result<Net> load(std::string_view text, const LoadOptions& options = {}) {
  return load_net_bytes(bytes_of(text), "", options);
}

// The text of a net around one member list.
std::string net_with(const std::string& members) {
  return R"({"heddle": 1, "name": "n", "inputs": ["x"], "outputs": ["y"],
  "values": [{"name": "x", "kind": "input", "dtype": "f32", "dims": [2]}], )" +
         members + "}";
}

TEST(Json, OutputsNeedNotBeListedAsValues) {
  const auto net = load(net_with(R"("nodes": [{"name": "a", "type": "Split", "inputs": ["x"], "outputs": ["h", null, "g"]},
                                             {"name": "b", "type": "Add", "inputs": ["g", "h", null], "outputs": ["y"]}])"));
  ASSERT_TRUE(net.ok()) << net.status().text();
  ASSERT_EQ(net->values.size(), 4u);
  EXPECT_EQ(net->values[1].name, "h");
  EXPECT_EQ(net->values[2].name, "g");
  EXPECT_EQ(net->nodes[1].inputs, (std::vector<ValueId>{ValueId(2), ValueId(1), ValueId()}));
  EXPECT_EQ(net->values[2].output, 2u);
  EXPECT_EQ((*net)[net->outputs[0]].name, "y");
}

TEST(Json, WhiteSpaceAndAByteOrderMarkMayComeFirst) {
  EXPECT_TRUE(load("\xEF\xBB\xBF \n\t{\"heddle\": 1}").ok());
}

TEST(Json, AZeroByteIsNotTheEnd) {
  const auto net = load(std::string_view("{\"heddle\": 1}\0 garbage {{{", 26));
  ASSERT_FALSE(net.ok());
  EXPECT_EQ(net.status().code(), Code::syntax) << net.status().text();
  EXPECT_FALSE(load(std::string_view("{\"heddle\": 1}\0", 14)).ok());
}

TEST(Json, EveryTruncationIsRefused) {
  const std::string text = *net_to_json(testing::sample_net());
  for (size_t n = 0; n + 2 < text.size(); ++n) ASSERT_FALSE(load(std::string_view(text).substr(0, n)).ok()) << n;
}

struct Mistake {
  const char* name;
  std::string text;
  Code code;
  const char* words;
};
void PrintTo(const Mistake& mistake, std::ostream* out) {
  *out << mistake.name;
}

std::string node_with(const std::string& members) {
  return net_with(R"("nodes": [{"name": "a", "type": "T", "outputs": ["y"], )" + members + "}]");
}
std::string attribute(const std::string& value) {
  return node_with(R"("attributes": {"k": )" + value + "}");
}
std::string constant(const std::string& members) {
  return R"({"heddle": 1, "values": [{"name": "c", "kind": "constant", )" + members + "}]}";
}

const Mistake mistakes[] = {
    {"NotJson", "{\"heddle\": 1,\n \"name\" \"n\"}", Code::syntax, "line 2, column 1"},
    {"NoVersion", R"({"name": "n"})", Code::syntax, "\"heddle\" is missing"},
    {"NewerVersion", R"({"heddle": 2})", Code::file_version, "format version 2"},
    {"AList", " {", Code::syntax, "not valid JSON"},
    {"UnknownKey", R"({"heddle": 1, "node": []})", Code::syntax, "did you mean \"nodes\"?"},
    {"KeyTwice", R"({"heddle": 1, "name": "a", "name": "b"})", Code::syntax, "given twice"},
    {"WrongKind", R"({"heddle": 1, "nodes": {}})", Code::syntax, "must be a list, not an object"},
    {"DanglingInput", node_with(R"("inputs": ["x", "absent"])"), Code::dangling_input, "\"a\" (T): input 1 is \"absent\""},
    {"DanglingOutput", R"({"heddle": 1, "outputs": ["absent"]})", Code::dangling_input, "\"absent\", which is no value"},
    {"DanglingControl", node_with(R"("control": ["nobody"])"), Code::dangling_input, "\"nobody\""},
    {"ReadsItself", node_with(R"("inputs": ["y"])"), Code::cycle, "which it defines itself"},
    {"InputIsANumber", node_with(R"("inputs": [3])"), Code::syntax, "no name"},
    {"StreamTooLarge", node_with(R"("random_stream": 4294967296)"), Code::syntax, "not an integer from 0 to 4294967295"},
    {"VersionNegative", node_with(R"("version": -1)"), Code::syntax, "\"version\" is -1"},
    {"TwoProducers", net_with(R"("nodes": [{"name": "a", "type": "T", "outputs": ["y"]}, {"name": "b", "type": "T", "outputs": ["y"]}])"),
     Code::duplicate_name, "defines already"},
    {"SameAttributeTwice", node_with(R"("attributes": {"k": {"int": 1}, "k": {"int": 2}})"), Code::duplicate_name, "attribute \"k\""},
    {"AttributeWithoutKind", attribute("1"), Code::syntax, "an object was expected, not a number"},
    {"AttributeOfTwoKinds", attribute(R"({"int": 1, "float": 1})"), Code::syntax, "exactly one"},
    {"AttributeOfNoKind", attribute("{}"), Code::syntax, "exactly one"},
    {"IntTooLarge", attribute(R"({"int": 9223372036854775808})"), Code::syntax, "64-bit"},
    {"IntIsAFraction", attribute(R"({"int": 1.5})"), Code::syntax, "64-bit"},
    {"IntsHaveAString", attribute(R"({"ints": [1, "2"]})"), Code::syntax, "element 1"},
    {"FloatIsAWord", attribute(R"({"float": "big"})"), Code::syntax, "not a number"},
    {"NanBitsAreNone", attribute(R"({"float": "nan:0000000000000000"})"), Code::syntax, "not a number"},
    {"HexIsOdd", attribute(R"({"string": {"hex": "abc"}})"), Code::syntax, "hexadecimal"},
    {"HexIsNone", attribute(R"({"string": {"hex": "zz"}})"), Code::syntax, "hexadecimal"},
    {"TensorWithoutData", attribute(R"({"tensor": {"dtype": "f32", "dims": [1]}})"), Code::syntax, "needs \"data\""},
    {"TensorTooShort", attribute(R"({"tensor": {"dtype": "f32", "dims": [2], "data": [1]}})"), Code::shape_mismatch,
     "1 elements are given"},
    {"SubnetIsBroken", attribute(R"({"net": {"name": "inner", "outputs": ["z"]}})"), Code::dangling_input, "\"inner\""},
    {"SubnetIsNone", attribute(R"({"net": 5})"), Code::syntax, "an object was expected"},
    {"NoSuchDType", constant(R"("dtype": "f33", "dims": [], "data": [1])"), Code::syntax, "\"f33\" does not exist"},
    {"ReservedDType", constant(R"("dtype": "f8e4m3", "dims": [], "data": [1])"), Code::unsupported, "the dtype f8e4m3 is reserved"},
    {"NoContent", constant(R"("dtype": "f32", "dims": [])"), Code::weights_missing, "it has no content"},
    {"SymbolicContent", constant(R"("dtype": "f32", "dims": ["N"], "data": [1])"), Code::shape_mismatch, "all constant"},
    {"ElementTooLarge", constant(R"("dtype": "i8", "dims": [2], "data": [1, 128])"), Code::syntax, "element 1 of data"},
    {"HalfTooLarge", constant(R"("dtype": "f16", "dims": [1], "data": [70000])"), Code::syntax, "element 0 of data"},
    {"BoolOfTwo", constant(R"("dtype": "bool", "dims": [1], "data": [2])"), Code::file_corrupt, "neither 0 nor 1"},
    {"DataAndWeights", constant(R"("dtype": "f32", "dims": [1], "data": [2], "weights": {"file": "a", "tensor": "b"})"), Code::syntax,
     "exclude"},
    {"WeightsWithoutTensor", constant(R"("dtype": "f32", "dims": [1], "weights": {"file": "a"})"), Code::syntax, "needs"},
    {"ChecksumTooShort", constant(R"("dtype": "f32", "dims": [1], "weights": {"file": "a", "tensor": "t", "checksum": "12"})"),
     Code::syntax, "16 hex"},
    {"IdentityTooShort", constant(R"("dtype": "f32", "dims": [1], "weights": {"file": "a", "tensor": "t", "identity": "12"})"),
     Code::syntax, "32 hex"},
    {"DimIsAList", constant(R"("dtype": "f32", "dims": [[]], "data": [])"), Code::syntax, "a dim is none of"},
    {"NoSuchKind", R"({"heddle": 1, "values": [{"name": "v", "kind": "magic"}]})", Code::syntax, "\"magic\""},
    {"VersionWithoutVariable", R"({"heddle": 1, "values": [{"name": "v", "version": 1}]})", Code::syntax, "belong to"},
    {"NoSuchVariable", R"({"heddle": 1, "values": [{"name": "v", "kind": "variable", "variable": "w"}]})", Code::dangling_input,
     "not listed"},
    {"StepCounterIsNone", R"({"heddle": 1, "step_counter": "w"})", Code::dangling_input, "is no variable"},
    {"SparseLinkToNothing", R"({"heddle": 1, "sparse_links": [{"of": "a", "kind": "rows", "indices": "b", "values": "c"}]})",
     Code::dangling_input, "sparse link"},
    {"MetadataIsANumber", R"({"heddle": 1, "metadata": {"k": 1}})", Code::syntax, "metadata"},
    {"LoneSurrogate", R"({"heddle": 1, "name": "\ud800"})", Code::syntax, "not valid JSON"},
    {"NotUtf8", "{\"heddle\": 1, \"name\": \"\xFF\"}", Code::syntax, "not valid JSON"},
};

class Mistakes : public ::testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, AreAnsweredClearly) {
  const Status status = load(GetParam().text).status();
  EXPECT_EQ(status.code(), GetParam().code) << status.text();
  EXPECT_NE(status.text().find(GetParam().words), std::string::npos) << status.text();
}

INSTANTIATE_TEST_SUITE_P(Json, Mistakes, ::testing::ValuesIn(mistakes), [](const auto& info) { return info.param.name; });

TEST(Json, DeepNestingIsALimit) {
  const std::string brackets(100'000, '[');
  EXPECT_EQ(load("{\"heddle\": " + brackets).status().code(), Code::limit_exceeded);
  std::string nets = R"({"heddle": 1})";
  for (int i = 0; i < 17; ++i) nets = R"({"heddle": 1, "nodes": [{"name": "a", "type": "T", "attributes": {"b": {"net": )" + nets + "}}}]}";
  const Status status = load(nets).status();
  EXPECT_EQ(status.code(), Code::limit_exceeded);
  EXPECT_NE(status.text().find("subnet_depth"), std::string::npos) << status.text();
}

TEST(Json, AllMistakesAreReportedAtOnce) {
  const Status status = load(net_with(R"("nodes": [{"name": "a", "type": "T", "inputs": ["p", "q"], "outputs": ["y"]},
                                                  {"name": "a", "type": "T", "inputs": ["r"]}])"))
                            .status();
  ASSERT_EQ(status.code(), Code::dangling_input);
  EXPECT_EQ(status.diagnostic().attached.size(), 3u);  // q, r, and the name "a" again
}

}  // namespace
}  // namespace heddle
