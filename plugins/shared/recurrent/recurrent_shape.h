// The shapes of RNN, GRU and LSTM: extents, offsets in their tensors, and the order of their inputs. Pure.
#pragma once

#include <cstdint>

#include "shared/dims.h"
#include "shared/operator_api.h"

namespace heddle::operators {

// Inputs that all three share; LSTM's initial_c and P follow them.
enum RecurrentPort : uint32_t { port_x, port_w, port_r, port_b, port_lengths, port_h, port_c, port_p };

// The last output of RNN, GRU and LSTM, kept for their gradients: for each step the arguments of the gates' functions and, for GRU, the
// factor of its hidden gate's R or, with linear_before_reset, that product. [time, batch, directions * kept_gates * hidden].
constexpr int kept_gates(int gates) {
  return gates == 3 ? 4 : gates;
}
constexpr uint32_t sums_port(int gates) {
  return gates == 4 ? 3 : 2;
}

// Extents, and offsets of (t, b) in a tensor of [time, batch, width] or, with layout 1, [batch, time, width]; likewise for the others.
struct RecurrentShape {
  int64_t times = 0, batches = 0, inputs = 0, hidden = 0;
  int directions = 1;
  bool batch_first = false;
  int64_t x(int64_t t, int64_t b) const { return (batch_first ? b * times + t : t * batches + b) * inputs; }
  int64_t y(int64_t t, int64_t d, int64_t b) const {
    return (batch_first ? (b * times + t) * directions + d : (t * directions + d) * batches + b) * hidden;
  }
  // The row of (t, b) and a direction in a tensor of [time, batch, directions * width].
  int64_t row(int64_t t, int64_t d, int64_t b) const { return (batch_first ? b * times + t : t * batches + b) * directions + d; }
  int64_t state(int64_t d, int64_t b) const { return (batch_first ? b * directions + d : d * batches + b) * hidden; }
};

// Reads the shape from X and W, whose rows have `gates` gates, and the attributes direction, layout and hidden_size.
Status read_recurrent_shape(const Attributes& attributes, Dims x, Dims w, int gates, RecurrentShape* shape);
// The same from the kept sums (with layout 1 batch before time) and R.
Status read_gates_shape(const Attributes& attributes, Dims sums, Dims r, int gates, RecurrentShape* shape);
// Sets the extents of time and batch, which a run determines, from X.
void set_sequences(Dims x, RecurrentShape* shape);

}  // namespace heddle::operators
