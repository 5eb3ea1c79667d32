// The activation functions that RNN, GRU and LSTM name in their attributes. Pure.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "shared/operator_api.h"

namespace heddle::operators {

struct RecurrentActivation {
  enum class Kind : uint8_t {
    relu,
    tanh,
    sigmoid,
    affine,
    leaky_relu,
    thresholded_relu,
    scaled_tanh,
    hard_sigmoid,
    elu,
    softsign,
    softplus
  };
  Kind kind = Kind::tanh;
  double alpha = 0, beta = 0;

  template <class T>
  T operator()(T x) const {
    const T a = static_cast<T>(alpha), b = static_cast<T>(beta);
    switch (kind) {
      case Kind::relu:
        return x > 0 ? x : T(0);
      case Kind::tanh:
        return std::tanh(x);
      case Kind::sigmoid:
        return 1 / (1 + std::exp(-x));
      case Kind::affine:
        return a * x + b;
      case Kind::leaky_relu:
        return x < 0 ? a * x : x;
      case Kind::thresholded_relu:
        return x > a ? x : T(0);
      case Kind::scaled_tanh:
        return a * std::tanh(b * x);
      case Kind::hard_sigmoid:
        return std::min(std::max(a * x + b, T(0)), T(1));
      case Kind::elu:
        return x < 0 ? a * std::expm1(x) : x;
      case Kind::softsign:
        return x / (1 + std::fabs(x));
      default:
        return x > 20 ? x : std::log1p(std::exp(x));
    }
  }

  // The derivative at x; at a corner PyTorch's choice.
  template <class T>
  T slope(T x) const {
    const T a = static_cast<T>(alpha), b = static_cast<T>(beta);
    switch (kind) {
      case Kind::relu:
        return x > 0 ? T(1) : T(0);
      case Kind::tanh:
        return slope_of_tanh(x);
      case Kind::sigmoid:
        return slope_of_sigmoid(x);
      case Kind::affine:
        return a;
      case Kind::leaky_relu:
        return x > 0 ? T(1) : a;
      case Kind::thresholded_relu:
        return x > a ? T(1) : T(0);
      case Kind::scaled_tanh:
        return a * b * slope_of_tanh(b * x);
      case Kind::hard_sigmoid:
        return a * x + b > 0 && a * x + b < 1 ? a : T(0);
      case Kind::elu:
        return x > 0 ? T(1) : a * std::exp(x);
      case Kind::softsign:
        return 1 / ((1 + std::fabs(x)) * (1 + std::fabs(x)));
      default:
        return x > 20 ? T(1) : 1 / (1 + std::exp(-x));
    }
  }

 private:
  template <class T>
  static T slope_of_tanh(T x) {
    const T value = std::tanh(x);
    return (1 - value) * (1 + value);
  }
  template <class T>
  static T slope_of_sigmoid(T x) {
    const T small = std::exp(-std::fabs(x));
    return small / ((1 + small) * (1 + small));
  }
};

// Reads the functions of all directions, `defaults` for each when none are named; alphas and betas are taken in order by the functions that
// have them.
Status parse_activations(const Attributes& attributes, int directions, const std::vector<RecurrentActivation::Kind>& defaults,
                         std::vector<RecurrentActivation>* activations);

}  // namespace heddle::operators
