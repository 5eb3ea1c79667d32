#include "verify/visit_subnets.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text/text.h"
#include "infer/infer.h"
#include "plugin/abi_attributes.h"
#include "plugin/infer_operator.h"

namespace heddle {
namespace {

// Passes the subnets that an operator declares to the visitor.
class SubnetServices : public CallServices {
 public:
  SubnetServices(const TypedNet& net, const Node& node, Evaluator* evaluator, const SubnetVisit& visit)
      : net_(net), node_(node), evaluator_(evaluator), visit_(visit) {}

  const std::vector<Attribute>* attributes() const override { return &node_.attributes; }
  Status declare_subnet(const heddle_subnet* subnet, heddle_call::Views inputs) override {
    const Net& net = *from_abi(subnet);
    if (net.inputs.size() != inputs.size()) return {Code::subnet_mismatch, "it has other ports"};
    if (!visited_.insert(&net).second) return {};
    const InferOptions options = subnet_options(inputs, evaluator_, net_.limits);
    Findings mistakes;  // reported when the net around was inferred
    TypedNet typed = infer_all(net, net_.registry, options, mistakes);
    Findings inside;
    visit_(std::move(typed), !mistakes.failed(), inside);
    for (const Diagnostic& d : inside.all())
      found_.push_back(from_subnet(Status(d), net.name, net_.net.name, node_.name, display_name(node_.domain, node_.type)));
    // The operator learns from the error whether it can do without this subnet.
    if (mistakes.failed()) return mistakes.status();
    return inside.status();
  }

  // `without`: the operator can do without the subnets that failed; their mistakes are reported when the plan is made.
  void tell(bool without, Findings& findings) {
    for (const Status& status : found_)
      without = without && (status.diagnostic().severity != Severity::error || may_be_left_out(status).ok());
    for (Status& status : found_)
      if (!without || status.diagnostic().severity != Severity::error) findings.add(std::move(status));
  }

 private:
  const TypedNet& net_;
  const Node& node_;
  Evaluator* const evaluator_;
  const SubnetVisit& visit_;
  std::set<const Net*> visited_;
  std::vector<Status> found_;
};

}  // namespace

bool has_types(const TypedNet& net, const Node& node) {
  const auto typed = [&](ValueId id) { return !id.valid() || net.type(id).dtype != DType::none; };
  return std::all_of(node.inputs.begin(), node.inputs.end(), typed) && std::all_of(node.outputs.begin(), node.outputs.end(), typed);
}

void visit_subnets(const TypedNet& net, NodeId id, Evaluator* evaluator, Findings& findings, const SubnetVisit& visit) {
  const Node& node = net.net[id];
  if (!node.has_subnet()) return;
  std::vector<heddle_tensor> views(node.inputs.size());
  std::vector<const heddle_tensor*> inputs(node.inputs.size(), nullptr);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.inputs[i].valid()) continue;
    const TensorType& type = net.type(node.inputs[i]);
    if (type.dtype == DType::none || type.dynamic) return;
    const auto& known = net.known[node.inputs[i].index];
    views[i] = tensor_view(type.dtype, type.shape, known ? const_cast<std::byte*>(known->data) : nullptr);
    inputs[i] = &views[i];
  }
  std::vector<char> wanted;
  for (const ValueId v : node.outputs) wanted.push_back(v.valid() ? 1 : 0);
  SubnetServices services(net, node, evaluator, visit);
  // The operator's own mistakes were reported when the net was inferred.
  const Status asked = ask_subnets(*node.schema, AttributeTable(*node.schema, node.attributes), inputs, wanted, services);
  services.tell(asked.ok(), findings);
}

}  // namespace heddle
