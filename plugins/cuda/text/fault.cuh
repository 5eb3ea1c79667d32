// Kernels report to the host, and obey what the host and other kernels say, through memory of the device (heddle/abi.h).
#ifndef HEDDLE_FAULT_CUH
#define HEDDLE_FAULT_CUH

struct Fault {
  u64 mark;
  i64 index, lower, upper;
};

// Reports an index that is outside of lower .. upper; the first one in a run is kept. p has the parameters of ParameterWriter::fault().
template <class P>
HEDDLE_INLINE void report_index(const P& p, i64 index, i64 lower, i64 upper) {
  if (!p.fault || atomicCAS(&p.fault->mark, (u64)0, (u64)p.fault_mark) != 0) return;
  p.fault->index = index;
  p.fault->lower = lower;
  p.fault->upper = upper;
}

// Returns true if a variable must stay as it is. p has the parameters of ParameterWriter::holds().
template <class P>
HEDDLE_INLINE bool is_held(const P& p) {
  bool held = false;
  for (i64 i = 0; i < p.hold_count; ++i) held = held || p.holds[i] != 0;
  return held;
}

#endif
