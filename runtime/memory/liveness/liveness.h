// Liveness: which values may share bytes, from the partial order of a plan's steps. offsets.h packs the result.
//
// Steps are numbered in plan order (a legal serial order: every edge goes to a higher number). Value a is before value b when every use
// of a (its definition counts as one) happens before b's definition in every legal execution; values that are not so ordered may be in
// use together and never share a byte. A step's inputs and outputs are used at the same step, so an output never takes the bytes of an
// input that dies there, unless the two are given as aliases.
//
// To keep a million steps cheap and wide nets from losing all sharing, the steps are covered with at most `width` chains; where a net is
// wider, order edges are added, which the scheduler must honour like any other (each chain by itself is a serial order). A clock per
// step, one entry a chain, then answers "before" in O(1) a pair: 4 x width bytes a step.
// Pure, deterministic; any thread.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "memory/offsets/offsets.h"

namespace heddle {

// A value that must be kept in memory. Scratch of a step is a value that the step defines and no step uses.
struct LiveValue {
  uint32_t definition = 0;  // the step that writes it; ignored when from_start
  int64_t bytes = 0;
  int64_t alignment = 64;   // power of two
  bool from_start = false;  // written before the first step (an input of the net)
  bool to_end = false;      // read after the last step (an output of the net)
};

struct LivenessProblem {
  uint32_t steps = 0;
  // Successors of step s: successors[successor_begin[s] .. successor_begin[s + 1]), all > s. Data edges from a definition to a use must
  // be among the edges, or follow from them; repeats are allowed.
  std::vector<uint32_t> successor_begin, successors;
  std::vector<float> cost;  // of each step, in any unit; empty: all the same. Guides which steps are chained where a net is too wide.
  std::vector<LiveValue> values;
  // Steps that read values[i]: uses[use_begin[i] .. use_begin[i + 1]), in any order.
  std::vector<uint32_t> use_begin, uses;
  // Pairs of values that have one buffer (an output in place of its input, a view of another). The caller must have proved that this is
  // right: no reader of the one may be disturbed by the writer of the other.
  std::vector<std::pair<uint32_t, uint32_t>> aliases;
  // The maximum number of chains, >= 1: about 4 x threads + streams. 1: the steps run one after the other in plan order.
  uint32_t width = 1;
  // If it is not 0, the chain of a step is its place in plan order modulo `lag`, whatever `width` is, so that no step starts before the one
  // `lag` places before it is done. Without such a bound, values that a late step reads stay alive until it has run. A prime is best: in a
  // net that repeats itself with a period that `lag` is a multiple of, steps that no other step waits for only wait for each other.
  uint32_t lag = 0;
  // Elementary operations to spend on the antichain bound; beyond, the bound is the most bytes alive in the plan's serial order.
  int64_t bound_effort = 5'000'000;
};

struct LivenessResult {
  offsets::Problem problem;                                // one buffer a set of aliases; intervals are those of the serial order
  std::vector<uint32_t> buffer_of;                         // buffer_of[i]: the buffer of values[i], in problem.buffers
  std::vector<std::pair<uint32_t, uint32_t>> added_edges;  // (from, to), from < to; none of them follows from the edges before it
  // The chain of each step and how many there are. Empty and 1 when width is 1: then no edges are added, plan order is the only order.
  std::vector<uint32_t> chain_of_step;
  uint32_t chains = 1;
};

// Makes the packing problem of `problem`'s values.
//   invalid_argument: an edge that does not go forward, a step or value that does not exist, lists of the wrong length, a value that is
//   used by a step before its definition in plan order, width 0. limit_exceeded: 2^31 steps or values and more.
Result<LivenessResult> plan_lifetimes(const LivenessProblem& problem);

}  // namespace heddle
