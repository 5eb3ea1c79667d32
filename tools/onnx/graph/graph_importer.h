// A scope of ONNX names and the net that is written from it: the model's graph, a subgraph, or the body of an inlined function.
// Internal: sees protobuf.
//
// A subgraph has a net of its own; a value that it reads from outside becomes an extra input of it (a capture), or a copy when it is a
// small integer constant, so that shapes stay computable. A function's body is written into the net of its caller under prefixed names.
#pragma once

#include <onnx/onnx_pb.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "onnx/graph/net_writer.h"
#include "onnx/import.h"
#include "onnx/operators/legalise.h"
#include "onnx/tensors/external_data.h"

namespace heddle::importer {

using Opsets = std::map<std::string, int32_t>;  // by domain, ONNX's own as ""

// State shared by all scopes of one import. Must outlive them.
struct ModelContext {
  const ImportOptions& options;
  ExternalData external;
  std::map<std::pair<std::string, std::string>, const ::onnx::FunctionProto*> functions;  // by domain and name
  ::onnx::GraphProto* main_graph = nullptr;  // its initializers' bytes are released once they are copied
  int64_t nodes = 0;                         // written so far
};

// "" for ONNX's own domain under both of its names.
std::string domain_of(const std::string& domain);

// A subgraph attribute that is being converted to a net.
struct Subgraph {
  std::string attribute;
  Net net;
  std::vector<ValueId> captured;  // values of the enclosing net, in the order of the inputs that end net.inputs
};

// An attribute under the name that its node gives it; both live as long as the model.
struct NamedAttribute {
  const std::string* name;
  const ::onnx::AttributeProto* value;
};

class GraphImporter {
 public:
  // `outer` is the scope around a subgraph, null for the model's graph and for functions. `writer` and `outer` must outlive it.
  GraphImporter(ModelContext& model, NetWriter& writer, const Opsets& opsets, GraphImporter* outer);

  // Writes the whole graph.
  Status import_graph(const ::onnx::GraphProto& graph);
  // Values of the outer net that import_graph captured.
  const std::vector<ValueId>& captured() const { return captured_; }

 private:
  // control_flow.cc: subgraph attributes, and captures as the node's last inputs.
  Result<Subgraph> import_subgraph(const std::string& name, const ::onnx::GraphProto& graph);
  Status attach_subgraphs(OnnxNode& node, std::vector<Subgraph> subgraphs);

  // functions.cc
  Status inline_function(const ::onnx::NodeProto& call, const ::onnx::FunctionProto& function, const std::string& name);
  Status enter_function(const ::onnx::NodeProto& call, const ::onnx::FunctionProto& function, GraphImporter& caller);
  Status bind_outputs(const ::onnx::NodeProto& call, const ::onnx::FunctionProto& function, GraphImporter& body);
  bool is_active(const ::onnx::FunctionProto* function) const;

  // graph_importer.cc
  Status import_inputs(const ::onnx::GraphProto& graph);
  Status import_initializers(const ::onnx::GraphProto& graph);
  Status import_outputs(const ::onnx::GraphProto& graph);
  Status import_nodes(const google::protobuf::RepeatedPtrField<::onnx::NodeProto>& nodes);
  Status import_node(const ::onnx::NodeProto& node, int index);
  Status import_operator(const ::onnx::NodeProto& node, const std::string& name);
  Status import_constant(const ::onnx::NodeProto& node, const std::string& name);
  Status write(OnnxNode node, const ::onnx::NodeProto& proto);

  // node_parts.cc: the parts of a NodeProto.
  Result<std::vector<ValueId>> inputs_of(const ::onnx::NodeProto& node);
  // The node's attributes with references to the function's replaced; absent ones left out. Errors: duplicate_name.
  Result<std::vector<NamedAttribute>> attributes_of(const ::onnx::NodeProto& node) const;
  std::string name_of(const ::onnx::NodeProto& node, int index);
  // The name in the net of an ONNX value that this scope defines.
  std::string net_name(const std::string& name);
  // Nullopt when no scope defines it; captures it when an outer scope does. An invalid id is an absent argument of a function.
  std::optional<ValueId> lookup(const std::string& name);
  ValueId capture(const std::string& name, ValueId outside);
  Status define(const std::string& name, ValueId value);
  Status check_name(const std::string& name) const;

  ModelContext& model_;
  NetWriter& writer_;
  Opsets opsets_;
  GraphImporter* outer_;
  int depth_;
  std::unordered_map<std::string, ValueId> values_;  // by ONNX name
  std::unordered_map<std::string, Hint> stated_;     // the declared types of values
  std::vector<ValueId> captured_;

  // Used for a function's body only.
  const ::onnx::FunctionProto* function_ = nullptr;
  const GraphImporter* caller_ = nullptr;
  std::string prefix_;
  std::map<std::string, ::onnx::AttributeProto> arguments_;    // attribute parameters by name
  std::unordered_map<std::string, std::string> output_names_;  // formal output → name in the net
};

}  // namespace heddle::importer
