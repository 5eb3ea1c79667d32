// The nets inside nets: a subnet attribute compiled for the inputs that its operator declares.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "compile/compile.h"

namespace heddle {

// Returns the number that makes the random numbers of a subnet differ from those of others; depends on the random stream of the operator it
// belongs to, and on which attribute it is. Never 0.
uint32_t body_id(uint32_t stream, const std::vector<Attribute>& attributes, const Net* body);
// Returns the random stream of an operator with the constant id `own` in a subnet; `body` 0: in the outermost net.
uint32_t random_stream_in(uint32_t body, uint32_t own);

// Returns how the subnet's ports correspond to the operator's; null: `net` is not one of its attributes.
const heddle_subnet_ports* ports_of(const OperatorSchema& schema, const std::vector<Attribute>& attributes, const Net* net);

// Compiles a plan for the device of its operator. `inputs`: views whose dtypes and dims count, and the content where there is one.
// `target`: for subnets. `options` are those of the net around it, except for `body`, the id of the subnet. Thread-safe.
Result<std::shared_ptr<const Plan>> compile_subnet(const Net& subnet, const std::shared_ptr<const RegistrySnapshot>& registry,
                                                   std::span<const heddle_tensor* const> inputs, const CompilationTarget& target,
                                                   const CompileOptions& options, uint32_t body);

}  // namespace heddle
