// Malformed files: each is refused with one clear error, and none crashes.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/text/text.h"
#include "load/flatbuffer.h"
#include "load/header.h"
#include "load/load.h"
#include "load/sample_net.h"
#include "load/save.h"
#include "load/temporary_folder.h"

namespace heddle {
namespace {

using testing::sample_net;
using testing::TemporaryFolder;

using Bytes = std::vector<std::byte>;

Bytes sample_bytes() {
  return *net_to_bytes(sample_net());
}

// The file of a net that was not checked.
Bytes unchecked_bytes(const Net& net) {
  Bytes bytes;
  const Status status = nets_to_flatbuffer({&net, 1}, references_as_loaded, [&](std::span<const std::byte> payload) {
    const auto header = net_header(payload);
    bytes.assign(header.begin(), header.end());
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.text();
  return bytes;
}

void repair_checksum(Bytes& bytes) {
  const auto header = net_header(std::span(bytes).subspan(net_header_bytes));
  std::copy(header.begin(), header.end(), bytes.begin());
}

Code code_of(const Bytes& bytes, const LoadOptions& options = {}) {
  return load_net_bytes(bytes, "", options).status().code();
}

TEST(Header, DamageIsNamed) {
  const Bytes good = sample_bytes();
  const auto damaged = [&](size_t offset, int value) {
    Bytes bytes = good;
    bytes[offset] = static_cast<std::byte>(value);
    return bytes;
  };
  EXPECT_EQ(code_of({}), Code::file_truncated);
  EXPECT_EQ(code_of(damaged(0, 'x')), Code::file_corrupt);
  EXPECT_EQ(code_of(damaged(8, 5)), Code::file_version);
  EXPECT_EQ(code_of(damaged(8, 0)), Code::file_corrupt);
  EXPECT_EQ(code_of(damaged(12, 1)), Code::file_corrupt);
  EXPECT_EQ(code_of(damaged(63, 1)), Code::file_corrupt);
  EXPECT_EQ(code_of(damaged(22, 1)), Code::file_truncated);  // a length past the end of the file
  EXPECT_EQ(code_of(damaged(24, std::to_integer<int>(good[24]) ^ 1)), Code::file_corrupt);
  Bytes longer = good;
  longer.push_back(std::byte{0});
  EXPECT_EQ(code_of(longer), Code::file_corrupt);
  const Status version = load_net_bytes(damaged(8, 5), "").status();
  EXPECT_NE(version.text().find("format version 5, this Heddle reads up to 4"), std::string::npos) << version.text();
}

TEST(Header, EveryTruncationIsRefused) {
  const Bytes good = sample_bytes();
  for (size_t n = 0; n < good.size(); ++n)
    ASSERT_EQ(code_of(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n))), Code::file_truncated) << n;
}

// Repairs the checksum: the verifier and the structure check must hold on their own. Only padding at the end may be missing.
TEST(Header, TruncatedPayloadsAreRefused) {
  const Bytes good = sample_bytes();
  for (size_t n = net_header_bytes; n < good.size(); ++n) {
    Bytes bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n));
    repair_checksum(bytes);
    const auto net = load_net_bytes(bytes, "");
    ASSERT_TRUE(!net.ok() || n + 8 > good.size()) << n;
    if (net.ok()) {
      EXPECT_EQ(*net_to_bytes(*net), good) << n;
    }
  }
}

// FlatBuffers' verifier does not check the elements of a vector: every offset in turn is moved by half an element. Four bytes further on,
// the first number, 2, is taken for the length of a list, which is there but misaligned.
TEST(Header, MisalignedListsAreRefused) {
  NetBuilder builder("lists");
  ValueId last = builder.input("x", DType::f32, Shape{});
  for (const char* name : {"a", "bbb", "ccccc", "ddddddd"})
    last = builder.add1("Any", name, {last}, {{"pads", std::vector<int64_t>{2, 7, 9}}});
  builder.output(last);
  const Bytes good = *net_to_bytes(builder.net());
  int misaligned = 0;
  for (size_t at = net_header_bytes; at + 4 <= good.size(); at += 4) {
    Bytes bytes = good;
    bytes[at] = static_cast<std::byte>(std::to_integer<int>(bytes[at]) + 4);
    repair_checksum(bytes);
    const Status status = load_net_bytes(bytes, "").status();
    if (status.text().find("a list of the flatbuffer is misaligned") != std::string::npos) ++misaligned;
  }
  EXPECT_GT(misaligned, 0);
}

