// RNN, GRU and LSTM after the product of X and W: states before the first step, and the new states of a step from its products.
//
// The rows of X are multiplied with W beforehand (p.projections, for all steps, in X's order). The states are multiplied with R
// (p.products) by other kernels in each step, or, where R is small, by a block that walks through all steps of a direction and batch entry.
// Backward directions walk from the last step on: those of a sequence that is shorter pass until it begins. An invalid sequence length
// gives NaN, and is reported (text/fault.cuh).
//
// F is generated (generate/operators/recurrent_launches.cc): types Index and C (a float), CELL and other constants, and
//   bool backward(Index d)   i64 length(p, Index b)   C bias(p, Index at)   C peephole(p, Index at)   C initial_h(p, Index at)
//   C initial_c(p, Index at)   C activated0..2(p, Index d, C)   void put_y(p, Index at, C)   void put_h(p, ...)   void put_c(p, ...)
//   void put_sum(p, ...): values kept for a gradient (shared/recurrent/recurrent_shape.h), where KEEPS_SUMS
#ifndef HEDDLE_RECURRENT_CUH
#define HEDDLE_RECURRENT_CUH

enum RecurrentCell { cell_rnn, cell_gru, cell_lstm };

#define HEDDLE_ACTIVATION(name, value)               \
  template <class C>                                 \
  HEDDLE_INLINE C activation_##name(C x, C a, C b) { \
    return value;                                    \
  }
HEDDLE_ACTIVATION(relu, x > 0 ? x : (C)0)
HEDDLE_ACTIVATION(tanh, op_tanh(x))
HEDDLE_ACTIVATION(sigmoid, op_sigmoid(x))
HEDDLE_ACTIVATION(affine, a* x + b)
HEDDLE_ACTIVATION(leaky_relu, x < 0 ? a * x : x)
HEDDLE_ACTIVATION(thresholded_relu, x > a ? x : (C)0)
HEDDLE_ACTIVATION(scaled_tanh, a* op_tanh(b* x))
HEDDLE_ACTIVATION(hard_sigmoid, op_min(op_max(a* x + b, (C)0), (C)1))
HEDDLE_ACTIVATION(elu, x < 0 ? a * op_expm1(x) : x)
HEDDLE_ACTIVATION(softsign, x / (1 + op_abs(x)))
HEDDLE_ACTIVATION(softplus, x > 20 ? x : op_log1p(op_exp(x)))

HEDDLE_INLINE float not_a_number(float) { return __int_as_float(0x7fc00000); }
HEDDLE_INLINE double not_a_number(double) { return __longlong_as_double(0x7ff8000000000000ll); }

// Element j of the state of direction d and batch entry b, which is number `at` of all.
template <class F, class P>
struct StateElement {
  typedef typename F::Index Index;
  typedef typename F::C C;
  const P& p;
  Index at, j, b, d;
  __device__ __forceinline__ StateElement(const P& parameters, Index number) : p(parameters), at(number) {
    const Index unit = number / (Index)p.hidden;
    j = number - unit * (Index)p.hidden;
    d = unit / (Index)p.batches;
    b = unit - d * (Index)p.batches;
  }
  // Returns its position in the initial and the last state.
  __device__ __forceinline__ Index outside() const { return F::BATCH_FIRST ? (b * (Index)F::DIRECTIONS + d) * (Index)p.hidden + j : at; }
  __device__ __forceinline__ Index in_y(Index t) const {
    const Index row =
        F::BATCH_FIRST ? (b * (Index)p.times + t) * (Index)F::DIRECTIONS + d : (t * (Index)F::DIRECTIONS + d) * (Index)p.batches + b;
    return row * (Index)p.hidden + j;
  }
  // Returns the position of its element of gate 0 among the projections of step t; multiplied() returns that in the products.
  __device__ __forceinline__ Index projected(Index t) const {
    const Index row = F::BATCH_FIRST ? b * (Index)p.times + t : t * (Index)p.batches + b;
    return (d * (Index)p.times * (Index)p.batches + row) * (Index)(F::GATES * p.hidden) + j;
  }
  __device__ __forceinline__ Index multiplied() const { return (d * (Index)p.batches + b) * (Index)(F::GATES * p.hidden) + j; }
  // Returns the position of the kept sum of a gate of step t, or of the values kept after those of all gates.
  __device__ __forceinline__ Index kept(Index t, int gate) const {
    const Index row = F::BATCH_FIRST ? b * (Index)p.times + t : t * (Index)p.batches + b;
    return ((row * (Index)F::DIRECTIONS + d) * (Index)F::KEPT_GATES + (Index)gate) * (Index)p.hidden + j;
  }
  __device__ __forceinline__ C keep_sum(int gate, C sum) const {
    if constexpr (F::KEEPS_SUMS) F::put_sum(p, kept(step(), gate), sum);
    return sum;
  }
  __device__ __forceinline__ bool has_length() const {
    const i64 length = F::length(p, b);
    if (length >= 0 && length <= p.times) return true;
    report_index(p, length, 0, p.times);
    return false;
  }
  __device__ __forceinline__ Index step() const { return (Index)(F::backward(d) ? p.times - 1 - p.step : p.step); }
  __device__ __forceinline__ C clipped(C x) const {
    const C most = (C)p.clip;
    return !(most > 0) ? x : x < -most ? -most : x > most ? most : x;
  }
  // X W' and H R' of a gate, each with its bias.
  __device__ __forceinline__ C from_input(int gate) const {
    const Index row = (Index)(gate * p.hidden);
    return p.projections[projected(step()) + row] + F::bias(p, d * (Index)(2 * F::GATES * p.hidden) + row + j);
  }
  __device__ __forceinline__ C from_state(int gate) const {
    const Index row = (Index)(gate * p.hidden);
    return p.products[multiplied() + row] + F::bias(p, d * (Index)(2 * F::GATES * p.hidden) + (Index)(F::GATES * p.hidden) + row + j);
  }
  __device__ __forceinline__ C gate(int number) const { return from_input(number) + from_state(number); }
  // Returns a gate's contribution of the cell; without peepholes 0, even if the cell is infinite.
  __device__ __forceinline__ C seen(int number, C cell) const {
    if constexpr (F::PEEPHOLES) return F::peephole(p, d * (Index)(3 * p.hidden) + (Index)(number * p.hidden) + j) * cell;
    return (C)0;
  }
  __device__ __forceinline__ void keep(C h, C c, bool last) const {
    p.h[at] = h;
    if constexpr (F::CELL == cell_lstm) p.c[at] = c;
    if (!last) return;
    F::put_h(p, outside(), h);
    F::put_c(p, outside(), c);
  }
};

