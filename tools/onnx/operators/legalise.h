// Rewrites one ONNX node from the opset of its model to the newest semantics of its operator.
//
// A legaliser edits the node in place (attributes become inputs, defaults that changed become explicit) and may emit auxiliary
// nodes before it. operators.cc has the tables of the opsets to which each applies.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heddle/status.h"
#include "onnx/graph/net_writer.h"

namespace heddle::importer {

// A node as in the model, its inputs already values of the net.
struct OnnxNode {
  std::string name;  // unique in its net
  std::string domain;
  std::string type;
  int32_t opset = 0;  // of its domain in its model or function
  std::vector<ValueId> inputs;
  std::vector<std::string> outputs;  // names in the net; empty: not wanted
  std::vector<Attribute> attributes;
};

class Rewrite {
 public:
  // `writer` and `node` must outlive it. `keeps_dropouts`: see ImportOptions.
  Rewrite(NetWriter& writer, OnnxNode& node, bool keeps_dropouts) : writer_(writer), node_(node), keeps_dropouts_(keeps_dropouts) {}

  OnnxNode& node() { return node_; }
  int32_t opset() const { return node_.opset; }
  bool keeps_dropouts() const { return keeps_dropouts_; }
  // Invalid id when absent.
  ValueId input(size_t i) const { return i < node_.inputs.size() ? node_.inputs[i] : ValueId(); }
  void set_input(size_t i, ValueId value);
  bool wants_output(size_t i) const { return i < node_.outputs.size() && !node_.outputs[i].empty(); }
  Hint hint(ValueId id) const { return writer_.hint(id); }
  const Blob* content(ValueId id) const { return writer_.content(id); }

  const AttributeValue* find(std::string_view name) const;
  // Removes the attribute and returns its value; nullopt when absent. attribute_mismatch when it is of another type.
  Result<std::optional<int64_t>> take_int(std::string_view name);
  Result<std::optional<double>> take_float(std::string_view name);
  Result<std::optional<std::string>> take_string(std::string_view name);
  Result<std::optional<std::vector<int64_t>>> take_ints(std::string_view name);
  Result<std::optional<std::vector<double>>> take_floats(std::string_view name);
  void drop(std::string_view name);
  void set(std::string name, AttributeValue value);
  // Returns the int attribute, or `otherwise` when it is absent or of another type; stays in the node.
  int64_t int_or(std::string_view name, int64_t otherwise) const;

  // Constants and auxiliary nodes named <node>/<label>.
  ValueId constant(const std::string& label, std::shared_ptr<const Blob> blob);
  ValueId ints(const std::string& label, const std::vector<int64_t>& values);
  ValueId int_scalar(const std::string& label, int64_t value);
  // A scalar of the dtype of `like`.
  ValueId scalar_like(const std::string& label, double value, ValueId like);
  ValueId emit(const std::string& label, const std::string& type, std::vector<ValueId> inputs, std::vector<Attribute> attributes = {});
  // An auxiliary node that computes output `i` of this node in its place.
  void emit_output(size_t i, const std::string& type, std::vector<ValueId> inputs, std::vector<Attribute> attributes = {});
  // Outputs that emit_output wrote: (index, value).
  const std::vector<std::pair<size_t, ValueId>>& bound() const { return bound_; }

 private:
  std::optional<AttributeValue> take(std::string_view name);
  template <class T>
  Result<std::optional<T>> take_as(std::string_view name, const char* kind);

  NetWriter& writer_;
  OnnxNode& node_;
  const bool keeps_dropouts_;
  std::vector<std::pair<size_t, ValueId>> bound_;
};

using Legaliser = Status (*)(Rewrite&);

// One legaliser for each family of changes; its effect is documented as `effect` in operators.cc.
Status align_broadcast(Rewrite& r);
Status slope_to_channels(Rewrite& r);
Status drop_broadcast(Rewrite& r);
Status attribute_axes_to_input(Rewrite& r);
Status split_sizes_to_input(Rewrite& r);
Status reshape_shape_to_input(Rewrite& r);
Status slice_to_inputs(Rewrite& r);
Status pad_to_inputs(Rewrite& r);
Status clip_to_inputs(Rewrite& r);
Status top_k_to_input(Rewrite& r);
Status tile_to_repeats(Rewrite& r);
Status concat_default_axis(Rewrite& r);
Status cast_target(Rewrite& r);
Status dft_axis_to_input(Rewrite& r);
Status scatter_to_elements(Rewrite& r);
Status integral_norm(Rewrite& r);
Status recurrent_sequence(Rewrite& r);
Status selu_constants(Rewrite& r);
Status refuse_scan_8(Rewrite& r);
Status coerced_softmax(Rewrite& r);
Status batch_normalisation_inference(Rewrite& r);
Status dropout(Rewrite& r);
Status dropout_modes(Rewrite& r);
Status group_scales_to_channels(Rewrite& r);
Status upsample_to_resize(Rewrite& r);
Status resize_10(Rewrite& r);
Status resize_empty_inputs(Rewrite& r);
Status roi_align_mode(Rewrite& r);
Status grid_sample_names(Rewrite& r);

}  // namespace heddle::importer
