// Implements NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss. A label that names no class is reported through
// heddle_run_context::fault.
#include <memory>

#include "generate/operators/loss_launches.h"
#include "kernels/common/planned_kernel.h"
#include "kernels/kernel_families.h"

namespace heddle::cuda {
namespace {

template <bool softmax>
class Loss : public PlannedKernel {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<LossLaunches>();
    launches->softmax = softmax;
    launches->has_ignored = context.attributes.has("ignore_index");
    if (launches->has_ignored) launches->ignored = context.attributes.i("ignore_index");
    const std::string reduction = context.attributes.s("reduction");  // one of three: checked where shapes are inferred
    launches->reduction = reduction == "none" ? LossReduction::none : reduction == "mean" ? LossReduction::mean : LossReduction::sum;
    return begin(context, std::move(launches));
  }
};

}  // namespace

void add_loss(Builder& plugin) {
  plugin.add(Op("NegativeLogLikelihoodLoss", "", 13).kernels_only().kernel<Loss<false>>("cuda").kernel_flags(HEDDLE_KERNEL_USES_FAULT));
  plugin.add(Op("SoftmaxCrossEntropyLoss", "", 13).kernels_only().kernel<Loss<true>>("cuda").kernel_flags(HEDDLE_KERNEL_USES_FAULT));
}

}  // namespace heddle::cuda
