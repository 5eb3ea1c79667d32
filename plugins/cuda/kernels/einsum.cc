// Einsum.
#include <memory>

#include "generate/einsum_launches.h"
#include "kernels/kernel_families.h"
#include "kernels/planned_kernel.h"

namespace heddle::cuda {
namespace {

class Einsum : public PlannedKernel {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<EinsumLaunches>();
    launches->equation = context.attributes.s("equation");
    return begin(context, std::move(launches));
  }
};

}  // namespace

void add_einsum(Builder& plugin) {
  plugin.add(Op("Einsum", "", 12).kernels_only().kernel<Einsum>("cuda"));
}

}  // namespace heddle::cuda
