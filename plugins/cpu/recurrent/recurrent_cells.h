// One step of RNN, GRU and LSTM for several batch entries: from the gates' sums over X and the biases, and from the states before the step,
// to the states after it. `step` does all of it; `advance` the part that follows when the sums are complete. Gates are in the order of
// ONNX's W.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "recurrent/recurrent_activations.h"

namespace heddle::cpu {

// The largest number of batch entries that go through the steps together.
constexpr int64_t max_entries = 24;

// One direction's weights and functions.
template <class T>
struct Cell {
  const operators::RecurrentActivation* activations;
  const T* r;             // of all gates: panels whose columns are R's rows, each gate's `width` of them
  const T* hidden_bias;   // GRU with linear_before_reset: of R's hidden gate, or null
  const T* peepholes;     // LSTM: may be null
  int64_t hidden, width;  // width: padded<T>(hidden)
  T clip;                 // 0: none
  bool variant;           // LSTM: input_forget; GRU: linear_before_reset
  operators::CancellationPoll* poll;
};

// The values of a batch entry at a step: rows of scratch, of `width` elements for each gate or for the state.
template <class T>
struct Entry {
  T* sums;         // of all gates: X and the biases; then the complete arguments of the functions
  T* values;       // of all gates: the functions' values
  T* h;            // before the step, then after it
  const T* c;      // LSTM: before the step
  T* next_c;       // LSTM: after the step; may be c
  T* hidden_part;  // GRU: the factor of the hidden gate's R or, with linear_before_reset, that product
};
template <class T>
using Entries = std::array<Entry<T>, max_entries>;

// Adds `from` . R' of gates [first, first + gates) to `to`, from its element to_first on; both are rows of the entries.
template <class T>
void add_product(const Cell<T>& cell, const Entries<T>& entries, int64_t count, T* Entry<T>::*from, T* Entry<T>::*to, int64_t first,
                 int64_t gates, int64_t to_first) {
  std::array<const T*, max_entries> a;
  std::array<T*, max_entries> y;
  for (int64_t i = 0; i < count; ++i) {
    a[static_cast<size_t>(i)] = entries[static_cast<size_t>(i)].*from;
    y[static_cast<size_t>(i)] = entries[static_cast<size_t>(i)].*to;
  }
  PanelProduct<T> product = {a.data(),    y.data(),   cell.r + first * cell.width * cell.hidden, count, gates * cell.width,
                             cell.hidden, cell.hidden};
  product.y_first = to_first;
  product.adds = true;
  multiply(product, *cell.poll);
}

struct RnnCell {
  static constexpr int gates = 1;
  static constexpr bool has_cell = false, has_hidden_part = false;
  static constexpr const char* variant = nullptr;
  static std::vector<operators::RecurrentActivation::Kind> activations() { return {operators::RecurrentActivation::Kind::tanh}; }

  template <class T>
  static void step(const Cell<T>& cell, const Entries<T>& entries, int64_t count) {
    add_product(cell, entries, count, &Entry<T>::h, &Entry<T>::sums, 0, 1, 0);
    for (int64_t i = 0; i < count; ++i) advance(cell, entries[static_cast<size_t>(i)]);
  }
  template <class T>
  static void advance(const Cell<T>& cell, const Entry<T>& at) {
    std::copy_n(at.sums, cell.width, at.h);
    activate(cell.activations[0], cell.clip, at.h, cell.width);
  }
};

struct GruCell {
  static constexpr int gates = 3;  // update z, reset r, hidden
  static constexpr bool has_cell = false, has_hidden_part = true;
  static constexpr const char* variant = "linear_before_reset";
  static std::vector<operators::RecurrentActivation::Kind> activations() {
    return {operators::RecurrentActivation::Kind::sigmoid, operators::RecurrentActivation::Kind::tanh};
  }

