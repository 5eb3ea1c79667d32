#include "transform/transform.h"

#include <fmt/format.h>

#include <optional>

#include "base/text/text.h"
#include "verify/structure_check.h"
#include "verify/verify.h"

namespace heddle {
namespace {

using Context = const TransformContext&;

Result<TypedNet> fold(TypedNet net, Context c) {
  return fold_constants(std::move(net), c.evaluator, c.target, c.options.interruption);
}

// Runs the verifier on this net alone: crossings between devices were checked before, and are not yet copied.
Status verified(const TypedNet& net, Context c) {
  CompilationTarget target = c.target;
  target.copies = Copies::automatic;
  VerifyOptions options;
  options.nets_inside = false;
  return verify(net, target, options).status();
}

// Checks nets after transforms. Mistakes that the verifier finds in the input net are not blamed on a transform.
class TransformJudge {
 public:
  TransformJudge(const TypedNet& first, Context context) : context_(context), sound_(verified(first, context).ok()) {}
  void before(const TypedNet& net) { promises_.emplace(net); }
  Status behind(TypedNet& net) const {
    HEDDLE_CHECK(check_structure(net, &context_.evaluator));
    HEDDLE_CHECK(promises_->kept_by(net));
    return sound_ ? verified(net, context_) : Status();
  }

 private:
  Context context_;
  const bool sound_;
  std::optional<NetPromises> promises_;
};

Status blame(const char* transform, Status status) {
  if (status.code() == Code::out_of_memory) return status;  // no memory for the check: the net may be right
  Diagnostic& d = status.diagnostic();
  d.code = Code::internal;
  d.message = fmt::format("the transform {} broke the net: {}", quoted(transform), d.message);
  return status;
}

}  // namespace

std::span<const Transform> transforms() {
  using Options = TransformOptions;
  static const Transform list[] = {
      {"prune", nullptr, [](TypedNet net, Context) { return prune(std::move(net)); }},
      {"lower_einsum", &Options::lower_einsum, [](TypedNet net, Context) { return lower_einsum(std::move(net)); }},
      {"fold_constants", &Options::fold_constants, fold},
      {"fold_batch_normalization", &Options::fold_batch_normalization,
       [](TypedNet net, Context) { return fold_batch_normalization(std::move(net)); }},
      {"fold_constants", &Options::fold_batch_normalization, fold},  // folds the weights computed by it
      {"apply_rules", &Options::apply_rules, [](TypedNet net, Context) { return apply_rules(std::move(net)); }},
      {"fuse_epilogues", &Options::fuse_epilogues, [](TypedNet net, Context) { return fuse_epilogues(std::move(net)); }},
      {"fuse_pointwise", nullptr, [](TypedNet net, Context c) { return fuse_pointwise(std::move(net), c.options.fuse_pointwise); }},
      // Takes programs of a value that several operators read: x * sigmoid(x), gelu.
      {"fuse_epilogues", &Options::fuse_epilogues, [](TypedNet net, Context) { return fuse_epilogues(std::move(net)); }},
      {"insert_copies", nullptr, [](TypedNet net, Context c) { return insert_copies(std::move(net), c.target); }},
  };
  return list;
}

Result<TypedNet> run_transforms(TypedNet net, std::span<const Transform> list, const TransformContext& context) {
  const TransformOptions& options = context.options;
  std::optional<TransformJudge> judge;
  if (context.target.check_plans) judge.emplace(net, context);
  for (const Transform& transform : list) {
    if (transform.enabled && !(options.*transform.enabled)) continue;
    if (options.interruption) HEDDLE_CHECK(options.interruption->status());
    if (judge) judge->before(net);
    HEDDLE_TRY(net, transform.run(std::move(net), context));
    if (!judge) continue;
    if (Status broken = judge->behind(net); !broken.ok()) return blame(transform.name, std::move(broken));
  }
  return net;
}

Result<TypedNet> optimize(TypedNet net, Evaluator& evaluator, const CompilationTarget& target, const TransformOptions& options) {
  return run_transforms(std::move(net), transforms(), {evaluator, target, options});
}

}  // namespace heddle
