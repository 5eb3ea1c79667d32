#include "derive/training_net.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text/text.h"
#include "derive/data_parallel/reduce_gradients.h"
#include "derive/data_parallel/replicate.h"
#include "derive/emitter.h"
#include "net/averages.h"
#include "resolve/resolve.h"
#include "resolve/subnet_ports.h"

namespace heddle {

const std::vector<Optimizer>& optimizers() {
  const std::vector<std::string> decay = {"weight_decay"}, adam = {"beta1", "beta2", "epsilon", "weight_decay"};
  static const std::vector<Optimizer> all = {
      {"sgd", "SgdUpdate", "SgdUpdateRows", {}, false, decay, {}, true},
      {"momentum", "MomentumUpdate", "MomentumUpdateRows", {"velocity"}, false, {"momentum", "weight_decay"}, {}},
      {"nesterov", "MomentumUpdate", "MomentumUpdateRows", {"velocity"}, false, {"momentum", "weight_decay"}, {{"nesterov", int64_t{1}}}},
      {"adagrad", "AdagradUpdate", "AdagradUpdateRows", {"squares"}, false, {"epsilon", "weight_decay", "rowwise"}, {}},
      {"rmsprop", "RmsPropUpdate", "RmsPropUpdateRows", {"squares"}, false, {"alpha", "epsilon", "weight_decay"}, {}},
      {"adam", "AdamUpdate", "AdamUpdateRows", {"mean", "squares"}, true, adam, {}},
      {"adamw", "AdamUpdate", "AdamUpdateRows", {"mean", "squares"}, true, adam, {{"decoupled_weight_decay", int64_t{1}}}},
  };
  return all;
}

namespace {

Result<const Optimizer*> find_optimizer(const TrainingOptions& options) {
  std::vector<std::string> names;
  for (const Optimizer& optimizer : optimizers()) {
    names.emplace_back(optimizer.name);
    if (optimizer.name != options.optimizer) continue;
    for (const auto& [setting, value] : options.settings) {
      const bool is_fraction = setting == "alpha" || setting == "beta1" || setting == "beta2";
      if (!(value >= 0) || !std::isfinite(value) || (is_fraction && value >= 1))
        return Status(Code::invalid_argument,
                      fmt::format("{} is {}, expected at least 0{}", quoted(setting), value, is_fraction ? " and less than 1" : ""),
                      "docs/training.md lists the settings of optimizers");
      if (std::find(optimizer.settings.begin(), optimizer.settings.end(), setting) == optimizer.settings.end())
        return Status(Code::unknown_name, fmt::format("optimizer {} has no setting {}", optimizer.name, quoted(setting)),
                      fmt::format("it has {}", join(optimizer.settings, ", ")));
    }
    return &optimizer;
  }
  return Status(Code::unknown_name, fmt::format("there is no optimizer {}", quoted(options.optimizer)),
                fmt::format("known are {}", join(names, ", ")));
}

class Training {
 public:
  Training(Net net, ReplicaGradients gradients, const std::shared_ptr<const RegistrySnapshot>& registry, const Optimizer& optimizer,
           const TrainingOptions& options)
      : net_(std::move(net)), gradients_(std::move(gradients)), optimizer_(optimizer), options_(options), emitter_(net_, *registry) {}

  Result<Net> run() {
    for (const std::string& loss : options_.losses) {  // the losses of a net with replicas are outputs already
      const auto variable = std::find_if(net_.variables.begin(), net_.variables.end(), [&](const Variable& v) { return v.name == loss; });
      const ValueId value = variable == net_.variables.end() ? *net_.find_value(loss) : variable->first;
      if (std::find(net_.outputs.begin(), net_.outputs.end(), value) == net_.outputs.end()) net_.outputs.push_back(value);
    }
    HEDDLE_CHECK(count_steps());
    HEDDLE_CHECK(make_rate());
    HEDDLE_CHECK(clip());
    for (const std::vector<Gradient>& replica : gradients_)
      for (const Gradient& gradient : replica)
        if (gradient.any()) HEDDLE_CHECK(update(gradient));
    // Must be last: the readers of the step count read it before.
    HEDDLE_TRY(const ValueId next, emitter_.emit1("heddle", "StepIncrement", {step_}));
    make_next_version(net_, next, step_);
    return std::move(net_);
  }

