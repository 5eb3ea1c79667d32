// Implements operators that move elements by their positions: Transpose, Reorder, Slice, Expand, Tile, DepthToSpace, SpaceToDepth, Concat,
// Split, Pad and Trilu; and views that must be copies.
#include <memory>

#include "generate/move/box_launches.h"
#include "generate/move/parts_launches.h"
#include "generate/move/pick_launches.h"
#include "generate/move/view_launches.h"
#include "kernels/common/planned_kernel.h"
#include "kernels/kernel_families.h"
#include "shared/dense_layouts.h"
#include "shared/movement/boxes.h"

namespace heddle::cuda {
namespace {

constexpr double bytes_per_ns = 2000;  // about the bandwidth of a large device

class Transpose : public PlannedKernel {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<TransposeLaunches>();
    HEDDLE_PLUGIN_CHECK(operators::permutation(context.attributes, context.input(0)->rank, &launches->order));
    return begin(context, std::move(launches));
  }
  static std::vector<heddle_format> formats(const CreateContext& context) {
    const heddle_type& y = *context.output(0);
    double bytes = 2.0 * static_cast<double>(byte_width(y.dtype));
    for (int i = 0; i < y.rank; ++i) bytes *= static_cast<double>(y.dims[i]);
    return operators::transpose_formats(context, bytes / bytes_per_ns);
  }
};

class Reorder : public PlannedKernel {
 public:
  Status create(const CreateContext& context) { return begin(context, std::make_unique<ReorderLaunches>()); }
};

class Slice : public PlannedKernel {
 public:
  Status create(const CreateContext& context) { return begin(context, std::make_unique<SliceLaunches>()); }
  static std::vector<heddle_format> formats(const CreateContext& context) { return operators::uniform_formats(context, 1, 1); }
};

template <bool tile>
class Repeat : public PlannedKernel {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<RepeatLaunches>();
    launches->tile = tile;
    return begin(context, std::move(launches));
  }
};

template <bool to_space>
class Blocks : public PlannedKernel {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<BlocksLaunches>();
    launches->to_space = to_space;
    launches->block = context.attributes.i("blocksize");
    launches->channel_first = to_space && context.attributes.s("mode") == "CRD";
    return begin(context, std::move(launches));
  }
  static std::vector<heddle_format> formats(const CreateContext& context) { return operators::uniform_formats(context, 1, 1); }
};

class Concat : public PlannedKernel {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<PartsLaunches>();
    launches->axis = context.attributes.i("axis");
    return begin(context, std::move(launches));
  }
  static std::vector<heddle_format> formats(const CreateContext& context) {
    return operators::uniform_formats(context, context.input_count(), 1);
  }
};

class Split : public PlannedKernel {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<PartsLaunches>();
    launches->into_whole = false;
    launches->axis = context.attributes.i("axis");
    return begin(context, std::move(launches));
  }
  static std::vector<heddle_format> formats(const CreateContext& context) {
    return operators::uniform_formats(context, 1, context.output_count());
  }
};

class Pad : public PlannedKernel {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<PadLaunches>();
    HEDDLE_PLUGIN_CHECK(operators::parse_pad_mode(context.attributes, &launches->mode));
    return begin(context, std::move(launches));
  }
  static std::vector<heddle_format> formats(const CreateContext& context) { return operators::uniform_formats(context, 1, 1); }
};

class Trilu : public PlannedKernel {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<TriluLaunches>();
    launches->upper = context.attributes.i("upper") != 0;
    return begin(context, std::move(launches));
  }
};

template <ViewLaunches::Operand operand>
class View : public PlannedKernel {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<ViewLaunches>();
    launches->operand = operand;
    launches->keeps_zero = context.attributes.declares("allowzero") && context.attributes.i("allowzero") != 0;
    return begin(context, std::move(launches));
  }
};

}  // namespace

void add_movement(Builder& plugin) {
  plugin.add(Op("Transpose", "", 13).kernels_only().kernel<Transpose>("cuda"));
  plugin.add(Op("Reorder", "heddle", 1).kernels_only().kernel<Reorder>("cuda").kernel_name("cuda:reorder"));
  plugin.add(Op("Slice", "", 13).kernels_only().kernel<Slice>("cuda"));
  plugin.add(Op("Expand", "", 13).kernels_only().kernel<Repeat<false>>("cuda"));
  plugin.add(Op("Tile", "", 13).kernels_only().kernel<Repeat<true>>("cuda"));
  plugin.add(Op("DepthToSpace", "", 13).kernels_only().kernel<Blocks<true>>("cuda"));
  plugin.add(Op("SpaceToDepth", "", 13).kernels_only().kernel<Blocks<false>>("cuda"));
  plugin.add(Op("Concat", "", 13).kernels_only().kernel<Concat>("cuda"));
  plugin.add(Op("Split", "", 18).kernels_only().kernel<Split>("cuda"));
  plugin.add(Op("Pad", "", 19).kernels_only().kernel<Pad>("cuda"));
  plugin.add(Op("Trilu", "", 14).kernels_only().kernel<Trilu>("cuda"));
  using Operand = ViewLaunches::Operand;
  plugin.add(Op("Reshape", "", 14).kernels_only().kernel<View<Operand::shape>>("cuda"));
  plugin.add(Op("Flatten", "", 13).kernels_only().kernel<View<Operand::none>>("cuda"));
  plugin.add(Op("Squeeze", "", 13).kernels_only().kernel<View<Operand::squeezed>>("cuda"));
  plugin.add(Op("Unsqueeze", "", 13).kernels_only().kernel<View<Operand::unsqueezed>>("cuda"));
  plugin.add(Op("Identity", "", 16).kernels_only().kernel<View<Operand::none>>("cuda"));
}

}  // namespace heddle::cuda
