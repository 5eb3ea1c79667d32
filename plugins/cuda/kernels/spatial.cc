// Implements Resize, GridSample and RoiAlign.
#include <memory>

#include "generate/image/grid_sample_launches.h"
#include "generate/image/resize_launches.h"
#include "generate/image/roi_align_launches.h"
#include "kernels/common/planned_kernel.h"
#include "kernels/kernel_families.h"
#include "shared/dense_layouts.h"

namespace heddle::cuda {
namespace {

class Resize : public PlannedKernel {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<ResizeLaunches>();
    HEDDLE_PLUGIN_CHECK(operators::parse_resize(context.attributes, &launches->node));
    return begin(context, std::move(launches));
  }
  static std::vector<heddle_format> formats(const CreateContext& context) { return operators::uniform_formats(context, 1, 1); }
};

class GridSample : public PlannedKernel {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<GridSampleLaunches>();
    HEDDLE_PLUGIN_CHECK(operators::parse_grid_options(context.attributes, &launches->options));
    return begin(context, std::move(launches));
  }
};

class RoiAlign : public PlannedKernel {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<RoiAlignLaunches>();
    launches->options = operators::RoiOptions(context.attributes);
    return begin(context, std::move(launches));
  }
};

}  // namespace

void add_spatial(Builder& plugin) {
  plugin.add(Op("Resize", "", 19).kernels_only().kernel<Resize>("cuda"));
  plugin.add(Op("GridSample", "", 20).kernels_only().kernel<GridSample>("cuda"));
  plugin.add(Op("RoiAlign", "", 16).kernels_only().kernel<RoiAlign>("cuda").kernel_flags(HEDDLE_KERNEL_USES_FAULT));
}

}  // namespace heddle::cuda
