// Implements Softmax, LogSoftmax and Hardmax along one axis.
#include <memory>

#include "generate/pointwise/epilogue_expression.h"
#include "generate/rows/row_launches.h"
#include "kernels/common/planned_kernel.h"
#include "kernels/kernel_families.h"
#include "shared/dense_layouts.h"

namespace heddle::cuda {
namespace {

template <RowKind kind>
class Softmax : public PlannedKernel {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<AxisLaunches>();
    launches->shape.kind = kind;
    launches->axis = context.attributes.i("axis");
    HEDDLE_PLUGIN_CHECK(epilogue_expression(context, &launches->shape.epilogue));
    return begin(context, std::move(launches));
  }
  static bool accepts_epilogue(const CreateContext& context) { return takes_epilogue_ops(context); }
  static std::vector<heddle_format> formats(const CreateContext& context) { return operators::uniform_formats(context, 1, 1); }
};

}  // namespace

void add_softmax(Builder& plugin) {
  plugin.add(Op("Softmax", "", 13).kernels_only().kernel<Softmax<RowKind::softmax>>("cuda"));
  plugin.add(Op("LogSoftmax", "", 13).kernels_only().kernel<Softmax<RowKind::log_softmax>>("cuda"));
  plugin.add(Op("Hardmax", "", 13).kernels_only().kernel<Softmax<RowKind::hardmax>>("cuda"));
}

}  // namespace heddle::cuda