  template <class T>
  static void step(const Cell<T>& cell, const Entries<T>& entries, int64_t count) {
    const int64_t width = cell.width;
    add_product(cell, entries, count, &Entry<T>::h, &Entry<T>::sums, 0, 2, 0);
    for (int64_t i = 0; i < count; ++i) {
      const Entry<T>& at = entries[static_cast<size_t>(i)];
      activate_update_and_reset(cell, at);
      const T* const reset = at.values + width;
      for (int64_t j = 0; j < width && !cell.variant; ++j) at.hidden_part[j] = reset[j] * at.h[j];
      if (cell.variant && cell.hidden_bias) std::copy_n(cell.hidden_bias, width, at.hidden_part);
      if (cell.variant && !cell.hidden_bias) std::fill_n(at.hidden_part, width, T(0));
    }
    if (cell.variant)
      add_product(cell, entries, count, &Entry<T>::h, &Entry<T>::hidden_part, 2, 1, 0);
    else
      add_product(cell, entries, count, &Entry<T>::hidden_part, &Entry<T>::sums, 2, 1, 2 * width);
    for (int64_t i = 0; i < count; ++i) {
      const Entry<T>& at = entries[static_cast<size_t>(i)];
      T* const sums = at.sums + 2 * width;
      for (int64_t j = 0; j < width && cell.variant; ++j) sums[j] += at.values[width + j] * at.hidden_part[j];
      blend(cell, at);
    }
  }
  template <class T>
  static void advance(const Cell<T>& cell, const Entry<T>& at) {
    activate_update_and_reset(cell, at);
    blend(cell, at);
  }

 private:
  template <class T>
  static void activate_update_and_reset(const Cell<T>& cell, const Entry<T>& at) {
    std::copy_n(at.sums, 2 * cell.width, at.values);
    activate(cell.activations[0], cell.clip, at.values, 2 * cell.width);
  }
  template <class T>
  static void blend(const Cell<T>& cell, const Entry<T>& at) {
    const int64_t width = cell.width;
    const T* const update = at.values;
    T* const next = at.values + 2 * width;
    std::copy_n(at.sums + 2 * width, width, next);
    activate(cell.activations[1], cell.clip, next, width);
    for (int64_t j = 0; j < width; ++j) at.h[j] = (1 - update[j]) * next[j] + update[j] * at.h[j];
  }
};

struct LstmCell {
  static constexpr int gates = 4;  // input, output, forget, cell
  static constexpr bool has_cell = true, has_hidden_part = false;
  static constexpr const char* variant = "input_forget";
  static std::vector<operators::RecurrentActivation::Kind> activations() {
    using Kind = operators::RecurrentActivation::Kind;
    return {Kind::sigmoid, Kind::tanh, Kind::tanh};
  }

  template <class T>
  static void step(const Cell<T>& cell, const Entries<T>& entries, int64_t count) {
    add_product(cell, entries, count, &Entry<T>::h, &Entry<T>::sums, 0, gates, 0);
    for (int64_t i = 0; i < count; ++i) advance(cell, entries[static_cast<size_t>(i)]);
  }
  // The sums must be complete but for the terms of the peepholes, which are added here if the cell has some.
  template <class T>
  static void advance(const Cell<T>& cell, const Entry<T>& at) {
    const int64_t width = cell.width;
    T *const in = at.values, *const out = in + width, *const forget = out + width, *const proposed = forget + width;
    add_peephole(cell, 0, at.c, at.sums);
    add_peephole(cell, 2, at.c, at.sums);
    std::copy_n(at.sums, gates * width, at.values);
    activate(cell.activations[0], cell.clip, in, width);
    if (!cell.variant) activate(cell.activations[0], cell.clip, forget, width);
    for (int64_t j = 0; j < width && cell.variant; ++j) forget[j] = 1 - in[j];
    activate(cell.activations[1], cell.clip, proposed, width);
    for (int64_t j = 0; j < width; ++j) at.h[j] = at.next_c[j] = forget[j] * at.c[j] + in[j] * proposed[j];
    add_peephole(cell, 1, at.next_c, at.sums);
    std::copy_n(at.sums + width, width, out);
    activate(cell.activations[0], cell.clip, out, width);
    activate(cell.activations[2], T(0), at.h, width);
    for (int64_t j = 0; j < width; ++j) at.h[j] *= out[j];
  }

 private:
  template <class T>
  static void add_peephole(const Cell<T>& cell, int64_t gate, const T* c, T* sums) {
    for (int64_t j = 0; j < cell.hidden && cell.peepholes; ++j)
      sums[gate * cell.width + j] += cell.peepholes[gate * cell.hidden + j] * c[j];
  }
};

}  // namespace heddle::cpu
