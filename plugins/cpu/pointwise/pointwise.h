// PointwiseKernel: the base of every kernel that evaluates a Program over broadcasting inputs.
//
// A derived class compiles its program in create; prepare and run are here. Output 0 may be the memory of any input with the output's
// element count and width (in_place). Tiles are ranges of the output in storage order.
#pragma once

#include <string>
#include <vector>

#include "heddle/op.h"
#include "pointwise/pointwise_program.h"
#include "shared/pointwise_region.h"
#include "support/cpu_api.h"

namespace heddle::cpu {

using namespace heddle::plugin;

class PointwiseKernel {
 public:
  Status prepare(PrepareContext& context);
  Status run(const RunContext& context, int64_t begin, int64_t end) const;

 protected:
  // The program over the inputs given (absent ones are skipped, see input_map) named `names`.
  Program program_;
  // The node's input for each input of the program.
  std::vector<uint32_t> input_map_;

 private:
  Status build(const heddle_tensor* const* inputs, const heddle_tensor& output, Region::Input* storage, const heddle_tensor** mapped,
               Region* region) const;

  Region region_;
  std::vector<Region::Input> storage_;
  bool bounded_ = false;
  int64_t tile_elements_ = 1;
};

// True when the result of `text` is a comparison or a logical operation: its natural dtype is bool.
bool is_predicate(const std::string& text, size_t input_count);

// Binds the names an operator's expression may use beside its inputs: numeric attributes by name; `has_<input>` (0 or 1) for optional
// inputs; `<attribute>_is_<value>` (0 or 1) for string attributes, where `text` mentions it.
expression::Constants bind_names(const CreateContext& context, const std::string& text);

// Compiles `text` over the present inputs of a node, named as its ports; the inputs of a variadic port are named port0, port1, ...
// `arithmetic` as in ProgramText. Absent inputs that `text` mentions become 0: guard them with has_<input>.
Status compile_node(const CreateContext& context, const std::string& text, heddle_dtype arithmetic, Program* program,
                    std::vector<uint32_t>* input_map);

}  // namespace heddle::cpu
