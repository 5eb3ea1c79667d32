// Implements RNN, GRU and LSTM as launches between products of matrices (text/recurrent.cuh): the layout of scratch, and the kernels before
// the first step, between the two products of a step (GRU) and after them; or one kernel that does all steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "generate/kernel_text.h"
#include "heddle/op.h"
#include "shared/recurrent/recurrent_activation.h"
#include "shared/recurrent/recurrent_shape.h"

namespace heddle::cuda {

enum class RecurrentCell : uint8_t { rnn, gru, lstm };

class RecurrentLaunches {
 public:
  RecurrentCell cell = RecurrentCell::rnn;  // set before choose()
  operators::RecurrentShape shape;
  bool backward = false;  // with one direction
  bool variant = false;   // GRU: linear_before_reset; LSTM: input_forget
  double clip = 0;        // 0: none
  std::vector<operators::RecurrentActivation> activations;

  int gates() const { return cell == RecurrentCell::rnn ? 1 : cell == RecurrentCell::gru ? 3 : 4; }
  // Returns the number of functions of a direction.
  size_t functions() const { return cell == RecurrentCell::rnn ? 1 : cell == RecurrentCell::gru ? 2 : 3; }
  // Returns true if a step has a second product, for GRU's hidden gate, with the state that was reset.
  bool resets_before() const { return cell == RecurrentCell::gru && !variant; }

  // Returns true if one launch does all steps: R is so small that a block reads it in each.
  bool walks() const;

  // The entries of the source, as Launch::kernel numbers them; `reset` only if resets_before(). If walks() there is a single one, `walk`.
  enum Kernel : uint32_t { begin, step, reset };
  static constexpr Kernel walk = begin;
  void choose(const Operands& operands, KernelSource* source);
  // Returns the launch for time step 0; at_time() gives that of another step.
  Launch launch(Kernel kernel) const;
  static void at_time(int64_t time, Launch* launch) { launch->words[0] = time; }

  // The scratch, in the values' dtype: [directions, rows of X, gates * hidden], [directions, batches, gates * hidden], and states as
  // [directions, batches, hidden]. Offsets in bytes, valid after choose().
  struct Scratch {
    uint64_t projections = 0, products = 0, reset = 0, h = 0, c = 0, bytes = 0;
  };
  const Scratch& scratch() const { return scratch_; }

 private:
  void place();
  void parameters(ParameterWriter& writer) const;
  void members(KernelText* text) const;
  void activation_functions(KernelText* text) const;

  heddle_dtype dtype_ = HEDDLE_F32;
  bool wide_ = false, y_ = false, y_h_ = false, y_c_ = false, sums_ = false;
  bool has_[operators::port_p + 1] = {};
  Scratch scratch_;
};

}  // namespace heddle::cuda