 private:
  // Adds a state of zeros, or a replica of the state of the variable that `of` is a replica of.
  ValueId add_state(const std::string& name, DType dtype, const Shape& shape, const Variable* of = nullptr) {
    Variable variable;
    variable.name = emitter_.unused_name(name);
    variable.type = DeclaredType::of(dtype, shape);
    if (of && !of->replica_of.empty())
      variable.replica_of = states_.at(of->replica_of + name.substr(of->name.size()));
    else
      variable.initializer = "constant(0)";
    states_[name] = variable.name;
    return add_variable(net_, std::move(variable));
  }

  Status count_steps() {
    emitter_.derive_from("step", "");
    if (net_.step_counter.valid() && net_[net_.step_counter].last != net_[net_.step_counter].first)
      return {Code::invalid_argument, fmt::format("the net counts its steps in {} already", quoted(net_[net_.step_counter].name)),
              "leave that out: training counts them"};
    if (!net_.step_counter.valid()) net_.step_counter = net_[add_state("step", DType::i64, Shape{})].variable;
    step_ = net_[net_.step_counter].first;
    if (!optimizer_.counts_steps) return {};
    constexpr int64_t one = 1;
    HEDDLE_TRY(number_, emitter_.emit1("", "Add", {step_, emitter_.constant(Blob::copy_of(DType::i64, Shape{}, &one))}));
    return {};
  }

  Status make_rate() {
    emitter_.derive_from("learning_rate", "");
    const LearningRate& rate = options_.learning_rate;
    if (rate.is_constant()) {
      const auto number = static_cast<float>(rate.rate());
      rate_ = emitter_.constant(Blob::copy_of(DType::f32, Shape{}, &number));
      HEDDLE_TRY(rate_, emitter_.emit1("", "Identity", {rate_}));
    } else {
      HEDDLE_TRY(const ValueId steps, emitter_.emit_cast(step_, DType::f64));
      HEDDLE_TRY(const ValueId wide, emitter_.emit1("heddle", "Pointwise", {steps}, {{"program", rate.program()}}));
      HEDDLE_TRY(rate_, emitter_.emit_cast(wide, DType::f32));
    }
    emitter_.rename(rate_, "learning_rate");
    net_.outputs.push_back(rate_);
    return {};
  }

  bool is_rowwise() const {
    const auto is = [](const auto& setting) { return setting.first == "rowwise" && setting.second != 0; };
    return std::any_of(options_.settings.begin(), options_.settings.end(), is);
  }

  const Variable& variable_named(const std::string& name) const {
    return *std::find_if(net_.variables.begin(), net_.variables.end(), [&](const Variable& v) { return v.name == name; });
  }

  // Returns the value with a gradient's content: the tensor, or the rows.
  ValueId content_of(const Gradient& gradient) const { return *net_.find_value(gradient.dense.empty() ? gradient.values : gradient.dense); }

  // Clips the gradients, on each replica. In a gradient by rows each row is clipped, before rows that belong to one row of the table are
  // added. A norm that is asked for is that of the gradients before all of this.
  Status clip() {
    for (const std::vector<Gradient>& replica : gradients_)
      for (const Gradient& gradient : replica)
        if (gradient.any()) clipped_.emplace(gradient.of, content_of(gradient));
    if (options_.gradient_norm) {
      HEDDLE_TRY(norm_, norm_of(0, clipped_, "gradient_norm"));
      show_norm();
    }
    emitter_.derive_from("clip", "");
    for (const std::vector<Gradient>& replica : gradients_)
      for (const Gradient& gradient : replica) {
        if (!gradient.any() || options_.clip_value <= 0) continue;
        ValueId& value = clipped_.at(gradient.of);
        if (gradients_.size() > 1) emitter_.derive_from("clip", device_of(gradient));
        HEDDLE_TRY(value, emitter_.emit1("heddle", "Pointwise", {value},
                                         {{"program", fmt::format("max(min(x0, {0:.17g}), -{0:.17g})", options_.clip_value)}}));
      }
    const std::map<std::string, ValueId> unscaled = clipped_;
    for (size_t k = 0; k < gradients_.size() && options_.clip_norm > 0; ++k) HEDDLE_CHECK(clip_norm(k, unscaled));
    return {};
  }
  const std::string& device_of(const Gradient& gradient) const { return net_[net_[content_of(gradient)].producer].device; }

