#include "infer/registry_evaluator.h"

#include "operator_runner/operator_runner.h"

namespace heddle {
namespace {

// Limit of an operator that is computed while compiling; about a second with the slowest kernels.
constexpr double max_operations = 1e9;

class RegistryEvaluator : public Evaluator {
 public:
  explicit RegistryEvaluator(std::shared_ptr<const RegistrySnapshot> registry) : registry_(std::move(registry)) {}
  Result<std::vector<std::shared_ptr<const Blob>>> evaluate(const Node& node,
                                                            const std::vector<std::shared_ptr<const Blob>>& inputs) override {
    OperatorCall call;
    call.domain = node.domain;
    call.type = node.type;
    call.version = node.schema ? node.schema->version : node.version;
    call.attributes = node.attributes;
    call.inputs = inputs;
    call.output_count = node.outputs.size();
    call.constant_inputs = true;
    // An expensive operator may take its time, and be cancelled, as a step of a run; here it would only hold up the compiler.
    if (node.schema && node.schema->op->cost) {
      HEDDLE_TRY(const OperatorCost cost, operator_cost(*registry_, call));
      if (cost.flops.value_or(0) > max_operations)
        return Status(Code::unsupported, "too much work to be evaluated while a net is compiled");
    }
    auto result = run_operator(*registry_, call);
    // A call has no name except its type; the operator of a net has one.
    if (!result.ok()) {
      Status failed = std::move(result).status();
      failed.diagnostic().node = node.name;
      return failed;
    }
    return result;
  }

 private:
  std::shared_ptr<const RegistrySnapshot> registry_;
};

}  // namespace

std::unique_ptr<Evaluator> make_registry_evaluator(std::shared_ptr<const RegistrySnapshot> registry) {
  return std::make_unique<RegistryEvaluator>(std::move(registry));
}

}  // namespace heddle
