// Implements ReduceSum and similar operators, and the global pools, which are reductions of all dimensions after the channels.
#include <memory>

#include "generate/pointwise/epilogue_expression.h"
#include "generate/reduce/reduce_launches.h"
#include "kernels/common/planned_kernel.h"
#include "kernels/kernel_families.h"
#include "shared/dense_layouts.h"

namespace heddle::cuda {
namespace {

template <ReduceKind kind>
class Reduce : public PlannedKernel {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<AxesReduction>();
    launches->passes.last.shape.kind = kind;
    launches->none_when_empty = context.attributes.i("noop_with_empty_axes") != 0;
    launches->keeps_dims = context.attributes.i("keepdims") != 0;
    HEDDLE_PLUGIN_CHECK(epilogue_expression(context, &launches->passes.last.shape.epilogue));
    return begin(context, std::move(launches));
  }
  static bool accepts_epilogue(const CreateContext& context) { return takes_epilogue_ops(context); }
  // Spatial reductions of channels-last images need no reorder.
  static std::vector<heddle_format> formats(const CreateContext& context) { return operators::uniform_formats(context, 1, 0); }
};

template <ReduceKind kind>
class GlobalPool : public PlannedKernel {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<SpatialReduction>(kind, kind == ReduceKind::power ? context.attributes.i("p") : 2);
    HEDDLE_PLUGIN_CHECK(epilogue_expression(context, &launches->passes.last.shape.epilogue));
    return begin(context, std::move(launches));
  }
  static bool accepts_epilogue(const CreateContext& context) { return takes_epilogue_ops(context); }
  static std::vector<heddle_format> formats(const CreateContext& context) { return operators::uniform_formats(context, 1, 1); }
};

template <class Kernel>
void add_reduction(Builder& plugin, const char* name, int32_t version) {
  plugin.add(Op(name, "", version).kernels_only().kernel<Kernel>("cuda"));
}

}  // namespace

void add_reduce(Builder& plugin) {
  add_reduction<Reduce<ReduceKind::sum>>(plugin, "ReduceSum", 13);
  add_reduction<Reduce<ReduceKind::mean>>(plugin, "ReduceMean", 18);
  add_reduction<Reduce<ReduceKind::max>>(plugin, "ReduceMax", 18);
  add_reduction<Reduce<ReduceKind::min>>(plugin, "ReduceMin", 18);
  add_reduction<Reduce<ReduceKind::product>>(plugin, "ReduceProd", 18);
  add_reduction<Reduce<ReduceKind::l1>>(plugin, "ReduceL1", 18);
  add_reduction<Reduce<ReduceKind::l2>>(plugin, "ReduceL2", 18);
  add_reduction<Reduce<ReduceKind::log_sum>>(plugin, "ReduceLogSum", 18);
  add_reduction<Reduce<ReduceKind::log_sum_exp>>(plugin, "ReduceLogSumExp", 18);
  add_reduction<Reduce<ReduceKind::sum_square>>(plugin, "ReduceSumSquare", 18);
  add_reduction<GlobalPool<ReduceKind::mean>>(plugin, "GlobalAveragePool", 1);
  add_reduction<GlobalPool<ReduceKind::max>>(plugin, "GlobalMaxPool", 1);
  add_reduction<GlobalPool<ReduceKind::power>>(plugin, "GlobalLpPool", 2);
}

}  // namespace heddle::cuda
