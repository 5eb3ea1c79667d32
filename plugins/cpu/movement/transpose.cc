// Transpose: the dimensions in another order. Any physical layout on either side costs the same code: a copy between two sets of strides.
#include <vector>

#include "families.h"
#include "shared/movement/boxes.h"
#include "shared/tiling.h"
#include "support/copy_kernel.h"
#include "support/cpu_api.h"
#include "support/gradients.h"

namespace heddle::cpu {
namespace {

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
    const heddle_tensor& y = *context.output(0);
    copy_ = StridedCopy(transposed_box(*context.input(0), y, order_.data()));
    tiling_.plan(context, 2 * static_cast<int64_t>(y.byte_size), 2.0);
    return {};
  }

  // Either side may be channels-last as well; cheaper where the copy then runs along contiguous bytes.
  static std::vector<heddle_format> formats(const CreateContext& context) {
    const heddle_type& y = *context.output(0);
    double bytes = 2.0 * static_cast<double>(byte_width(y.dtype));
    for (int i = 0; i < y.rank; ++i) bytes *= static_cast<double>(y.dims[i]);
    return transpose_formats(context, bytes / bytes_per_ns);
  }

 private:
  std::vector<int> order_;
};

// The gradient is Transpose with the inverse permutation.
Status transpose_gradient(GradientContext& g) {
  const std::vector<int64_t> perm = g.attributes().ints("perm");
  std::vector<int64_t> inverse(perm.size());
  const auto rank = static_cast<int64_t>(perm.size());
  for (int64_t i = 0; i < rank; ++i)
    inverse[static_cast<size_t>(perm[static_cast<size_t>(i)] + (perm[static_cast<size_t>(i)] < 0 ? rank : 0))] = i;
  g.give(0, perm.empty() ? g.emit("Transpose", {g.dy(0)}) : g.emit("Transpose", {g.dy(0)}, {{"perm", inverse}}));
  return {};
}

}  // namespace

void add_transpose(Builder& plugin) {
  plugin.add(Op("Transpose", "", 13)
                 .doc("Permutes axes: axis i of the result is axis perm[i] of data. Without perm they are reversed.")
                 .shapes("transposed has the extent data.dims[perm[i]] on axis i")
                 .in("data")
                 .out("transposed")
                 .maybe("perm", HEDDLE_ATTRIBUTE_INTS)
                 .infer(infer_transpose)
                 .gradient<transpose_gradient>()
                 .cpu<Transpose>()
                 .example("f32[2,3] = 1 2 3 4 5 6 -> f32[3,2] = 1 4 2 5 3 6", "ONNX Runtime")
                 .example("i32[1,2,3] = 1 0 0 1 1 0; perm=[2,0,1] -> i32[3,1,2] = 1 1 0 1 0 0", "ONNX Runtime"));
}

}  // namespace heddle::cpu