#define HEDDLE_STATE_ELEMENTS(F, P, p, element)                                                                             \
  for (typename F::Index at = (typename F::Index)blockIdx.x * blockDim.x + threadIdx.x; at < (typename F::Index)p.elements; \
       at += (typename F::Index)gridDim.x * blockDim.x)                                                                     \
    if (const StateElement<F, P> element(p, at); true)

template <class F, class E>
HEDDLE_INLINE void begin_at(const E& e) {
  typedef typename F::C C;
  const bool valid = e.has_length();
  const C none = not_a_number((C)0);
  e.keep(valid ? F::initial_h(e.p, e.outside()) : none, valid ? F::initial_c(e.p, e.outside()) : none, e.p.times == 0);
}

template <class F, class P>
HEDDLE_INLINE void recurrent_begin(const P& p) {
  HEDDLE_STATE_ELEMENTS(F, P, p, e) begin_at<F>(e);
}

// GRU whose product for the hidden gate uses r * h: the update gate replaces its product. Returns r * h.
template <class F, class P, class E>
HEDDLE_INLINE typename F::C reset_at(const P& p, const E& e) {
  typedef typename F::C C;
  const C z = F::activated0(p, e.d, e.clipped(e.keep_sum(0, e.gate(0)))), r = F::activated0(p, e.d, e.clipped(e.keep_sum(1, e.gate(1))));
  p.products[e.multiplied()] = z;
  return e.keep_sum(3, r * p.h[e.at]);
}

template <class F, class P>
HEDDLE_INLINE void recurrent_reset(const P& p) {
  HEDDLE_STATE_ELEMENTS(F, P, p, e) p.reset[at] = reset_at<F>(p, e);
}

template <class F, class P, class E>
HEDDLE_INLINE typename F::C gru_state(const P& p, const E& e) {
  typedef typename F::C C;
  C z, recurrent;
  if constexpr (F::RESETS_BEFORE) {
    z = p.products[e.multiplied()];
    recurrent = e.from_state(2);
  } else {
    z = F::activated0(p, e.d, e.clipped(e.keep_sum(0, e.gate(0))));
    recurrent = F::activated0(p, e.d, e.clipped(e.keep_sum(1, e.gate(1)))) * e.keep_sum(3, e.from_state(2));
  }
  const C next = F::activated1(p, e.d, e.clipped(e.keep_sum(2, e.from_input(2) + recurrent)));
  return (1 - z) * next + z * p.h[e.at];
}