  // Makes norm_ an output.
  void show_norm() {
    if (!norm_.valid()) return;
    emitter_.rename(norm_, "gradient_norm");
    net_.outputs.push_back(norm_);
  }

  // Returns the norm of the gradients of a replica, and of all variables that have no replicas, with these contents. None: there are none.
  Result<ValueId> norm_of(size_t replica, const std::map<std::string, ValueId>& contents, const char* name) {
    ValueId sum;
    emitter_.derive_from(name, "");
    for (size_t v = 0; v < gradients_[0].size(); ++v) {  // in their order
      const Gradient& gradient = gradients_[replica][v].any() ? gradients_[replica][v] : gradients_[0][v];
      if (!gradient.any()) continue;
      if (gradients_.size() > 1) emitter_.derive_from(name, device_of(gradient));
      // Each norm fits its dtype where its square does not: only squares of norms are added, in f64.
      ValueId wide = contents.at(gradient.of);
      if (const DType dtype = variable_named(gradient.of).type.dtype; dtype == DType::f16 || dtype == DType::bf16) {
        HEDDLE_TRY(wide, emitter_.emit_cast(wide, DType::f32));
      }
      HEDDLE_TRY(const ValueId norm, emitter_.emit1("", "ReduceL2", {wide}, {{"keepdims", int64_t{0}}}));
      HEDDLE_TRY(const ValueId number, emitter_.emit_cast(norm, DType::f64));
      HEDDLE_TRY(const ValueId square, emitter_.emit1("", "Mul", {number, number}));
      if (!sum.valid()) {
        sum = square;
      } else {
        HEDDLE_TRY(sum, emitter_.emit1("", "Add", {sum, square}));
      }
    }
    return sum.valid() ? emitter_.emit1("", "Sqrt", {sum}) : Result<ValueId>(ValueId());
  }

  // Scales the gradients of a replica by their norm, and of all variables that have no replicas.
  Status clip_norm(size_t replica, const std::map<std::string, ValueId>& unscaled) {
    ValueId norm = norm_;  // which may be this one already
    if (!norm.valid() || gradients_.size() > 1 || options_.clip_value > 0) {
      HEDDLE_TRY(norm, norm_of(replica, unscaled, "clip"));
    }
    if (!norm.valid()) return {};
    if (replica == 0 && !norm_.valid()) {
      norm_ = norm;
      show_norm();
    }
    // Like torch.nn.utils.clip_grad_norm_.
    HEDDLE_TRY(const ValueId factor, emitter_.emit1("heddle", "Pointwise", {norm},
                                                    {{"program", fmt::format("min(1, {:.17g} / (x0 + 1e-6))", options_.clip_norm)}}));
    for (const Gradient& gradient : gradients_[replica]) {
      if (!gradient.any()) continue;
      ValueId& value = clipped_.at(gradient.of);
      HEDDLE_TRY(const ValueId own, emitter_.emit1("", "CastLike", {factor, value}));
      HEDDLE_TRY(value, emitter_.emit1("", "Mul", {value, own}));
    }
    return {};
  }

  // Rows that are those of bags need not be written out once for each lookup: an update reads the rows of bags, the bag of each lookup and
  // perhaps their weights itself. Empty: `values` are not rows of bags, or depend on a variable, which may have its next version by then.
  std::vector<ValueId> bags_of(ValueId values) const {
    const NodeId producer = net_[values].producer;
    if (!producer.valid() || net_[producer].domain != "heddle" || net_[producer].type != "BagRows") return {};
    const std::vector<ValueId>& read = net_[producer].inputs;
    const auto is_variable = [&](ValueId id) { return id.valid() && net_[id].kind == Value::Kind::variable; };
    return std::any_of(read.begin(), read.end(), is_variable) ? std::vector<ValueId>() : read;
  }

