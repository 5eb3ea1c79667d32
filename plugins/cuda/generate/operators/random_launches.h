// Implements RandomNormal, RandomUniform, Bernoulli, Multinomial and Dropout (text/random.cuh). The numbers depend on the seed, step and
// trip of a run, on the node's stream and on the element. An invalid ratio of Dropout is refused if it is a constant, and gives NaN if it
// is known only during the run.
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
  // Adds types and constants.
  virtual void describe(const Operands& operands, KernelText* text) const = 0;
  // Checks in choose() the operands that may be read there.
  virtual plugin::Status check(const Operands&) const { return {}; }
  // Returns the number of elements for which one block of the generator has numbers.
  virtual int64_t numbers_per_block(const Operands&) const { return 4; }
  // Returns for how many blocks of threads there is work, and takes the scratch that they need.
  virtual int64_t divide(const Operands& operands, LaunchPlan* plan) const;
  // Writes the addresses and sizes.
  virtual void parameters(const Operands& operands, ParameterWriter& writer) const = 0;
};

// Implements RandomNormal, RandomUniform and their -Like forms.
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