TEST(Header, EveryFlippedByteIsFound) {
  const Bytes good = sample_bytes();
  for (size_t i = 0; i < good.size(); ++i) {
    Bytes bytes = good;
    bytes[i] ^= std::byte{0x10};
    ASSERT_FALSE(load_net_bytes(bytes, "").ok()) << i;
  }
}

TEST(Files, MissingFoldersAndPipesAreRefused) {
  const TemporaryFolder folder;
  EXPECT_EQ(load_net(folder / "absent.heddle").status().code(), Code::file_not_found);
  EXPECT_EQ(load_net(folder.path()).status().code(), Code::file_unreadable);
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(load_net(folder / "pipe").status().code(), Code::file_unreadable);  // and does not hang
  testing::write_text(folder / "text.heddle", "hello");
  const Status status = load_net(folder / "text.heddle").status();
  EXPECT_EQ(status.code(), Code::file_corrupt);
  EXPECT_NE(status.text().find("\"hello\""), std::string::npos) << status.text();
  LoadOptions small;
  small.limits.file_bytes = 4;
  EXPECT_EQ(load_net(folder / "text.heddle", small).status().code(), Code::limit_exceeded);
}

// A change to the sample net, the error code that it must give and words that the message must have.
struct Damage {
  const char* name;
  void (*apply)(Net&);
  Code code;
  const char* words;
};

void PrintTo(const Damage& damage, std::ostream* out) {
  *out << damage.name;
}

