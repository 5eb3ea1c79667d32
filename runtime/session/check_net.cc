// What `heddle check` says: the findings of every stage up to compile. Where a net is right so far, the stages themselves are asked; where
// it is not, what can still be told about the rest of it.
#include "base/device_name.h"
#include "base/text.h"
#include "device/device_manager.h"
#include "device/locations.h"
#include "infer/registry_evaluator.h"
#include "infer/shape_operands.h"
#include "plugin/kernel_call.h"
#include "session/pipeline.h"
#include "verify/subnets.h"

namespace heddle {
namespace {

// Names operators that nothing runs, in subnets too, before compile stops at the first net that has some.
class KernelCheck {
 public:
  KernelCheck(Evaluator& evaluator, const TransformOptions& transform, const RegistrySnapshot& registry)
      : evaluator_(evaluator), transform_(transform), has_rules_(!registry.rewrite_rules().empty()) {}

  // `transformed`: the net is as compile gets it. If not, fusing and folding may still do away with operators; what they can't is named.
  void look(const TypedNet& net, const std::string& default_device, bool transformed, Findings& findings) const {
    for (size_t i = 0; i < net.net.nodes.size(); ++i) {
      const Node& node = net.net.nodes[i];
      const std::string device = full_device_name(node.device, default_device);
      if (has_types(net, node) && !runs(net, node, device, transformed))
        findings.add(
            Status(KernelCall(net, node, device, 1).missing()).at(node.name, display_name(node.domain, node.type)).in_net(net.net.name));
      visit_subnets(net, NodeId(i), &evaluator_, findings,
                    [&](TypedNet subnet, bool whole, Findings& inside) { look_inside(std::move(subnet), whole, inside); });
    }
  }

 private:
  void look_inside(TypedNet subnet, bool whole, Findings& inside) const {
    if (!whole) return look(subnet, "cpu:0", false, inside);
    TransformOptions transform = transform_;
    transform.default_device = "cpu:0";
    Result<TypedNet> optimized = optimize(std::move(subnet), evaluator_, transform);
    if (optimized.ok())
      look(*optimized, "cpu:0", true, inside);
    else
      inside.add(optimized.status());
  }
  bool runs(const TypedNet& net, const Node& node, const std::string& device, bool transformed) const {
    if (!transformed && has_rules_) return true;  // which may replace anything
    if (node.schema->has_trait(HEDDLE_TRAIT_VIEW) || is_copy(node)) return true;
    if (!is_host(device) && !check_device(*net.registry, device).ok()) return true;  // verify has said that there is no such device
    if (KernelCall(net, node, device, 1).find()) return true;
    return !transformed && node.schema->op->pointwise && runs_pointwise(net, device);
  }

  Evaluator& evaluator_;
  const TransformOptions& transform_;
  const bool has_rules_;
};

// Names of inputs that decide shapes and have no content.
std::vector<std::string> unknown_contents(const Net& net, const PipelineOptions& options) {
  std::vector<std::string> names;
  for (const uint32_t i : shape_deciding_inputs(net, options.limits))
    if (i >= options.inputs.size() || !options.inputs[i].content) names.push_back(net[net.inputs[i]].name);
  return names;
}

}  // namespace

Findings check_net(const Net& resolved, const std::shared_ptr<const RegistrySnapshot>& registry, const PipelineOptions& options) {
  const std::unique_ptr<Evaluator> evaluator = make_registry_evaluator(registry);
  Findings findings, inferred;
  TypedNet typed = infer_all(resolved, registry, infer_options(options, evaluator.get()), inferred);
  const std::vector<std::string> unknown = unknown_contents(resolved, options);
  if (inferred.failed())
    for (const std::string& name : unknown) findings.add(missing_content(name).in_net(resolved.name));
  // Without these contents shapes are anybody's guess.
  for (const Diagnostic& d : inferred.all())
    if (unknown.empty() || d.code != Code::shape_mismatch) findings.add(Status(d));
  place_and_verify(typed, options, evaluator.get(), findings);
  const KernelCheck kernels(*evaluator, options.transform, *registry);
  if (findings.failed()) {
    kernels.look(typed, options.compile.default_device, false, findings);
    return findings;
  }
  TransformOptions transform_options = options.transform;
  transform_options.interruption = options.interruption;
  Result<TypedNet> optimized = optimize(std::move(typed), *evaluator, transform_options);
  if (!optimized.ok()) {
    findings.add(optimized.status());
    return findings;
  }
  kernels.look(*optimized, options.compile.default_device, true, findings);
  if (findings.failed()) return findings;
  CompileOptions compile_options = options.compile;
  compile_options.evaluator = evaluator.get();
  compile_options.interruption = options.interruption;
  const auto plan = compile(std::move(optimized).value(), compile_options);
  findings.add(plan.status());
  return findings;
}

}  // namespace heddle
