// One step of RNN, GRU and LSTM, forward and back. `forward` leaves the sums in the gates, before their activations, in `gates` and takes
// h (and c) to the next step; `back` turns these sums into their gradients, and the gradient of h (and c) behind the step into that before.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "recurrent/recurrent_rows.h"
#include "shared/recurrent/recurrent_activation.h"
#include "shared/tile_cap.h"

namespace heddle::cpu {

// One direction's weights and functions.
template <class T>
struct GradientCell {
  const operators::RecurrentActivation* activations;
  const T *r, *bias, *peepholes;  // the last two may be null
  int64_t hidden, rows;           // rows: gates * hidden
  T clip;                         // 0: none
  bool variant;                   // LSTM: input_forget; GRU: linear_before_reset
  operators::CancellationPoll* poll;

  // Whether to leave the rows of a step that are left: before each.
  bool stops() const { return poll->stops(hidden); }
  T from_input(const T* xw, int64_t row) const { return xw[row] + (bias ? bias[row] : T(0)); }
  T from_state(const T* state, int64_t row) const { return dot(r + row * hidden, state, hidden) + (bias ? bias[rows + row] : T(0)); }
  T peephole(int64_t row) const { return peepholes ? peepholes[row] : T(0); }
  T activated(int function, T sum) const { return activations[function](clip > 0 ? std::min(std::max(sum, -clip), clip) : sum); }
  // Of `activated`; at a bound 0, as in PyTorch.
  T slope(int function, T sum) const { return clip > 0 && (sum <= -clip || sum >= clip) ? T(0) : activations[function].slope(sum); }
  // sums += R' of rows [first, last) times `gradient`, which begins at `first`.
  void add_to_state(const T* gradient, int64_t first, int64_t last, T* sums) const {
    int64_t row = first;
    for (; row + 4 <= last && !poll->stops(4 * hidden); row += 4) add_four_rows(gradient + (row - first), r + row * hidden, sums, hidden);
    for (; row < last && !stops(); ++row) add_row(gradient[row - first], r + row * hidden, sums, hidden);
  }
};

// What a unit has at one step.
template <class T>
struct GradientStep {
  T* gates;        // the sums, then their gradients
  T* before;       // h before the step
  T* hidden_part;  // GRU: see GruGradientCell
  const T* c;      // LSTM: before the step
  T* next_c;       // and behind it
};

// What goes back along the steps, and what is summed over them.
template <class T>
struct Returning {
  T *dh, *dc;    // of the state behind the step; then of that before
  T* dp;         // LSTM: of the peepholes
  T* workspace;  // `hidden` elements
};

struct RnnGradientCell {
  static constexpr int gates = 1;
  static constexpr bool has_hidden_part = false, has_cell = false;
  static constexpr const char* variant = nullptr;
  static std::vector<operators::RecurrentActivation::Kind> activations() { return {operators::RecurrentActivation::Kind::tanh}; }

  template <class T>
  static void forward(const GradientCell<T>& cell, const T* xw, const GradientStep<T>& at, T* h) {
    for (int64_t j = 0; j < cell.hidden && !cell.stops(); ++j) at.gates[j] = cell.from_input(xw, j) + cell.from_state(at.before, j);
    for (int64_t j = 0; j < cell.hidden; ++j) h[j] = cell.activated(0, at.gates[j]);
  }
  template <class T>
  static void back(const GradientCell<T>& cell, const GradientStep<T>& at, const Returning<T>& to) {
    for (int64_t j = 0; j < cell.hidden; ++j) at.gates[j] = to.dh[j] * cell.slope(0, at.gates[j]);
    std::fill_n(to.dh, cell.hidden, T(0));
    cell.add_to_state(at.gates, 0, cell.rows, to.dh);
  }
};

// The hidden part is what the product with the hidden gate's R is of: with linear_before_reset the gradient of that product, which the
// reset gate scales, else the state that was scaled by it. Between forward and back it is, with linear_before_reset, that product.
struct GruGradientCell {
  static constexpr int gates = 3;  // update z, reset r, hidden
  static constexpr bool has_hidden_part = true, has_cell = false;
  static constexpr const char* variant = "linear_before_reset";
  static std::vector<operators::RecurrentActivation::Kind> activations() {
    return {operators::RecurrentActivation::Kind::sigmoid, operators::RecurrentActivation::Kind::tanh};
  }

