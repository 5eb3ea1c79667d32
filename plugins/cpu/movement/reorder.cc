// heddle.Reorder: the same values in another physical layout. The compiler inserts it between operators that want different layouts.
#include "families.h"
#include "shared/dense_layouts.h"
#include "support/copy_kernel.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

Status infer_reorder(InferContext& context) {
  context.set_dims(0, context.dims(0));
  return {};
}

Status check_layout(const char* what, const heddle_tensor& tensor) {
  const heddle_layout& layout = tensor.layout;
  if (layout.block_count != 0 || layout.opaque_owner != 0 || (layout.rank != 0 && layout.rank != tensor.rank))
    return unsupported(std::string(what) + " of Reorder has a layout that is not an order of its dimensions");
  uint32_t seen = 0;
  for (int i = 0; i < layout.rank; ++i) {
    if (layout.order[i] >= layout.rank || (seen >> layout.order[i] & 1u))
      return invalid(std::string(what) + " of Reorder has a layout that names a dimension twice");
    seen |= 1u << layout.order[i];
  }
  return {};
}

class Reorder : public CopyKernel {
 public:
  Status prepare(PrepareContext& context) {
    const heddle_tensor& x = *context.input(0);
    const heddle_tensor& y = *context.output(0);
    HEDDLE_PLUGIN_CHECK(check_layout("the input", x));
    HEDDLE_PLUGIN_CHECK(check_layout("the output", y));
    int64_t from[HEDDLE_MAX_RANK], to[HEDDLE_MAX_RANK];
    strides_of(x, from);
    strides_of(y, to);
    const auto width = static_cast<int64_t>(byte_width(x.dtype));
    copy_ = StridedCopy(width);
    // Outermost first in the order of the output, so that it is written front to back.
    for (int i = 0; i < y.rank; ++i) {
      const int d = y.layout.rank ? y.layout.order[i] : i;
      copy_.add(y.dims[d], from[d] * width, to[d] * width);
    }
    copy_.finish();
    tiling_.plan(context, 2 * static_cast<int64_t>(y.byte_size), 2.0);
    if (y.byte_size == 0) context.set_tiles(0);
    return {};
  }
};

}  // namespace

void add_reorder(Builder& plugin) {
  plugin.add(Op("Reorder", "heddle", 1)
                 .doc("the input in the physical layout of the output's view")
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