  Status update(const Gradient& gradient) {
    const Variable& found = variable_named(gradient.of);
    const ValueId variable = found.first;
    if (found.last != variable)
      return {Code::invalid_argument, fmt::format("the net updates {} itself", quoted(gradient.of)), "say that it is not trainable"};
    const DType dtype = found.type.dtype;
    const Shape shape = *found.type.fixed_shape();
    const bool rows = gradient.dense.empty();
    std::vector<ValueId> inputs = {variable};
    const bool rowwise = rows && is_rowwise();
    const Shape of_state = rowwise ? Shape{shape[0]} : shape;
    const Variable of = found;  // a copy: the net grows
    for (const char* const state : optimizer_.state)
      inputs.push_back(add_state(fmt::format("{}.{}", gradient.of, state), dtype, of_state, &of));
    const std::vector<ValueId> updated = inputs;
    if (rows) inputs.push_back(*net_.find_value(gradient.indices));
    const ValueId values = clipped_.at(gradient.of);
    const std::vector<ValueId> bags = rows ? bags_of(values) : std::vector<ValueId>();
    inputs.push_back(bags.empty() ? values : bags.front());
    inputs.push_back(rate_);
    if (optimizer_.counts_steps) inputs.push_back(number_);
    if (!bags.empty()) inputs.insert(inputs.end(), bags.begin() + 1, bags.end());
    const NodeId producer = net_[content_of(gradient)].producer;
    emitter_.derive_from(gradient.of + ".update", producer.valid() ? net_[producer].device : "");
    std::vector<Attribute> attributes = optimizer_.always;
    if (rowwise) attributes.push_back({"rowwise", int64_t{1}});
    for (const auto& [setting, value] : options_.settings) {
      if (setting == "rowwise") continue;
      if (rows || !optimizer_.decays_apart || setting != "weight_decay") {
        attributes.push_back({setting, value});
        continue;
      }
      ValueId& decayed = inputs[optimizer_.state.size() + 1];
      HEDDLE_TRY(decayed,
                 emitter_.emit1("heddle", "Pointwise", {decayed, variable}, {{"program", fmt::format("x0 + {:.17g} * x1", value)}}));
    }
    HEDDLE_TRY(const std::vector<ValueId> next, emitter_.emit("heddle", rows ? optimizer_.rows_type : optimizer_.type, std::move(inputs),
                                                              updated.size(), std::move(attributes)));
    for (size_t i = 0; i < updated.size(); ++i) make_next_version(net_, next[i], updated[i]);
    return options_.average > 0 && of.replica_of.empty() ? average(next[0]) : Status();
  }

  // Like torch.optim.swa_utils.get_ema_avg_fn, of the updated value; the first step is treated like any other.
  Status average(ValueId updated) {
    const Variable of = net_[net_[updated].variable];  // a copy: the net grows
    if (of.type.dtype != DType::f32 && of.type.dtype != DType::f64)
      return {Code::unsupported, fmt::format("{} is {}: an average of it would not move", quoted(of.name), to_string(of.type.dtype)),
              "leave the average out, or let the net have f32 variables"};
    const ValueId before = add_average(net_, of, emitter_.unused_name(of.name + ".average"));
    emitter_.derive_from(of.name + ".average", net_[net_[updated].producer].device);
    HEDDLE_TRY(const ValueId mean,
               emitter_.emit1("heddle", "Pointwise", {before, updated},
                              {{"program", fmt::format("{:.17g} * x0 + {:.17g} * x1", options_.average, 1 - options_.average)}}));
    HEDDLE_TRY(const ValueId next, emitter_.emit1("heddle", "Assign", {before, mean}));
    make_next_version(net_, next, before);
    return {};
  }

