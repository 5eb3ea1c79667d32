// The findings of `heddle check`: those of every stage, compile included. As long as a net has no errors the stages themselves are run;
// once it has some, only the findings about the rest of it that are still possible are added.
#include <unordered_set>

#include "base/device_name.h"
#include "base/text/text.h"
#include "device/device_manager.h"
#include "device/locations.h"
#include "infer/registry_evaluator.h"
#include "infer/shape_operands.h"
#include "place/place.h"
#include "plugin/kernel_call.h"
#include "session/pipeline.h"
#include "verify/visit_subnets.h"

namespace heddle {
namespace {

// Reports operators without a kernel, in subnets too, before compile stops at the first net that has some.
class KernelCheck {
 public:
  explicit KernelCheck(const Compilation& c) : compilation_(c), host_(c.target.for_subnets()) {
    if (!c.transforms.apply_rules) return;
    for (const auto& rule : c.registry->rewrite_rules())
      for (const Node& node : rule->pattern.nodes) replaced_.insert(node.schema);
  }

  // `transformed`: the net is as compile gets it. If not, only operators that fusing and folding can't remove any more are reported.
  void look(const TypedNet& net, bool transformed, Findings& findings) const {
    for (size_t i = 0; i < net.net.nodes.size(); ++i) {
      const Node& node = net.net.nodes[i];
      const std::string& device = net.device_of(node);
      if (has_types(net, node) && !runs(net, node, device, transformed))
        findings.add(Status(KernelCall(net, node, device, 1).missing(net.net, node))
                         .at(node.name, display_name(node.domain, node.type))
                         .in_net(net.net.name));
      visit_subnets(net, NodeId(i), &compilation_.evaluator, findings,
                    [&](TypedNet subnet, bool whole, Findings& inside) { look_inside(std::move(subnet), whole, inside); });
    }
  }

 private:
  void look_inside(TypedNet subnet, bool whole, Findings& inside) const {
    if (!whole) return look(subnet, false, inside);
    Compilation c(host_, compilation_.registry, compilation_.evaluator, compilation_.compiling);
    c.transforms = compilation_.transforms;
    c.subnet = true;
    c.on_findings = OnFindings::collect;
    c.typed = std::move(subnet);
    (void)run_stages(c, nullptr, {"place", "compile"});
    if (!c.findings.failed()) look(c.typed, true, inside);
    for (const Diagnostic& d : c.findings.all()) inside.add(Status(d));
  }
  bool runs(const TypedNet& net, const Node& node, const std::string& device, bool transformed) const {
    if (!transformed && replaced_.count(node.schema) > 0) return true;  // a rewrite rule may remove it
    if (node.schema->has_trait(HEDDLE_TRAIT_VIEW) || is_copy(node)) return true;
    if (!is_host(device) && !check_device(*net.registry, device).ok()) return true;  // verify has reported that there is no such device
    if (KernelCall(net, node, device, 1).find()) return true;
    return !transformed && node.schema->op->pointwise && runs_pointwise(net, device);
  }

  const Compilation& compilation_;
  const CompilationTarget host_;
  std::unordered_set<const OperatorSchema*> replaced_;  // by rewrite rules
};

// Returns the names of inputs that decide shapes and have no content.
std::vector<std::string> unknown_contents(const Net& net, const CompilationTarget& target, const PipelineOptions& options) {
  std::vector<std::string> names;
  for (const uint32_t i : shape_deciding_inputs(net, target.limits))
    if (i >= options.inputs.size() || !options.inputs[i].content) names.push_back(net[net.inputs[i]].name);
  return names;
}

// Returns the findings of infer, without those that are unreliable while contents that decide shapes are not known.
Findings inferred_findings(const Findings& inferred, const Net& net, const std::vector<std::string>& unknown) {
  Findings findings;
  if (inferred.failed())
    for (const std::string& name : unknown) findings.add(missing_content(name).in_net(net.name));
  for (const Diagnostic& d : inferred.all())
    if (unknown.empty() || d.code != Code::shape_mismatch) findings.add(Status(d));
  return findings;
}

}  // namespace

Findings check_net(const Net& resolved, const std::shared_ptr<const RegistrySnapshot>& registry, const CompilationTarget& target,
                   const PipelineOptions& options) {
  const std::unique_ptr<Evaluator> evaluator = make_registry_evaluator(registry);
  Compilation c = compilation(registry, target, options, *evaluator);
  c.on_findings = OnFindings::collect;  // so that run_stages itself never fails
  const KernelCheck kernels(c);
  (void)run_stages(c, &resolved, {nullptr, "place"});
  c.findings = inferred_findings(c.findings, resolved, unknown_contents(resolved, target, options));
  (void)run_stages(c, nullptr, {"place", "transform"});
  if (c.findings.failed()) {
    kernels.look(c.typed, false, c.findings);
    return c.findings;
  }
  (void)run_stages(c, nullptr, {"transform", "compile"});
  if (c.findings.failed()) return c.findings;
  kernels.look(c.typed, true, c.findings);
  (void)run_stages(c, nullptr, {"compile", nullptr});
  if (c.plan)
    for (const Diagnostic& d : c.plan->impossible) c.findings.add(Status(d));
  return c.findings;
}

}  // namespace heddle