const Damage damages[] = {
    {"InputOutOfRange", [](Net& n) { n.nodes[1].inputs[0] = ValueId(9999); }, Code::dangling_input,
     "\"w_first\" (Update): input 0 is value 9999"},
    {"OutputOutOfRange", [](Net& n) { n.nodes[1].outputs[0] = ValueId(9999); }, Code::file_corrupt, "output 0 is value 9999"},
    {"NoProducer", [](Net& n) { n.nodes[0].outputs.clear(); }, Code::dangling_input, "input 1 is \"h/é\", which no operator defines"},
    {"NobodyReadsIt", [](Net& n) { n.nodes[3].outputs.pop_back(); }, Code::dangling_input, "\"unique:1\" is defined by no operator"},
    {"TwoProducers", [](Net& n) { n.nodes[3].outputs[1] = n.nodes[0].outputs[0]; }, Code::duplicate_name,
     "operator \"h/é\" defines already"},
    {"InputIsProduced", [](Net& n) { n.nodes[3].outputs[1] = n.inputs[0]; }, Code::duplicate_name, "\"tokens\" is an input"},
    {"ConstantIsProduced", [](Net& n) { n.nodes[3].outputs[1] = ValueId(3); }, Code::duplicate_name, "\"f16\" is an input, constant"},
    {"ReadsItself", [](Net& n) { n.nodes[0].inputs[1] = n.nodes[0].outputs[0]; }, Code::cycle, "which it defines itself"},
    {"ReadsLater", [](Net& n) { n.nodes[0].inputs[1] = n.nodes[3].outputs[0]; }, Code::cycle,
     "\"h/é\" (Everything): input 1 is \"unique:0\", which operator \"unique\" defines later"},
    {"WaitsForItself", [](Net& n) { n.nodes[1].control = {NodeId(1)}; }, Code::cycle, "does not come before it"},
    {"WaitsForNobody", [](Net& n) { n.nodes[1].control = {NodeId(77)}; }, Code::dangling_input, "operator 77"},
    {"DuplicateValue", [](Net& n) { n.values[1].name = "tokens"; }, Code::duplicate_name, "a value called \"tokens\" occurs again"},
    {"DuplicateNode", [](Net& n) { n.nodes[1].name = n.nodes[2].name; }, Code::duplicate_name, "an operator called \"w_second\""},
    {"DuplicateVariable", [](Net& n) { n.variables[1].name = "w"; }, Code::duplicate_name, "a variable called \"w\""},
    {"DuplicateAttribute", [](Net& n) { n.nodes[0].attributes[1].name = "axis"; }, Code::duplicate_name, "attribute \"axis\""},
    {"DuplicateMetadata", [](Net& n) { n.metadata[1].first = "producer"; }, Code::duplicate_name, "\"producer\""},
    {"DuplicateOperatorSet", [](Net& n) { n.operator_sets[1].domain = ""; }, Code::duplicate_name, "an operator set"},
    {"DuplicateInput", [](Net& n) { n.inputs.push_back(n.inputs[0]); }, Code::duplicate_name, "listed twice"},
    {"DuplicateOutput", [](Net& n) { n.outputs.push_back(n.outputs[0]); }, Code::duplicate_name, "listed twice"},
    {"EmptyName", [](Net& n) { n.values[0].name = ""; }, Code::syntax, "a value has no name"},
    {"NoType", [](Net& n) { n.nodes[1].type = ""; }, Code::syntax, "\"w_first\""},
    {"ZeroInName", [](Net& n) { n.values[0].name = std::string("a\0b", 3); }, Code::syntax, "zero byte"},
    {"NotUtf8", [](Net& n) { n.nodes[0].name = "\xC3\x28"; }, Code::syntax, "not UTF-8"},
    {"LongName", [](Net& n) { n.values[0].name = std::string(5000, 'a'); }, Code::limit_exceeded, "name_bytes"},
    {"InputNotListed", [](Net& n) { n.inputs.pop_back(); }, Code::file_corrupt, "\"side\" is an input but not listed"},
    {"ListedIsNoInput", [](Net& n) { n.inputs[0] = n.outputs[0]; }, Code::file_corrupt, "listed as an input"},
    {"NetInputOutOfRange", [](Net& n) { n.inputs[0] = ValueId(12345); }, Code::file_corrupt, "value 12345"},
    {"NetOutputOutOfRange", [](Net& n) { n.outputs[0] = ValueId(12345); }, Code::dangling_input, "value 12345"},
    {"ManyDims", [](Net& n) { n.values[0].type.dims.resize(9); }, Code::unsupported, "9 dimensions"},
    {"NegativeDim", [](Net& n) { n.values[1].type.dims[0].value = -2; }, Code::file_corrupt, "a declared dim is -2"},
    {"HugeDim", [](Net& n) { n.values[1].type.dims[0].value = int64_t{1} << 50; }, Code::limit_exceeded, "tensor_bytes"},
    {"OverflowingDims",
     [](Net& n) {
       n.values[1].type = DeclaredType::of(DType::f64, Shape{1 << 30, 1 << 30, 1 << 30});
     },
     Code::limit_exceeded, "2^63"},
    {"OverflowBehindAnEmptyDim",
     [](Net& n) {
       n.values[1].type = DeclaredType::of(DType::u8, Shape{0, 1 << 30, 1 << 30, 1 << 30});
     },
     Code::limit_exceeded, "tensor_bytes"},
    {"ReservedDType", [](Net& n) { n.values[1].type.dtype = static_cast<DType>(HEDDLE_DTYPE_COUNT); }, Code::unsupported,
     "f8e4m3 is reserved"},
    {"NoSuchDType", [](Net& n) { n.values[1].type.dtype = static_cast<DType>(99); }, Code::file_corrupt, "dtype 99"},
    {"NoSuchDimKind", [](Net& n) { n.values[1].type.dims[0].kind = static_cast<Dim::Kind>(9); }, Code::file_corrupt, "kind 9"},
    {"EmptySymbol", [](Net& n) { n.values[0].type.dims[0].symbol = ""; }, Code::syntax, "symbolic dim"},
    {"LiteralTooShort", [](Net& n) { n.values[5].type.dims[0].value = 11; }, Code::shape_mismatch,
     "constant \"f32\": f32 [11] takes 44 bytes, there are 40"},
    {"LiteralOfUnknownSize", [](Net& n) { n.values[5].type.dims[0] = Dim::named("N"); }, Code::shape_mismatch, "constant dims"},
    {"BoolOfTwo",
     [](Net& n) {
       n.values[15].content.blob = testing::blob_of(DType::boolean, Shape{2}, std::vector<uint8_t>{0, 2});
     },
     Code::file_corrupt, "neither 0 nor 1"},
    {"ReferenceWithoutTensor", [](Net& n) { n.values[5].content.reference.edit().file = "w.safetensors"; }, Code::file_corrupt,
     "both the file and the tensor"},
    {"VariableOutOfRange", [](Net& n) { n.values[n.nodes[1].outputs[0].index].variable = VariableId(7); }, Code::file_corrupt,
     "variable 7"},
    {"VersionTwice", [](Net& n) { n.values[n.nodes[2].outputs[0].index].version = 1; }, Code::file_corrupt,
     "is version 1 of variable \"w\" where version 2 is due"},
    {"VersionMissing", [](Net& n) { n.values[n.nodes[2].outputs[0].index].version = 5; }, Code::file_corrupt, "version 5"},
    {"NoVersionZero", [](Net& n) { n.values[n.variables[1].first.index].variable = VariableId(0); }, Code::file_corrupt,
     "has no version 0"},
    {"VersionOfNoVariable", [](Net& n) { n.values[0].version = 1; }, Code::file_corrupt, "no variable but has a version"},
    {"VersionsOutOfOrder",
     [](Net& n) {
       std::swap(n.nodes[1].outputs, n.nodes[2].outputs);
       n.nodes[2].inputs[0] = n.variables[0].first;
     },
     Code::hazard, "before the version that it replaces"},
    {"StepCounterOutOfRange", [](Net& n) { n.step_counter = VariableId(5); }, Code::file_corrupt, "step counter"},
    {"SparseLinkOutOfRange", [](Net& n) { n.sparse_links[0].indices = ValueId(4444); }, Code::dangling_input, "sparse link"},
    {"SparseLinkNegativeRows", [](Net& n) { n.sparse_links[0].rows = -1; }, Code::file_corrupt, "-1 rows"},
    {"NegativeVersion", [](Net& n) { n.nodes[0].version = -1; }, Code::file_corrupt, "version -1"},
    {"NegativeOperatorSet", [](Net& n) { n.operator_sets[0].version = -1; }, Code::file_corrupt, "negative version"},
    {"TensorAttributeTooShort",
     [](Net& n) {
       auto tensor = std::make_shared<Blob>(*std::get<std::shared_ptr<const Blob>>(n.nodes[0].attributes[11].value));
       tensor->shape = Shape{2, 3};
       n.nodes[0].attributes[11].value = std::shared_ptr<const Blob>(tensor);
     },
     Code::shape_mismatch, "attribute \"table\": i32 [2, 3] takes 24 bytes, there are 16"},
    {"DamageInASubnet",
     [](Net& n) {
       Net subnet = testing::sample_subnet(0);
       subnet.nodes[0].inputs[0] = ValueId(50);
       n.nodes[0].attributes[13].value = std::make_shared<const Net>(std::move(subnet));
     },
     Code::dangling_input, "\"then\": \"sum\" (Add): input 0 is value 50"},
};

