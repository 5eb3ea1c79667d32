// Transpose: the dimensions in another order. Any physical layout on either side costs the same code: a copy between two sets of strides.
#include <numeric>

#include "families.h"
#include "shared/axes.h"
#include "shared/dense_layouts.h"
#include "shared/tiling.h"
#include "support/copy_kernel.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

Status permutation(const Attributes& attributes, int rank, std::vector<int>* order) {
  if (!attributes.has("perm")) {
    order->resize(static_cast<size_t>(rank));
    std::iota(order->rbegin(), order->rend(), 0);
    return {};
  }
  const std::vector<int64_t> perm = attributes.ints("perm");
  if (perm.size() != static_cast<size_t>(rank))
    return invalid("perm has " + std::to_string(perm.size()) + " entries for an input of rank " + std::to_string(rank));
  return normalize_axes("perm", perm, rank, order);
}

Status infer_transpose(InferContext& context) {
  const Dims from = context.dims(0);
  std::vector<int> order;
  HEDDLE_PLUGIN_CHECK(permutation(context.attributes, from.rank, &order));
  std::vector<int64_t> dims;
  for (int axis : order) dims.push_back(from[axis]);
  context.set_dims(0, dims);
  return {};
}

class Transpose : public CopyKernel {
 public:
  Status create(const CreateContext& context) { return permutation(context.attributes, context.input(0)->rank, &order_); }

  Status prepare(PrepareContext& context) {
    const heddle_tensor &x = *context.input(0), &y = *context.output(0);
    const auto width = static_cast<int64_t>(byte_width(x.dtype));
    int64_t source[HEDDLE_MAX_RANK], target[HEDDLE_MAX_RANK];
    strides_of(x, source);
    strides_of(y, target);
    copy_ = StridedCopy(width);
    for (int i = 0; i < y.rank; ++i) copy_.add(y.dims[i], source[order_[static_cast<size_t>(i)]] * width, target[i] * width);
    copy_.finish();
    tiling_.plan(context, 2 * static_cast<int64_t>(y.byte_size), 2.0);
    return {};
  }

  // Either side may be channels-last as well; cheaper where the copy then runs along contiguous bytes.
  static std::vector<heddle_format> formats(const CreateContext& context) {
    const heddle_type& y = *context.output(0);
    std::vector<int> order;
    if (!permutation(context.attributes, y.rank, &order).ok()) return {};
    double bytes = 2.0 * static_cast<double>(byte_width(y.dtype));
    for (int i = 0; i < y.rank; ++i) bytes *= static_cast<double>(y.dims[i]);
    std::vector<heddle_format> choices;
    const int layouts = y.rank >= 3 && y.rank <= 5 ? 2 : 1;
    for (int in = 0; in < layouts; ++in)
      for (int out = 0; out < layouts; ++out) {
        if (in && out) continue;
        heddle_format format = {};
        format.struct_size = sizeof(format);
        if (in) format.inputs[0] = channels_last(y.rank);
        if (out) format.outputs[0] = channels_last(y.rank);
        const int inner_source = in ? 1 : y.rank - 1, inner_target = out ? 1 : y.rank - 1;
        const bool same_inner = y.rank == 0 || order[static_cast<size_t>(inner_target)] == inner_source;
        format.cost_ns = bytes / bytes_per_ns * (same_inner ? 1.0 : 2.0);
        choices.push_back(format);
      }
    return choices;
  }

 private:
  std::vector<int> order_;
};

}  // namespace

void add_transpose(Builder& plugin) {
  plugin.add(Op("Transpose", "", 13)
                 .doc("output dimension i is input dimension perm[i]; all reversed without perm")
                 .in("data")
                 .out("transposed")
                 .maybe("perm", HEDDLE_ATTRIBUTE_INTS)
                 .infer(infer_transpose)
                 .cpu<Transpose>()
                 .example("f32[2,3] = 1 2 3 4 5 6 -> f32[3,2] = 1 4 2 5 3 6", "ONNX Runtime")
                 .example("i32[1,2,3] = 1 0 0 1 1 0; perm=[2,0,1] -> i32[3,1,2] = 1 1 0 1 0 0", "ONNX Runtime"));
}

}  // namespace heddle::cpu
