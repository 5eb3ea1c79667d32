#include "transform/transform.h"

namespace heddle {

Result<TypedNet> optimize(TypedNet net, Evaluator& evaluator, const CompilationTarget& target, const TransformOptions& options) {
  const auto asked = [&] { return options.interruption ? options.interruption->status() : Status(); };
  HEDDLE_TRY(net, prune(std::move(net)));
  if (options.fold_constants) {
    HEDDLE_TRY(net, fold_constants(std::move(net), evaluator, target, options.interruption));
  }
  HEDDLE_CHECK(asked());
  if (options.fold_batch_normalization) {
    HEDDLE_TRY(net, fold_batch_normalization(std::move(net)));
    HEDDLE_TRY(net, fold_constants(std::move(net), evaluator, target, options.interruption));
  }
  HEDDLE_CHECK(asked());
  if (options.apply_rules) {
    HEDDLE_TRY(net, apply_rules(std::move(net)));
  }
  HEDDLE_CHECK(asked());
  if (options.fuse_epilogues) {
    HEDDLE_TRY(net, fuse_epilogues(std::move(net)));
  }
  HEDDLE_CHECK(asked());
  HEDDLE_TRY(net, fuse_pointwise(std::move(net), options.fuse_pointwise));
  HEDDLE_CHECK(asked());
  HEDDLE_TRY(net, insert_copies(std::move(net)));
  return net;
}

}  // namespace heddle
