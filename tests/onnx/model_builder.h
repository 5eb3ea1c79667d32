// Small ONNX models for the importer's tests, and the imported nets as text (net/print.h).
#pragma once

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <regex>
#include <string>
#include <vector>

#include "net/print.h"
#include "onnx/import.h"

namespace heddle::testing {

// A fresh folder beneath the temporary one, removed with its content when destroyed.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "heddle_onnx_XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

using Names = std::vector<std::string>;

class GraphBuilder {
 public:
  explicit GraphBuilder(::onnx::GraphProto* graph) : graph_(graph) {}
  // A dim of 0 or more is a number, -1 has neither number nor name.
  GraphBuilder& input(const std::string& name, const std::vector<int64_t>& dims, int type = 1) {
    add_info(graph_->add_input(), name, dims, type);
    return *this;
  }
  GraphBuilder& output(const std::string& name) {
    graph_->add_output()->set_name(name);
    return *this;
  }
  GraphBuilder& floats(const std::string& name, const std::vector<int64_t>& dims, const std::vector<float>& values) {
    auto* tensor = graph_->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(1);
    tensor->mutable_dims()->Add(dims.begin(), dims.end());
    tensor->mutable_float_data()->Add(values.begin(), values.end());
    return *this;
  }
  GraphBuilder& ints(const std::string& name, const std::vector<int64_t>& values) {
    auto* tensor = graph_->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(7);
    tensor->add_dims(static_cast<int64_t>(values.size()));
    tensor->mutable_int64_data()->Add(values.begin(), values.end());
    return *this;
  }
  // Adds a node and returns it, so that attributes can be set.
  ::onnx::NodeProto* node(const std::string& type, const Names& inputs, const Names& outputs, const std::string& name = {}) {
    auto* node = graph_->add_node();
    node->set_op_type(type);
    node->set_name(name);
    for (const std::string& input : inputs) node->add_input(input);
    for (const std::string& output : outputs) node->add_output(output);
    return node;
  }
  ::onnx::GraphProto* proto() { return graph_; }

 private:
  static void add_info(::onnx::ValueInfoProto* info, const std::string& name, const std::vector<int64_t>& dims, int type) {
    info->set_name(name);
    auto* tensor = info->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    tensor->mutable_shape();
    for (int64_t dim : dims) {
      auto* d = tensor->mutable_shape()->add_dim();
      if (dim >= 0) d->set_dim_value(dim);
    }
  }
  ::onnx::GraphProto* graph_;
};

inline ::onnx::AttributeProto* attribute(::onnx::NodeProto* node, const std::string& name, ::onnx::AttributeProto::AttributeType type) {
  auto* a = node->add_attribute();
  a->set_name(name);
  a->set_type(type);
  return a;
}
inline void set_int(::onnx::NodeProto* node, const std::string& name, int64_t value) {
  attribute(node, name, ::onnx::AttributeProto::INT)->set_i(value);
}
inline void set_float(::onnx::NodeProto* node, const std::string& name, float value) {
  attribute(node, name, ::onnx::AttributeProto::FLOAT)->set_f(value);
}
inline void set_text(::onnx::NodeProto* node, const std::string& name, const std::string& value) {
  attribute(node, name, ::onnx::AttributeProto::STRING)->set_s(value);
}
inline void set_ints(::onnx::NodeProto* node, const std::string& name, const std::vector<int64_t>& values) {
  attribute(node, name, ::onnx::AttributeProto::INTS)->mutable_ints()->Add(values.begin(), values.end());
}
inline GraphBuilder set_graph(::onnx::NodeProto* node, const std::string& name) {
  return GraphBuilder(attribute(node, name, ::onnx::AttributeProto::GRAPH)->mutable_g());
}

struct ModelBuilder {
  explicit ModelBuilder(int opset) : graph(model.mutable_graph()) {
    model.set_ir_version(8);
    model.add_opset_import()->set_version(opset);
    model.mutable_graph()->set_name("test");
  }
  // Writes the model into a folder of its own and imports it.
  Result<Net> import(const ImportOptions& options = {}) const {
    const std::filesystem::path file = folder.path() / "model.onnx";
    std::ofstream(file, std::ios::binary) << model.SerializePartialAsString();
    return import_onnx(file, options);
  }
  // Returns the diagnostic of a failed import; fails the test if the import succeeds.
  Diagnostic failure(const ImportOptions& options = {}) const {
    const Result<Net> net = import(options);
    EXPECT_FALSE(net.ok()) << "imported what it should refuse";
    return net.ok() ? Diagnostic{} : net.status().diagnostic();
  }

  TemporaryFolder folder;
  ::onnx::ModelProto model;
  GraphBuilder graph;
};

// Returns the imported net as text, without the first line (name and ports) and the names of nodes; or the error if it is refused.
inline std::string imported(const ModelBuilder& model, const ImportOptions& options = {}) {
  const Result<Net> net = model.import(options);
  if (!net.ok()) return net.status().text();
  const std::string text = print(*net);
  return std::regex_replace(text.substr(text.find('\n') + 1), std::regex(" # .*"), "");
}

}  // namespace heddle::testing
