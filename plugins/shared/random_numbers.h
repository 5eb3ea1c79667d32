// Parameters of random operators from their nodes: the seed, and which numbers are drawn. Pure.
#pragma once

#include <cstdint>

#include "heddle/op/philox.h"
#include "shared/operator_api.h"

namespace heddle::operators {

// A node's seed: that of its attribute if given, else the run's.
class Seed {
 public:
  Seed() = default;
  explicit Seed(uint64_t own) : own_(true), value_(own) {}
  // Reads Dropout's seed.
  static Seed from_integer(const Attributes& attributes);
  // Reads the seed of ONNX's other random operators: its bits as f64 are used.
  static Seed from_float(const Attributes& attributes);
  bool is_own() const { return own_; }
  uint64_t own() const { return value_; }
  uint64_t in(const heddle_run_state& state) const { return own_ ? value_ : state.seed; }
  // Requires that the state is readable: on the host.
  Philox generator(const RunContext& context) const {
    const heddle_run_state& state = *context.run_state;
    return {in(state), context.random_stream, state.step, state.trip};
  }

 private:
  bool own_ = false;
  uint64_t value_ = 0;
};

// offset + factor * x, where x is normal, or uniform in [0, 1).
struct RandomNumbers {
  bool normal = false;
  double offset = 0, factor = 1;
  double bound = 0;  // uniform numbers are below it; nan: none
};
// Reads the numbers of RandomNormal, RandomUniform and their -Like forms.
RandomNumbers random_numbers(const Attributes& attributes, bool normal);

// Errors: Dropout's ratio is out of range.
Status check_dropout_ratio(double ratio);

}  // namespace heddle::operators
