// heddle.Reorder: the same values in another physical layout. The compiler inserts it between operators that want different layouts.
#include "families.h"
#include "shared/movement/boxes.h"
#include "support/copy_kernel.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

Status infer_reorder(InferContext& context) {
  context.set_dims(0, context.dims(0));
  return {};
}

class Reorder : public CopyKernel {
 public:
  Status prepare(PrepareContext& context) {
    const heddle_tensor& x = *context.input(0);
    const heddle_tensor& y = *context.output(0);
    HEDDLE_PLUGIN_CHECK(check_reorder_layout("the input", x));
    HEDDLE_PLUGIN_CHECK(check_reorder_layout("the output", y));
    copy_ = StridedCopy(reordered_box(x, y));
    tiling_.plan(context, 2 * static_cast<int64_t>(y.byte_size), 2.0);
    if (y.byte_size == 0) context.set_tiles(0);
    return {};
  }
};

}  // namespace

void add_reorder(Builder& plugin) {
  plugin.add(Op("Reorder", "heddle", 1)
                 .doc("Copies the input to another physical layout. The runtime inserts it between kernels of different layouts.")
                 .shapes("y has the dims of x")
                 .in("x")
                 .out("y")
                 .infer(infer_reorder)
                 .gradient("Identity", {"dy"}, {"dx"}, "")
                 .cpu<Reorder>()
                 .kernel_name("cpu:reorder")
                 .example("f32[2,3] = 1 2 3 4 5 6 -> f32[2,3] = 1 2 3 4 5 6", "by hand")
                 .example("i32[1,2] = 1 0 -> i32[1,2] = 1 0", "by hand"));
}

}  // namespace heddle::cpu
