// What RNN, GRU and LSTM are computed of: extents, where their tensors keep what, and in which order inputs stand. Pure.
#pragma once

#include <cstdint>

#include "shared/dims.h"
#include "shared/operator_api.h"

namespace heddle::operators {

// Inputs that all three share; LSTM has initial_c and P behind them.
enum RecurrentPort : uint32_t { port_x, port_w, port_r, port_b, port_lengths, port_h, port_c, port_p };

// What RNN, GRU and LSTM keep for their gradients, their last output: for each step what the gates' functions are applied to and, of GRU,
// what its hidden gate's R is multiplied with or, with linear_before_reset, that product. [time, batch, directions * kept_gates * hidden].
constexpr int kept_gates(int gates) {
  return gates == 3 ? 4 : gates;
}
constexpr uint32_t sums_port(int gates) {
  return gates == 4 ? 3 : 2;
}

// Where a tensor of [time, batch, width] or, with layout 1, [batch, time, width] keeps (t, b); and so on for the others.
struct RecurrentShape {
  int64_t times = 0, batches = 0, inputs = 0, hidden = 0;
  int directions = 1;
  bool batch_first = false;
  int64_t x(int64_t t, int64_t b) const { return (batch_first ? b * times + t : t * batches + b) * inputs; }
  int64_t y(int64_t t, int64_t d, int64_t b) const {
    return (batch_first ? (b * times + t) * directions + d : (t * directions + d) * batches + b) * hidden;
  }
  // Row of a tensor of [time, batch, directions * width], of (t, b) and a direction.
  int64_t row(int64_t t, int64_t d, int64_t b) const { return (batch_first ? b * times + t : t * batches + b) * directions + d; }
  int64_t state(int64_t d, int64_t b) const { return (batch_first ? b * directions + d : d * batches + b) * hidden; }
};

// From X and W, whose rows are of so many gates, and the attributes direction, layout and hidden_size.
Status read_recurrent_shape(const Attributes& attributes, Dims x, Dims w, int gates, RecurrentShape* shape);
// The same from what they keep (with layout 1 batch before time) and R.
Status read_gates_shape(const Attributes& attributes, Dims sums, Dims r, int gates, RecurrentShape* shape);
// What a run has of X.
void set_sequences(Dims x, RecurrentShape* shape);

}  // namespace heddle::operators
