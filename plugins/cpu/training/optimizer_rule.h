// An optimizer's rule, with the attributes that its operators have, as PyTorch's torch.optim defines them.
#pragma once

#include <cmath>
#include <string>

#include "shared/dtype_dispatch.h"
#include "shared/input_shapes.h"
#include "support/cpu_api.h"
#include "training/optimizer_loops.h"

namespace heddle::cpu {

// The properties of a rule: its states, and its attributes with their defaults.
struct OptimizerSchema {
  UpdateRule rule;
  const char* states[max_update_states];  // null: no such state
  const char* next_states[max_update_states];
  double epsilon = -1;  // -1: the rule has none

  constexpr uint32_t state_count() const { return states[1] ? 2 : states[0] ? 1 : 0; }
  constexpr bool has_step() const { return rule == update_adam; }
};
constexpr OptimizerSchema plain_rule = {update_plain, {nullptr, nullptr}, {nullptr, nullptr}};
constexpr OptimizerSchema momentum_rule = {update_momentum, {"velocity", nullptr}, {"new_velocity", nullptr}};
constexpr OptimizerSchema adagrad_rule = {update_adagrad, {"squares", nullptr}, {"new_squares", nullptr}, 1e-10};
constexpr OptimizerSchema rms_prop_rule = {update_rms_prop, {"squares", nullptr}, {"new_squares", nullptr}, 1e-8};
constexpr OptimizerSchema adam_rule = {update_adam, {"mean", "squares"}, {"new_mean", "new_squares"}, 1e-8};

inline void declare_attributes(Op& op, const OptimizerSchema& schema) {
  op.attribute("weight_decay", 0.0);
  if (schema.epsilon >= 0) op.attribute("epsilon", schema.epsilon);
  if (schema.rule == update_momentum) op.attribute("momentum", 0.9).attribute("nesterov", 0);
  if (schema.rule == update_rms_prop) op.attribute("alpha", 0.99);
  if (schema.rule == update_adam) op.attribute("beta1", 0.9).attribute("beta2", 0.999).attribute("decoupled_weight_decay", 0);
}

class OptimizerRule {
 public:
  Status create(const Attributes& attributes, UpdateRule rule) {
    rule_ = rule;
    HEDDLE_PLUGIN_CHECK(not_negative(attributes, "weight_decay", &weight_decay_));
    if (attributes.declares("epsilon")) HEDDLE_PLUGIN_CHECK(not_negative(attributes, "epsilon", &epsilon_));
    if (rule == update_momentum) HEDDLE_PLUGIN_CHECK(not_negative(attributes, "momentum", &momentum_));
    if (rule == update_momentum) nesterov_ = attributes.i("nesterov") != 0;
    if (rule == update_rms_prop) HEDDLE_PLUGIN_CHECK(fraction(attributes, "alpha", &keep_));
    if (rule != update_adam) return {};
    HEDDLE_PLUGIN_CHECK(fraction(attributes, "beta1", &momentum_));
    HEDDLE_PLUGIN_CHECK(fraction(attributes, "beta2", &keep_));
    decoupled_ = attributes.i("decoupled_weight_decay") != 0;
    return {};
  }
  // Computes the numbers of one run. `step`: null where the rule has none. `by_rows`: as in torch.optim.SparseAdam, whose epsilon is not
  // corrected with the squares.
  template <class T>
  Status numbers(double rate, const heddle_tensor* step, bool by_rows, UpdateNumbers<T>* numbers) const {
    double corrected = rate, root = 1;
    if (step) {
      const int64_t number = integer_at(*step, 0);
      if (number < 1) return invalid("step is " + std::to_string(number) + ", expected the number of this update, from 1 on");
      const auto power = static_cast<double>(number);
      root = std::sqrt(rest_of_power(keep_, power));
      corrected = rate / rest_of_power(momentum_, power);
      if (by_rows) corrected *= root, root = 1;
    }
    const bool shrinks = decoupled_ && weight_decay_ != 0;
    *numbers = {static_cast<T>(corrected),
                static_cast<T>(shrinks ? 0 : weight_decay_),
                static_cast<T>(shrinks ? 1 - rate * weight_decay_ : 1),
                static_cast<T>(momentum_),
                static_cast<T>(1 - momentum_),
                static_cast<T>(keep_),
                static_cast<T>(1 - keep_),
                static_cast<T>(root),
                static_cast<T>(epsilon_),
                nesterov_};
    return {};
  }
  UpdateLoop<float> loop(float) const { return isa_optimizers().f32[rule_]; }
  UpdateLoop<double> loop(double) const { return isa_optimizers().f64[rule_]; }
  UpdateRowsLoop<float> rows_loop(float) const { return isa_optimizers().f32_rows[rule_]; }
  UpdateRowsLoop<double> rows_loop(double) const { return isa_optimizers().f64_rows[rule_]; }

 private:
  // 1 - base^exponent, which loses no precision where the power is close to 1.
  static double rest_of_power(double base, double exponent) { return -std::expm1(exponent * std::log(base)); }
  static Status not_negative(const Attributes& attributes, const char* name, double* value) {
    *value = attributes.f(name);
    if (*value >= 0 && std::isfinite(*value)) return {};
    return invalid(std::string(name) + " is " + std::to_string(*value) + ", expected at least 0");
  }
  static Status fraction(const Attributes& attributes, const char* name, double* value) {
    *value = attributes.f(name);
    if (*value >= 0 && *value < 1) return {};
    return invalid(std::string(name) + " is " + std::to_string(*value) + ", expected at least 0 and less than 1");
  }

  UpdateRule rule_ = update_plain;
  double weight_decay_ = 0, epsilon_ = 0, momentum_ = 0, keep_ = 0;
  bool nesterov_ = false, decoupled_ = false;
};

// Checks the attributes, so that a net with attributes that every run would reject is refused when it is built, and the scalars: the
// learning rate, which is input `rate`, followed by the number of the update if the rule has it.
inline Status check_rule(const InferContext& context, uint32_t rate, const OptimizerSchema& schema) {
  OptimizerRule rule;
  HEDDLE_PLUGIN_CHECK(rule.create(context.attributes, schema.rule));
  for (uint32_t i = rate; i <= rate + (schema.has_step() ? 1 : 0); ++i) HEDDLE_PLUGIN_CHECK(expect_scalar(context, i));
  return {};
}

}  // namespace heddle::cpu
