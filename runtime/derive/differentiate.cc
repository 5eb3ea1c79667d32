#include "derive/differentiate.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text/text.h"
#include "derive/needed_versions.h"
#include "derive/reverse/reverse_pass.h"
#include "infer/infer.h"
#include "plugin/schema.h"
#include "resolve/resolve.h"
#include "resolve/subnet_ports.h"

namespace heddle {
namespace {

class Differentiation {
 public:
  Differentiation(const Net& net, const RegistrySnapshot& registry, const PolymorphicTypes& types, const DifferentiateOptions& options)
      : net_(net), types_(types), options_(options), pass_(net_, registry, types), emitter_(pass_.emitter()) {}

  Result<DerivedNet> run() {
    HEDDLE_CHECK(find_losses());
    HEDDLE_CHECK(find_wanted());
    pass_.want(wanted_);
    if (std::none_of(losses_.begin(), losses_.end(), [&](ValueId loss) { return pass_.depends(loss); }))
      return Status(Code::invalid_argument, fmt::format("no loss depends on {}", wanted_text()), "name losses that are computed from it");
    HEDDLE_CHECK(seed());
    HEDDLE_CHECK(pass_.run());
    DerivedNet derived;
    HEDDLE_CHECK(collect(derived.gradients));
    HEDDLE_CHECK(check_needed_versions(net_, emitter_));
    derived.net = with_updates_last(std::move(net_), pass_.forward_nodes());
    return derived;
  }

 private:
  Result<ValueId> named(const std::string& name) const {
    const auto variable = std::find_if(net_.variables.begin(), net_.variables.end(), [&](const Variable& v) { return v.name == name; });
    const std::optional<ValueId> value = variable == net_.variables.end() ? net_.find_value(name) : variable->first;
    if (!value)
      return Status(Code::unknown_name, fmt::format("the net has no value {}", quoted(name)), "name a value or variable of the net");
    if (types_.is_real(*value)) return *value;
    return Status(Code::invalid_argument, fmt::format("{} is {}: it has no gradient", quoted(name), to_string(types_.dtype(*value))),
                  "gradients are of f16, bf16, f32 and f64");
  }

  Status find_losses() {
    for (const std::string& name : options_.losses) {
      HEDDLE_TRY(const ValueId loss, named(name));
      losses_.push_back(loss);
    }
    if (losses_.empty()) return {Code::invalid_argument, "no loss was named", "name the values whose sum is to be made small"};
    return {};
  }

  Status find_wanted() {
    names_ = options_.wanted;
    if (names_.empty())
      for (const Variable& variable : net_.variables)
        if (variable.trainable) names_.push_back(variable.name);
    if (names_.empty()) return {Code::invalid_argument, "the net has no trainable variable", "name what gradients are wanted of"};
    std::set<std::string> seen;
    for (const std::string& name : names_) {
      if (!seen.insert(name).second)
        return {Code::invalid_argument, fmt::format("the gradient of {} is wanted twice", quoted(name)), "name it once"};
      HEDDLE_TRY(const ValueId value, named(name));
      wanted_.push_back(value);
    }
    for (const std::string& name : options_.dense)
      if (seen.count(name) == 0)
        return {Code::unknown_name, fmt::format("the gradient of {} is to be dense, and none is wanted of it", quoted(name)),
                fmt::format("gradients are wanted of {}", wanted_text())};
    return {};
  }

  std::string wanted_text() const {
    constexpr size_t most = 6;
    std::vector<std::string> words;
    for (size_t i = 0; i < names_.size() && i < most; ++i) words.push_back(quoted(names_[i]));
    if (names_.size() > most) words.push_back(fmt::format("{} more", names_.size() - most));
    return join(words, ", ");
  }

  Status seed() {
    for (const ValueId loss : losses_) {
      if (!pass_.depends(loss)) continue;
      pass_.derive_from_value(loss);
      HEDDLE_TRY(const ValueId ones, filled_like(emitter_, types_, loss, 1));
      HEDDLE_CHECK(pass_.seed(loss, ones));
    }
    return {};
  }

  Status collect(std::vector<Gradient>& gradients) {
    for (size_t i = 0; i < wanted_.size(); ++i) {
      Gradient gradient;
      gradient.of = names_[i];
      if (pass_.any(wanted_[i])) {
        const bool dense = std::find(options_.dense.begin(), options_.dense.end(), names_[i]) != options_.dense.end();
        HEDDLE_TRY(const GradientPart total, pass_.total_of(wanted_[i], dense ? GradientSum::Form::dense : GradientSum::Form::as_given));
        HEDDLE_CHECK(name_gradient(total, wanted_[i], gradient));
      }
      gradients.push_back(std::move(gradient));
    }
    return {};
  }

  // Returns `value` under a name of its own, through a view where the value stands for something else already (the gradient of two values,
  // or a forward value).
  Result<ValueId> named_gradient(ValueId value, const std::string& name) {
    if (!emitter_.is_emitted(net_[value].producer) || !named_.insert(value).second) {
      HEDDLE_TRY(value, emitter_.emit1("", "Identity", {value}));
      named_.insert(value);
    }
    emitter_.rename(value, name);
    if (options_.outputs) net_.outputs.push_back(value);
    return value;
  }

  Status name_gradient(const GradientPart& total, ValueId of, Gradient& gradient) {
    const std::string name = gradient.of + ".gradient";
    if (!total.by_rows()) {
      HEDDLE_TRY(const ValueId dense, named_gradient(total.dense, name));
      gradient.dense = net_[dense].name;
      return {};
    }
    HEDDLE_TRY(const ValueId values, named_gradient(total.values, name + ".values"));
    gradient.values = net_[values].name;
    gradient.indices = net_[total.indices].name;  // the forward's own indices, where there is only one lookup
    if (options_.outputs) net_.outputs.push_back(total.indices);
    SparseLink link;
    link.of = of;
    link.kind = "rows";
    link.indices = total.indices;
    link.values = values;
    const std::optional<Shape> shape = types_.shape(of);
    link.rows = shape && shape->rank() > 0 ? (*shape)[0] : 0;
    link.unique = total.unique;
    link.sorted = total.sorted;
    net_.sparse_links.push_back(link);
    return {};
  }

  Net net_;
  const PolymorphicTypes& types_;
  const DifferentiateOptions& options_;
  ReversePass pass_;
  Emitter& emitter_;  // the emitter of the pass
  std::vector<ValueId> losses_, wanted_;
  std::vector<std::string> names_;  // of the values whose gradients are wanted
  std::set<ValueId> named_;
};

}  // namespace

Result<DerivedNet> differentiate(const Net& net, const std::shared_ptr<const RegistrySnapshot>& registry, Evaluator& evaluator,
                                 const DifferentiateOptions& options, const Limits& limits) {
  HEDDLE_TRY(const PolymorphicTypes types, PolymorphicTypes::infer(net, registry, evaluator, options.symbols, limits));
  HEDDLE_TRY(DerivedNet derived, Differentiation(net, *registry, types, options).run());
  HEDDLE_TRY(derived.net, resolve(std::move(derived.net), registry, limits));
  // Checks that what was emitted fits every shape: finds the rule of a plugin that does not.
  HEDDLE_TRY([[maybe_unused]] const PolymorphicTypes judged,
             PolymorphicTypes::infer(derived.net, registry, evaluator, options.symbols, limits), "in the net with its gradients");
  disown_variables(derived.net);
  return derived;
}

}  // namespace heddle
