#include "operator_runner/operator_runner.h"

#include <fmt/format.h>

#include <new>

#include "base/text/text.h"
#include "operator_runner/one_call.h"
#include "plugin/pointwise_lowering.h"

namespace heddle {
namespace {

Result<std::vector<std::shared_ptr<const Blob>>> run_resolved(const RegistrySnapshot& registry, const OperatorCall& call, CallEnd& end);

// Runs an operator without a kernel of its own by its expression.
Result<std::vector<std::shared_ptr<const Blob>>> run_lowered(const RegistrySnapshot& registry, const OperatorCall& call,
                                                             const OperatorSchema& schema, CallEnd& end) {
  end = {};
  if (!schema.op->pointwise)
    return Status(Code::no_kernel,
                  fmt::format("operator {} has no cpu kernel for these dtypes", quoted(display_name(call.domain, call.type))),
                  "insert a Cast, or load a plugin that has one");
  std::vector<bool> present;
  for (const auto& input : call.inputs) present.push_back(input != nullptr);
  HEDDLE_TRY(std::string program, pointwise_program(schema, call.attributes, present));
  OperatorCall lowered = call;
  lowered.domain = "heddle";
  lowered.type = "Pointwise";
  lowered.version = 0;
  lowered.attributes = {{"program", program}};
  return run_resolved(registry, lowered, end);
}

Result<const OperatorSchema*> schema_of(const RegistrySnapshot& registry, const OperatorCall& call) {
  const OperatorSchema* const schema = registry.find_operator(call.domain, call.type, call.version);
  if (!schema)
    return Status(Code::unknown_operator, fmt::format("no loaded plugin has operator {}", quoted(display_name(call.domain, call.type))),
                  suggestion(call.type, registry.operator_names(call.domain)));
  return schema;
}

Result<std::vector<std::shared_ptr<const Blob>>> run_resolved(const RegistrySnapshot& registry, const OperatorCall& call, CallEnd& end) {
  OneCall one(registry, call, end);
  HEDDLE_TRY(one.node.schema, schema_of(registry, call));
  HEDDLE_CHECK(one.infer());
  const KernelEntry* kernel = one.select();
  if (!kernel) return run_lowered(registry, call, *one.node.schema, end);
  HEDDLE_CHECK(one.allocate_outputs());
  HEDDLE_CHECK(one.make(*kernel));
  if (call.conditions.inputs_before) HEDDLE_CHECK(one.use_before(registry));
  if (call.conditions.observer) call.conditions.observer->prepared(one.made.tiles, one.made.kernel->kernel->flags);
  HEDDLE_CHECK(one.run());
  return std::vector<std::shared_ptr<const Blob>>(one.output_blobs.begin(), one.output_blobs.end());
}

Result<std::vector<std::shared_ptr<const Blob>>> run_in_memory(const RegistrySnapshot& registry, const OperatorCall& call, CallEnd& end) {
  try {
    return run_resolved(registry, call, end);
  } catch (const std::bad_alloc&) {
    end.answer = HEDDLE_OK;  // exceptions of a plugin do not reach this point
    return Status(Code::out_of_memory, "no memory for its outputs and scratch");
  }
}

}  // namespace

Result<std::vector<std::shared_ptr<const Blob>>> run_operator(const RegistrySnapshot& registry, const OperatorCall& call, CallEnd* end) {
  CallEnd unread;
  auto result = run_in_memory(registry, call, end ? *end : unread);
  if (!result.ok()) return std::move(result).status().at(call.type, display_name(call.domain, call.type));
  return result;
}

Result<OperatorCost> operator_cost(const RegistrySnapshot& registry, const OperatorCall& call) {
  CallEnd end;
  OneCall one(registry, call, end);
  HEDDLE_TRY(one.node.schema, schema_of(registry, call));
  HEDDLE_CHECK(one.infer());
  one.select();
  return operator_cost(one.net, one.node, one.table);
}

Result<std::vector<heddle_format>> operator_formats(const RegistrySnapshot& registry, const OperatorCall& call) {
  CallEnd end;
  OneCall one(registry, call, end);
  HEDDLE_TRY(one.node.schema, schema_of(registry, call));
  HEDDLE_CHECK(one.infer());
  const KernelEntry* kernel = one.select();
  return kernel ? one.kernel_call->formats(*kernel) : Result(std::vector<heddle_format>());
}

Result<EpilogueAnswer> operator_epilogue(const RegistrySnapshot& registry, const OperatorCall& call) {
  CallEnd end;
  OneCall one(registry, call, end);
  HEDDLE_TRY(one.node.schema, schema_of(registry, call));
  HEDDLE_CHECK(one.infer());
  const KernelEntry* kernel = one.select();
  if (!kernel || !kernel->kernel->accepts_epilogue || one.output_types.empty()) return EpilogueAnswer();
  if (one.output_types[0].dtype != DType::f32 || one.output_types[0].late()) return EpilogueAnswer();
  return EpilogueAnswer{true, one.kernel_call->accepts(*kernel), (kernel->kernel->flags & HEDDLE_KERNEL_EPILOGUE_IN_PLACE) != 0};
}

Result<std::vector<std::shared_ptr<const Blob>>> run_operator(const Registry& registry, const OperatorCall& call) {
  return run_operator(*registry.snapshot(), call);
}

}  // namespace heddle
