#include "derive/differentiate.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "derive/gradient_sums.h"
#include "derive/needed_versions.h"
#include "infer/infer.h"
#include "plugin/schema.h"
#include "resolve/resolve.h"

namespace heddle {
namespace {

class Differentiation {
 public:
  Differentiation(const Net& net, const RegistrySnapshot& registry, const PolymorphicTypes& types, const DifferentiateOptions& options)
      : net_(net), types_(types), options_(options), emitter_(net_, registry), forward_nodes_(net.nodes.size()) {}

  Result<DerivedNet> run() {
    HEDDLE_CHECK(find_losses());
    HEDDLE_CHECK(find_wanted());
    mark();
    if (std::none_of(losses_.begin(), losses_.end(), [&](ValueId loss) { return depends_[loss.index]; }))
      return Status(Code::invalid_argument, fmt::format("no loss depends on {}", wanted_text()), "name losses that are computed from it");
    HEDDLE_CHECK(seed());
    for (size_t i = forward_nodes_; i-- > 0;) HEDDLE_CHECK(visit(NodeId(i)));
    DerivedNet derived;
    HEDDLE_CHECK(collect(derived.gradients));
    HEDDLE_CHECK(check_needed_versions(net_, emitter_));
    derived.net = with_updates_last(std::move(net_), forward_nodes_);
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
    return {};
  }

  std::string wanted_text() const {
    constexpr size_t most = 6;
    std::vector<std::string> words;
    for (size_t i = 0; i < names_.size() && i < most; ++i) words.push_back(quoted(names_[i]));
    if (names_.size() > most) words.push_back(fmt::format("{} more", names_.size() - most));
    return join(words, ", ");
  }

  // An input that gradients go through.
  bool carries(const Node& node, size_t input) const {
    const ValueId id = node.inputs[input];
    if (!id.valid() || !types_.is_real(id)) return false;
    const heddle_port* const port = node.schema->input_port(input);
    return !port || (port->flags & HEDDLE_PORT_NOT_DIFFERENTIABLE) == 0;
  }

  // What depends on something wanted.
  void mark() {
    depends_.assign(net_.values.size(), false);
    for (const ValueId id : wanted_) depends_[id.index] = true;
    for (const Node& node : net_.nodes) {
      bool any = false;
      for (size_t i = 0; i < node.inputs.size() && !any; ++i) any = carries(node, i) && depends_[node.inputs[i].index];
      for (const ValueId output : node.outputs)
        if (any && output.valid() && types_.is_real(output)) depends_[output.index] = true;
    }
    sums_.resize(net_.values.size());
  }

  Status seed() {
    for (const ValueId loss : losses_) {
      if (!depends_[loss.index]) continue;
      emitter_.derive_from(net_[loss].name + ".gradient", net_[loss].producer.valid() ? net_[net_[loss].producer].device : "");
      HEDDLE_TRY(const ValueId ones, filled_like(emitter_, types_, loss, 1));
      sums_[loss.index].add_seed(ones);
    }
    for (size_t i = 0; i < forward_nodes_; ++i) HEDDLE_CHECK(seed_zeros(NodeId(i)));
    return {};
  }

  // What heddle::ZeroGradient gives its input.
  Status seed_zeros(NodeId id) {
    const Node node = net_[id];  // a copy: the net grows
    if (node.domain != "heddle" || node.type != "ZeroGradient" || !depends_[node.inputs[0].index]) return {};
    emitter_.derive_from(id, "gradient");
    HEDDLE_TRY(const ValueId zeros, filled_like(emitter_, types_, node.inputs[0], 0));
    sums_[node.inputs[0].index].add({zeros, {}, {}, false, false}, id);
    return {};
  }

  // The gradients that arrive at a node go on to its inputs.
  Status visit(NodeId id) {
    const Node node = net_[id];  // a copy: the net grows
    NodeGradientCall call{net_, id, types_, std::vector<ValueId>(node.outputs.size()), std::vector<bool>(node.inputs.size(), false)};
    bool arrives = false;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId output = node.outputs[i];
      if (!output.valid() || !sums_[output.index].any()) continue;
      HEDDLE_TRY(const GradientPart total, total_of(output, GradientSum::Form::dense));
      call.output_gradients[i] = total.dense;
      arrives = true;
    }
    bool wanted = false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      call.wanted[i] = carries(node, i) && depends_[node.inputs[i].index];
      wanted = wanted || call.wanted[i];
    }
    if (!arrives || !wanted) return {};
    HEDDLE_TRY(const std::vector<GradientPart> parts, node_gradient(call, emitter_));
    for (size_t i = 0; i < parts.size(); ++i)
      if (parts[i].any()) sums_[node.inputs[i].index].add(parts[i], id);
    return {};
  }

  // Emitted once; what was emitted is the value's only part then.
  Result<GradientPart> total_of(ValueId id, GradientSum::Form form) {
    GradientSum& sum = sums_[id.index];
    const NodeId producer = net_[id].producer;
    emitter_.derive_from(net_[id].name + ".gradient", producer.valid() ? net_[producer].device : device_of_readers(id));
    HEDDLE_TRY(const GradientPart total, sum.total(net_, id, types_, form, emitter_));
    sum = {};
    sum.add(total, NodeId());
    return total;
  }

  std::string device_of_readers(ValueId id) const {
    for (size_t i = 0; i < forward_nodes_; ++i)
      if (const auto& inputs = net_.nodes[i].inputs; std::find(inputs.begin(), inputs.end(), id) != inputs.end())
        return net_.nodes[i].device;
    return {};
  }

  Status collect(std::vector<Gradient>& gradients) {
    for (size_t i = 0; i < wanted_.size(); ++i) {
      Gradient gradient;
      gradient.of = names_[i];
      if (sums_[wanted_[i].index].any()) {
        const bool dense = std::find(options_.dense.begin(), options_.dense.end(), names_[i]) != options_.dense.end();
        HEDDLE_TRY(const GradientPart total, total_of(wanted_[i], dense ? GradientSum::Form::dense : GradientSum::Form::as_given));
        HEDDLE_CHECK(name_gradient(total, wanted_[i], gradient));
      }
      gradients.push_back(std::move(gradient));
    }
    return {};
  }

  // A value that stands for something else already, a gradient of two or a forward value, gets a name of its own by a view.
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
    gradient.indices = net_[total.indices].name;  // the forward's own, where there is one lookup
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
  Emitter emitter_;
  const size_t forward_nodes_;
  std::vector<ValueId> losses_, wanted_;
  std::vector<std::string> names_;  // of what is wanted
  std::vector<bool> depends_;       // by value
  std::vector<GradientSum> sums_;   // by value of the net that was given
  std::set<ValueId> named_;
};

}  // namespace

Result<DerivedNet> differentiate(const Net& net, const std::shared_ptr<const RegistrySnapshot>& registry, Evaluator& evaluator,
                                 const DifferentiateOptions& options, const Limits& limits) {
  HEDDLE_TRY(const PolymorphicTypes types, PolymorphicTypes::infer(net, registry, evaluator, options.symbols, limits));
  HEDDLE_TRY(DerivedNet derived, Differentiation(net, *registry, types, options).run());
  HEDDLE_TRY(derived.net, resolve(std::move(derived.net), registry, limits));
  // What was emitted fits every shape: a rule of a plugin's that does not is found here.
  HEDDLE_TRY([[maybe_unused]] const PolymorphicTypes judged,
             PolymorphicTypes::infer(derived.net, registry, evaluator, options.symbols, limits), "in the net with its gradients");
  return derived;
}

}  // namespace heddle