class Structure : public ::testing::TestWithParam<Damage> {};

TEST_P(Structure, IsRefusedWithItsName) {
  Net net = sample_net();
  GetParam().apply(net);
  const Status status = load_net_bytes(unchecked_bytes(net), "").status();
  EXPECT_EQ(status.code(), GetParam().code) << status.text();
  std::string all = status.text();
  for (const Diagnostic& d : status.ok() ? std::vector<Diagnostic>() : status.diagnostic().attached) all += "\n" + d.text();
  EXPECT_NE(all.find(GetParam().words), std::string::npos) << all;
  EXPECT_FALSE(net_to_bytes(net).ok()) << "saved all the same";
}

INSTANTIATE_TEST_SUITE_P(Hostile, Structure, ::testing::ValuesIn(damages), [](const auto& info) { return info.param.name; });

TEST(Hostile, AllFindingsAreReportedAtOnce) {
  Net net = sample_net();
  net.nodes[0].inputs[1] = ValueId(9999);
  net.values[1].name = "tokens";
  net.nodes[3].control = {NodeId(3)};
  const Status status = load_net_bytes(unchecked_bytes(net), "").status();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.diagnostic().attached.size(), 2u);
  EXPECT_EQ(status.diagnostic().net, "sample \"net\"");
}

TEST(Hostile, FindingsAreBounded) {
  NetBuilder builder("many");
  for (int i = 0; i < 5000; ++i) builder.input("same", DType::f32, Shape{});
  const Status status = load_net_bytes(unchecked_bytes(builder.net()), "").status();
  ASSERT_EQ(status.code(), Code::duplicate_name);
  EXPECT_LE(status.diagnostic().attached.size(), 1000u);
  EXPECT_NE(status.diagnostic().attached.back().message.find("further findings"), std::string::npos);
}

