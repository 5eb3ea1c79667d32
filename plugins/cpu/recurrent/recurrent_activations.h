// The functions of recurrent layers, applied to rows of sums: rows of padded() elements (recurrent_panels.h).
#pragma once

#include "recurrent/recurrent_panels.h"
#include "shared/recurrent/recurrent_activation.h"

namespace heddle::cpu {

template <class T>
void clip_row(T clip, T* values, int64_t count) {
  for (int64_t i = 0; i < count && clip > 0; ++i) values[i] = std::min(std::max(values[i], -clip), clip);
}

// In place. `clip`: bounds the sums before the function; 0: no bound.
template <class T>
void activate(const operators::RecurrentActivation& function, T clip, T* values, int64_t count) {
  using Kind = operators::RecurrentActivation::Kind;
  const RecurrentLoops<T>& loops = recurrent_loops<T>();
  clip_row(clip, values, count);
  if (function.kind == Kind::sigmoid && loops.sigmoid) return loops.sigmoid(values, count);
  if (function.kind == Kind::tanh && loops.tanh) return loops.tanh(values, count);
  for (int64_t i = 0; i < count; ++i) values[i] = function(values[i]);
}

// The same, and gives the derivatives at the sums in `values`; at a bound the derivative is 0, as in PyTorch.
template <class T>
void activate_with_slopes(const operators::RecurrentActivation& function, T clip, T* values, T* slopes, int64_t count) {
  using Kind = operators::RecurrentActivation::Kind;
  const RecurrentLoops<T>& loops = recurrent_loops<T>();
  if (clip == 0 && function.kind == Kind::sigmoid && loops.sigmoid_slopes) return loops.sigmoid_slopes(values, slopes, count);
  if (clip == 0 && function.kind == Kind::tanh && loops.tanh_slopes) return loops.tanh_slopes(values, slopes, count);
  for (int64_t i = 0; i < count; ++i) slopes[i] = clip > 0 && (values[i] <= -clip || values[i] >= clip) ? T(0) : function.slope(values[i]);
  activate(function, clip, values, count);
}

}  // namespace heddle::cpu
