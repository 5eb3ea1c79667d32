// RandomNormal, RandomUniform, Bernoulli, Multinomial and Dropout (text/random.cuh). Which numbers come out depends on the seed, step and
// trip that a run has, on the node's stream and on the element; a ratio of
// Dropout that is none is refused where it is a constant, and gives NaN where only a run knows it.
#pragma once

#include <cstdint>

#include "generate/launch_plan.h"
#include "generate/move/move_source.h"
#include "shared/random_numbers.h"

namespace heddle::cuda {

class DrawLaunches : public Launches {
 public:
  operators::Seed seed;

  plugin::Status choose(const Operands& operands, bool varies, KernelSource* source) final;
  plugin::Status plan(const Operands& operands, LaunchPlan* plan) const final;

 protected:
  // Types and constants.
  virtual void describe(const Operands& operands, KernelText* text) const = 0;
  // In choose, of what may be read there.
  virtual plugin::Status check(const Operands&) const { return {}; }
  // Elements that a block of the generator has numbers for.
  virtual int64_t numbers_per_block(const Operands&) const { return 4; }
  // How many blocks of threads there is work for; what they need of scratch is taken.
  virtual int64_t divide(const Operands& operands, LaunchPlan* plan) const;
  // Those of addresses and sizes.
  virtual void parameters(const Operands& operands, ParameterWriter& writer) const = 0;
};

// RandomNormal, RandomUniform and their -Like forms.
class NumbersLaunches final : public DrawLaunches {
 public:
  operators::RandomNumbers numbers;

 private:
  int64_t numbers_per_block(const Operands& operands) const override { return operands.output(0)->dtype == HEDDLE_F64 ? 2 : 4; }
  void describe(const Operands& operands, KernelText* text) const override;
  void parameters(const Operands& operands, ParameterWriter& writer) const override;
};

class BernoulliLaunches final : public DrawLaunches {
  void describe(const Operands& operands, KernelText* text) const override;
  void parameters(const Operands& operands, ParameterWriter& writer) const override;
};

class MultinomialLaunches final : public DrawLaunches {
  void describe(const Operands& operands, KernelText* text) const override;
  int64_t divide(const Operands& operands, LaunchPlan* plan) const override;
  void parameters(const Operands& operands, ParameterWriter& writer) const override;
};

class DropoutLaunches final : public DrawLaunches {
  void describe(const Operands& operands, KernelText* text) const override;
  plugin::Status check(const Operands& operands) const override;
  void parameters(const Operands& operands, ParameterWriter& writer) const override;
};

}  // namespace heddle::cuda
