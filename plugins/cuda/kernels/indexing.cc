// Implements operators that move elements by indices: Gather, GatherElements, GatherND, ReverseSequence, ScatterElements, ScatterND,
// which report an index that is out of range, or a length longer than its sequence, through heddle_run_context::fault; and OneHot, where
// such an index is on no position.
#include <memory>

#include "generate/move/pick_launches.h"
#include "generate/move/scatter_launches.h"
#include "kernels/common/planned_kernel.h"
#include "kernels/kernel_families.h"

namespace heddle::cuda {
namespace {

template <class Picks>
class AlongAxis : public PlannedKernel {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<Picks>();
    launches->axis = context.attributes.i("axis");
    return begin(context, std::move(launches));
  }
};

class GatherND : public PlannedKernel {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<GatherNDLaunches>();
    launches->batch = context.attributes.i("batch_dims");
    return begin(context, std::move(launches));
  }
};

class ReverseSequence : public PlannedKernel {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<ReverseLaunches>();
    launches->time_first = context.attributes.i("time_axis") == 0;
    return begin(context, std::move(launches));
  }
};

class ScatterElements : public PlannedKernel {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<ScatterElementsLaunches>();
    launches->axis = context.attributes.i("axis");
    HEDDLE_PLUGIN_CHECK(operators::reduction_of(context, &launches->reduction));
    return begin(context, std::move(launches));
  }
};

class ScatterND : public PlannedKernel {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<ScatterNDLaunches>();
    HEDDLE_PLUGIN_CHECK(operators::reduction_of(context, &launches->reduction));
    return begin(context, std::move(launches));
  }
};

}  // namespace

void add_indexing(Builder& plugin) {
  plugin.add(Op("Gather", "", 13).kernels_only().kernel<AlongAxis<GatherLaunches>>("cuda").kernel_flags(HEDDLE_KERNEL_USES_FAULT));
  plugin.add(
      Op("GatherElements", "", 13).kernels_only().kernel<AlongAxis<GatherElementsLaunches>>("cuda").kernel_flags(HEDDLE_KERNEL_USES_FAULT));
  plugin.add(Op("GatherND", "", 13).kernels_only().kernel<GatherND>("cuda").kernel_flags(HEDDLE_KERNEL_USES_FAULT));
  plugin.add(Op("ReverseSequence", "", 10).kernels_only().kernel<ReverseSequence>("cuda").kernel_flags(HEDDLE_KERNEL_USES_FAULT));
  plugin.add(Op("OneHot", "", 11).kernels_only().kernel<AlongAxis<OneHotLaunches>>("cuda"));
  plugin.add(Op("ScatterElements", "", 18).kernels_only().kernel<ScatterElements>("cuda").kernel_flags(HEDDLE_KERNEL_USES_FAULT));
  plugin.add(Op("ScatterND", "", 18).kernels_only().kernel<ScatterND>("cuda").kernel_flags(HEDDLE_KERNEL_USES_FAULT));
}

}  // namespace heddle::cuda