TEST(Limits, NodesDepthAndAttributesAreCounted) {
  const Bytes bytes = sample_bytes();
  LoadOptions options;
  options.limits.nodes = 5;  // 4 here, 2 in the subnets
  EXPECT_EQ(code_of(bytes, options), Code::limit_exceeded);
  options.limits.nodes = 6;
  EXPECT_EQ(code_of(bytes, options), Code::ok);
  options.limits.subnet_depth = 1;  // there are two levels
  EXPECT_EQ(code_of(bytes, options), Code::limit_exceeded);
  options = {};
  options.limits.attribute_elements = 3;  // "scales" has six
  EXPECT_EQ(code_of(bytes, options), Code::limit_exceeded);
  options = {};
  options.limits.file_bytes = 100;
  EXPECT_EQ(code_of(bytes, options), Code::limit_exceeded);
}

TEST(Limits, SubnetsNestAsDeepAsTheLimitAndNoDeeper) {
  const auto nested = [](int depth) {
    NetBuilder builder("outer");
    const ValueId x = builder.input("x", DType::f32, Shape{2});
    builder.output(builder.add1("If", "if", {x}, {{"body", std::make_shared<const Net>(testing::sample_subnet(depth - 1))}}));
    return builder.finish();
  };
  EXPECT_EQ(code_of(unchecked_bytes(nested(16))), Code::ok);
  const Status status = load_net_bytes(unchecked_bytes(nested(17)), "").status();
  EXPECT_EQ(status.code(), Code::limit_exceeded);
  EXPECT_NE(status.text().find("subnet_depth"), std::string::npos) << status.text();
  EXPECT_EQ(code_of(unchecked_bytes(nested(300))), Code::file_corrupt);  // the verifier's own limit
  EXPECT_EQ(net_to_bytes(nested(17)).status().code(), Code::limit_exceeded);
}

TEST(Hostile, WeightsAreMissedWithoutAFolder) {
  Net net = sample_net();
  net.values[5].content.reference = WeightReference{"w.safetensors", "f32", 1, {}};
  const Bytes bytes = unchecked_bytes(net);
  EXPECT_EQ(code_of(bytes), Code::weights_missing);
  LoadOptions detached;
  detached.attach_weights = false;
  EXPECT_EQ(code_of(bytes, detached), Code::ok);
}

}  // namespace
}  // namespace heddle
