// The completion order that holds in every legal execution of a plan, run twice: it follows from the host's order of steps, streams, events
// and fences alone. An edge between steps that only enqueue orders their calls, but not their work. The work of a group is one point: it
// begins when all of its streams have come to it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "compile/plan.h"

namespace heddle::testing_devices {

class CompletionOrder {
 public:
  static constexpr uint32_t runs = 2;  // the second run meets work that the first has left in flight

  explicit CompletionOrder(const Plan& plan) : plan_(plan), count_(static_cast<uint32_t>(plan.steps.size())) {
    const uint32_t nodes = runs * stride();
    words_ = (nodes + 63) / 64;
    before_.assign(size_t{nodes} * words_, 0);
    find_predecessors();
    for (uint32_t run = 0; run < runs; ++run) {
      if (run > 0) add(end(run - 1), begin(run));
      for (uint32_t i = 0; i < count_; ++i) {
        connect_call(run, i);
        if (is_work(i) && launch_of(i) == i) connect_work(run, i);
      }
      add(begin(run), end(run));
      for (uint32_t i = 0; i < count_; ++i) add(call(run, i), end(run));
    }
  }

  // Points of run `run`: the host begins and ends the run; it is in a step's call, or a fence is passed; the step's work is done, which on
  // the host is during its call.
  uint32_t begin(uint32_t run) const { return run * stride(); }
  uint32_t end(uint32_t run) const { return begin(run) + stride() - 1; }
  uint32_t call(uint32_t run, uint32_t step) const { return begin(run) + 1 + 2 * step; }
  uint32_t work(uint32_t run, uint32_t step) const { return last_call(run, step) + (is_work(step) ? 1 : 0); }
  // Returns true if `earlier` is over when `later` begins.
  bool is_before(uint32_t earlier, uint32_t later) const {
    return ((before_[size_t{later} * words_ + earlier / 64] >> (earlier % 64)) & 1) != 0;
  }
  // Returns the same for steps of one run.
  bool step_is_before(uint32_t earlier, uint32_t later) const { return is_before(work(0, earlier), work(0, later)); }
  // Returns true if two calls for one stream may be in progress at once, which a device may refuse.
  bool calls_may_overlap() const {
    for (uint32_t later = 0; later < count_; ++later)
      for (uint32_t earlier = 0; earlier < later; ++earlier)
        if ((same_stream(earlier, later) && !is_before(last_call(0, earlier), call(0, later))) ||
            (launch_of(earlier) == later && !is_before(call(0, earlier), call(0, later))))
          return true;
    return false;
  }

 private:
  uint32_t stride() const { return 2 * count_ + 2; }
  const DeviceWork* work_of(uint32_t step) const { return plan_.steps[step].on_device.get(); }
  // The step in whose call the work of `step` is enqueued.
  uint32_t launch_of(uint32_t step) const {
    return work_of(step) && work_of(step)->launched_by >= 0 ? static_cast<uint32_t>(work_of(step)->launched_by) : step;
  }
  uint32_t last_call(uint32_t run, uint32_t step) const { return call(run, launch_of(step)); }
  bool is_work(uint32_t step) const { return work_of(step) && work_of(step)->kind != DeviceWork::Kind::fence; }
  bool same_stream(uint32_t a, uint32_t b) const {
    return is_work(a) && is_work(b) && work_of(a)->device == work_of(b)->device && work_of(a)->stream == work_of(b)->stream;
  }

  void find_predecessors() {
    predecessors_.resize(count_);
    const StepGraph& graph = plan_.graph;
    for (uint32_t u = 0; u < count_; ++u)
      for (uint32_t e = graph.successor_begin[u]; e < graph.successor_begin[u + 1]; ++e) predecessors_[graph.successors[e]].push_back(u);
  }
  // REQUIRES: points are connected in such an order that all points before `from` are already connected to it.
  void add(uint32_t from, uint32_t to) {
    uint64_t* const row = &before_[size_t{to} * words_];
    for (size_t w = 0; w < words_; ++w) row[w] |= before_[size_t{from} * words_ + w];
    row[from / 64] |= uint64_t{1} << (from % 64);
  }
  void connect_call(uint32_t run, uint32_t step) {
    const uint32_t here = call(run, step);
    add(begin(run), here);
    for (const uint32_t u : predecessors_[step]) add(call(run, u), here);
    for (uint32_t u = 0; u < step; ++u) {
      if (is_work(u) && work_of(u)->fence == static_cast<int32_t>(step)) add(work(run, u), here);
      // Updates begin when no step is in flight.
      if (u < plan_.graph.tail_begin && step >= plan_.graph.tail_begin) add(call(run, u), here);
    }
  }
  // Work waits for streams and events only as far as their calls have certainly been made before: a wait is for the event as recorded until
  // then.
  void connect_work(uint32_t run, uint32_t step) {
    add(call(run, step), work(run, step));
    for (const uint32_t member : work_of(step)->group)
      if (member != step) connect_part(run, member);
    connect_part(run, step);
  }
  void connect_part(uint32_t run, uint32_t step) {
    const std::vector<uint32_t>& waits = work_of(step)->waits;
    const bool takes_place = launch_of(step) == step || is_before(call(run, step), last_call(run, step));
    for (uint32_t r = 0; r <= run; ++r)
      for (uint32_t u = 0; u < count_; ++u) {
        if (!is_work(u) || !is_before(last_call(r, u), last_call(run, step))) continue;
        const int32_t records = work_of(u)->records;
        const bool awaited = records >= 0 && takes_place && is_before(last_call(r, u), call(run, step)) &&
                             std::find(waits.begin(), waits.end(), static_cast<uint32_t>(records)) != waits.end();
        if (awaited || same_stream(u, step)) add(work(r, u), work(run, step));
      }
  }

  const Plan& plan_;
  const uint32_t count_;
  size_t words_ = 0;              // words in a row of before_
  std::vector<uint64_t> before_;  // for each point: the bits of the points before it
  std::vector<std::vector<uint32_t>> predecessors_;
};

}  // namespace heddle::testing_devices
