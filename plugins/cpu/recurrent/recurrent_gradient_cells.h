// One backward step of RNN, GRU and LSTM for several batch entries: it computes the gradients of the gates' sums (recurrent_cells.h), and
// turns the gradient of h (and c) after the step into that before it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "recurrent/recurrent_cells.h"

namespace heddle::cpu {

// The values of a batch entry at a step. Rows of scratch have `width` elements for each gate or for the state, rows of tensors `hidden`.
template <class T>
struct GradientEntry {
  const T* sums;        // of a tensor: the arguments of the gates' functions
  T* gates;             // of a tensor: their gradients; at entry the gradients from other uses
  const T* before;      // of a tensor: h before the step
  T* hidden_part;       // of a tensor; GRU: see GruGradientCell
  const T *c, *next_c;  // LSTM: before the step and after it
  T *dh, *dc;           // of the state after the step; then of the state before it
  T* dp;                // of a tensor; LSTM: of the peepholes, summed over the steps
  T *values, *slopes,
      *part;  // values and derivatives of the gates' functions; GRU: the gradient of the hidden part; at entry that from other uses
};
template <class T>
using GradientEntries = std::array<GradientEntry<T>, max_entries>;

// One direction's weights and functions: `r` of the cell is not used.
template <class T>
struct GradientCell : Cell<T> {
  const T* rows;  // panels whose columns are R's columns

  // to = or += rows [first, last) of all gates' R, transposed, times `from`, whose rows in the tensor are read from element `from_first`
  // on.
  void multiply_rows(const GradientEntries<T>& entries, int64_t count, int64_t gates, T* GradientEntry<T>::*from, int64_t from_first,
                     int64_t first, int64_t last, T* GradientEntry<T>::*to, bool adds) const {
    std::array<const T*, max_entries> a;
    std::array<T*, max_entries> y;
    for (int64_t i = 0; i < count; ++i) {
      a[static_cast<size_t>(i)] = entries[static_cast<size_t>(i)].*from;
      y[static_cast<size_t>(i)] = entries[static_cast<size_t>(i)].*to;
    }
    PanelProduct<T> product = {a.data(), y.data(), rows, count, this->width, last - first, gates * this->hidden};
    product.a_first = from_first;
    product.first_row = first;
    product.adds = adds;
    multiply(product, *this->poll);
  }
  // Computes the values and derivatives of gates [first, last) by function k.
  void evaluate(const GradientEntry<T>& at, int k, int64_t first, int64_t last) const {
    for (int64_t gate = first; gate < last; ++gate) {
      T* const row = at.values + gate * this->width;
      std::copy_n(at.sums + gate * this->hidden, this->hidden, row);
      std::fill(row + this->hidden, row + this->width, T(0));
    }
    activate_with_slopes(this->activations[k], this->clip, at.values + first * this->width, at.slopes + first * this->width,
                         (last - first) * this->width);
  }
};

struct RnnGradientCell : RnnCell {
  template <class T>
  static void back(const GradientCell<T>& cell, const GradientEntries<T>& entries, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const GradientEntry<T>& at = entries[static_cast<size_t>(i)];
      cell.evaluate(at, 0, 0, 1);
      for (int64_t j = 0; j < cell.hidden; ++j) at.gates[j] += at.dh[j] * at.slopes[j];
    }
    cell.multiply_rows(entries, count, gates, &GradientEntry<T>::gates, 0, 0, cell.hidden, &GradientEntry<T>::dh, false);
  }
};

