// Every model of Debian's libonnx-testdata: each is imported, or refused with the name of the operator or feature.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "onnx/import.h"
#include "onnx/operators/operators.h"
#include "onnx/tensors/tensor_proto.h"

namespace heddle {
namespace {

const std::filesystem::path data_folder = "/usr/share/libonnx-testdata/data";

std::vector<std::filesystem::path> models_in(const std::string& group) {
  std::vector<std::filesystem::path> models;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(data_folder / group, error))
    if (std::filesystem::exists(entry.path() / "model.onnx")) models.push_back(entry.path() / "model.onnx");
  std::sort(models.begin(), models.end());
  return models;
}

#define SKIP_WITHOUT_DATA() \
  if (!std::filesystem::exists(data_folder)) GTEST_SKIP() << "libonnx-testdata is not installed"

// Checks the invariants of every imported net.
void expect_well_formed(const Net& net) {
  std::set<std::string> values, nodes;
  for (const Value& value : net.values) {
    EXPECT_FALSE(value.name.empty());
    EXPECT_TRUE(values.insert(value.name).second) << "value " << value.name << " twice";
    EXPECT_TRUE(value.kind != Value::Kind::constant || value.content.blob) << value.name;
  }
  std::set<uint32_t> defined;
  for (uint32_t i = 0; i < net.values.size(); ++i)
    if (net.values[i].kind != Value::Kind::node_output) defined.insert(i);
  for (size_t n = 0; n < net.nodes.size(); ++n) {
    const Node& node = net.nodes[n];
    EXPECT_TRUE(nodes.insert(node.name).second) << "node " << node.name << " twice";
    EXPECT_EQ(node.random_stream, n);
    EXPECT_TRUE(!node.domain.empty() || node.version == importer::implemented_version(node.type)) << node.type;
    for (ValueId input : node.inputs) EXPECT_TRUE(!input.valid() || defined.contains(input.index)) << node.name << " reads ahead";
    for (ValueId output : node.outputs)
      if (output.valid()) defined.insert(output.index);
    for (const Attribute& attribute : node.attributes)
      if (const auto* subnet = std::get_if<std::shared_ptr<const Net>>(&attribute.value)) expect_well_formed(**subnet);
  }
  for (ValueId output : net.outputs) EXPECT_TRUE(defined.contains(output.index));
}

TEST(TestData, EveryModelThatPyTorchExportedIsImported) {
  SKIP_WITHOUT_DATA();
  size_t imported = 0;
  for (const char* group : {"pytorch-converted", "pytorch-operator"})
    for (const auto& model : models_in(group)) {
      SCOPED_TRACE(model.string());
      const Result<Net> net = import_onnx(model);
      ASSERT_TRUE(net.ok()) << net.status().text();
      expect_well_formed(*net);
      ++imported;
    }
  EXPECT_EQ(imported, 82u + 35u);
}

TEST(TestData, NodeModelsAreImportedOrRefusedByName) {
  SKIP_WITHOUT_DATA();
  size_t imported = 0;
  std::map<std::string, size_t> refused;
  for (const auto& model : models_in("node")) {
    SCOPED_TRACE(model.string());
    const Result<Net> net = import_onnx(model);
    if (net.ok()) {
      expect_well_formed(*net);
      ++imported;
      continue;
    }
    const Diagnostic& d = net.status().diagnostic();
    EXPECT_TRUE(d.code == Code::unknown_operator || d.code == Code::unsupported) << d.text();
    ++refused[d.code == Code::unknown_operator ? d.attached.at(0).type : d.message];
  }
  for (const auto& [what, count] : refused) RecordProperty(what, std::to_string(count));
  EXPECT_GE(imported, 870u);
  EXPECT_EQ(refused["StringNormalizer"], 6u);
}

TEST(TestData, TensorFilesAreReadAndWrittenBack) {
  SKIP_WITHOUT_DATA();
  const auto file = data_folder / "node" / "test_abs" / "test_data_set_0" / "input_0.pb";
  const Result<NamedTensor> tensor = read_tensor_proto(file);
  ASSERT_TRUE(tensor.ok()) << tensor.status().text();
  EXPECT_EQ(tensor->blob->dtype, DType::f32);
  EXPECT_EQ(tensor->blob->shape, (Shape{3, 4, 5}));
}

}  // namespace
}  // namespace heddle
