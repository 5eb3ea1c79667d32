// What the cells of RNN, GRU and LSTM and of their gradients do with the rows of a matrix of weights. Additions are in a fixed order.
#pragma once

#include <cstdint>

namespace heddle::cpu {

// Eight sums side by side, so that compilers use vectors.
template <class T>
T dot(const T* a, const T* b, int64_t n) {
  T sums[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int k = 0; k < 8; ++k) sums[k] += a[i + k] * b[i + k];
  T sum = ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
  for (; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// sums += factors[0] * row 0 + ..., one after the other, of four rows that lie one behind the other.
template <class T>
void add_four_rows(const T* factors, const T* rows, T* sums, int64_t n) {
  const T f0 = factors[0], f1 = factors[1], f2 = factors[2], f3 = factors[3];
  const T *const r0 = rows, *const r1 = r0 + n, *const r2 = r1 + n, *const r3 = r2 + n;
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    T block[8];  // so that compilers use vectors
    for (int k = 0; k < 8; ++k) block[k] = sums[i + k];
    for (int k = 0; k < 8; ++k) block[k] += f0 * r0[i + k];
    for (int k = 0; k < 8; ++k) block[k] += f1 * r1[i + k];
    for (int k = 0; k < 8; ++k) block[k] += f2 * r2[i + k];
    for (int k = 0; k < 8; ++k) block[k] += f3 * r3[i + k];
    for (int k = 0; k < 8; ++k) sums[i + k] = block[k];
  }
  for (; i < n; ++i) sums[i] = (((sums[i] + f0 * r0[i]) + f1 * r1[i]) + f2 * r2[i]) + f3 * r3[i];
}

// sums += factor * row
template <class T>
void add_row(T factor, const T* row, T* sums, int64_t n) {
  for (int64_t i = 0; i < n; ++i) sums[i] += factor * row[i];
}

}  // namespace heddle::cpu