  template <class T>
  static void forward(const GradientCell<T>& cell, const T* xw, const GradientStep<T>& at, T* h) {
    const int64_t n = cell.hidden;
    T *const z = at.gates, *const r = z + n, *const next = r + n;
    for (int64_t j = 0; j < 2 * n && !cell.stops(); ++j) z[j] = cell.from_input(xw, j) + cell.from_state(at.before, j);
    for (int64_t j = 0; j < n && !cell.variant; ++j) at.hidden_part[j] = cell.activated(0, r[j]) * at.before[j];
    for (int64_t j = 0; j < n && !cell.stops(); ++j) {
      T product;
      if (cell.variant)
        product = cell.activated(0, r[j]) * (at.hidden_part[j] = cell.from_state(at.before, 2 * n + j));
      else
        product = cell.from_state(at.hidden_part, 2 * n + j);
      next[j] = cell.from_input(xw, 2 * n + j) + product;
    }
    for (int64_t j = 0; j < n; ++j) {
      const T update = cell.activated(0, z[j]);
      h[j] = (1 - update) * cell.activated(1, next[j]) + update * at.before[j];
    }
  }
  template <class T>
  static void back(const GradientCell<T>& cell, const GradientStep<T>& at, const Returning<T>& to) {
    const int64_t n = cell.hidden;
    T *const z = at.gates, *const r = z + n, *const next = r + n, *const scaled = to.workspace;
    for (int64_t j = 0; j < n; ++j) {
      const T update = cell.activated(0, z[j]), proposed = cell.activated(1, next[j]);
      z[j] = to.dh[j] * (at.before[j] - proposed) * cell.slope(0, z[j]);
      next[j] = to.dh[j] * (1 - update) * cell.slope(1, next[j]);
      to.dh[j] *= update;
    }
    // The gradient of the scaled state.
    std::fill_n(scaled, n, T(0));
    if (!cell.variant) cell.add_to_state(next, 2 * n, 3 * n, scaled);
    for (int64_t j = 0; j < n; ++j) {
      const T reset = cell.activated(0, r[j]), slope = cell.slope(0, r[j]);
      if (cell.variant) {
        r[j] = next[j] * at.hidden_part[j] * slope;
        at.hidden_part[j] = next[j] * reset;
      } else {
        r[j] = scaled[j] * at.before[j] * slope;
        to.dh[j] += scaled[j] * reset;
      }
    }
    cell.add_to_state(z, 0, 2 * n, to.dh);
    if (cell.variant) cell.add_to_state(at.hidden_part, 2 * n, 3 * n, to.dh);
  }
};

struct LstmGradientCell {
  static constexpr int gates = 4;  // input, output, forget, cell
  static constexpr bool has_hidden_part = false, has_cell = true;
  static constexpr const char* variant = "input_forget";
  static std::vector<operators::RecurrentActivation::Kind> activations() {
    using Kind = operators::RecurrentActivation::Kind;
    return {Kind::sigmoid, Kind::tanh, Kind::tanh};
  }

  template <class T>
  static void forward(const GradientCell<T>& cell, const T* xw, const GradientStep<T>& at, T* h) {
    const int64_t n = cell.hidden;
    T* const gate = at.gates;
    for (int64_t j = 0; j < 4 * n && !cell.stops(); ++j) gate[j] = cell.from_input(xw, j) + cell.from_state(at.before, j);
    for (int64_t j = 0; j < n; ++j) {
      gate[j] += cell.peephole(j) * at.c[j];
      gate[2 * n + j] += cell.peephole(2 * n + j) * at.c[j];
      const T in = cell.activated(0, gate[j]), forget = cell.variant ? 1 - in : cell.activated(0, gate[2 * n + j]);
      at.next_c[j] = forget * at.c[j] + in * cell.activated(1, gate[3 * n + j]);
      gate[n + j] += cell.peephole(n + j) * at.next_c[j];
      h[j] = cell.activated(0, gate[n + j]) * cell.activations[2](at.next_c[j]);
    }
  }
  template <class T>
  static void back(const GradientCell<T>& cell, const GradientStep<T>& at, const Returning<T>& to) {
    const int64_t n = cell.hidden;
    for (int64_t j = 0; j < n; ++j) {
      T &gate_in = at.gates[j], &gate_out = at.gates[n + j], &gate_forget = at.gates[2 * n + j], &gate_cell = at.gates[3 * n + j];
      const T in = cell.activated(0, gate_in), forget = cell.variant ? 1 - in : cell.activated(0, gate_forget);
      const T proposed = cell.activated(1, gate_cell), out = cell.activated(0, gate_out);
      gate_out = to.dh[j] * cell.activations[2](at.next_c[j]) * cell.slope(0, gate_out);
      const T dc = to.dc[j] + to.dh[j] * out * cell.activations[2].slope(at.next_c[j]) + cell.peephole(n + j) * gate_out;
      const T of_in = cell.variant ? proposed - at.c[j] : proposed;
      gate_in = dc * of_in * cell.slope(0, gate_in);
      gate_forget = cell.variant ? T(0) : dc * at.c[j] * cell.slope(0, gate_forget);
      gate_cell = dc * in * cell.slope(1, gate_cell);
      to.dc[j] = dc * forget + cell.peephole(j) * gate_in + cell.peephole(2 * n + j) * gate_forget;
      to.dp[j] += gate_in * at.c[j];
      to.dp[n + j] += gate_out * at.next_c[j];
      to.dp[2 * n + j] += gate_forget * at.c[j];
    }
    std::fill_n(to.dh, n, T(0));
    cell.add_to_state(at.gates, 0, cell.rows, to.dh);
  }
};

}  // namespace heddle::cpu
