// Subnet: a subnet attribute of a node, as its operator asks about it and runs it.
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
// A subnet that fails has told the host why: the Status has a code and no text.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/abi.h"
#include "heddle/op/attributes.h"
#include "heddle/op/contexts.h"
#include "heddle/op/plugin_status.h"
#include "heddle/op/tensor_view.h"

namespace heddle {
namespace plugin {

// Inputs of the node from `first` on, to hand them on as they are.
inline InputViews inputs_from(const RunContext& context, uint32_t first) {
  return {context.inputs + first, first < context.input_count ? context.input_count - first : 0};
}
inline InputViews inputs_from(const InferContext& context, uint32_t first) {
  return {context.inputs() + first, first < context.input_count() ? context.input_count() - first : 0};
}

// A value: lives as long as the node's attributes do, and may be kept in the kernel's state.
class Subnet {
 public:
  Subnet() = default;
  Subnet(const Attributes& attributes, const char* name) : subnet_(attributes.subnet(name)) {}

  // In run: runs it and returns when it is done. `trip` numbers the runs as the operator likes: random numbers inside depend on it. The
  // dims of `outputs` fit; a result_view() is filled by the host; null: not asked for. Pending (of HEDDLE_KERNEL_RESUMES kernels): hand
  // that on, and ask for the same again with `context.resumed`.
  Status run(const RunContext& context, int64_t trip, InputViews inputs, OutputViews outputs) const {
    return status_of(context.host->run_subnet(context.call, subnet_, static_cast<uint64_t>(trip), inputs.data(), inputs.size(),
                                              outputs.data(), outputs.size()));
  }
  // In infer: the types of all its `count` outputs with inputs like these.
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
