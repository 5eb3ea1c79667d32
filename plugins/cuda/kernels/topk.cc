// Implements TopK.
#include <memory>

#include "generate/select/topk_launches.h"
#include "kernels/common/planned_kernel.h"
#include "kernels/kernel_families.h"

namespace heddle::cuda {
namespace {

class TopK : public PlannedKernel {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<TopKLaunches>();
    launches->axis = context.attributes.i("axis");
    launches->largest = context.attributes.i("largest") != 0;
    return begin(context, std::move(launches));
  }
};

}  // namespace

void add_topk(Builder& plugin) {
  plugin.add(Op("TopK", "", 11).kernels_only().kernel<TopK>("cuda"));
}

}  // namespace heddle::cuda
