// Runs one operator on host tensors through the whole ABI: infer, create, prepare, run in tiles, finish, destroy.
//
// For constant folding and shape arithmetic, for tests of operators and for `heddle plugin run`. Allocates: do not use on hot paths.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/typed_net.h"
#include "operator_runner/call_conditions.h"
#include "plugin/call_end.h"
#include "plugin/operator_cost.h"
#include "plugin/registry.h"

namespace heddle {

class CallHost;

struct OperatorCall {
  std::string domain;
  std::string type;
  int32_t version = 0;  // 0: the newest
  std::vector<Attribute> attributes;
  std::vector<std::shared_ptr<const Blob>> inputs;  // null: absent
  size_t output_count = 1;
  bool constant_inputs = false;  // inputs are presented as constants, so that kernels may prepack them
  uint64_t split_seed = 0;       // 0: all tiles in one call; else random ranges, two or more of several tiles, in random order
  uint64_t random_seed = 0;
  uint64_t step = 0;
  int64_t limit_bytes = int64_t{16} << 30;   // for all outputs, and for scratch; exceeding it is Code::limit_exceeded
  std::vector<heddle_layout> input_layouts;  // empty: row-major; content is reinterpreted, not converted
  std::vector<heddle_layout> output_layouts;
  // Output and input by index: the output is computed over a copy of the input's bytes, as when a plan lets them share a buffer.
  std::vector<std::pair<uint32_t, uint32_t>> in_place;
  CallConditions conditions;
  CallHost* host = nullptr;  // null: subnets and resources are errors
  // Epilogue ops, canonical expressions; operands are among the inputs (see heddle_epilogue_op).
  struct EpilogueOp {
    std::string expression;
    int32_t operand_input = -1;
    int32_t operand_kind = HEDDLE_OPERAND_NONE;
  };
  std::vector<EpilogueOp> epilogue_ops;
};

// Returns row-major blobs with their true extents (bytes in the layout requested). An operator without a fitting CPU kernel but with a
// pointwise expression runs as heddle::Pointwise. Errors carry the operator's type; `end`, when given, receives more details.
Result<std::vector<std::shared_ptr<const Blob>>> run_operator(const RegistrySnapshot& registry, const OperatorCall& call,
                                                              CallEnd* end = nullptr);
Result<std::vector<std::shared_ptr<const Blob>>> run_operator(const Registry& registry, const OperatorCall& call);

// Returns the cost of the call as the operator declares it to the compiler.
Result<OperatorCost> operator_cost(const RegistrySnapshot& registry, const OperatorCall& call);

// Returns the layouts that the call's kernel ranks (heddle_kernel::formats), best first; empty: it ranks none.
Result<std::vector<heddle_format>> operator_formats(const RegistrySnapshot& registry, const OperatorCall& call);

// Whether the host offers epilogues to the call's kernel, and whether the kernel accepts the call's own (call.epilogue_ops), as fusion
// asks. Not offered to a call whose output 0 is not f32, or has extents that are known only during the run.
struct EpilogueAnswer {
  bool asked = false;
  bool accepts = false;
  bool in_place = false;  // HEDDLE_KERNEL_EPILOGUE_IN_PLACE
};
Result<EpilogueAnswer> operator_epilogue(const RegistrySnapshot& registry, const OperatorCall& call);

}  // namespace heddle
