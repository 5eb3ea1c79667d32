// Sums in the order of their terms, by one thread.
#ifndef HEDDLE_GROUPED_SUM_CUH
#define HEDDLE_GROUPED_SUM_CUH

// Sums groups of 64 terms, and adds these up: long sums lose less.
template <class C>
struct GroupedSum {
  C total = 0, group = 0;
  int groups = 0, terms = 0;
  __device__ __forceinline__ void add(C x) {
    group = terms == 0 ? x : op_add(group, x);
    if (++terms == 64) close();
  }
  __device__ __forceinline__ void close() {
    if (terms == 0) return;
    total = groups == 0 ? group : op_add(total, group);
    groups = 1;
    terms = 0;
  }
};

#endif
