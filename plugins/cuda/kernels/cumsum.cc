// Implements CumSum.
#include <memory>

#include "generate/select/scan_launches.h"
#include "kernels/common/planned_kernel.h"
#include "kernels/kernel_families.h"

namespace heddle::cuda {
namespace {

class CumSum : public PlannedKernel {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<ScanLaunches>();
    launches->exclusive = context.attributes.i("exclusive") != 0;
    launches->reverse = context.attributes.i("reverse") != 0;
    return begin(context, std::move(launches));
  }
};

}  // namespace

void add_cumsum(Builder& plugin) {
  plugin.add(Op("CumSum", "", 14).kernels_only().kernel<CumSum>("cuda"));
}

}  // namespace heddle::cuda
