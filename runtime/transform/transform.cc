#include "transform/transform.h"

namespace heddle {

Result<TypedNet> optimize(TypedNet net, Evaluator& evaluator, const TransformOptions& options) {
  const auto seen = [&](const char* name) {
    if (options.observer) options.observer(name, net);
  };
  HEDDLE_TRY(net, prune(std::move(net)));
  seen("prune");
  if (options.fold_constants) {
    HEDDLE_TRY(net, fold_constants(std::move(net), evaluator, options.limits));
    seen("fold_constants");
  }
  if (options.fold_batch_normalization) {
    HEDDLE_TRY(net, fold_batch_normalization(std::move(net)));
    HEDDLE_TRY(net, fold_constants(std::move(net), evaluator, options.limits));
    seen("fold_batch_normalization");
  }
  if (options.apply_rules) {
    HEDDLE_TRY(net, apply_rules(std::move(net), options.limits));
    seen("apply_rules");
  }
  if (options.fuse_epilogues) {
    HEDDLE_TRY(net, fuse_epilogues(std::move(net), options.default_device));
    seen("fuse_epilogues");
  }
  HEDDLE_TRY(net, fuse_pointwise(std::move(net), options.default_device, options.fuse_pointwise));
  seen("fuse_pointwise");
  HEDDLE_TRY(net, insert_copies(std::move(net), options.default_device));
  seen("insert_copies");
  return net;
}

}  // namespace heddle
