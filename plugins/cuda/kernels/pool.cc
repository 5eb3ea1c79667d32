// Implements MaxPool, AveragePool and LpPool. Their global forms are reductions (kernels/reduce.cc).
#include <memory>

#include "generate/image/pool_launches.h"
#include "kernels/common/planned_kernel.h"
#include "kernels/kernel_families.h"
#include "shared/dense_layouts.h"

namespace heddle::cuda {
namespace {

template <PoolKind kind>
class Pool : public PlannedKernel {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<PoolLaunches>();
    launches->kind = kind;
    launches->attributes = operators::WindowAttributes(context.attributes);
    if (context.attributes.declares("count_include_pad")) launches->counts_padding = context.attributes.i("count_include_pad") != 0;
    if (context.attributes.declares("storage_order")) launches->column_major = context.attributes.i("storage_order") != 0;
    if (context.attributes.declares("p")) launches->power = context.attributes.i("p");
    return begin(context, std::move(launches));
  }
  static std::vector<heddle_format> formats(const CreateContext& context) {
    if (!context.output(1)) return operators::uniform_formats(context, 1, 1);
    heddle_format row_major = {};
    row_major.struct_size = sizeof(row_major);
    return {row_major};
  }
};

}  // namespace

void add_pool(Builder& plugin) {
  plugin.add(Op("MaxPool", "", 12).kernels_only().kernel<Pool<PoolKind::max>>("cuda"));
  plugin.add(Op("AveragePool", "", 19).kernels_only().kernel<Pool<PoolKind::average>>("cuda"));
  plugin.add(Op("LpPool", "", 18).kernels_only().kernel<Pool<PoolKind::lp>>("cuda"));
}

}  // namespace heddle::cuda
