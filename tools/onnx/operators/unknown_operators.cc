#include "onnx/operators/unknown_operators.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "base/text/suggestions.h"
#include "base/text/text.h"
#include "onnx/operators/operators.h"

namespace heddle::importer {
namespace {

struct Use {
  std::string node;
  int64_t count = 0;
  std::string attribute;  // makes it another operator than the known one; empty: the type itself is unknown
};

// Names an attribute that nets can not express: "`mode` \"CRD\" of opset 28". Empty: there is none.
std::string unknown_attribute(const ::onnx::NodeProto& node, int32_t opset) {
  for (const auto& attribute : node.attribute()) {
    const NewAttribute* const row = find_new_attribute(node.op_type(), attribute.name(), opset);
    if (!row || row->ours.empty() || !attribute.ref_attr_name().empty()) continue;  // a function's parameter is checked in its call
    const bool is_text = attribute.type() == ::onnx::AttributeProto::STRING;
    const std::string value = is_text ? attribute.s() : fmt::to_string(attribute.i());
    if (value != row->ours)
      return fmt::format("attribute {} = {}, which is new in opset {}", quoted(attribute.name()), is_text ? quoted(value) : value,
                         row->since);
  }
  return {};
}

class Finder {
 public:
  explicit Finder(const ::onnx::ModelProto& model) {
    for (const auto& function : model.functions()) functions_.emplace(function.domain(), function.name());
  }

  void visit(const google::protobuf::RepeatedPtrField<::onnx::NodeProto>& nodes, int32_t opset) {
    for (const auto& node : nodes) {
      note(node, opset);
      for (const auto& attribute : node.attribute())
        if (attribute.has_g()) visit(attribute.g().node(), opset);
    }
  }
  const std::map<std::string, Use>& unknown() const { return unknown_; }

 private:
  void note(const ::onnx::NodeProto& node, int32_t opset) {
    const bool standard = node.domain().empty() || node.domain() == "ai.onnx";
    if (!standard || functions_.contains({node.domain(), node.op_type()})) return;
    std::string attribute;
    if (is_known(node.op_type(), opset) && (attribute = unknown_attribute(node, opset)).empty()) return;
    Use& use = unknown_[node.op_type()];
    if (use.count++ > 0) return;
    use.node = node.name();
    use.attribute = std::move(attribute);
  }

  std::set<std::pair<std::string, std::string>> functions_;
  std::map<std::string, Use> unknown_;
};

Diagnostic describe(const std::string& type, const Use& use, Suggestions& suggestions) {
  const std::string why = use.attribute.empty() ? std::string(why_not(type)) : fmt::format("has {}", use.attribute);
  Diagnostic d;
  d.code = Code::unknown_operator;
  d.node = use.node;
  d.type = type;
  d.message = fmt::format("operator {}, used {} time{}, {}", quoted(type), use.count, use.count == 1 ? "" : "s",
                          why.empty() ? "is not one that the importer knows" : fmt::format("{}, which Heddle does not have", why));
  d.hint = why.empty() ? suggestions.of(type, known_names) : "";
  return d;
}

int32_t opset_of(const ::onnx::FunctionProto& function, int32_t otherwise) {
  for (const auto& import : function.opset_import())
    if (import.domain().empty() || import.domain() == "ai.onnx")
      return static_cast<int32_t>(std::min<int64_t>(import.version(), INT32_MAX));
  return otherwise;
}

}  // namespace

Status check_operators(const ::onnx::ModelProto& model, int32_t opset) {
  Finder finder(model);
  finder.visit(model.graph().node(), opset);
  for (const auto& function : model.functions()) finder.visit(function.node(), opset_of(function, opset));
  if (finder.unknown().empty()) return {};
  Diagnostic all;
  all.code = Code::unknown_operator;
  constexpr size_t max_listed = 100;  // in the one message; each has a message of its own after it
  std::vector<std::string> types;
  Suggestions suggestions;
  for (const auto& [type, use] : finder.unknown()) {
    if (types.size() < max_listed) types.push_back(quoted(type));
    all.attached.push_back(describe(type, use, suggestions));
  }
  const size_t count = all.attached.size();
  all.message = fmt::format("{} operator type{} can not be imported: {}{}", count, count == 1 ? "" : "s", join(types, ", "),
                            count > types.size() ? fmt::format(" and {} more", count - types.size()) : "");
  all.hint = count == 1 ? all.attached[0].hint : "";
  return Status(std::move(all));
}

}  // namespace heddle::importer