// The gates are input, output, forget, cell. Returns h.
template <class F, class P, class E>
HEDDLE_INLINE typename F::C lstm_state(const P& p, const E& e, typename F::C* c) {
  typedef typename F::C C;
  const C before = *c;
  const C in = F::activated0(p, e.d, e.clipped(e.keep_sum(0, e.gate(0) + e.seen(0, before))));
  C forget;
  if constexpr (F::INPUT_FORGET) {
    forget = 1 - in;
    if constexpr (F::KEEPS_SUMS) e.keep_sum(2, e.gate(2) + e.seen(2, before));
  } else {
    forget = F::activated0(p, e.d, e.clipped(e.keep_sum(2, e.gate(2) + e.seen(2, before))));
  }
  const C after = forget * before + in * F::activated1(p, e.d, e.clipped(e.keep_sum(3, e.gate(3))));
  *c = after;
  return F::activated0(p, e.d, e.clipped(e.keep_sum(1, e.gate(1) + e.seen(1, after)))) * F::activated2(p, e.d, after);
}

template <class F, class P, class E>
HEDDLE_INLINE void step_at(const P& p, const E& e) {
  typedef typename F::C C;
  const typename F::Index t = e.step();
  C h = p.h[e.at], c = (C)0, y = (C)0;
  if constexpr (F::CELL == cell_lstm) c = p.c[e.at];
  if ((i64)t < F::length(p, e.b)) {
    if constexpr (F::CELL == cell_rnn) h = F::activated0(p, e.d, e.clipped(e.keep_sum(0, e.gate(0))));
    if constexpr (F::CELL == cell_gru) h = gru_state<F>(p, e);
    if constexpr (F::CELL == cell_lstm) h = lstm_state<F>(p, e, &c);
    y = h;
  } else {
    for (int gate = 0; gate < F::KEPT_GATES; ++gate) e.keep_sum(gate, (C)0);
  }
  if (!e.has_length()) {
    h = c = y = not_a_number((C)0);
    for (int gate = 0; gate < F::KEPT_GATES; ++gate) e.keep_sum(gate, y);
  }
  F::put_y(p, e.in_y(t), y);
  e.keep(h, c, p.step + 1 == p.times);
}

template <class F, class P>
HEDDLE_INLINE void recurrent_step(const P& p) {
  HEDDLE_STATE_ELEMENTS(F, P, p, e) step_at<F>(p, e);
}

struct ProductSum {
  template <class C>
  HEDDLE_INLINE_MEMBER C combine(C a, C b) {
    return a + b;
  }
};

// Multiplies `state` by the rows of R of gates [first, last), each by a warp, for unit d * batches + b.
template <class F, class P>
HEDDLE_INLINE void multiply_rows(const P& p, typename F::Index unit, const typename F::C* state, int first, int last) {
  typedef typename F::Index Index;
  typedef typename F::C C;
  const Index hidden = (Index)p.hidden, rows = (Index)F::GATES * hidden, d = unit / (Index)p.batches;
  for (Index row = (Index)first * hidden + threadIdx.x / 32; row < (Index)last * hidden; row += blockDim.x / 32) {
    C sum = (C)0;
    for (Index k = threadIdx.x % 32; k < hidden; k += 32) sum += p.weights[(d * rows + row) * hidden + k] * state[k];
    sum = across_lanes<ProductSum, 32>(sum);
    if (threadIdx.x % 32 == 0) p.products[unit * rows + row] = sum;
  }
}

// Runs all steps of a direction and batch entry in one block, for one after the other if there are more of those than blocks.
template <class F, class P>
HEDDLE_INLINE void recurrent_walk(const P& p) {
  typedef typename F::Index Index;
  typedef typename F::C C;
  HEDDLE_SHARED(C, state, F::MOST_HIDDEN);
  const Index hidden = (Index)p.hidden, units = (Index)F::DIRECTIONS * (Index)p.batches;
  for (Index unit = (Index)blockIdx.x; unit < units; unit += (Index)gridDim.x) {
    const Index first = unit * hidden;
    P now = p;
    for (Index j = threadIdx.x; j < hidden; j += blockDim.x) begin_at<F>(StateElement<F, P>(p, first + j));
    for (now.step = 0; now.step < p.times; ++now.step) {
      for (Index j = threadIdx.x; j < hidden; j += blockDim.x) state[j] = p.h[first + j];  // this thread's own
      __syncthreads();
      multiply_rows<F>(p, unit, state, 0, F::RESETS_BEFORE ? 2 : F::GATES);
      __syncthreads();
      if constexpr (F::RESETS_BEFORE) {
        for (Index j = threadIdx.x; j < hidden; j += blockDim.x) state[j] = reset_at<F>(now, StateElement<F, P>(now, first + j));
        __syncthreads();
        multiply_rows<F>(p, unit, state, 2, 3);
        __syncthreads();
      }
      for (Index j = threadIdx.x; j < hidden; j += blockDim.x) step_at<F>(now, StateElement<F, P>(now, first + j));
    }
  }
}

#endif
