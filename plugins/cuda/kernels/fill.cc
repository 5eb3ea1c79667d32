// Implements ConstantOfShape, EyeLike and Range.
#include <cstring>
#include <memory>

#include "generate/move/fill_launches.h"
#include "kernels/common/planned_kernel.h"
#include "kernels/kernel_families.h"

namespace heddle::cuda {
namespace {

class ConstantOfShape : public PlannedKernel {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<ConstantLaunches>();
    if (const heddle_tensor* value = context.attributes.tensor("value")) std::memcpy(&launches->value, value->data, value->byte_size);
    return begin(context, std::move(launches));
  }
};

class EyeLike : public PlannedKernel {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<EyeLaunches>();
    launches->k = context.attributes.i("k");
    return begin(context, std::move(launches));
  }
};

class Range : public PlannedKernel {
 public:
  Status create(const CreateContext& context) { return begin(context, std::make_unique<RangeLaunches>()); }
};

}  // namespace

void add_fill(Builder& plugin) {
  plugin.add(Op("ConstantOfShape", "", 9).kernels_only().kernel<ConstantOfShape>("cuda"));
  plugin.add(Op("EyeLike", "", 9).kernels_only().kernel<EyeLike>("cuda"));
  plugin.add(Op("Range", "", 11).kernels_only().kernel<Range>("cuda"));
}

}  // namespace heddle::cuda