  Net net_;
  const ReplicaGradients gradients_;
  const Optimizer& optimizer_;
  const TrainingOptions& options_;
  Emitter emitter_;
  ValueId step_, number_, rate_;               // steps before this one; the number of this one, from 1 on
  std::map<std::string, ValueId> clipped_;     // by variable: its gradient, or the rows of it
  ValueId norm_;                               // that the net shows
  std::map<std::string, std::string> states_;  // by the name that was wanted: the name that a state has
};

struct Derived {
  Net net;
  ReplicaGradients gradients;
};

Result<Derived> derive(const Net& net, const std::shared_ptr<const RegistrySnapshot>& registry, Evaluator& evaluator,
                       const DifferentiateOptions& options, const Limits& limits) {
  HEDDLE_TRY(DerivedNet derived, differentiate(net, registry, evaluator, options, limits));
  return Derived{std::move(derived.net), {std::move(derived.gradients)}};
}

// The gradients of a net that was copied to all devices, summed over these.
Result<Derived> derive_parallel(const Net& net, const std::shared_ptr<const RegistrySnapshot>& registry, Evaluator& evaluator,
                                const TrainingOptions& options, DifferentiateOptions gradients, const Limits& limits) {
  HEDDLE_TRY(ReplicatedNet replicas, replicate(net, registry, evaluator, options.parallel, options.losses, options.symbols, limits));
  gradients.losses = replicas.losses;
  std::vector<std::vector<std::string>> trainable;
  for (const std::vector<std::string>& names : replicas.variables) {
    const auto first =
        std::find_if(replicas.net.variables.begin(), replicas.net.variables.end(), [&](const Variable& v) { return v.name == names[0]; });
    if (!first->trainable) continue;
    trainable.push_back(names);
    gradients.wanted.insert(gradients.wanted.end(), names.begin(), names.end());
    if (std::find(options.dense.begin(), options.dense.end(), names[0]) != options.dense.end())
      gradients.dense.insert(gradients.dense.end(), names.begin() + 1, names.end());
  }
  if (trainable.empty()) return Status(Code::invalid_argument, "the net has no trainable variable", "say which variables are trained");
  HEDDLE_TRY(DerivedNet derived, differentiate(replicas.net, registry, evaluator, gradients, limits));
  HEDDLE_TRY(ReplicaGradients reduced, reduce_gradients(derived, *registry, options.parallel, trainable));
  return Derived{std::move(derived.net), std::move(reduced)};
}

}  // namespace

Result<Net> training_net(const Net& net, const std::shared_ptr<const RegistrySnapshot>& registry, Evaluator& evaluator,
                         const TrainingOptions& options, const Limits& limits) {
  HEDDLE_TRY(const Optimizer* const optimizer, find_optimizer(options));
  for (const double bound : {options.clip_value, options.clip_norm})
    if (!(bound >= 0) || std::isinf(bound))
      return Status(Code::invalid_argument, fmt::format("gradients can't be clipped to {}", bound),
                    "give a positive number, or 0 for none");
  if (!(options.average >= 0 && options.average < 1))
    return Status(Code::invalid_argument, fmt::format("{} is no decay of an average", options.average), "give a number from 0 to below 1");
  for (const auto& [setting, value] : options.settings)
    if (!std::isfinite(value) || (setting == "rowwise" && value != 0 && value != 1))
      return Status(Code::invalid_argument, fmt::format("{} is {}", setting, value),
                    setting == "rowwise" ? "give 0 or 1" : "give a finite number");
  DifferentiateOptions gradients;
  gradients.losses = options.losses;
  gradients.dense = options.dense;
  gradients.symbols = options.symbols;
  HEDDLE_TRY(Derived derived, options.parallel.any() ? derive_parallel(net, registry, evaluator, options, gradients, limits)
                                                     : derive(net, registry, evaluator, gradients, limits));
  HEDDLE_TRY(Net trains, Training(std::move(derived.net), std::move(derived.gradients), registry, *optimizer, options).run());
  HEDDLE_TRY(trains, resolve(std::move(trains), registry, limits));
  disown_variables(trains);
  return trains;
}

}  // namespace heddle
