// Types and functions for the references of RNN, GRU and LSTM and of their gradients.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "conformance/reference.h"

namespace heddle::conformance {

// A number and the magnitude that its rounding error so far is relative to: each operation rounds once, and errors propagate to all results
// made of it.
struct Tracked {
  Number value = 0, error = 0;
};
inline Tracked operator+(const Tracked& a, const Tracked& b) {
  const Number value = a.value + b.value;
  return {value, a.error + b.error + std::fabs(value)};
}
inline Tracked operator*(const Tracked& a, const Tracked& b) {
  const Number value = a.value * b.value;
  return {value, std::fabs(a.value) * b.error + std::fabs(b.value) * a.error + std::fabs(value)};
}

struct Activation {
  std::string name;
  Number alpha = 0, beta = 0;

  Number operator()(Number x) const {
    if (name == "Relu") return std::max<Number>(x, 0);
    if (name == "Tanh") return std::tanh(x);
    if (name == "Sigmoid") return 1 / (1 + std::exp(-x));
    if (name == "Affine") return alpha * x + beta;
    if (name == "LeakyRelu") return x >= 0 ? x : alpha * x;
    if (name == "ThresholdedRelu") return x >= alpha ? x : 0;
    if (name == "ScaledTanh") return alpha * std::tanh(beta * x);
    if (name == "HardSigmoid") return std::clamp<Number>(alpha * x + beta, 0, 1);
    if (name == "Elu") return x >= 0 ? x : alpha * std::expm1(x);
    if (name == "Softsign") return x / (1 + std::fabs(x));
    return std::log1p(std::exp(x));  // Softplus
  }
  Number slope(Number x) const {
    const auto of_tanh = [](Number at) { return 1 / (std::cosh(at) * std::cosh(at)); };
    if (name == "Relu") return x > 0 ? 1 : 0;
    if (name == "Tanh") return of_tanh(x);
    if (name == "Sigmoid") return of_tanh(x / 2) / 4;
    if (name == "Affine") return alpha;
    if (name == "LeakyRelu") return x > 0 ? 1 : alpha;
    if (name == "ThresholdedRelu") return x > alpha ? 1 : 0;
    if (name == "ScaledTanh") return alpha * beta * of_tanh(beta * x);
    if (name == "HardSigmoid") return alpha * x + beta > 0 && alpha * x + beta < 1 ? alpha : 0;
    if (name == "Elu") return x > 0 ? 1 : alpha * std::exp(x);
    if (name == "Softsign") return 1 / ((1 + std::fabs(x)) * (1 + std::fabs(x)));
    return 1 / (1 + std::exp(-x));  // Softplus
  }
};

// Returns the activations of all directions. The functions that have alphas and betas take them in order.
std::vector<Activation> activations_of(const Call& call, const std::vector<std::string>& defaults, int64_t directions);

}  // namespace heddle::conformance
