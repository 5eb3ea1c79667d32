// Operators that no device launches: one is asynchronous, and devices have streams instead; the other allocates its output during the run.
#include <algorithm>
#include <cstring>

#include "heddle/op.h"

using namespace heddle::plugin;

namespace {

class Through {
 public:
  Status start(const RunContext& c, Completion done) const {
    std::memcpy(c.outputs[0]->data, c.inputs[0]->data, c.inputs[0]->byte_size);
    done(Status());
    return {};
  }
};

constexpr auto f32 = dtypes<float>();

struct Positive {
  Status run(const RunContext& c, int64_t, int64_t) const {
    const In<float> x = input<float>(c, 0);
    const int64_t count = std::count_if(x.data, x.data + x.size, [](float v) { return v > 0; });
    auto* const y = static_cast<float*>(allocate_output(c, 0, {&count, 1}));
    if (!y && count > 0) return {HEDDLE_ERROR_OUT_OF_MEMORY, "no memory for what was found"};
    std::copy_if(x.data, x.data + x.size, y, [](float v) { return v > 0; });
    return {};
  }
};
Status infer_positive(InferContext& context) {
  context.set_dynamic(0, 1);
  return {};
}

}  // namespace

HEDDLE_PLUGIN("host_only", "1.0", plugin) {
  plugin.add(Op("Through", "host_only").doc("x, by the host").in("x").out("y", same_as("x")).cpu<Through>());
  plugin.add(Op("Positive", "host_only")
                 .doc("the positive numbers of x")
                 .in("x", f32)
                 .out("y", {}, f32)
                 .infer(infer_positive)
                 .cpu<Positive>()
                 .kernel_flags(HEDDLE_KERNEL_DYNAMIC_OUTPUTS));
}
