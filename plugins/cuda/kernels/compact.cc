// Implements Compress and NonZero.
#include <memory>

#include "generate/select/compact_launches.h"
#include "kernels/common/planned_kernel.h"
#include "kernels/kernel_families.h"

namespace heddle::cuda {
namespace {

class Compress : public PlannedKernel {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<CompressLaunches>();
    launches->flat = !context.attributes.has("axis");
    if (!launches->flat) launches->axis = context.attributes.i("axis");
    return begin(context, std::move(launches));
  }
};

class NonZero : public PlannedKernel {
 public:
  Status create(const CreateContext& context) { return begin(context, std::make_unique<NonZeroLaunches>()); }
};

}  // namespace

void add_compact(Builder& plugin) {
  plugin.add(Op("Compress", "", 11).kernels_only().kernel<Compress>("cuda"));
  plugin.add(Op("NonZero", "", 13).kernels_only().kernel<NonZero>("cuda"));
}

}  // namespace heddle::cuda
