// Subnet: a subnet attribute of a node, with functions by which the operator infers and runs the subnet.
//
//   Status create(const CreateContext& c) {
//     body_ = Subnet(c.attributes, "body");
//     return {};
//   }
//   Status run(const RunContext& c, int64_t, int64_t) const {
//     for (int64_t i = 0; i < c.outputs[0]->dims[0]; ++i) {
//       heddle_tensor y = row_of(*c.outputs[0], i);
//       HEDDLE_PLUGIN_CHECK(body_.run(c, i, inputs_from(c, 1), {&y}));
//     }
//     return {};
//   }
//
// If a subnet fails, the Status has a code but no text, because the host has the reason.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "heddle/abi.h"
#include "heddle/op/attributes.h"
#include "heddle/op/contexts.h"
#include "heddle/op/plugin_status.h"
#include "heddle/op/tensor_view.h"

namespace heddle {
namespace plugin {

// Returns the node's inputs from `first` on, to pass them to a subnet unchanged.
inline InputViews inputs_from(const RunContext& context, uint32_t first) {
  const uint32_t skipped = std::min(first, context.input_count);
  return {context.inputs + skipped, context.input_count - skipped};
}
inline InputViews inputs_from(const InferContext& context, uint32_t first) {
  const uint32_t skipped = std::min(first, context.input_count());
  return {context.inputs() + skipped, context.input_count() - skipped};
}

// A Subnet is a value that may be kept in the kernel's state. It is valid as long as the node's attributes.
class Subnet {
 public:
  Subnet() = default;
  Subnet(const Attributes& attributes, const char* name) : subnet_(attributes.subnet(name)) {}

  // [in run] Runs the subnet and returns when it is done. A trip is one execution of the subnet, and the operator chooses its number
  // `trip`, on which random numbers in the subnet depend. The dims of the views in `outputs` must match the results; the host fills in a
  // view made by result_view(); null entries are outputs that are not requested. In a HEDDLE_KERNEL_RESUMES kernel this function may return
  // pending(). The kernel's run() must then return pending() too, and must repeat the same call of this function when the host calls run()
  // again with `context.resumed` set.
  Status run(const RunContext& context, int64_t trip, InputViews inputs, OutputViews outputs) const {
    return status_of(context.host->run_subnet(context.call, subnet_, static_cast<uint64_t>(trip), inputs.data(), inputs.size(),
                                              outputs.data(), outputs.size()));
  }
  // [in infer] Infers the types of all `count` outputs of the subnet for these inputs.
  Status infer(const InferContext& context, InputViews inputs, uint32_t count, std::vector<heddle_type>* types) const {
    heddle_type empty = {};
    empty.struct_size = sizeof(empty);
    empty.bounded_axis = -1;
    types->assign(count, empty);
    std::vector<heddle_type*> pointers;
    for (heddle_type& type : *types) pointers.push_back(&type);
    const heddle_infer_context& raw = *context.raw();
    return status_of(raw.host->infer_subnet(raw.call, subnet_, inputs.data(), inputs.size(), pointers.data(), count));
  }

 private:
  static Status status_of(heddle_status status) { return status == HEDDLE_OK ? Status() : Status(status, ""); }
  const heddle_subnet* subnet_ = nullptr;
};

}  // namespace plugin
}  // namespace heddle
