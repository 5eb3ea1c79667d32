// A net that was written loads again as the same net, in both forms and through each other.
#include <gtest/gtest.h>

#include "base/checksum.h"
#include "load/load.h"
#include "load/sample_net.h"
#include "load/save.h"
#include "load/temporary_folder.h"
#include "weights/safetensors.h"

namespace heddle {
namespace {

using testing::bytes_of;
using testing::read_text;
using testing::sample_net;
using testing::TemporaryFolder;
using testing::text_of;

void expect_same_blob(const Blob& a, const Blob& b) {
  EXPECT_EQ(a.dtype, b.dtype);
  EXPECT_EQ(a.shape, b.shape);
  ASSERT_EQ(a.bytes, b.bytes);
  EXPECT_EQ(text_of({a.data, static_cast<size_t>(a.bytes)}), text_of({b.data, static_cast<size_t>(b.bytes)}));
}

void expect_same_net(const Net& a, const Net& b);

void expect_same_attribute(const AttributeValue& a, const AttributeValue& b) {
  ASSERT_EQ(a.index(), b.index());
  if (const auto* tensor = std::get_if<std::shared_ptr<const Blob>>(&a)) {
    expect_same_blob(**tensor, *std::get<std::shared_ptr<const Blob>>(b));
  } else if (const auto* subnet = std::get_if<std::shared_ptr<const Net>>(&a)) {
    expect_same_net(**subnet, *std::get<std::shared_ptr<const Net>>(b));
  } else if (const auto* real = std::get_if<double>(&a)) {
    EXPECT_EQ(std::memcmp(real, &std::get<double>(b), sizeof(double)), 0);
  } else if (const auto* reals = std::get_if<std::vector<double>>(&a)) {
    const auto& others = std::get<std::vector<double>>(b);
    ASSERT_EQ(reals->size(), others.size());
    for (size_t i = 0; i < reals->size(); ++i) EXPECT_EQ(std::memcmp(&(*reals)[i], &others[i], sizeof(double)), 0) << i;
  } else {
    EXPECT_TRUE(a == b);
  }
}

// Compares every field of a net, bit by bit.
void expect_same_net(const Net& a, const Net& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.doc, b.doc);
  EXPECT_EQ(a.operator_sets, b.operator_sets);
  EXPECT_EQ(a.metadata, b.metadata);
  EXPECT_EQ(a.inputs, b.inputs);
  EXPECT_EQ(a.outputs, b.outputs);
  EXPECT_EQ(a.step_counter, b.step_counter);
  ASSERT_EQ(a.values.size(), b.values.size());
  for (size_t i = 0; i < a.values.size(); ++i) {
    const Value &v = a.values[i], &w = b.values[i];
    SCOPED_TRACE(v.name);
    EXPECT_EQ(v.name, w.name);
    EXPECT_EQ(v.kind, w.kind);
    EXPECT_EQ(v.type, w.type);
    EXPECT_EQ(v.producer, w.producer);
    EXPECT_EQ(v.output, w.output);
    EXPECT_EQ(v.variable, w.variable);
    EXPECT_EQ(v.version, w.version);
    EXPECT_EQ(v.content.reference, w.content.reference);
    ASSERT_EQ(v.content.blob != nullptr, w.content.blob != nullptr);
    if (v.content.blob) expect_same_blob(*v.content.blob, *w.content.blob);
  }
  ASSERT_EQ(a.nodes.size(), b.nodes.size());
  for (size_t i = 0; i < a.nodes.size(); ++i) {
    const Node &m = a.nodes[i], &n = b.nodes[i];
    SCOPED_TRACE(m.name);
    EXPECT_EQ(m.name, n.name);
    EXPECT_EQ(m.domain, n.domain);
    EXPECT_EQ(m.type, n.type);
    EXPECT_EQ(m.version, n.version);
    EXPECT_EQ(m.device, n.device);
    EXPECT_EQ(m.inputs, n.inputs);
    EXPECT_EQ(m.outputs, n.outputs);
    EXPECT_EQ(m.control, n.control);
    EXPECT_EQ(m.random_stream, n.random_stream);
    ASSERT_EQ(m.attributes.size(), n.attributes.size());
    for (size_t k = 0; k < m.attributes.size(); ++k) {
      SCOPED_TRACE(m.attributes[k].name);
      EXPECT_EQ(m.attributes[k].name, n.attributes[k].name);
      expect_same_attribute(m.attributes[k].value, n.attributes[k].value);
    }
  }
  ASSERT_EQ(a.variables.size(), b.variables.size());
  for (size_t i = 0; i < a.variables.size(); ++i) {
    const Variable &v = a.variables[i], &w = b.variables[i];
    EXPECT_EQ(v.name, w.name);
    EXPECT_EQ(v.type, w.type);
    EXPECT_EQ(v.first, w.first);
    EXPECT_EQ(v.last, w.last);
    EXPECT_EQ(v.trainable, w.trainable);
    expect_same_blob(*v.initial.blob, *w.initial.blob);
  }
  ASSERT_EQ(a.sparse_links.size(), b.sparse_links.size());
  for (size_t i = 0; i < a.sparse_links.size(); ++i) {
    const SparseLink &l = a.sparse_links[i], &m = b.sparse_links[i];
    EXPECT_TRUE(l.of == m.of && l.kind == m.kind && l.indices == m.indices && l.values == m.values && l.rows == m.rows &&
                l.unique == m.unique && l.sorted == m.sorted);
  }
}

TEST(RoundTrip, BinaryKeepsEveryField) {
  const Net net = sample_net();
  const auto bytes = net_to_bytes(net);
  ASSERT_TRUE(bytes.ok()) << bytes.status().text();
  const auto loaded = load_net_bytes(*bytes, "");
  ASSERT_TRUE(loaded.ok()) << loaded.status().text();
  expect_same_net(net, *loaded);
  EXPECT_EQ(*net_to_bytes(*loaded), *bytes);
}

TEST(RoundTrip, JsonKeepsEveryFieldAndGivesTheSameBinary) {
  const Net net = sample_net();
  const auto text = net_to_json(net);
  ASSERT_TRUE(text.ok()) << text.status().text();
  const auto loaded = load_net_bytes(bytes_of(*text), "");
  ASSERT_TRUE(loaded.ok()) << loaded.status().text() << *text;
  expect_same_net(net, *loaded);
  EXPECT_EQ(*net_to_bytes(*loaded), *net_to_bytes(net));
  EXPECT_EQ(*net_to_json(*loaded), *text);
}

TEST(RoundTrip, JsonHasOneOperatorPerLine) {
  NetBuilder builder("mlp");
  const ValueId x = builder.input("x", DType::f32, Shape{1, 2});
  builder.output(builder.add1("Relu", "y", {builder.add1("MatMul", "h", {x, builder.constant_ints("w", {1, 2})})}));
  EXPECT_EQ(*net_to_json(builder.net()), R"({
 "heddle": 1,
 "name": "mlp",
 "inputs": ["x"],
 "outputs": ["y"],
 "values": [
  {"name": "x", "kind": "input", "dtype": "f32", "dims": [1, 2]},
  {"name": "w", "kind": "constant", "dtype": "i64", "dims": [2], "data": [1, 2]},
  {"name": "h"},
  {"name": "y"}
 ],
 "nodes": [
  {"name": "h", "type": "MatMul", "inputs": ["x", "w"], "outputs": ["h"]},
  {"name": "y", "type": "Relu", "inputs": ["h"], "outputs": ["y"], "random_stream": 1}
 ]
}
)");
}

