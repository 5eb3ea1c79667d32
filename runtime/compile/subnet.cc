#include "compile/subnet.h"

#include "infer/infer.h"
#include "infer/registry_evaluator.h"
#include "plugin/infer_operator.h"
#include "transform/transform.h"

namespace heddle {

std::shared_ptr<const Net> subnet_attribute(const std::vector<Attribute>& attributes, const Net* net) {
  for (const Attribute& a : attributes)
    if (const auto* candidate = std::get_if<std::shared_ptr<const Net>>(&a.value); candidate && candidate->get() == net) return *candidate;
  return nullptr;
}

Result<std::shared_ptr<const Plan>> compile_subnet(const Net& subnet, const std::shared_ptr<const RegistrySnapshot>& registry,
                                                   std::span<const heddle_tensor* const> inputs, std::span<heddle_type* const> outputs,
                                                   const CompileOptions& options) {
  std::unique_ptr<Evaluator> own_evaluator;
  CompileOptions inner = options;
  if (!inner.evaluator) {
    own_evaluator = make_registry_evaluator(registry);
    inner.evaluator = own_evaluator.get();
  }
  inner.max_threads = 1;
  inner.default_device = "cpu:0";  // subnets run where their operator does
  inner.devices = nullptr;
  InferOptions inference = subnet_options(inputs, inner.evaluator, inner.limits);
  inference.interruption = inner.interruption;
  HEDDLE_TRY(TypedNet typed, infer(subnet, registry, inference));
  if (typed.net.outputs.size() < outputs.size()) return Status(Code::subnet_mismatch, "the subnet has too few outputs");
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i]) *outputs[i] = subnet_output_type(typed.type(typed.net.outputs[i]));
  TransformOptions transforms;
  transforms.default_device = inner.default_device;
  transforms.limits = inner.limits;
  transforms.interruption = inner.interruption;
  HEDDLE_TRY(typed, optimize(std::move(typed), *inner.evaluator, transforms));
  return compile(std::move(typed), inner);
}

}  // namespace heddle
