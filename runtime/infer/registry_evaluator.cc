#include "infer/registry_evaluator.h"

#include "plugin/operator_runner.h"

namespace heddle {
namespace {

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
    return run_operator(*registry_, call);
  }

 private:
  std::shared_ptr<const RegistrySnapshot> registry_;
};

}  // namespace

std::unique_ptr<Evaluator> make_registry_evaluator(std::shared_ptr<const RegistrySnapshot> registry) {
  return std::make_unique<RegistryEvaluator>(std::move(registry));
}

}  // namespace heddle
