#include "compile/compiled_subnet.h"

#include "base/random.h"
#include "compile/stages.h"
#include "infer/registry_evaluator.h"
#include "plugin/infer_operator.h"

namespace heddle {

uint32_t body_id(uint32_t stream, const std::vector<Attribute>& attributes, const Net* body) {
  uint64_t state = stream;
  for (const Attribute& a : attributes)
    if (const auto* candidate = std::get_if<std::shared_ptr<const Net>>(&a.value); candidate && candidate->get() == body)
      for (const char c : a.name) state = next_random(state) + static_cast<unsigned char>(c);
  return static_cast<uint32_t>(next_random(state)) | 1;
}

const heddle_subnet_ports* ports_of(const OperatorSchema& schema, const std::vector<Attribute>& attributes, const Net* net) {
  for (const Attribute& a : attributes) {
    const auto* candidate = std::get_if<std::shared_ptr<const Net>>(&a.value);
    if (!candidate || candidate->get() != net) continue;
    for (uint32_t i = 0; i < schema.op->attribute_count; ++i)
      if (a.name == schema.op->attributes[i]->name) return schema.op->attributes[i]->ports;
  }
  return nullptr;
}

uint32_t random_stream_in(uint32_t body, uint32_t own) {
  if (body == 0) return own;
  uint64_t state = uint64_t{body} << 32 | own;
  return static_cast<uint32_t>(next_random(state));
}

Result<std::shared_ptr<const Plan>> compile_subnet(const Net& subnet, const std::shared_ptr<const RegistrySnapshot>& registry,
                                                   std::span<const heddle_tensor* const> inputs, const CompilationTarget& target,
                                                   const CompileOptions& outer_options, uint32_t body) {
  CompileOptions options = outer_options;
  options.body = body;
  options.variable_slots = nullptr;  // its variables belong to the net around it
  std::unique_ptr<Evaluator> own_evaluator;
  if (!options.evaluator) own_evaluator = make_registry_evaluator(registry);
  Evaluator& evaluator = options.evaluator ? *options.evaluator : *own_evaluator;
  Compilation c(target, registry, evaluator, options, options.interruption);
  c.inference = subnet_options(inputs, &evaluator, target.limits);
  c.subnet = true;
  HEDDLE_CHECK(run_stages(c, &subnet));
  return c.plan;
}

}  // namespace heddle
