#include "derive/operator_gradients.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "commands/plugin/check/operator_cases.h"
#include "derive/differentiate.h"
#include "infer/registry_evaluator.h"
#include "plugin/schema.h"
#include "resolve/resolve.h"

namespace heddle::testing_derive {
namespace {

constexpr DType reals[] = {DType::f32, DType::f64, DType::f16, DType::bf16};

bool may_be_real(const heddle_port& port) {
  return std::any_of(std::begin(reals), std::end(reals),
                     [&](DType dtype) { return (port.dtypes & heddle_dtype_set{1} << static_cast<int>(dtype)) != 0; });
}

bool is_held(const heddle_port& port) {
  return (port.flags & HEDDLE_PORT_NOT_DIFFERENTIABLE) != 0;
}

// Returns the call as a net: real tensors are its inputs "x0", ..., all others constants.
Net net_of(const OperatorSchema& schema, const OperatorCall& call, DifferentiateOptions* options) {
  NetBuilder b("example");
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const auto& blob = call.inputs[i];
    const heddle_port& port = *schema.input_port(i);
    const bool real = blob && std::find(std::begin(reals), std::end(reals), blob->dtype) != std::end(reals);
    const std::string name = fmt::format("x{}", i);
    if (!blob) {
      inputs.emplace_back();
    } else if (real && (port.flags & HEDDLE_PORT_SHAPE_OPERAND) == 0) {
      inputs.push_back(b.input(name, blob->dtype, blob->shape));
      if (!is_held(port)) options->wanted.push_back(name);
    } else {
      inputs.push_back(b.constant(name, blob));
    }
  }
  for (const ValueId output : b.add(call.type, "y", inputs, call.output_count, call.attributes, call.domain)) b.output(output);
  return b.finish();
}

class Trial {
 public:
  Trial(std::shared_ptr<const RegistrySnapshot> registry, OperatorGradient* of)
      : registry_(std::move(registry)), evaluator_(make_registry_evaluator(registry_)), of_(of) {}

  void of_every_example() {
    const heddle_operator& op = *of_->schema->op;
    for (uint32_t i = 0; i < op.example_count; ++i) {
      auto example = tool::parse_example(*of_->schema, op.examples[i]->text, 1);
      ASSERT_TRUE(example.ok()) << op.examples[i]->text << ": " << example.status().text();
      tool::OperatorCase as_written;
      as_written.call = std::move(example->call);
      as_written.expected = std::move(example->outputs);
      try_call(as_written.call);
      for (uint32_t port = 0; port < op.input_count; ++port)
        if (tool::OperatorCase real = as_written; tool::in_dtype(*of_->schema, port, DType::f32, real)) try_call(real.call);
    }
  }

 private:
  void try_call(const OperatorCall& call) {
    DifferentiateOptions options;
    auto net = resolve(net_of(*of_->schema, call, &options), registry_);
    if (!net.ok() || options.wanted.empty()) return;
    const auto types = PolymorphicTypes::infer(*net, registry_, *evaluator_, {}, Limits());
    if (!types.ok()) return;  // not in this dtype
    for (const ValueId output : net->outputs)
      if (types->is_real(output)) options.losses.push_back((*net)[output].name);
    if (options.losses.empty()) return;
    of_->tried = true;
    const auto derived = differentiate(*net, registry_, *evaluator_, options);
    if (!derived.ok()) {
      of_->refused.insert(derived.status().diagnostic().message);
      return;
    }
    for (const Gradient& gradient : derived->gradients) {
      of_->gives = of_->gives || gradient.any();
      of_->by_rows = of_->by_rows || (gradient.any() && gradient.dense.empty());
    }
  }

  const std::shared_ptr<const RegistrySnapshot> registry_;
  const std::unique_ptr<Evaluator> evaluator_;
  OperatorGradient* const of_;
};

}  // namespace

bool OperatorGradient::takes_reals() const {
  return std::any_of(schema->op->inputs, schema->op->inputs + schema->op->input_count, [](const auto* p) { return may_be_real(*p); });
}

bool OperatorGradient::carries() const {
  return std::any_of(schema->op->inputs, schema->op->inputs + schema->op->input_count,
                     [](const auto* p) { return may_be_real(*p) && !is_held(*p); });
}

bool OperatorGradient::gives_reals() const {
  return std::any_of(schema->op->outputs, schema->op->outputs + schema->op->output_count, [](const auto* p) { return may_be_real(*p); });
}

std::vector<std::string> OperatorGradient::held() const {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < schema->op->input_count; ++i)
    if (may_be_real(*schema->op->inputs[i]) && is_held(*schema->op->inputs[i])) names.emplace_back(schema->op->inputs[i]->name);
  return names;
}

std::map<std::string, OperatorGradient> operator_gradients(const std::shared_ptr<const RegistrySnapshot>& registry) {
  std::map<std::string, OperatorGradient> all;
  for (const std::string& domain : registry->domains())
    for (const std::string& name : registry->operator_names(domain)) {
      OperatorGradient& one = all[display_name(domain, name)];
      one.schema = registry->find_operator(domain, name);
      Node node;
      node.domain = domain;
      node.type = name;
      node.schema = one.schema;
      one.form = gradient_form(node);
      if (!one.schema->updates_variable()) Trial(registry, &one).of_every_example();
    }
  return all;
}

}  // namespace heddle::testing_derive
