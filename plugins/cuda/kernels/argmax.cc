// Implements ArgMax and ArgMin along one axis.
#include <memory>

#include "generate/reduce/reduce_launches.h"
#include "kernels/common/planned_kernel.h"
#include "kernels/kernel_families.h"

namespace heddle::cuda {
namespace {

template <ReduceKind kind>
class ArgExtremum : public PlannedKernel {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<AxisReduction>();
    launches->passes.last.shape.kind = kind;
    launches->passes.last.shape.last_index = context.attributes.i("select_last_index") != 0;
    launches->axis = context.attributes.i("axis");
    return begin(context, std::move(launches));
  }
};

}  // namespace

void add_argmax(Builder& plugin) {
  plugin.add(Op("ArgMax", "", 13).kernels_only().kernel<ArgExtremum<ReduceKind::arg_max>>("cuda"));
  plugin.add(Op("ArgMin", "", 13).kernels_only().kernel<ArgExtremum<ReduceKind::arg_min>>("cuda"));
}

}  // namespace heddle::cuda
