// Broken and malicious models: one clear error each, never a crash.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "onnx/model_builder.h"
#include "onnx/tensors/tensor_proto.h"

namespace heddle {
namespace {

using namespace heddle::testing;

// The model x → Relu → y, which tests break.
struct Model : ModelBuilder {
  Model() : ModelBuilder(13) {
    graph.input("x", {2, 3}).output("y");
    relu = graph.node("Relu", {"x"}, {"y"}, "r");
  }
  ::onnx::NodeProto* relu;
};

std::string bytes_of(const Model& m) {
  return m.model.SerializePartialAsString();
}

Code code_of_file(const std::string& bytes) {
  TemporaryFolder folder;
  std::ofstream(folder.path() / "m.onnx", std::ios::binary) << bytes;
  return import_onnx(folder.path() / "m.onnx").status().code();
}

TEST(Hostile, FilesThatAreNoModels) {
  EXPECT_EQ(import_onnx("/nowhere/model.onnx").status().code(), Code::file_not_found);
  EXPECT_EQ(import_onnx("/tmp").status().code(), Code::file_unreadable);
  EXPECT_EQ(code_of_file(""), Code::file_truncated);
  EXPECT_EQ(code_of_file("\x89PNG\r\n\x1a\n and so on"), Code::file_corrupt);
  EXPECT_EQ(code_of_file(std::string("\x08\x08", 2)), Code::file_corrupt);  // an IR version and nothing else
}

TEST(Hostile, EveryTruncationIsAnError) {
  Model m;
  m.graph.floats("w", {4}, {1, 2, 3, 4});
  const std::string bytes = bytes_of(m);
  ASSERT_EQ(code_of_file(bytes), Code::ok);
  for (size_t n = 0; n < bytes.size(); ++n) {
    const Code code = code_of_file(bytes.substr(0, n));
    const bool dropped_opset_only = code == Code::ok && n > bytes.size() / 2;  // a cut between the last fields is still a message
    EXPECT_TRUE(code != Code::ok || dropped_opset_only) << n;
    EXPECT_NE(code, Code::internal) << n;
  }
}

TEST(Hostile, EveryFlippedByteEndsInAValueOrAnError) {
  Model m;
  m.graph.floats("w", {4}, {1, 2, 3, 4});
  const std::string bytes = bytes_of(m);
  for (size_t n = 0; n < bytes.size(); ++n)
    for (const int mask : {0x01, 0x80, 0xff}) {
      std::string broken = bytes;
      broken[n] = static_cast<char>(broken[n] ^ mask);
      EXPECT_NE(code_of_file(broken), Code::internal) << n;
    }
}

TEST(Hostile, OpsetsAreBounded) {
  Model m;
  m.model.mutable_opset_import(0)->set_version(99);
  EXPECT_EQ(m.failure().code, Code::file_version);
  m.model.mutable_opset_import(0)->set_version(-3);
  EXPECT_EQ(m.failure().code, Code::file_version);
}

// All are named, each in a diagnostic of its own; only the first ones get the nearest names, since each costs a search.
TEST(Hostile, ManyUnknownOperatorsAreNamedAndTheFirstGetSuggestions) {
  ModelBuilder m(13);
  m.graph.input("x", {2});
  std::string last = "x";
  constexpr int count = 30'000;
  for (int i = 0; i < count; ++i) {
    const std::string out = "v" + std::to_string(i);
    m.graph.node("ReduceLogSumExp" + std::to_string(i), {last}, {out});
    last = out;
  }
  m.graph.output(last);
  const Diagnostic d = m.failure();
  EXPECT_EQ(d.code, Code::unknown_operator);
  EXPECT_EQ(d.attached.size(), static_cast<size_t>(count));
  int suggested = 0;
  for (const Diagnostic& one : d.attached) suggested += one.hint.empty() ? 0 : 1;
  EXPECT_EQ(suggested, 100);
  EXPECT_NE(d.message.find("and 29900 more"), std::string::npos) << d.message.substr(0, 200);
}

TEST(Hostile, UnknownOperatorsAreListedAllAtOnce) {
  Model m;
  m.graph.node("Rellu", {"x"}, {"a"}, "first");
  m.graph.node("Rellu", {"x"}, {"b"});
  m.graph.node("SequenceInsert", {"x"}, {"c"});
  auto* branch = m.graph.node("If", {"x"}, {"d"});
  set_graph(branch, "then_branch").node("Konv", {"x"}, {"e"});
  const Diagnostic d = m.failure();
  EXPECT_EQ(d.code, Code::unknown_operator);
  ASSERT_EQ(d.attached.size(), 3u);
  EXPECT_EQ(d.attached[0].type, "Konv");
  EXPECT_EQ(d.attached[1].type, "Rellu");
  EXPECT_EQ(d.attached[1].node, "first");
  EXPECT_EQ(d.attached[1].message, "operator \"Rellu\", used 2 times, is not one that the importer knows");
  EXPECT_NE(d.attached[1].hint.find("\"Relu\""), std::string::npos);
  EXPECT_EQ(d.attached[2].message, "operator \"SequenceInsert\", used 1 time, works on sequences, which Heddle does not have");
}

TEST(Hostile, NamesAreDefinedOnceAndReadAfterwards) {
  Model twice;
  twice.graph.node("Relu", {"x"}, {"y"}, "again");
  EXPECT_EQ(twice.failure().code, Code::duplicate_name);
  Model input;
  input.relu->set_output(0, "x");
  EXPECT_EQ(input.failure().code, Code::duplicate_name);
  Model initializer;
  initializer.graph.ints("w", {1}).ints("w", {2});
  EXPECT_EQ(initializer.failure().code, Code::duplicate_name);
  Model outputs;
  outputs.graph.output("y");
  EXPECT_EQ(outputs.failure().code, Code::duplicate_name);
  Model dangling;
  dangling.relu->set_input(0, "nobody");
  EXPECT_EQ(dangling.failure().code, Code::dangling_input);
  EXPECT_EQ(dangling.failure().node, "r");
  Model attributes;
  set_int(attributes.relu, "a", 1);
  set_int(attributes.relu, "a", 2);
  EXPECT_EQ(attributes.failure().code, Code::duplicate_name);
  Model output;
  output.graph.output("nobody");
  EXPECT_EQ(output.failure().code, Code::dangling_input);
}

TEST(Hostile, CyclesAreFoundAndDisorderIsMended) {
  ModelBuilder m(13);
  m.graph.input("x", {1}).output("c");
  m.graph.node("Relu", {"b"}, {"c"});
  m.graph.node("Add", {"x", "a"}, {"b"});
  auto* first = m.graph.node("Neg", {"x"}, {"a"});
  EXPECT_EQ(imported(m), "a = Neg/13(x)\nb = Add/14(x, a)\nc = Relu/14(b)\n");
  first->set_input(0, "c");
  EXPECT_EQ(m.failure().code, Code::cycle);
}

TEST(Hostile, TensorsHoldWhatTheirDimsSay) {
  const auto with = [](auto change) {
    Model m;
    auto* tensor = m.model.mutable_graph()->add_initializer();
    tensor->set_name("w");
    tensor->set_data_type(1);
    tensor->add_dims(2);
    tensor->mutable_float_data()->Resize(2, 1.0f);
    change(*tensor);
    return m.import().status().code();
  };
  using Tensor = ::onnx::TensorProto;
  EXPECT_EQ(with([](Tensor&) {}), Code::ok);
  EXPECT_EQ(with([](Tensor& t) { t.set_dims(0, 3); }), Code::file_corrupt);
  EXPECT_EQ(with([](Tensor& t) { t.set_dims(0, -2); }), Code::file_corrupt);
  EXPECT_EQ(with([](Tensor& t) { t.set_dims(0, int64_t{1} << 62); }), Code::limit_exceeded);
  EXPECT_EQ(with([](Tensor& t) { t.set_dims(0, int64_t{1} << 27); }), Code::file_corrupt);  // nothing is allocated for it
  EXPECT_EQ(with([](Tensor& t) { t.set_raw_data("1234567"); }), Code::file_corrupt);
  EXPECT_EQ(with([](Tensor& t) { t.set_data_type(8); }), Code::unsupported);
  EXPECT_EQ(with([](Tensor& t) { t.set_data_type(17); }), Code::unsupported);
  EXPECT_EQ(with([](Tensor& t) { t.set_data_type(4711); }), Code::unsupported);
  EXPECT_EQ(with([](Tensor& t) { t.mutable_segment(); }), Code::unsupported);
  EXPECT_EQ(with([](Tensor& t) {
              for (int i = 0; i < 8; ++i) t.add_dims(1);
            }),
            Code::unsupported);
  EXPECT_EQ(with([](Tensor& t) {
              t.set_data_type(3);
              t.mutable_int32_data()->Resize(2, 128);
            }),
            Code::file_corrupt);
}

TEST(Hostile, TypesOfInputs) {
  Model sequence;
  sequence.model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_sequence_type();
  EXPECT_EQ(sequence.failure().code, Code::unsupported);
  EXPECT_NE(sequence.failure().message.find("a sequence"), std::string::npos);
  Model untyped;
  untyped.model.mutable_graph()->mutable_input(0)->clear_type();
  EXPECT_EQ(untyped.failure().code, Code::syntax);
  Model huge;
  huge.graph.input("z", {int64_t{1} << 40, int64_t{1} << 40});
  EXPECT_EQ(huge.failure().code, Code::limit_exceeded);
  Model deep;
  deep.graph.input("z", std::vector<int64_t>(9, 1));
  EXPECT_EQ(deep.failure().code, Code::unsupported);
  Model sparse;
  sparse.model.mutable_graph()->add_sparse_initializer()->mutable_values()->set_name("s");
  EXPECT_EQ(sparse.failure().code, Code::unsupported);
}

TEST(Hostile, LimitsHold) {
  Model m;
  ImportOptions few;
  few.limits.nodes = 0;
  EXPECT_EQ(m.failure(few).code, Code::limit_exceeded);
  ImportOptions small;
  small.limits.file_bytes = 10;
  EXPECT_EQ(m.failure(small).code, Code::limit_exceeded);
  Model named;
  named.relu->set_name(std::string(5000, 'n'));
  EXPECT_EQ(named.failure().code, Code::limit_exceeded);
}

// A model with a tensor "w" of two f32 in a file beside it.
struct External : Model {
  explicit External(const std::string& location) {
    tensor = model.mutable_graph()->add_initializer();
    tensor->set_name("w");
    tensor->set_data_type(1);
    tensor->add_dims(2);
    tensor->set_data_location(::onnx::TensorProto::EXTERNAL);
    set("location", location);
    std::filesystem::create_directory(folder.path() / "sub");
    const float values[3] = {1, 2, 3};
    std::ofstream(folder.path() / "sub" / "w.bin", std::ios::binary).write(reinterpret_cast<const char*>(values), sizeof(values));
  }
  void set(const std::string& key, const std::string& value) {
    auto* entry = tensor->add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  }
  ::onnx::TensorProto* tensor;
};

TEST(ExternalData, IsReadBeneathTheFolder) {
  External m("sub/w.bin");
  m.set("offset", "4");
  const Result<Net> net = m.import();
  ASSERT_TRUE(net.ok()) << net.status().text();
  const auto& blob = *(*net)[*net->find_value("w")].content.blob;
  EXPECT_EQ(reinterpret_cast<const float*>(blob.data)[0], 2);
  EXPECT_EQ(reinterpret_cast<const float*>(blob.data)[1], 3);
}

TEST(ExternalData, StaysBeneathTheFolder) {
  EXPECT_EQ(External("/etc/hostname").failure().code, Code::weights_outside);
  EXPECT_EQ(External("../w.bin").failure().code, Code::weights_outside);
  EXPECT_EQ(External("sub/../sub/w.bin").failure().code, Code::weights_outside);
  External link("out");
  std::filesystem::create_symlink("/etc/hostname", link.folder.path() / "out");
  EXPECT_EQ(link.failure().code, Code::weights_outside);
  External pipe("fifo");
  ASSERT_EQ(::mkfifo((pipe.folder.path() / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(pipe.failure().code, Code::file_unreadable);
  EXPECT_EQ(External("sub").failure().code, Code::file_unreadable);  // a folder
  EXPECT_EQ(External("sub//w.bin").failure().code, Code::weights_outside);
}

TEST(ExternalData, FitsTheTensor) {
  External missing("nowhere.bin");
  EXPECT_EQ(missing.failure().code, Code::weights_missing);
  External beyond("sub/w.bin");
  beyond.set("offset", "8");
  EXPECT_EQ(beyond.failure().code, Code::weights_mismatch);
  External wraps("sub/w.bin");
  wraps.set("offset", "9223372036854775807");
  EXPECT_EQ(wraps.failure().code, Code::weights_mismatch);
  External length("sub/w.bin");
  length.set("length", "12");
  EXPECT_EQ(length.failure().code, Code::weights_mismatch);
  External number("sub/w.bin");
  number.set("offset", "-4");
  EXPECT_EQ(number.failure().code, Code::file_corrupt);
  External unnamed("");
  EXPECT_EQ(unnamed.failure().code, Code::file_corrupt);
}

}  // namespace
}  // namespace heddle
