// Operands whose content decides the extents of outputs: the extents that a rule computes, and the check that a run has the operands for
// which its plan was made. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "shared/dims.h"

namespace heddle::operators {

// Extents without heap memory: rules compute them while shapes are inferred, and kernels again while they run.
struct Extents {
  int64_t values[HEDDLE_MAX_RANK] = {};
  int rank = 0;
  void push(int64_t extent) { values[rank++] = extent; }
  Dims dims() const { return {values, rank}; }
};

// An input as shown in messages: "axes [0, 2]".
struct Operand {
  const char* name;
  const heddle_tensor* content;  // null: absent
};
// True if the content of an operand in a run may differ from that for which the plan was made. Call it in prepare.
inline bool varies(const PrepareContext& context, std::initializer_list<uint32_t> ports) {
  return std::any_of(ports.begin(), ports.end(), [&](uint32_t port) { return !context.is_constant(port); });
}
// The error of a run whose operands lead to other extents than the output has. `rule`: the status of the rule for the content.
Status other_content(std::initializer_list<Operand> operands, const Status& rule, Dims given, Dims prepared);
// Call it in run. Errors: the operands do not lead to the extents of `output`, within which the kernel writes. `rule(Extents*)` computes
// them.
template <class Rule>
Status check_planned(std::initializer_list<Operand> operands, const heddle_tensor& output, Rule&& rule) {
  Extents given;
  const Status status = rule(&given);
  const Dims dims = given.dims(), planned = dims_of(output);
  if (status.ok() && std::equal(dims.begin(), dims.end(), planned.begin(), planned.end())) return {};
  return other_content(operands, status, dims, planned);
}

}  // namespace heddle::operators
