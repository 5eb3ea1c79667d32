// The nets inside nets: a subnet attribute compiled for the inputs that its operator declares.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "compile/compile.h"

namespace heddle {

// What tells the random numbers of a subnet from those of others: of the operator it belongs to, by its random stream, and of the attribute
// that it is. Never 0.
uint32_t body_id(uint32_t stream, const std::vector<Attribute>& attributes, const Net* body);
// The random stream of an operator with the constant id `own` in a subnet; `body` 0: in the outermost net.
uint32_t random_stream_in(uint32_t body, uint32_t own);

// How its ports go with the operator's; null: `net` is none of its attributes.
const heddle_subnet_ports* ports_of(const OperatorSchema& schema, const std::vector<Attribute>& attributes, const Net* net);

// A plan for where its operator runs. `inputs`: views whose dtypes and dims count, and the content where there is one. `target`: of
// subnets. `options` are those of the net around it, but for `body`, the id of the subnet. Thread-safe.
Result<std::shared_ptr<const Plan>> compile_subnet(const Net& subnet, const std::shared_ptr<const RegistrySnapshot>& registry,
                                                   std::span<const heddle_tensor* const> inputs, const CompilationTarget& target,
                                                   const CompileOptions& options, uint32_t body);

}  // namespace heddle
