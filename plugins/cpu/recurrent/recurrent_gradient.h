// The gradients of RNN, GRU and LSTM.
//
// The forward operators keep the arguments of their gates' functions if a gradient needs them. heddle::RnnGradient, GruGradient or
// LstmGradient goes back through the steps, and computes the gradient of these arguments and the states before each step: products of these
// are the gradients of X, W and R.
#pragma once

#include "support/gradients.h"

namespace heddle::cpu {

// Inputs and outputs of the operators; the first of both exist for all cells.
enum RecurrentGradientInput : uint32_t { in_sums, in_r, in_lengths, in_h, in_dy, in_dy_h, in_arriving, in_c, in_dy_c, in_p };
enum RecurrentGradientOutput : uint32_t { out_dsums, out_states, out_dh, out_hidden_part, out_dc = 3, out_dp };

plugin::Status rnn_gradient(GradientContext& g);
plugin::Status gru_gradient(GradientContext& g);
plugin::Status lstm_gradient(GradientContext& g);

}  // namespace heddle::cpu
