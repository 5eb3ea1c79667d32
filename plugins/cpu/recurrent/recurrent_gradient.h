// The gradients of RNN, GRU and LSTM.
//
// X comes to the gates of all steps by one product. heddle::RnnGradient, GruGradient or LstmGradient goes through the steps forward and
// back, and makes the gradient of what X came to and the states before each step: products of these are the gradients of X, W and R. The
// forward operators keep nothing for it.
#pragma once

#include "support/gradients.h"

namespace heddle::cpu {

plugin::Status rnn_gradient(GradientContext& g);
plugin::Status gru_gradient(GradientContext& g);
plugin::Status lstm_gradient(GradientContext& g);

}  // namespace heddle::cpu
