// Lists of ready steps. A ready step is in exactly one list, so all lists of all threads share one array of links: no list allocates or
// overflows, and handing a chain of steps to another thread is handing over its first index.
//
// A step's link lies beside its counter: the thread that counted it down to zero has the cache line at hand.
//
// Not thread-safe: a list belongs to one thread, and so do the links of what is in it.
#pragma once

#include <cstdint>

namespace heddle {

constexpr uint32_t no_step = UINT32_MAX;

constexpr uint32_t step_begun = UINT32_MAX;

// The state of a step that changes during a run.
struct StepNode {
  uint32_t pending = 0;     // predecessors not done, accessed through atomic_ref; step_begun once a step that may suspend was run
  uint32_t link = no_step;  // the next step of the same chain
};

// Linked steps, the first to be run in front; the last one's link is no_step.
struct StepChain {
  uint32_t head = no_step;
  uint32_t count = 0;

  bool empty() const { return count == 0; }
  void push(uint32_t step, StepNode* nodes) {
    nodes[step].link = head;
    head = step;
    ++count;
  }
  uint32_t pop(const StepNode* nodes) {
    const uint32_t step = head;
    head = nodes[step].link;
    --count;
    return step;
  }
  // Removes the entry `position` places after the front.
  uint32_t pop_at(uint32_t position, StepNode* nodes) {
    if (position == 0) return pop(nodes);
    uint32_t before = head;
    while (--position > 0) before = nodes[before].link;
    const uint32_t step = nodes[before].link;
    nodes[before].link = nodes[step].link;
    --count;
    return step;
  }
  // Cuts off the first `n` entries; 0 < n <= count.
  StepChain split(uint32_t n, StepNode* nodes) {
    const StepChain front{head, n};
    uint32_t last = head;
    for (uint32_t i = 1; i < n; ++i) last = nodes[last].link;
    head = nodes[last].link;
    nodes[last].link = no_step;
    count -= n;
    return front;
  }
  // Inserts `step` after entry `after` (no_step: at the front) and after the following entries for which `goes_behind(entry)` is true, but
  // looks at 8 entries at most: the order of a long list is approximate. Returns `step`, a good `after` for the next one when steps come in
  // order.
  template <class GoesBehind>
  uint32_t insert(uint32_t step, uint32_t after, StepNode* nodes, GoesBehind&& goes_behind) {
    uint32_t next = after == no_step ? head : nodes[after].link;
    for (int looked = 0; looked < 8 && next != no_step && goes_behind(next); ++looked) {
      after = next;
      next = nodes[after].link;
    }
    nodes[step].link = next;
    if (after == no_step)
      head = step;
    else
      nodes[after].link = step;
    ++count;
    return step;
  }
};

}  // namespace heddle
