// Implements LayerNormalization, RMSNormalization, LpNormalization, MeanVarianceNormalization, GroupNormalization, InstanceNormalization,
// BatchNormalization for inference, and LRN.
#include <memory>

#include "generate/operators/channel_launches.h"
#include "generate/pointwise/epilogue_expression.h"
#include "generate/rows/row_launches.h"
#include "kernels/common/planned_kernel.h"
#include "kernels/kernel_families.h"
#include "shared/dense_layouts.h"
#include "shared/onnx_dtype.h"

namespace heddle::cuda {
namespace {

// The common base of all of these, with epilogue ops.
class Normalization : public PlannedKernel {
 public:
  static bool accepts_epilogue(const CreateContext& context) { return takes_epilogue_ops(context); }

 protected:
  Status begin_rows(const CreateContext& context, std::unique_ptr<RowLaunches> launches) {
    // The precision of the first stage is at least f32; f64 if that is requested.
    if (context.attributes.declares("stash_type") && operators::dtype_from_onnx(context.attributes.i("stash_type")) == HEDDLE_F64)
      launches->shape.working = HEDDLE_F64;
    if (context.attributes.declares("epsilon")) launches->epsilon = context.attributes.f("epsilon");
    HEDDLE_PLUGIN_CHECK(epilogue_expression(context, &launches->shape.epilogue));
    return begin(context, std::move(launches));
  }
};

template <RowKind kind>
class TrailingNormalization : public Normalization {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<TrailingLaunches>();
    launches->shape.kind = kind;
    launches->axis = context.attributes.i("axis");
    return begin_rows(context, std::move(launches));
  }
};

class LpNormalization : public Normalization {
 public:
  Status create(const CreateContext& context) {
    const int64_t p = context.attributes.i("p");
    if (p != 1 && p != 2) return invalid("p is " + std::to_string(p) + ", expected 1 or 2");
    auto launches = std::make_unique<AxisLaunches>();
    launches->shape.kind = p == 1 ? RowKind::norm1 : RowKind::norm2;
    launches->axis = context.attributes.i("axis");
    return begin_rows(context, std::move(launches));
  }
};

class MeanVariance : public Normalization {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<AxesLaunches>();
    launches->shape.kind = RowKind::moments_beside;
    launches->epsilon = 1e-9;
    launches->axes = context.attributes.has("axes") ? context.attributes.ints("axes") : std::vector<int64_t>{0, 2, 3};
    return begin_rows(context, std::move(launches));
  }
};

class GroupNormalization : public Normalization {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<GroupLaunches>();
    launches->shape.kind = RowKind::moments;
    launches->groups = context.attributes.declares("num_groups") ? context.attributes.i("num_groups", 0) : 0;
    return begin_rows(context, std::move(launches));
  }
};

class BatchNormalization : public Normalization {
 public:
  Status create(const CreateContext& context) {
    if (context.attributes.i("training_mode") != 0) return unsupported("training_mode 1 has no kernel for \"cuda\"");
    auto launches = std::make_unique<BatchLaunches>();
    launches->epsilon = context.attributes.f("epsilon");
    HEDDLE_PLUGIN_CHECK(epilogue_expression(context, &launches->epilogue));
    return begin(context, std::move(launches));
  }
  static std::vector<heddle_format> formats(const CreateContext& context) { return operators::uniform_formats(context, 1, 1); }
};

class LocalResponse : public Normalization {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<LocalLaunches>();
    launches->size = context.attributes.i("size");
    if (launches->size < 1) return invalid("size is " + std::to_string(launches->size) + ", expected at least 1");
    launches->alpha = context.attributes.f("alpha");
    launches->beta = context.attributes.f("beta");
    launches->bias = context.attributes.f("bias");
    HEDDLE_PLUGIN_CHECK(epilogue_expression(context, &launches->epilogue));
    return begin(context, std::move(launches));
  }
};

}  // namespace

void add_normalization(Builder& plugin) {
  plugin.add(Op("LayerNormalization", "", 17).kernels_only().kernel<TrailingNormalization<RowKind::moments>>("cuda"));
  plugin.add(Op("RMSNormalization", "", 23).kernels_only().kernel<TrailingNormalization<RowKind::squares>>("cuda"));
  plugin.add(Op("LpNormalization", "", 1).kernels_only().kernel<LpNormalization>("cuda"));
  plugin.add(Op("MeanVarianceNormalization", "", 13).kernels_only().kernel<MeanVariance>("cuda"));
  plugin.add(Op("GroupNormalization", "", 21).kernels_only().kernel<GroupNormalization>("cuda"));
  plugin.add(Op("InstanceNormalization", "", 6).kernels_only().kernel<GroupNormalization>("cuda"));
  plugin.add(Op("BatchNormalization", "", 15).kernels_only().kernel<BatchNormalization>("cuda"));
  plugin.add(Op("LRN", "", 13).kernels_only().kernel<LocalResponse>("cuda"));
}

}  // namespace heddle::cuda