// The length of what precedes a list determines its alignment: names of any length.
TEST(RoundTrip, EmptyListsMayStandAnywhere) {
  for (size_t length = 1; length <= 24; ++length) {
    NetBuilder builder("n");
    const ValueId x = builder.input("x", DType::f32, Shape{});
    builder.output(builder.add1("Any", std::string(length, 'n'), {x},
                                {{"none", std::vector<int64_t>{}},
                                 {"no_numbers", std::vector<double>{}},
                                 {"scalar", testing::blob_of(DType::f32, Shape{}, std::vector<float>{2})}}));
    const auto bytes = net_to_bytes(builder.net());
    ASSERT_TRUE(bytes.ok()) << bytes.status().text();
    const auto loaded = load_net_bytes(*bytes, "");
    ASSERT_TRUE(loaded.ok()) << length << ": " << loaded.status().text();
    expect_same_net(builder.net(), *loaded);
  }
}

TEST(RoundTrip, AnyAlignmentOfTheBytesWillDo) {
  const auto bytes = net_to_bytes(sample_net());
  std::vector<std::byte> shifted(bytes->size() + 64);
  for (size_t offset = 0; offset < 64; offset += 7) {
    std::copy(bytes->begin(), bytes->end(), shifted.begin() + static_cast<std::ptrdiff_t>(offset));
    const auto loaded = load_net_bytes({shifted.data() + offset, bytes->size()}, "");
    ASSERT_TRUE(loaded.ok()) << loaded.status().text();
    EXPECT_EQ(*net_to_bytes(*loaded), *bytes);
  }
}

