// heddle.Copy: the input's bytes on the node's own device. Copies between devices are the runtime's; this kernel is for those within the
// host.
#include <cstring>

#include "families.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

class Copy {
 public:
  Status prepare(PrepareContext& context) {
    tiling_.plan(context, 2 * static_cast<int64_t>(context.output(0)->byte_size));
    if (context.output(0)->byte_size == 0) context.set_tiles(0);
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const Tiling::Range bytes = tiling_.range(static_cast<int64_t>(context.outputs[0]->byte_size), begin, end);
    std::memcpy(static_cast<char*>(context.outputs[0]->data) + bytes.first, static_cast<const char*>(context.inputs[0]->data) + bytes.first,
                static_cast<size_t>(bytes.last - bytes.first));
    return {};
  }

 private:
  Tiling tiling_;
};

}  // namespace

void add_copy(Builder& plugin) {
  plugin.add(Op("Copy", "heddle")
                 .doc("Copies the input to the memory of this operator's device. The runtime inserts it between devices.")
                 .in("x")
                 .out("y", same_as("x"))
                 .gradient("Copy", {"dy"}, {"dx"})
                 .cpu<Copy>()
                 .kernel_name("cpu:copy")
                 .example("f32[2,2] = 1 2 3 4 -> f32[2,2] = 1 2 3 4", "by hand")
                 .example("i32[3] = 1 0 1 -> i32[3] = 1 0 1", "by hand"));
}

}  // namespace heddle::cpu
