// Implements SgdUpdate, Assign, AccumulateAdd and StepIncrement.
#include <memory>

#include "generate/operators/update_launches.h"
#include "kernels/common/planned_kernel.h"
#include "kernels/kernel_families.h"

namespace heddle::cuda {
namespace {

template <Update of>
class VariableUpdate : public PlannedKernel {
 public:
  Status create(const CreateContext& context) { return begin(context, std::make_unique<UpdateLaunches>(of)); }
};

}  // namespace

void add_update(Builder& plugin) {
  plugin.add(
      Op("SgdUpdate", "heddle", 1).kernels_only().kernel<VariableUpdate<Update::sgd>>("cuda").kernel_flags(HEDDLE_KERNEL_USES_FAULT));
  plugin.add(
      Op("Assign", "heddle", 1).kernels_only().kernel<VariableUpdate<Update::assign>>("cuda").kernel_flags(HEDDLE_KERNEL_USES_FAULT));
  plugin.add(Op("AccumulateAdd", "heddle", 1)
                 .kernels_only()
                 .kernel<VariableUpdate<Update::accumulate>>("cuda")
                 .kernel_flags(HEDDLE_KERNEL_USES_FAULT));
  plugin.add(Op("StepIncrement", "heddle", 1)
                 .kernels_only()
                 .kernel<VariableUpdate<Update::increment>>("cuda")
                 .kernel_flags(HEDDLE_KERNEL_USES_FAULT));
}

}  // namespace heddle::cuda