TEST(RoundTrip, LargeContentGoesToTheWeightsFile) {
  const TemporaryFolder folder;
  const Net net = sample_net();
  SaveOptions options;
  options.inline_bytes = 16;
  ASSERT_TRUE(save_net(net, folder / "a.heddle", options).ok());
  EXPECT_TRUE(std::filesystem::exists(folder / "a.safetensors"));
  LoadOptions verify;
  verify.verify_checksums = true;
  auto loaded = load_net(folder / "a.heddle", verify);
  ASSERT_TRUE(loaded.ok()) << loaded.status().text();
  const Value& f32 = (*loaded)[*loaded->find_value("f32")];
  EXPECT_EQ(f32.content.reference->file, "a.safetensors");
  EXPECT_EQ(f32.content.reference->tensor, "f32");
  const std::span<const std::byte> content(f32.content.blob->data, static_cast<size_t>(f32.content.blob->bytes));
  EXPECT_EQ(f32.content.reference->checksum, checksum(content));
  EXPECT_TRUE(f32.content.reference->identity.known());
  EXPECT_EQ(f32.content.reference->identity, Safetensors::open(folder.path(), "a.safetensors", {})->identity());
  EXPECT_EQ((*loaded)[*loaded->find_value("i32")].content.reference->file, "");
  for (Value& value : loaded->values) value.content.reference.reset();
  for (Variable& variable : loaded->variables) variable.initial.reference.reset();
  expect_same_net(net, *loaded);
}

TEST(RoundTrip, ConvertIsByteIdenticalWithoutReadingWeights) {
  const TemporaryFolder folder;
  SaveOptions options;
  options.inline_bytes = 16;
  ASSERT_TRUE(save_net(sample_net(), folder / "a.heddle", options).ok());
  const std::string weights = read_text(folder / "a.safetensors");
  std::filesystem::remove(folder / "a.safetensors");
  LoadOptions detached;
  detached.attach_weights = false;
  options.keep_references = true;
  ASSERT_TRUE(save_net(*load_net(folder / "a.heddle", detached), folder / "b.json", options).ok());
  ASSERT_TRUE(save_net(*load_net(folder / "b.json", detached), folder / "c.heddle", options).ok());
  EXPECT_EQ(read_text(folder / "a.heddle"), read_text(folder / "c.heddle"));
  EXPECT_NE(read_text(folder / "b.json").find("\"identity\": \""), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "b.safetensors"));
  // Without keep_references the weights are needed, and their absence is an error.
  options.keep_references = false;
  EXPECT_EQ(save_net(*load_net(folder / "b.json", detached), folder / "d.heddle", options).code(), Code::weights_missing);
}

