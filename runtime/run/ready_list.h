// Lists of ready steps. A ready step is in exactly one list, so all lists of all threads share one array of links: no list allocates or
// overflows, and handing a chain of steps to another thread is handing over its first index.
//
// Not thread-safe: a list belongs to one thread, and so do the links of what is in it.
#pragma once

#include <cstdint>

namespace heddle {

constexpr uint32_t no_step = UINT32_MAX;

// Steps linked through `links`, the first to be run in front; the last one's link is no_step.
struct StepChain {
  uint32_t head = no_step;
  uint32_t count = 0;

  bool empty() const { return count == 0; }
  void push(uint32_t step, uint32_t* links) {
    links[step] = head;
    head = step;
    ++count;
  }
  uint32_t pop(const uint32_t* links) {
    const uint32_t step = head;
    head = links[step];
    --count;
    return step;
  }
  // Removes the entry `position` places behind the front.
  uint32_t pop_at(uint32_t position, uint32_t* links) {
    if (position == 0) return pop(links);
    uint32_t before = head;
    while (--position > 0) before = links[before];
    const uint32_t step = links[before];
    links[before] = links[step];
    --count;
    return step;
  }
  // Cuts off the first `n` entries; 0 < n <= count.
  StepChain split(uint32_t n, uint32_t* links) {
    const StepChain front{head, n};
    uint32_t last = head;
    for (uint32_t i = 1; i < n; ++i) last = links[last];
    head = links[last];
    links[last] = no_step;
    count -= n;
    return front;
  }
  // Puts `step` behind entry `after` (no_step: at the front) and those behind it that `goes_behind(entry)`, but looks at a few only: the
  // order of a long list is approximate. Returns `step`, a good `after` for the next one when steps come in order.
  template <class GoesBehind>
  uint32_t insert(uint32_t step, uint32_t after, uint32_t* links, GoesBehind&& goes_behind) {
    uint32_t next = after == no_step ? head : links[after];
    for (int looked = 0; looked < 8 && next != no_step && goes_behind(next); ++looked) {
      after = next;
      next = links[after];
    }
    links[step] = next;
    if (after == no_step)
      head = step;
    else
      links[after] = step;
    ++count;
    return step;
  }
};

}  // namespace heddle