// The hidden part belongs to the product with the hidden gate's R: with linear_before_reset it is the gradient of that product, which the
// reset gate scales, else the scaled state.
struct GruGradientCell : GruCell {
  template <class T>
  static void back(const GradientCell<T>& cell, const GradientEntries<T>& entries, int64_t count) {
    const int64_t n = cell.hidden, width = cell.width;
    for (int64_t i = 0; i < count; ++i) {
      const GradientEntry<T>& at = entries[static_cast<size_t>(i)];
      cell.evaluate(at, 0, 0, 2);
      cell.evaluate(at, 1, 2, 3);
      const T *const update = at.values, *const proposed = update + 2 * width;
      T *const z = at.gates, *const next = z + 2 * n;
      for (int64_t j = 0; j < n; ++j) {
        z[j] += at.dh[j] * (at.before[j] - proposed[j]) * at.slopes[j];
        next[j] += at.dh[j] * (1 - update[j]) * at.slopes[2 * width + j];
        at.dh[j] *= update[j];
      }
    }
    if (!cell.variant)
      cell.multiply_rows(entries, count, gates, &GradientEntry<T>::gates, 2 * n, 2 * n, 3 * n, &GradientEntry<T>::part, true);
    for (int64_t i = 0; i < count; ++i) {
      const GradientEntry<T>& at = entries[static_cast<size_t>(i)];
      const T *const reset = at.values + width, *const slope = at.slopes + width;
      T *const r = at.gates + n, *const next = r + n;
      for (int64_t j = 0; j < n && cell.variant; ++j) {
        r[j] += next[j] * at.sums[3 * n + j] * slope[j];
        at.hidden_part[j] = at.part[j] + next[j] * reset[j];
      }
      for (int64_t j = 0; j < n && !cell.variant; ++j) {
        r[j] += at.part[j] * at.before[j] * slope[j];
        at.dh[j] += at.part[j] * reset[j];
        at.hidden_part[j] = at.sums[3 * n + j];
      }
    }
    cell.multiply_rows(entries, count, gates, &GradientEntry<T>::gates, 0, 0, 2 * n, &GradientEntry<T>::dh, true);
    if (cell.variant)
      cell.multiply_rows(entries, count, gates, &GradientEntry<T>::hidden_part, 0, 2 * n, 3 * n, &GradientEntry<T>::dh, true);
  }
};

struct LstmGradientCell : LstmCell {
  template <class T>
  static void back(const GradientCell<T>& cell, const GradientEntries<T>& entries, int64_t count) {
    for (int64_t i = 0; i < count; ++i) back_of(cell, entries[static_cast<size_t>(i)]);
    cell.multiply_rows(entries, count, gates, &GradientEntry<T>::gates, 0, 0, gates * cell.hidden, &GradientEntry<T>::dh, false);
  }

 private:
  template <class T>
  static void back_of(const GradientCell<T>& cell, const GradientEntry<T>& at) {
    const int64_t n = cell.hidden, width = cell.width;
    cell.evaluate(at, 0, 0, 3);
    cell.evaluate(at, 1, 3, 4);
    const T *const in = at.values, *const out = in + width, *const proposed = out + 2 * width;
    T* const forget = at.values + 2 * width;
    const T *const in_slope = at.slopes, *const out_slope = in_slope + width, *const cell_slope = out_slope + 2 * width;
    T* const forget_slope = at.slopes + 2 * width;
    for (int64_t j = 0; j < n && cell.variant; ++j) {
      forget[j] = 1 - in[j];
      forget_slope[j] = 0;
    }
    // The function's value and derivative at the state after the step.
    T *const state = at.part, *const state_slope = at.part + width;
    std::copy_n(at.next_c, width, state);
    activate_with_slopes(cell.activations[2], T(0), state, state_slope, width);
    T *const gate_in = at.gates, *const gate_out = gate_in + n, *const gate_forget = gate_out + n, *const gate_cell = gate_forget + n;
    for (int64_t j = 0; j < n; ++j) gate_out[j] += at.dh[j] * state[j] * out_slope[j];
    for (int64_t j = 0; j < n; ++j) at.dc[j] += at.dh[j] * out[j] * state_slope[j];
    for (int64_t j = 0; j < n && cell.peepholes; ++j) at.dc[j] += cell.peepholes[n + j] * gate_out[j];
    for (int64_t j = 0; j < n; ++j) {
      const T dc = at.dc[j], of_in = cell.variant ? proposed[j] - at.c[j] : proposed[j];
      gate_in[j] += dc * of_in * in_slope[j];
      gate_forget[j] += dc * at.c[j] * forget_slope[j];
      gate_cell[j] += dc * in[j] * cell_slope[j];
      at.dc[j] = dc * forget[j];
    }
    for (int64_t j = 0; j < n && cell.peepholes; ++j)
      at.dc[j] += cell.peepholes[j] * gate_in[j] + cell.peepholes[2 * n + j] * gate_forget[j];
    for (int64_t j = 0; j < n; ++j) {
      at.dp[j] += gate_in[j] * at.c[j];
      at.dp[n + j] += gate_out[j] * at.next_c[j];
      at.dp[2 * n + j] += gate_forget[j] * at.c[j];
    }
  }
};

}  // namespace heddle::cpu