// New content next to kept references: the weights file must not lose the tensors that they refer to.
TEST(RoundTrip, KeptReferencesSurviveARewrittenWeightsFile) {
  const TemporaryFolder folder;
  SaveOptions options;
  options.inline_bytes = 0;
  NetBuilder builder("n");
  builder.constant("old", testing::blob_of(DType::f32, Shape{100}, std::vector<float>(100, 1.5f)));
  ASSERT_TRUE(save_net(builder.net(), folder / "n.heddle", options).ok());
  auto net = load_net(folder / "n.heddle");
  Value added = net->values[0];
  added.name = "new";
  added.content = {testing::blob_of(DType::f32, Shape{100}, std::vector<float>(100, 2.5f)), {}};
  net->values.push_back(added);
  options.keep_references = true;
  ASSERT_TRUE(save_net(*net, folder / "n.heddle", options).ok());
  LoadOptions verify;
  verify.verify_checksums = true;
  const auto again = load_net(folder / "n.heddle", verify);
  ASSERT_TRUE(again.ok()) << again.status().text();
  EXPECT_EQ(reinterpret_cast<const float*>(again->values[0].content.blob->data)[0], 1.5f);
  EXPECT_EQ(reinterpret_cast<const float*>(again->values[1].content.blob->data)[0], 2.5f);
  // Without attached weights they can't be kept: an error instead of a net without its weights.
  net->values[0].content.blob = nullptr;
  EXPECT_EQ(save_net(*net, folder / "n.heddle", options).code(), Code::weights_missing);
}

TEST(RoundTrip, SharedBytesAreWrittenOnceAndNamesStayApart) {
  const TemporaryFolder folder;
  const std::vector<float> numbers(100, 2.5f);
  NetBuilder builder("shared");
  const auto blob = testing::blob_of(DType::f32, Shape{100}, numbers);
  builder.constant("w", blob);
  const ValueId variable = builder.variable("v", testing::blob_of(DType::f32, Shape{100}, numbers));
  builder.constant("again", blob);
  builder.rename(variable, "v@0");
  builder.net()[builder.net()[variable].variable].name = "w";  // the name of the constant
  SaveOptions options;
  options.inline_bytes = 0;
  ASSERT_TRUE(save_net(builder.net(), folder / "n.heddle", options).ok());
  const auto loaded = load_net(folder / "n.heddle");
  ASSERT_TRUE(loaded.ok()) << loaded.status().text();
  EXPECT_EQ(loaded->variables[0].initial.reference->tensor, "w");
  EXPECT_EQ(loaded->values[0].content.reference->tensor, "w~2");
  EXPECT_EQ(loaded->values[2].content.reference, loaded->values[0].content.reference);
}

TEST(RoundTrip, SaveReplacesTheFileAsAWhole) {
  const TemporaryFolder folder;
  NetBuilder builder("first");
  ASSERT_TRUE(save_net(builder.net(), folder / "n.heddle").ok());
  builder.net().nodes.emplace_back();  // no name: refused
  EXPECT_EQ(save_net(builder.net(), folder / "n.heddle").code(), Code::syntax);
  EXPECT_EQ(load_net(folder / "n.heddle")->name, "first");
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++files;
  EXPECT_EQ(files, 1u);
  EXPECT_EQ(save_net(NetBuilder("n").net(), folder / "absent/n.heddle").code(), Code::file_unwritable);
}

TEST(RoundTrip, SaveRefusesLinksThatContradictTheNodes) {
  Net net = sample_net();
  net.values[net.nodes[0].outputs[0].index].producer = NodeId(1);
  EXPECT_EQ(net_to_bytes(net).status().code(), Code::internal);
  net = sample_net();
  net.variables[0].last = net.variables[0].first;
  EXPECT_EQ(net_to_json(net).status().code(), Code::internal);
}

TEST(RoundTrip, SaveRefusesWhatFilesDoNotHold) {
  Net net = sample_net();
  net.nodes[0].epilogue.edit().emplace_back();
  EXPECT_EQ(net_to_bytes(net).status().code(), Code::unsupported);
}

}  // namespace
}  // namespace heddle
